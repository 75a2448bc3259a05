//! The little of HTTP that the harness needs beside its load: one request, and servers in process.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response, StatusCode, service::service_fn};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

/// One request on a connection of its own.
///
/// # Errors
/// When there is no whole answer within `deadline`.
pub async fn request(
    method: Method,
    address: SocketAddr,
    path: &str,
    deadline: Duration,
) -> Result<(StatusCode, Bytes)> {
    let what = format!("{method} http://{address}{path}");
    let request = Request::builder()
        .method(method)
        .uri(format!("http://{address}{path}"))
        .body(Empty::<Bytes>::new())?;
    let client: Client<HttpConnector, Empty<Bytes>> =
        Client::builder(TokioExecutor::new()).build_http();
    let exchange = async {
        let response = client.request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        anyhow::Ok((status, body))
    };
    tokio::time::timeout(deadline, exchange)
        .await
        .with_context(|| format!("{what}: no answer within {deadline:?}"))?
        .context(what)
}

/// A server in this process, HTTP/1 and HTTP/2; ends when dropped, with all of its connections.
#[derive(Debug)]
pub(crate) struct Server {
    address: SocketAddr,
    accepting: JoinHandle<()>,
}

impl Server {
    /// Serves `answer` on a free port.
    pub(crate) async fn start<A, B>(answer: A) -> Result<Self>
    where
        A: AsyncAnswer<B>,
        B: hyper::body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on a free port of 127.0.0.1")?;
        let address = listener.local_addr()?;
        let accepting = tokio::spawn(accept(listener, answer));
        Ok(Self { address, accepting })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

/// What a server does with a request.
pub(crate) trait AsyncAnswer<B>: Clone + Send + Sync + 'static {
    /// Answers one.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<B>> + Send;
}

async fn accept<A, B>(listener: TcpListener, answer: A)
where
    A: AsyncAnswer<B>,
    B: hyper::body::Body<Data = Bytes, Error = Infallible> + Send + 'static,
{
    // Owned by this task, so that the connections end with it.
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok((stream, _)) = listener.accept().await else {
            continue;
        };
        drop(stream.set_nodelay(true));
        let answer = answer.clone();
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer.clone();
                async move { Ok::<_, Infallible>(answer.answer(request).await) }
            });
            // A connection that breaks off is the client's affair.
            drop(
                auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await,
            );
        });
    }
}
