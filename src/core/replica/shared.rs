//! Shared memory of one replica's workers, as Envoy offers it: values with a compare-and-swap, no
//! deletion, hence a fixed set of places.

use thiserror::Error;

/// A place for one value. There are a fixed number of them, because none can ever be freed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Place {
    /// The seat record.
    Seat,
    /// Which instance holds the watch.
    Watch,
    /// What standing shares are computed from.
    Standing,
    /// When a request last came.
    Activity,
    /// Which instances are alive.
    Instances,
    /// One bucket of cells.
    Bucket(u32),
}

/// What a value has to be for a write to happen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expected {
    /// Not there.
    Absent,
    /// Still the one read with this version.
    Version(u32),
}

/// A value and the version to write against.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    /// The bytes.
    pub value: Vec<u8>,
    /// Changes with every write.
    pub version: Expected,
}

/// Shared memory failed. Whatever needed it is undecided; nothing was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum SharedError {
    /// The host refused the call.
    #[error("shared data: the host refused the call")]
    Host,
    /// Other workers won the race too often in a row.
    #[error("shared data: too many lost races in a row")]
    Contended,
    /// The value is not of this format.
    #[error("shared data: the value is not of this format")]
    Corrupt,
}

/// Values with compare-and-swap, shared by the workers of one replica.
pub trait Shared {
    /// The value at a place and the version to write against ([`Expected::Absent`] and no bytes
    /// where there is none).
    ///
    /// # Errors
    /// [`SharedError::Host`].
    fn get(&self, place: Place) -> Result<Stored, SharedError>;

    /// Writes if the value is still the expected one, and says whether it did.
    ///
    /// # Errors
    /// [`SharedError::Host`].
    fn set(&self, place: Place, value: &[u8], expected: Expected) -> Result<bool, SharedError>;
}

/// Most races one operation may lose in a row. Two workers hammering one value were seen to lose
/// 0.6 races an operation, so 64 in a row (10^-14) means that something else is wrong.
pub const RACES_LOST_MAX: u32 = 64;

/// Changes the value at a place by compare-and-swap. The closure sees the stored bytes (empty if
/// there are none) and gives the new ones, or `None` to leave them, with a result; it runs again
/// for every lost race and may keep nothing from one run to the next.
///
/// # Errors
/// Those of the shared memory and of the closure, and [`SharedError::Contended`].
pub fn update<T>(
    shared: &impl Shared,
    place: Place,
    mut change: impl FnMut(&[u8]) -> Result<(Option<Vec<u8>>, T), SharedError>,
) -> Result<T, SharedError> {
    for _ in 0..RACES_LOST_MAX {
        let stored = shared.get(place)?;
        let (value, result) = change(&stored.value)?;
        let Some(value) = value else {
            return Ok(result);
        };
        if shared.set(place, &value, stored.version)? {
            return Ok(result);
        }
    }
    Err(SharedError::Contended)
}
