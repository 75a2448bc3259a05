//! One request, and the class of its answer.

use std::net::SocketAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use serde::Deserialize;
use tokio::time::Instant;

use super::Class;
use crate::upstream::MARK;

/// Bytes of a strange answer that are shown.
const SHOWN: usize = 200;

/// Connections that are kept, over all requests and addresses.
#[derive(Clone, Debug)]
pub struct Client(legacy::Client<HttpConnector, Empty<Bytes>>);

/// A request.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// To whom.
    pub address: SocketAddr,
    /// With query.
    pub path: &'a str,
    /// One header.
    pub header: Option<(&'a HeaderName, &'a HeaderValue)>,
    /// The longest that it may take.
    pub deadline: Duration,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub struct Reply {
    /// How it counts.
    pub class: Class,
    /// From sending until the whole answer, or the failure, was there.
    pub latency: Duration,
    /// When it was sent.
    pub sent: Instant,
    /// The answer's status; none without an answer.
    pub status: Option<StatusCode>,
    /// The answer's headers.
    pub headers: HeaderMap,
    /// The answer's body.
    pub body: Bytes,
    /// Why it failed, where it did.
    pub failure: Option<String>,
}

impl Client {
    /// Without connections at first.
    #[must_use]
    pub fn new() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        Self(legacy::Client::builder(TokioExecutor::new()).build(connector))
    }

    /// Sends a request; whatever comes of it is the reply.
    pub async fn send(&self, request: Request<'_>) -> Reply {
        let sent = Instant::now();
        let answer = tokio::time::timeout(request.deadline, self.exchange(request)).await;
        let mut reply = Reply {
            class: Class::TimedOut,
            latency: sent.elapsed(),
            sent,
            status: None,
            headers: HeaderMap::new(),
            body: Bytes::new(),
            failure: None,
        };
        match answer {
            Err(_) => reply.failure = Some(format!("no answer within {:?}", request.deadline)),
            Ok(Err(error)) => {
                reply.class = Class::Failed;
                reply.failure = Some(format!("{error:#}"));
            }
            Ok(Ok((status, headers, body))) => {
                reply.class = classify(status, &headers, &body);
                if reply.class == Class::Failed {
                    let start = body.get(..SHOWN.min(body.len())).unwrap_or_default();
                    reply.failure = Some(format!("{status}: {}", String::from_utf8_lossy(start)));
                }
                reply.status = Some(status);
                reply.headers = headers;
                reply.body = body;
            }
        }
        reply
    }

    async fn exchange(
        &self,
        wanted: Request<'_>,
    ) -> anyhow::Result<(StatusCode, HeaderMap, Bytes)> {
        let mut request =
            hyper::Request::builder().uri(format!("http://{}{}", wanted.address, wanted.path));
        if let Some((name, value)) = wanted.header {
            request = request.header(name, value);
        }
        let (head, body) = self
            .0
            .request(request.body(Empty::new())?)
            .await?
            .into_parts();
        Ok((head.status, head.headers, body.collect().await?.to_bytes()))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

/// The plugin's own answers have a JSON body that repeats the status; Envoy's and the upstream's
/// of the same status have not.
#[derive(Deserialize)]
struct Body {
    code: u16,
}

fn classify(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Class {
    let code = || {
        serde_json::from_slice::<Body>(body)
            .ok()
            .map(|body| body.code)
    };
    match status {
        StatusCode::OK if headers.contains_key(MARK) => Class::Admitted,
        StatusCode::TOO_MANY_REQUESTS if code() == Some(429) => Class::Refused,
        StatusCode::SERVICE_UNAVAILABLE if code() == Some(503) => Class::Undecided,
        _ => Class::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, HeaderMap, HeaderValue, MARK, StatusCode, classify};

    #[test]
    fn the_plugins_answers_are_told_from_others_of_the_same_status() {
        let none = HeaderMap::new();
        let marked = HeaderMap::from_iter([(MARK, HeaderValue::from_static("yes"))]);
        let cases: [(u16, &HeaderMap, &str, Class); 8] = [
            (200, &marked, "hello", Class::Admitted),
            (200, &none, "hello", Class::Failed),
            (429, &none, r#"{"code":429,"msg":"over"}"#, Class::Refused),
            (429, &none, "local_rate_limited", Class::Failed),
            (
                503,
                &none,
                r#"{"code":503,"msg":"nobody knows"}"#,
                Class::Undecided,
            ),
            (503, &none, r#"{"code":429}"#, Class::Failed),
            (503, &none, "no healthy upstream", Class::Failed),
            (500, &none, r#"{"code":503}"#, Class::Failed),
        ];
        for (status, headers, body, class) in cases {
            let status = StatusCode::from_u16(status).expect("a status");
            assert_eq!(
                classify(status, headers, body.as_bytes()),
                class,
                "{status} {body}"
            );
        }
    }
}
