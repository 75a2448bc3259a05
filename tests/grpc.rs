//! One unary gRPC call by hand, so that the answer can be looked at whatever it is.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

/// Length of the prefix of a gRPC message: one byte of flags, four of length.
pub(crate) const PREFIX: usize = 5;

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The body with gRPC's prefix, complete or not.
    pub body: Bytes,
    /// Headers and trailers; an answer without a body has its status among the former.
    pub metadata: HeaderMap,
}

impl Answer {
    /// gRPC's status, if there is one.
    #[must_use]
    pub fn status(&self) -> Option<&str> {
        self.metadata.get("grpc-status")?.to_str().ok()
    }

    /// The message without its prefix; empty where there is none.
    #[must_use]
    pub fn message(&self) -> Bytes {
        self.body.slice(PREFIX.min(self.body.len())..)
    }
}

/// Calls a method of the counter service on a connection of its own.
///
/// # Errors
/// When there is no whole answer within `deadline`. A status other than 0 is an answer.
pub async fn call(
    address: SocketAddr,
    method: &str,
    message: &[u8],
    deadline: Duration,
) -> Result<Answer> {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = Request::post(format!("http://{address}/headgate.v1.Counter/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::from(framed(message, message.len())))?;
    let exchange = async {
        let (head, body) = client.request(request).await?.into_parts();
        let body = body.collect().await?;
        let mut metadata = head.headers;
        metadata.extend(body.trailers().cloned().unwrap_or_default());
        anyhow::Ok(Answer {
            body: body.to_bytes(),
            metadata,
        })
    };
    let what = format!("{method} at {address}");
    tokio::time::timeout(deadline, exchange)
        .await
        .with_context(|| format!("{what}: no answer within {deadline:?}"))?
        .context(what)
}

/// A message behind gRPC's prefix, which announces `length` bytes.
pub(crate) fn framed(message: &[u8], length: usize) -> Bytes {
    let length = u32::try_from(length).unwrap_or(u32::MAX);
    let mut frame = vec![0];
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(message);
    frame.into()
}
