//! The side for Envoys: the gRPC server, with the standard health and reflection services.

use std::future::Future;

use tokio::{net::TcpListener, sync::watch};
use tonic::{
    service::{Routes, RoutesBuilder},
    transport::{Server, server::TcpIncoming},
};
use tonic_health::{ServingStatus, server::HealthReporter};

use crate::http::Phase;

/// Name of the counter service on the wire; what health checks ask for.
pub const COUNTER: &str = "headgate.v1.Counter";

/// The wire format with its comments, for reflection.
const DESCRIPTORS: &[u8] = include_bytes!("rpc/headgate.v1.bin");

/// Health and reflection (both versions, since clients in use still speak the older one). Health
/// follows the phase until its sender is gone.
pub fn standard_services(
    phase: watch::Receiver<Phase>,
) -> Result<RoutesBuilder, tonic_reflection::server::Error> {
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let (reporter, health) = tonic_health::server::health_reporter();
    tokio::spawn(report(reporter, phase));
    let mut routes = Routes::builder();
    routes
        .add_service(health)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    Ok(routes)
}

async fn report(reporter: HealthReporter, mut phase: watch::Receiver<Phase>) {
    loop {
        let status = match *phase.borrow_and_update() {
            Phase::Serving => ServingStatus::Serving,
            Phase::Starting | Phase::Stopping => ServingStatus::NotServing,
        };
        for service in ["", COUNTER] {
            reporter.set_service_status(service, status).await;
        }
        if phase.changed().await.is_err() {
            return;
        }
    }
}

/// Serves until `stop` ends, then until every call is answered.
pub async fn serve(
    listener: TcpListener,
    routes: Routes,
    stop: impl Future<Output = ()>,
) -> Result<(), tonic::transport::Error> {
    // Answers are small and awaited: nothing is gained by gathering them.
    let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
    Server::builder()
        .add_routes(routes)
        .serve_with_incoming_shutdown(incoming, stop)
        .await
}
