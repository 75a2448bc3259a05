//! Small worlds of which every history is looked at.
//!
//! The fuzzer ([`crate::fuzz`]) draws a few histories of large worlds; here a world is so small
//! that all of its histories can be had: every order of messages, every order of accesses to shared
//! memory by the workers of one replica, a crash, a duplicate, a loss at every moment. Core's own
//! code runs, worker, bucket, cells and owner; nothing of it is written again.
//!
//! A state is everything that decides what can come next: the owner, its records, each worker with
//! what it is in the middle of, each memory, the messages on their way, and what the judge
//! remembers. States that are the same are looked at once. In every one the invariants A to D of
//! the protocol are checked ([`wrong::Promise`]), and every answer is judged by a limiter that
//! knows only arrivals and answers.
//!
//! What a step leaves out: time stands still but for a few passes of fixed length, each at any
//! moment; a message that is lost is one that is given up by its caller and never arrives.

mod catalogue;
mod enabled;
mod instance;
mod invariants;
mod judge;
mod machine;
mod memory;
mod owner;
pub mod plan;
mod pool;
pub mod search;
mod state;
mod step;
pub mod wrong;

pub use catalogue::{large, small};

#[cfg(test)]
mod tests;
