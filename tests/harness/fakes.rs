//! The fake counter misbehaves as ordered, seen through Envoy's own HTTP/2 client.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use headgate_tests::fake_counter::{Call, FakeCounter, Reply};
use headgate_tests::scene::{self, Scene};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{HeaderMap, Request};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;

/// Calls `Ask` with the message `hi`; gives the answer's data and trailers.
async fn ask(counter: &FakeCounter) -> Result<(Bytes, HeaderMap)> {
    let client: Client<HttpConnector, Full<Bytes>> = Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = Request::post(format!(
        "http://{}/headgate.v1.Counter/Ask",
        counter.address()
    ))
    .header("content-type", "application/grpc")
    .body(Full::from(&b"\0\0\0\0\x02hi"[..]))?;
    let body = client.request(request).await?.into_body().collect().await?;
    let trailers = body.trailers().cloned().unwrap_or_default();
    Ok((body.to_bytes(), trailers))
}

fn status(trailers: &HeaderMap) -> &str {
    trailers
        .get("grpc-status")
        .and_then(|value| value.to_str().ok())
        .unwrap_or("none")
}

#[test]
fn every_reply_is_what_it_says() -> Result<()> {
    scene::run("harness-fake-replies", async |_: &Scene| {
        let counter = FakeCounter::start(Reply::Garbage).await?;
        let (data, trailers) = ask(&counter).await?;
        assert_eq!((data.len(), status(&trailers)), (21, "0"));

        counter.set(Reply::Truncated);
        let (data, _) = ask(&counter).await?;
        assert_eq!(data.as_ref(), b"\0\0\0\x03\xe8\x08\x01");

        counter.set(Reply::Status(13));
        let (data, trailers) = ask(&counter).await?;
        assert_eq!((data.len(), status(&trailers)), (0, "13"));

        counter.set(Reply::NotGrpc);
        let (data, trailers) = ask(&counter).await?;
        assert!(data.starts_with(b"<html>"));
        assert_eq!(status(&trailers), "none");

        counter.set(Reply::By(Arc::new(|call: &Call| {
            Reply::Message(call.message.to_vec())
        })));
        let (data, _) = ask(&counter).await?;
        assert_eq!(data.as_ref(), b"\0\0\0\0\x02hi");

        let calls = counter.calls();
        assert_eq!(calls.len(), 5);
        assert!(
            calls
                .iter()
                .all(|call| call.method == "Ask" && call.message == "hi")
        );
        Ok(())
    })
}

#[test]
fn late_is_late_and_never_is_never() -> Result<()> {
    scene::run("harness-fake-late", async |_: &Scene| {
        let delay = Duration::from_millis(50);
        let counter = FakeCounter::start(Reply::Late(delay, Box::new(Reply::Status(5)))).await?;
        let before = tokio::time::Instant::now();
        let (_, trailers) = ask(&counter).await?;
        assert!(before.elapsed() >= delay);
        assert_eq!(status(&trailers), "5");

        counter.set(Reply::Never);
        let answer = tokio::time::timeout(Duration::from_millis(200), ask(&counter)).await;
        assert!(answer.is_err(), "there was an answer");
        assert_eq!(counter.calls().len(), 2, "though the call came in");
        Ok(())
    })
}
