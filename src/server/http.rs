//! The side for operators: `/metrics`, `/healthz` and `/readyz`.

use std::sync::Arc;

use axum::{
    Router,
    http::{StatusCode, header},
    response::IntoResponse,
    routing::get,
};
use prometheus_client::{encoding::prometheus_text, registry::Registry};
use tokio::sync::watch;

/// How far the service is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It opens the store, tries to lead, or loads.
    Starting,
    /// It leads and answers.
    Serving,
    /// It answers what waits and takes no more.
    Stopping,
}

const PATHS: &str = "try /metrics, /healthz or /readyz\n";

/// The routes.
pub fn routes(registry: Arc<Registry>, phase: watch::Receiver<Phase>) -> Router {
    Router::new()
        .route("/metrics", get(async move || metrics(&registry)))
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(async move || ready(*phase.borrow())))
        .fallback(async || (StatusCode::NOT_FOUND, PATHS))
}

fn metrics(registry: &Registry) -> impl IntoResponse + use<> {
    let mut text = String::new();
    match prometheus_text::encode(&mut text, registry) {
        Ok(()) => (
            StatusCode::OK,
            [(header::CONTENT_TYPE, prometheus_text::CONTENT_TYPE)],
            text,
        ),
        Err(error) => {
            let text = format!("cannot write the metrics: {error}\n");
            (
                StatusCode::INTERNAL_SERVER_ERROR,
                [(header::CONTENT_TYPE, "text/plain")],
                text,
            )
        }
    }
}

fn ready(phase: Phase) -> (StatusCode, &'static str) {
    match phase {
        Phase::Starting => (
            StatusCode::SERVICE_UNAVAILABLE,
            "starting: does not lead yet\n",
        ),
        Phase::Serving => (StatusCode::OK, "ok\n"),
        Phase::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
    }
}
