//! A replica's shared memory in Envoy's shared data.
//!
//! Envoy never frees a key, and under Istio all plugins of a process share one space of keys. So
//! there is a fixed number of them, each begins with a prefix of ours that carries the version of
//! the format, and what a replica is made of is in its name: another counter service or another
//! number of buckets is another replica, since neither its leases nor its places would fit.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use headgate_core::replica::shared::{Expected, Place, Shared, SharedError, Stored};

use crate::host_api::{Host, HostError};

/// Version of the values' format. Plugins of two versions in one Envoy are two replicas.
const FORMAT: u32 = 2;

/// Hexadecimal digits of a bucket's number: all of a `u32`.
const BUCKET_DIGITS: u32 = 8;

/// Shared memory of one replica.
pub struct SharedData {
    host: Rc<dyn Host>,
    /// The name in the making: the prefix is written once and a place's few characters after it
    /// for each access, which costs less memory than 4,096 names in every worker.
    name: RefCell<String>,
    prefix: usize,
}

impl fmt::Debug for SharedData {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SharedData")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl SharedData {
    /// That of the replica which this counter service's cluster and number of buckets stand for.
    #[must_use]
    pub fn new(host: Rc<dyn Host>, cluster: &str, buckets: u32) -> Self {
        let name = format!("headgate.{FORMAT}.{buckets}.{cluster}.");
        let prefix = name.len();
        Self {
            host,
            name: RefCell::new(name),
            prefix,
        }
    }

    /// Runs `act` with the key of a place.
    fn with_key<T>(
        &self,
        place: Place,
        act: impl FnOnce(&dyn Host, &str) -> Result<T, HostError>,
    ) -> Result<T, SharedError> {
        // No host call comes back in here, so it is never borrowed already.
        let mut name = self.name.try_borrow_mut().map_err(|_| SharedError::Host)?;
        name.truncate(self.prefix);
        match place {
            Place::Seat => name.push_str("seat"),
            Place::Watch => name.push_str("watch"),
            Place::Standing => name.push_str("standing"),
            Place::Activity => name.push_str("activity"),
            Place::Instances => name.push_str("instances"),
            Place::Bucket(index) => {
                name.push('b');
                let digits = (0..BUCKET_DIGITS).rev().map(|digit| index >> (4 * digit));
                name.extend(digits.filter_map(|digit| char::from_digit(digit & 0xf, 16)));
            }
        }
        act(&*self.host, &name).map_err(|error| {
            log::debug!("{name}: {error}");
            SharedError::Host
        })
    }
}

impl Shared for SharedData {
    fn get(&self, place: Place) -> Result<Stored, SharedError> {
        self.with_key(place, |host, key| host.shared(key))
    }

    fn set(&self, place: Place, value: &[u8], expected: Expected) -> Result<bool, SharedError> {
        self.with_key(place, |host, key| host.set_shared(key, value, expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeEnvoy;
    use crate::host_api::Operation;

    #[test]
    fn every_place_has_a_key_of_its_own() {
        let envoy = FakeEnvoy::new();
        let host = envoy.worker(0);
        let places = [
            Place::Seat,
            Place::Watch,
            Place::Standing,
            Place::Activity,
            Place::Instances,
            Place::Bucket(0),
            Place::Bucket(0x1f),
            Place::Bucket(u32::MAX),
        ];
        for (cluster, buckets) in [("c", 4), ("c", 8), ("d", 4)] {
            let shared = SharedData::new(host.clone(), cluster, buckets);
            for place in places {
                let empty = shared.get(place).expect("readable");
                assert_eq!(empty.version, Expected::Absent, "{cluster} {place:?}");
                assert_eq!(shared.set(place, b"x", empty.version), Ok(true));
            }
        }
        let keys = envoy.keys();
        assert_eq!(keys.len(), 24);
        assert!(keys.contains(&"headgate.2.4.c.seat".to_owned()));
        assert!(keys.contains(&"headgate.2.4.c.watch".to_owned()));
        assert!(keys.contains(&"headgate.2.4.d.b0000001f".to_owned()));
    }

    #[test]
    fn what_the_host_refuses_is_an_error() {
        let envoy = FakeEnvoy::new();
        let shared = SharedData::new(envoy.worker(0), "c", 4);
        envoy.fail(Operation::SharedData, true);
        assert_eq!(shared.get(Place::Seat), Err(SharedError::Host));
        let written = shared.set(Place::Seat, b"", Expected::Absent);
        assert_eq!(written, Err(SharedError::Host));
    }
}
