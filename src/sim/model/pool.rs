//! Every distinct part of a state is kept once and named by a number, so that a state is a handful
//! of numbers. Two parts are the same if they print the same: `Debug` of core's types shows every
//! field, and is the one encoding that all of them have.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::hash::Hasher as _;
use std::rc::Rc;

use siphasher::sip128::{Hasher128 as _, SipHasher13};

/// Names a part in its pool.
pub(super) type Part = u32;

/// The distinct parts of one kind.
#[derive(Debug)]
pub(super) struct Pool<T> {
    numbers: HashMap<u128, Part>,
    parts: Vec<Rc<T>>,
}

impl<T> Default for Pool<T> {
    fn default() -> Self {
        Self {
            numbers: HashMap::new(),
            parts: Vec::new(),
        }
    }
}

impl<T: Debug> Pool<T> {
    /// The number of a part. Of 10^7 parts, two different ones share their 128 bits of hash with a
    /// probability of less than 10^-24.
    pub(super) fn put(&mut self, part: T) -> Part {
        let Self { numbers, parts } = self;
        *numbers.entry(digest(&part)).or_insert_with(|| {
            let number = Part::try_from(parts.len()).unwrap_or(Part::MAX);
            parts.push(Rc::new(part));
            number
        })
    }

    /// The part with this number.
    pub(super) fn get(&self, number: Part) -> Option<Rc<T>> {
        let index = usize::try_from(number).ok()?;
        self.parts.get(index).cloned()
    }
}

/// What a part prints, hashed as it is printed.
struct Printer(SipHasher13);

impl Write for Printer {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

fn digest(part: &impl Debug) -> u128 {
    let mut printer = Printer(SipHasher13::new());
    // The writer never fails, and neither does any Debug of core.
    let written = write!(printer, "{part:?}");
    debug_assert!(written.is_ok(), "a part cannot be printed");
    printer.0.finish128().as_u128()
}
