//! Headgate's proxy-wasm filter: holds every request of an Envoy against the rules, and decides it
//! from the leases in Envoy's shared data.
//!
//! `host.rs` alone names the host's API, and exists only as wasm; everything else sees Envoy
//! through [`host_api::Host`] and is tested natively.

pub mod decide;
pub mod filter;
pub mod host_api;
pub mod metrics;
pub mod reply;
pub mod root;
pub mod shared;
pub mod upstream;
pub mod worker;

// A shipped plugin keeps every rule of the protocol.
#[cfg(target_arch = "wasm32")]
const _: () = assert!(!headgate_core::trap::ARE_BUILT_IN);

#[cfg(test)]
mod fake;
#[cfg(target_arch = "wasm32")]
mod host;
