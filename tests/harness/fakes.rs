//! The fake counter misbehaves as ordered, seen through Envoy's own HTTP/2 client.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use headgate_tests::fake_counter::{Call, FakeCounter, Reply};
use headgate_tests::grpc::{self, Answer};
use headgate_tests::scene::{self, Scene};

/// Calls `Ask` with the message `hi`.
async fn ask(counter: &FakeCounter) -> Result<Answer> {
    grpc::call(counter.address(), "Ask", b"hi", Duration::from_secs(5)).await
}

#[test]
fn every_reply_is_what_it_says() -> Result<()> {
    scene::run("harness-fake-replies", async |_: &Scene| {
        let counter = FakeCounter::start(Reply::Garbage).await?;
        let answer = ask(&counter).await?;
        assert_eq!((answer.message().len(), answer.status()), (16, Some("0")));

        counter.set(Reply::Truncated);
        let answer = ask(&counter).await?;
        assert_eq!(answer.body.as_ref(), b"\0\0\0\x03\xe8\x08\x01");

        counter.set(Reply::Status(13));
        let answer = ask(&counter).await?;
        assert_eq!((answer.body.len(), answer.status()), (0, Some("13")));

        counter.set(Reply::NotGrpc);
        let answer = ask(&counter).await?;
        assert!(answer.body.starts_with(b"<html>"));
        assert_eq!(answer.status(), None);

        counter.set(Reply::By(Arc::new(|call: &Call| {
            Reply::Message(call.message.to_vec())
        })));
        let answer = ask(&counter).await?;
        assert_eq!(answer.message(), "hi");

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
        let answer = ask(&counter).await?;
        assert!(before.elapsed() >= delay);
        assert_eq!(answer.status(), Some("5"));

        counter.set(Reply::Never);
        let answer = tokio::time::timeout(Duration::from_millis(200), ask(&counter)).await;
        assert!(answer.is_err(), "there was an answer");
        assert_eq!(counter.calls().len(), 2, "though the call came in");
        Ok(())
    })
}
