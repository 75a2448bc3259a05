//! The owner of all keys.

use std::convert::Infallible;

use headgate_core::units::LocalTime;

use crate::{
    engine::{Shard, Step},
    serve::{Context, Failure},
};

/// Owns no keys yet: it takes no commands.
#[derive(Debug, Default)]
pub struct Owner;

/// Makes the owner of the records.
pub fn build(_: Context<'_, Infallible>) -> Result<Owner, Failure> {
    Ok(Owner)
}

impl Shard for Owner {
    type Command = Infallible;
    type Effect = Infallible;

    fn apply(&mut self, _: LocalTime, command: Infallible, _: &mut Step<Infallible>) {
        match command {}
    }

    fn next_wakeup(&self) -> Option<LocalTime> {
        None
    }

    fn wake(&mut self, _: LocalTime, _: &mut Step<Infallible>) {}

    fn stop(&mut self, _: LocalTime, _: &mut Step<Infallible>) {}

    fn release(effect: Infallible) {
        match effect {}
    }
}
