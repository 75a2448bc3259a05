//! Headgate's decisions. Everything here is pure: no clock, no input or output, no async; time and
//! randomness are passed in. The plugin, the counter service and the simulator call this code, so a
//! rule of the lease protocol exists once.

pub mod clock;
pub mod demand;
pub mod key;
pub mod message;
pub mod owner;
pub mod replica;
pub mod rule;
pub mod standing;
pub mod trap;
pub mod units;
pub mod window;
pub mod wire;
pub mod words;

#[cfg(test)]
mod world;
