//! What a client reads.

use std::time::Duration;

use anyhow::Result;
use headgate_tests::fleet::{Fleet, Plan};
use headgate_tests::load::{Client, Reply, Request};
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::{self, Scene};
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use crate::in_one_window;

async fn send(fleet: &Fleet, client: &Client, key: &'static str) -> Reply {
    let header = HeaderName::from_static("x-api-key");
    let value = HeaderValue::from_static(key);
    client
        .send(Request {
            address: fleet.envoys[0].address(),
            path: "/",
            header: Some((&header, &value)),
            deadline: Duration::from_secs(5),
        })
        .await
}

fn header<'a>(reply: &'a Reply, name: &str) -> Option<&'a str> {
    reply.headers.get(name)?.to_str().ok()
}

#[test]
fn a_refusal_names_its_rule_and_when_to_come_back() -> Result<()> {
    scene::run("replies-refused", async |scene: &Scene| {
        headgate_tests::windows::make_room(Per::Minute, Duration::from_secs(20)).await?;
        let rules = Rules::new(vec![Rule::new("per-key", 1, Per::Minute)]);
        let fleet = Plan::new(rules).envoys(1).start(scene).await?;
        let client = Client::new();
        assert_eq!(send(&fleet, &client, "alice").await.body, "hello\n");
        // From the owner's decision, then from the proof.
        for _ in 0..2 {
            let reply = send(&fleet, &client, "alice").await;
            assert_eq!(reply.status.map(|status| status.as_u16()), Some(429));
            assert_eq!(header(&reply, "content-type"), Some("application/json"));
            let body: Value = serde_json::from_slice(&reply.body)?;
            assert_eq!(body["code"], 429);
            assert_eq!(body["rule"], "per-key");
            assert!(body["msg"].as_str().is_some_and(|msg| !msg.is_empty()));
            let seconds: u64 = header(&reply, "retry-after").unwrap_or("none").parse()?;
            assert!((1..=60).contains(&seconds), "{seconds}");
        }
        Ok(())
    })
}

#[test]
fn what_is_undecided_is_not_called_over_the_limit() -> Result<()> {
    in_one_window("replies-undecided", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", 1, Per::Day)]);
        let rules = rules.timeout(Duration::from_millis(100));
        let mut fleet = Plan::new(rules).envoys(1).start(scene).await?;
        fleet.counter.process.kill()?;
        let reply = send(&fleet, &Client::new(), "alice").await;
        assert_eq!(reply.status.map(|status| status.as_u16()), Some(503));
        assert_eq!(header(&reply, "retry-after"), None);
        let body: Value = serde_json::from_slice(&reply.body)?;
        assert_eq!(
            (&body["code"], &body["rule"]),
            (&json!(503), &json!("per-key"))
        );
        Ok(())
    })
}
