//! Headgate's decisions in a world that follows from a seed, and an oracle that judges them.
//!
//! The world ([`world`]) drives core's own code by its public interface: replicas with several
//! workers over one shared memory, interleaved at messages and inside operations; a network that
//! delays, loses, duplicates and reorders; clocks that differ and drift; crashes, partitions and
//! halts; a store that keeps what was durable. The oracle ([`oracle`]) knows arrivals, answers and
//! the truth of time, nothing of the protocol. [`scenario`] holds the protocol's reference
//! scenarios, [`fuzz`] random worlds, [`sabotage`] what must be convicted.

pub mod fuzz;
pub mod load;
mod memory;
pub mod model;
pub mod network;
pub mod oracle;
pub mod random;
mod replica;
pub mod report;
pub mod sabotage;
pub mod scenario;
mod service;
mod store;
pub mod time;
pub mod world;
