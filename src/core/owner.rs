//! The owner's half of the protocol: pools, holders, recalls, seats; one serial state machine that
//! takes messages and the time, and gives replies and changes to store.
//!
//! The caller makes the changes of a step durable before any of its replies leaves; with that, what
//! was said is never forgotten. Nothing here reads a clock or does I/O.

pub mod clock;
pub mod effect;
pub mod key;
pub mod ledger;
pub mod member;
pub mod record;
pub mod rules;
pub mod seating;
pub mod shard;
pub mod size;
