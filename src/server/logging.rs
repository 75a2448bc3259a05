//! Log lines, on standard output.

use std::io::{self, IsTerminal};

use tracing_subscriber::{Layer, layer::SubscriberExt, registry, util::SubscriberInitExt};

use crate::args::{LogFormat, Serve};

/// Starts logging. Only the first call of a process has an effect.
pub fn start(serve: &Serve) {
    // A log that cannot be written, to a full disk or a closed pipe, must not end the service.
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(io::stdout)
        .log_internal_errors(false);
    let lines = match serve.log_format {
        LogFormat::Text => lines.with_ansi(io::stdout().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let started = registry()
        .with(lines.with_filter(serve.log_level.clone()))
        .try_init();
    if let Err(error) = started {
        tracing::debug!(%error, "logging was started before");
    }
}
