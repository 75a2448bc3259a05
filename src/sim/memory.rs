//! The shared memory of one replica: values with a compare-and-swap, as Envoy offers them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use headgate_core::replica::shared::{Expected, Place, Stored};

#[derive(Debug)]
struct Value {
    bytes: Vec<u8>,
    version: u32,
}

/// Values by place. Lives as long as the replica's process.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    values: RefCell<HashMap<Place, Value>>,
    writes: Cell<u32>,
    /// Writes that came too late.
    pub(crate) races_lost: Cell<u64>,
    /// Broken on purpose: a write happens whatever was there.
    pub(crate) is_blind: bool,
}

impl Memory {
    pub(crate) fn get(&self, place: Place) -> Stored {
        let values = self.values.borrow();
        match values.get(&place) {
            Some(value) => Stored {
                value: value.bytes.clone(),
                version: Expected::Version(value.version),
            },
            None => Stored {
                value: Vec::new(),
                version: Expected::Absent,
            },
        }
    }

    pub(crate) fn set(&self, place: Place, bytes: &[u8], expected: Expected) -> bool {
        let mut values = self.values.borrow_mut();
        let present = values
            .get(&place)
            .map_or(Expected::Absent, |value| Expected::Version(value.version));
        if present != expected {
            self.races_lost.set(self.races_lost.get().saturating_add(1));
            if !self.is_blind {
                return false;
            }
        }
        // Never 0, which has another meaning at the host.
        let version = self.writes.get().wrapping_add(1).max(1);
        self.writes.set(version);
        let bytes = bytes.to_vec();
        values.insert(place, Value { bytes, version });
        true
    }
}
