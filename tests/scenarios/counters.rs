//! A counter that answers garbage, late, or never: the requests are undecided in time.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use headgate_core::wire::{AskResponse, JoinResponse, Stamps, WatchResponse};
use headgate_tests::fake_counter::{Call, FakeCounter, Reply};
use headgate_tests::fleet::{self, Plan};
use headgate_tests::load::{Key, Load, Pace};
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;
use headgate_tests::upstream::Upstream;
use hyper::header::HeaderName;
use prost::Message;

use crate::{SLACK, assert_unharmed, in_one_window, longest, undecided};

const TIMEOUT: Duration = Duration::from_millis(200);

const REQUESTS: u64 = 12;

fn replies() -> Vec<Reply> {
    let late = |reply| Reply::Late(TIMEOUT * 3, Box::new(reply));
    vec![
        Reply::Garbage,
        Reply::Truncated,
        Reply::NotGrpc,
        Reply::Status(13),
        Reply::Message(Vec::new()),
        Reply::Message(vec![0; 100_000]),
        late(Reply::Garbage),
        late(Reply::Message(Vec::new())),
        Reply::Never,
    ]
}

/// A counter that gives seats as it should, and `reply` to everybody who asks.
fn seated(reply: Reply) -> Reply {
    Reply::By(Arc::new(move |call: &Call| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or_default();
        let stamps = Some(Stamps {
            received_service_ns: now,
            sent_service_ns: now,
        });
        match call.method.as_str() {
            "Join" => Reply::Message(
                JoinResponse {
                    epoch: 1,
                    seat: 1,
                    time_to_live_ns: 5_000_000_000,
                    stamps,
                    hash_key: vec![7; 16],
                    ..JoinResponse::default()
                }
                .encode_to_vec(),
            ),
            "Watch" => {
                let answer = WatchResponse {
                    epoch: 1,
                    stamps,
                    ..WatchResponse::default()
                };
                let answer = Reply::Message(answer.encode_to_vec());
                Reply::Late(Duration::from_millis(500), Box::new(answer))
            }
            _ => reply.clone(),
        }
    }))
}

/// Sends requests for a key of their own under each reply.
async fn bear(scene: &Scene, replies: Vec<Reply>) -> Result<Vec<Call>> {
    let upstream = Upstream::start(HeaderName::from_static("x-api-key")).await?;
    let counter = FakeCounter::start(Reply::Status(14)).await?;
    let rules = Rules::new(vec![Rule::new("per-key", 1000, Per::Day)]).timeout(TIMEOUT);
    let plan = Plan::new(rules).envoys(1);
    let mut envoys = plan
        .start_envoys(scene, upstream.address(), counter.address())
        .await?;
    for (number, reply) in replies.into_iter().enumerate() {
        let what = format!("{number}, {reply:?}");
        counter.set(reply);
        let key = Key::named(&format!("key-{number}"))?;
        let addresses = envoys.iter().map(|envoy| envoy.address());
        let load = Load::new(addresses, vec![key], Pace::Count(REQUESTS));
        let outcome = load.run().await?;
        assert_eq!(
            outcome.total(),
            undecided(REQUESTS),
            "{what}: {:?}",
            outcome.failures
        );
        let (longest, most) = (longest(&outcome), TIMEOUT + SLACK);
        assert!(longest <= most, "{what}: {longest:?} of at most {most:?}");
        assert_unharmed(&mut envoys)?;
    }
    let errors = fleet::sum(&envoys, "headgate_errors_call_total").await?;
    let odd = fleet::sum(&envoys, "headgate_errors_answer_total").await?;
    assert!(
        errors > 0 && odd > 0,
        "{errors} calls and {odd} answers failed"
    );
    Ok(counter.calls())
}

#[test]
fn from_the_first_call() -> Result<()> {
    in_one_window("counters-first", async |scene: &Scene| {
        bear(scene, replies()).await?;
        Ok(())
    })
}

#[test]
fn after_a_good_welcome() -> Result<()> {
    in_one_window("counters-later", async |scene: &Scene| {
        let mut replies = replies();
        // Says that it heard, and nothing of what was asked.
        let nothing = AskResponse {
            epoch: 1,
            ..AskResponse::default()
        };
        replies.push(Reply::Message(nothing.encode_to_vec()));
        let calls = bear(scene, replies.into_iter().map(seated).collect()).await?;
        assert!(
            calls.iter().any(|call| call.method == "Ask"),
            "nobody asked"
        );
        Ok(())
    })
}
