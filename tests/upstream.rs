//! What stands behind the Envoys: answers every request and counts, per value of a header, what got
//! through to it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response};

use crate::http::{AsyncAnswer, Server};

/// Marks an answer as the upstream's own, so that nobody takes one of Envoy's for it.
pub const MARK: HeaderName = HeaderName::from_static("x-headgate-upstream");

/// A running upstream; ends when dropped.
#[derive(Debug)]
pub struct Upstream {
    server: Server,
    counts: Arc<Counts>,
}

#[derive(Debug)]
struct Counts {
    headers: Vec<HeaderName>,
    by_value: Mutex<BTreeMap<Vec<u8>, u64>>,
}

impl Upstream {
    /// Starts one that counts by the values of `header`; requests without it count as empty value.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(header: HeaderName) -> Result<Self> {
        Self::start_for(vec![header]).await
    }

    /// Starts one that counts by the value of the first of these headers that a request has.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start_for(headers: Vec<HeaderName>) -> Result<Self> {
        let counts = Arc::new(Counts {
            headers,
            by_value: Mutex::default(),
        });
        let server = Server::start(Answer(Arc::clone(&counts))).await?;
        Ok(Self { server, counts })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Requests that carried `value`.
    #[must_use]
    pub fn count(&self, value: &[u8]) -> u64 {
        self.counts
            .with(|counts| counts.get(value).copied().unwrap_or(0))
    }

    /// All requests.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.with(|counts| counts.values().sum())
    }
}

impl Counts {
    fn with<T>(&self, look: impl FnOnce(&mut BTreeMap<Vec<u8>, u64>) -> T) -> T {
        // Counting cannot leave the map half changed, so a panic elsewhere is no reason to stop.
        look(&mut self.by_value.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[derive(Clone)]
struct Answer(Arc<Counts>);

impl AsyncAnswer<Full<Bytes>> for Answer {
    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let mut present = self
            .0
            .headers
            .iter()
            .filter_map(|name| request.headers().get(name));
        let value = present.next().map_or(&b""[..], HeaderValue::as_bytes);
        self.0.with(|counts| match counts.get_mut(value) {
            Some(count) => *count += 1,
            None => drop(counts.insert(value.to_vec(), 1)),
        });
        let mut response = Response::new(Full::from("hello\n"));
        response
            .headers_mut()
            .insert(MARK, HeaderValue::from_static("yes"));
        response
    }
}
