//! The harness itself, with real Envoys but without the plugin: what the scenarios rely on.

mod envoys;
mod fakes;
mod filters;
mod loads;
mod processes;
