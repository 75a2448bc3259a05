//! Shared memory of one replica, with the compare-and-swap that Envoy has.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::replica::shared::{Expected, Place, Shared, SharedError, Stored};

/// Shared memory of one replica.
#[derive(Default)]
pub(crate) struct Memory {
    values: RefCell<BTreeMap<Place, (Vec<u8>, u32)>>,
    writes: RefCell<u32>,
}

impl Shared for Memory {
    fn get(&self, place: Place) -> Result<Stored, SharedError> {
        let values = self.values.borrow();
        Ok(values.get(&place).map_or(
            Stored {
                value: Vec::new(),
                version: Expected::Absent,
            },
            |(value, version)| Stored {
                value: value.clone(),
                version: Expected::Version(*version),
            },
        ))
    }

    fn set(&self, place: Place, value: &[u8], expected: Expected) -> Result<bool, SharedError> {
        let mut values = self.values.borrow_mut();
        let present = values
            .get(&place)
            .map_or(Expected::Absent, |(_, at)| Expected::Version(*at));
        if present != expected {
            return Ok(false);
        }
        *self.writes.borrow_mut() += 1;
        values.insert(place, (value.to_vec(), *self.writes.borrow()));
        Ok(true)
    }
}
