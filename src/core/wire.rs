//! The wire's messages as generated from `proto/headgate/v1`. The logic never sees them: see
//! [`crate::message::wire`] for the way between them and the checked types.

#![allow(
    missing_docs,
    missing_debug_implementations,
    unreachable_pub,
    clippy::all
)]

include!("wire/headgate.v1.rs");
