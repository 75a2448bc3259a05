//! The harness: real Envoys, counter services and an upstream on this machine, load through them,
//! and what came of it.
//!
//! A test is a [`scene`]: a folder for logs and a deadline. Everything that it starts is bound to
//! the loopback interface on a port that nobody else can take ([`ports`]), is waited for by
//! polling with a deadline ([`poll`]), and ends with the value that stands for it, also when the
//! test panics or is killed ([`process`]).

pub mod counter;
pub mod envoy;
pub mod fake_counter;
pub mod fleet;
pub mod grpc;
pub mod http;
pub mod load;
pub mod poll;
pub mod ports;
pub mod process;
pub mod rules;
pub mod scene;
pub mod slow;
pub mod upstream;
pub mod wall_clock;
pub mod windows;
