//! Keys: a 128-bit keyed hash stands for the values a rule counts by. The values come from hostile
//! requests, so the hash is keyed with a secret of the fleet, and every part carries its length, so
//! that no two different lists of values read the same.

use std::fmt;
use std::hash::Hasher as _;
use std::rc::Rc;

use siphasher::sip128::{Hasher128 as _, SipHasher24};

use crate::units::Span;

/// Secret of one fleet, from Welcome.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct HashKey([u8; 16]);

impl HashKey {
    /// Wraps 16 random bytes.
    #[must_use]
    pub const fn new(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// The bytes, for the wire and the store.
    #[must_use]
    pub const fn bytes(self) -> [u8; 16] {
        self.0
    }
}

impl fmt::Debug for HashKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HashKey(secret)")
    }
}

/// Identity of one key's counters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct KeyHash(u128);

impl KeyHash {
    /// From a number.
    #[must_use]
    pub const fn new(value: u128) -> Self {
        Self(value)
    }

    /// As a number.
    #[must_use]
    pub const fn get(self) -> u128 {
        self.0
    }

    /// From 16 big-endian bytes; `None` for another length.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes
            .try_into()
            .ok()
            .map(|bytes| Self(u128::from_be_bytes(bytes)))
    }

    /// 16 big-endian bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// Which of `count` buckets the key lives in; 0 if there are none. The hash is keyed, so no
    /// client can aim at one bucket.
    #[must_use]
    pub fn bucket(self, count: u32) -> u32 {
        let index = self.0.checked_rem(u128::from(count)).unwrap_or(0);
        u32::try_from(index).unwrap_or(0)
    }
}

impl fmt::Debug for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// One value that a rule counts by; `None` where the request has none and the rule lets such
/// requests share a key.
pub type Value = Option<Rc<[u8]>>;

/// What a key is made of: the rule's identity, how it counts, and the request's values.
#[derive(Clone, Copy, Debug)]
pub struct KeyParts<'a> {
    /// The rule's domain.
    pub domain: &'a str,
    /// The rule's name.
    pub rule: &'a str,
    /// The algorithm's number on the wire: another algorithm is another counter.
    pub algorithm: u32,
    /// The period: another period is another counter.
    pub period: Span,
    /// The values, in the order of the rule's key.
    pub values: &'a [Value],
}

impl KeyParts<'_> {
    /// The key these parts stand for.
    #[must_use]
    pub fn hash(&self, secret: HashKey) -> KeyHash {
        let mut hasher = SipHasher24::new_with_key(&secret.0);
        write_part(&mut hasher, self.domain.as_bytes());
        write_part(&mut hasher, self.rule.as_bytes());
        hasher.write(&self.algorithm.to_le_bytes());
        hasher.write(&self.period.get().to_le_bytes());
        for value in self.values {
            // A value that is missing is not an empty one.
            hasher.write_u8(u8::from(value.is_some()));
            write_part(&mut hasher, value.as_deref().unwrap_or_default());
        }
        KeyHash(hasher.finish128().as_u128())
    }
}

/// Length first: ("ab", "c") and ("a", "bc") differ.
fn write_part(hasher: &mut SipHasher24, part: &[u8]) {
    let length = u64::try_from(part.len()).unwrap_or(u64::MAX);
    hasher.write(&length.to_le_bytes());
    hasher.write(part);
}

/// What may be shown of a value: keys are secrets. The first characters of a long one let a person
/// recognise it; eight more unknown bytes at least keep it from being guessed.
#[must_use]
pub fn masked(value: &Value) -> String {
    const SHOWN: usize = 4;
    const HIDDEN_MIN: usize = 8;
    let Some(value) = value else {
        return "(missing)".to_owned();
    };
    let Some((shown, hidden)) = value.split_at_checked(SHOWN) else {
        return "***".to_owned();
    };
    let printable = shown.iter().all(u8::is_ascii_graphic);
    if hidden.len() < HIDDEN_MIN || !printable {
        return "***".to_owned();
    }
    format!("{}***", String::from_utf8_lossy(shown))
}

#[cfg(test)]
mod tests;
