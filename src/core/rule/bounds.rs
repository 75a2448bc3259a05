//! How much a configuration may hold, and what holds where it says nothing.

use crate::message::NAME_BYTES_MAX;
use crate::units::Span;

/// Longest configuration text: Kubernetes stores no larger object, so nobody can have one.
pub const MAX_CONFIG_BYTES: usize = 1 << 20;
/// Most rules: every request is held against each, at about 2 microseconds of host calls, so this
/// many cost a request an eighth of a millisecond.
pub const MAX_RULES: usize = 64;
/// Longest rule name, and longest domain: what the wire takes.
pub const MAX_NAME_BYTES: usize = NAME_BYTES_MAX;
/// Most headers of one key: reading one costs a request about 0.8 microseconds.
pub const MAX_KEY_HEADERS: usize = 8;
/// Longest header name; the longest registered one has 41 characters.
pub const MAX_HEADER_BYTES: usize = 128;
/// Largest limit: the largest number that a double counts up to exactly (2^53), and Istio turns
/// every number into a double. It also leaves room to add a thousand limits in 64 bits.
pub const MAX_AMOUNT: u64 = 1 << 53;
/// Longest cluster name. It goes to Envoy in a length-prefixed field inside a text argument, and
/// a prefix of more than one byte is not valid text.
pub const MAX_CLUSTER_BYTES: usize = 125;
/// Longest authority; the same reason.
pub const MAX_AUTHORITY_BYTES: usize = 125;
/// Shortest time a request may wait: Envoy counts in milliseconds, and takes 0 for no bound.
pub const MIN_TIMEOUT: Span = Span::from_millis(1);
/// Longest: a replica that was silent for longer has lost its seat, so no answer would come.
pub const MAX_TIMEOUT: Span = Span::from_secs(5);
/// Used if none is written: one round trip inside a cluster and the recalls, with room.
pub const DEFAULT_TIMEOUT: Span = Span::from_millis(100);
/// Used if none is written.
pub const DEFAULT_DOMAIN: &str = "default";
/// Used if none is written. Istio's cluster names are no valid authority, so they cannot serve.
pub const DEFAULT_AUTHORITY: &str = "headgate";
