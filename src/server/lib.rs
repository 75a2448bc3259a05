//! The counter service: owner of pools, seats and recalls, and the `headgate` command.

pub mod metrics;
pub mod store;
