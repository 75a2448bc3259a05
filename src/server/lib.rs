//! The counter service: owner of pools, seats and recalls, and the `headgate` command.
//!
//! A call comes in over gRPC, is queued for the [`engine`], which alone owns the keys, and is
//! answered once what was decided is durable in the [`store`].

pub mod args;
pub mod clock;
pub mod engine;
pub mod grpc;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod owner;
pub mod rpc;
pub mod serve;
pub mod store;
