//! The replica's half of the protocol: one Envoy, whose workers share a fixed table of cells.
//!
//! Nothing here talks to a host. Shared memory is behind [`shared::Shared`], calls and verdicts are
//! values that the caller carries out, time and randomness come in as parameters. The invariant of
//! every cell is G >= U + R; the compare-and-swap that adds to U is the moment of admission.

pub mod activity;
pub mod bucket;
pub mod cell;
pub mod departure;
pub mod leader;
pub mod seat;
pub mod shared;
pub mod standing;
pub mod table;
pub mod walk;
pub mod worker;
