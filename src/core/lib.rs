//! Headgate's decisions: ledgers, windows, keys, cells and rules.
//!
//! Pure: time is a parameter, and nothing here knows of clocks, I/O or async, so that the plugin,
//! the service and the simulator run the same code.

pub mod rule;
