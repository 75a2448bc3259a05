//! A counter service that misbehaves, to order: gRPC by hand, so that it can also be wrong.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::Result;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{HeaderMap, Request, Response};
use std::convert::Infallible;

use crate::grpc::{PREFIX, framed};
use crate::http::{AsyncAnswer, Server};

/// Calls that are remembered; more than a test of a misbehaving counter makes in its time.
const REMEMBERED: usize = 10_000;

/// What to answer.
#[derive(Clone)]
pub enum Reply {
    /// A well-formed message that is none of the protocol's: bytes that do not parse.
    Garbage,
    /// A message whose announced length never comes.
    Truncated,
    /// A web page, as a wrong port would give it.
    NotGrpc,
    /// A gRPC status other than 0, without a message.
    Status(u16),
    /// A serialized message.
    Message(Vec<u8>),
    /// Another reply, later.
    Late(Duration, Box<Reply>),
    /// Nothing; the call stays open.
    Never,
    /// What a function makes of the call.
    By(Arc<dyn Fn(&Call) -> Reply + Send + Sync>),
}

impl fmt::Debug for Reply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Garbage => "Garbage",
            Self::Truncated => "Truncated",
            Self::NotGrpc => "NotGrpc",
            Self::Status(_) => "Status",
            Self::Message(_) => "Message",
            Self::Late(..) => "Late",
            Self::Never => "Never",
            Self::By(_) => "By",
        })
    }
}

/// One call that came in.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method, such as `Ask`.
    pub method: String,
    /// The serialized request, without gRPC's prefix.
    pub message: Bytes,
}

/// A running fake; ends when dropped.
#[derive(Debug)]
pub struct FakeCounter {
    server: Server,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    reply: Reply,
    calls: Vec<Call>,
}

impl FakeCounter {
    /// Starts one that gives `reply` to every call.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(reply: Reply) -> Result<Self> {
        let state = Arc::new(Mutex::new(State {
            reply,
            calls: Vec::new(),
        }));
        let server = Server::start(Answer(Arc::clone(&state))).await?;
        Ok(Self { server, state })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Gives another reply from now on.
    pub fn set(&self, reply: Reply) {
        lock(&self.state).reply = reply;
    }

    /// The calls so far, at most the first ten thousand.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.state).calls.clone()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    // No change leaves the state half done, so a panic elsewhere is no reason to stop.
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

type Body = BoxBody<Bytes, Infallible>;

#[derive(Clone)]
struct Answer(Arc<Mutex<State>>);

impl AsyncAnswer<Body> for Answer {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let method = request
            .uri()
            .path()
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        let body = request
            .into_body()
            .collect()
            .await
            .map(|body| body.to_bytes());
        let message = body.unwrap_or_default();
        let call = Call {
            method,
            message: message.slice(PREFIX.min(message.len())..),
        };
        let mut reply = {
            let mut state = lock(&self.0);
            if state.calls.len() < REMEMBERED {
                state.calls.push(call.clone());
            }
            state.reply.clone()
        };
        loop {
            reply = match reply {
                Reply::By(make) => make(&call),
                Reply::Late(delay, then) => {
                    // Pacing: being late is what this reply is for.
                    tokio::time::sleep(delay).await;
                    *then
                }
                Reply::Never => std::future::pending().await,
                Reply::Garbage => return grpc(framed(&[0xff; 16], 16), 0),
                Reply::Truncated => return grpc(framed(&[8, 1], 1000), 0),
                Reply::Message(message) => {
                    return grpc(framed(&message, message.len()), 0);
                }
                Reply::Status(status) => return grpc(Bytes::new(), status),
                Reply::NotGrpc => {
                    return Response::new(Full::from("<html>It works!</html>").boxed());
                }
            }
        }
    }
}

fn grpc(frame: Bytes, status: u16) -> Response<Body> {
    let trailers = HeaderMap::from_iter([(
        hyper::header::HeaderName::from_static("grpc-status"),
        HeaderValue::from(status),
    )]);
    let body = Full::new(frame)
        .with_trailers(std::future::ready(Some(Ok(trailers))))
        .boxed();
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}
