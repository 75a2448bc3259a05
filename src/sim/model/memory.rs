//! The memory that workers share, stopped between any two accesses.
//!
//! Core's operations cannot be left in the middle. So one that is under way is kept as the worker
//! before it and what its accesses have brought so far. To go on, it is run again from the start:
//! it sees the same again, makes one access more for real, and then every access fails, so that it
//! ends. Only a run that ends without such a failure counts.
//!
//! A value's version is the value itself. Core's operations are functions of the value they read,
//! so a value that was changed and changed back makes no difference to them.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use headgate_core::clock::TimeBounds;
use headgate_core::replica::bucket::{Bucket, Moment};
use headgate_core::replica::cell;
use headgate_core::replica::shared::{Expected, Place, Shared, SharedError, Stored};
use headgate_core::units::{LocalTime, ServiceTime};

/// Names a value.
type ValueId = u32;

/// Every distinct value that was ever stored.
#[derive(Debug, Default)]
pub(super) struct Values {
    numbers: HashMap<Rc<[u8]>, ValueId>,
    all: Vec<Rc<[u8]>>,
    cells: HashMap<ValueId, Rc<[cell::Cell]>>,
}

impl Values {
    fn put(&mut self, bytes: &[u8]) -> ValueId {
        if let Some(number) = self.numbers.get(bytes) {
            return *number;
        }
        let number = ValueId::try_from(self.all.len()).unwrap_or(ValueId::MAX);
        let bytes: Rc<[u8]> = Rc::from(bytes);
        self.all.push(Rc::clone(&bytes));
        self.numbers.insert(bytes, number);
        number
    }

    fn get(&self, number: ValueId) -> Option<&Rc<[u8]>> {
        self.all.get(usize::try_from(number).ok()?)
    }

    /// The cells of a bucket, whether their windows are over or not; none if it cannot be read.
    fn cells(&mut self, number: ValueId) -> Rc<[cell::Cell]> {
        if let Some(cells) = self.cells.get(&number) {
            return Rc::clone(cells);
        }
        let bucket = self.get(number).and_then(|bytes| Bucket::decode(bytes));
        let ever = Moment {
            local: LocalTime::ZERO,
            service: TimeBounds {
                earliest: ServiceTime::ZERO,
                latest: ServiceTime::ZERO,
            },
        };
        let cells: Rc<[cell::Cell]> = bucket.map_or(Rc::from([]), |bucket| {
            bucket.live_cells(ever).cloned().collect()
        });
        self.cells.insert(number, Rc::clone(&cells));
        cells
    }
}

/// What one replica's memory holds.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Memory(Vec<(Place, ValueId)>);

impl Memory {
    fn at(&self, place: Place) -> Option<ValueId> {
        let index = self.0.binary_search_by_key(&place, |entry| entry.0).ok()?;
        self.0.get(index).map(|entry| entry.1)
    }

    fn write(&mut self, place: Place, value: ValueId) {
        match self.0.binary_search_by_key(&place, |entry| entry.0) {
            Ok(index) => {
                if let Some(entry) = self.0.get_mut(index) {
                    entry.1 = value;
                }
            }
            Err(index) => self.0.insert(index, (place, value)),
        }
    }

    /// Every cell in it.
    pub(super) fn cells(&self, values: &RefCell<Values>) -> Vec<cell::Cell> {
        let mut values = values.borrow_mut();
        let buckets = self
            .0
            .iter()
            .filter(|(place, _)| matches!(place, Place::Bucket(_)));
        buckets
            .flat_map(|(_, value)| values.cells(*value).to_vec())
            .collect()
    }
}

/// How finely operations on one memory are interleaved.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Grain {
    /// Not at all: nobody else uses this memory.
    Whole,
    /// Between one change (a read and the write that follows it) and the next. A write that comes
    /// too late does nothing but start its change again, so this is as good as [`Self::Access`] as
    /// long as late writes are not made.
    Change,
    /// Between any two accesses.
    Access,
}

/// What an access brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Access {
    Read(Option<ValueId>),
    Wrote(bool),
}

/// How the memory is broken on purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Defects {
    /// Writes happen whatever was there.
    pub(super) is_blind: bool,
    /// Writes to buckets are said to have happened, and do not.
    pub(super) forgets: bool,
}

/// The memory as one run of an operation sees it.
#[derive(Debug)]
pub(super) struct View<'a> {
    values: &'a RefCell<Values>,
    memory: RefCell<Memory>,
    seen: RefCell<Vec<Access>>,
    next: Cell<usize>,
    grain: Grain,
    left: Cell<u32>,
    stopped: Cell<bool>,
    defects: Defects,
}

/// How a run ended.
#[derive(Debug)]
pub(super) struct End {
    pub(super) memory: Memory,
    /// What its accesses have brought, if it is not at its end.
    pub(super) under_way: Option<Vec<Access>>,
}

impl<'a> View<'a> {
    pub(super) fn new(
        values: &'a RefCell<Values>,
        memory: Memory,
        seen: Vec<Access>,
        (grain, defects): (Grain, Defects),
    ) -> Self {
        let left = if grain == Grain::Whole { u32::MAX } else { 1 };
        Self {
            values,
            memory: RefCell::new(memory),
            seen: RefCell::new(seen),
            next: Cell::new(0),
            grain,
            left: Cell::new(left),
            stopped: Cell::new(false),
            defects,
        }
    }

    pub(super) fn end(self) -> End {
        let seen = self.seen.into_inner();
        End {
            memory: self.memory.into_inner(),
            under_way: self.stopped.get().then_some(seen),
        }
    }

    /// What this access brought in an earlier run.
    fn again(&self) -> Option<Access> {
        let seen = self.seen.borrow().get(self.next.get()).copied();
        self.next.set(self.next.get().saturating_add(1));
        seen
    }

    /// Takes one access from what may be made for real.
    fn may(&self, costs: u32) -> Result<(), SharedError> {
        if let Some(left) = self
            .left
            .get()
            .checked_sub(costs)
            .filter(|_| !self.stopped.get())
        {
            self.left.set(left);
            return Ok(());
        }
        self.stopped.set(true);
        Err(SharedError::Host)
    }

    fn stored(&self, value: Option<ValueId>) -> Stored {
        let values = self.values.borrow();
        let bytes = value.and_then(|value| values.get(value));
        Stored {
            value: bytes.map_or(Vec::new(), |bytes| bytes.to_vec()),
            version: value.map_or(Expected::Absent, Expected::Version),
        }
    }
}

impl Shared for View<'_> {
    fn get(&self, place: Place) -> Result<Stored, SharedError> {
        if let Some(Access::Read(value)) = self.again() {
            return Ok(self.stored(value));
        }
        self.may(1)?;
        let value = self.memory.borrow().at(place);
        self.seen.borrow_mut().push(Access::Read(value));
        Ok(self.stored(value))
    }

    fn set(&self, place: Place, bytes: &[u8], expected: Expected) -> Result<bool, SharedError> {
        if let Some(Access::Wrote(done)) = self.again() {
            return Ok(done);
        }
        self.may(u32::from(self.grain == Grain::Access))?;
        let present = self.memory.borrow().at(place);
        let same = present.map_or(Expected::Absent, Expected::Version) == expected;
        let done = same || self.defects.is_blind;
        let is_bucket = matches!(place, Place::Bucket(_));
        if done && !(self.defects.forgets && is_bucket) {
            let value = self.values.borrow_mut().put(bytes);
            self.memory.borrow_mut().write(place, value);
        }
        self.seen.borrow_mut().push(Access::Wrote(done));
        Ok(done)
    }
}
