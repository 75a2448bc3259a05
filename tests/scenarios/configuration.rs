//! A wrong configuration is refused with what would be right, and the last good one stays.

use std::time::Duration;

use anyhow::{Context, Result};
use headgate_tests::envoy::{Delivery, Envoy, Update};
use headgate_tests::fleet::{Plan, filter};
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;
use headgate_tests::upstream::Upstream;
use hyper::header::HeaderName;
use serde_json::{Value, json};

use crate::{assert_unharmed, decided, in_one_window};

const LIMIT: u64 = 40;

fn good() -> Rules {
    Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)])
}

/// The good configuration with a change, and what the log has to say of that.
fn wrong(change: impl FnOnce(&mut Value), said: &'static str) -> (String, &'static str) {
    let mut value = json!(good());
    change(&mut value);
    (value.to_string(), said)
}

fn mistakes() -> Vec<(String, &'static str)> {
    vec![
        ("{not json".to_owned(), "configuration: not JSON"),
        (String::new(), "configuration: empty"),
        wrong(
            |value| value["rules"][0]["burst"] = json!(7),
            "rules[0].burst: ",
        ),
        wrong(
            |value| {
                drop(
                    value["rules"][0]["limit"]
                        .as_object_mut()
                        .map(|limit| limit.remove("amount")),
                )
            },
            "rules[0].limit: missing field `amount`",
        ),
        wrong(
            |value| value["rules"][0]["limit"]["amount"] = json!(0),
            "rules[0].limit.amount: found 0; write a whole number from 1 to",
        ),
        wrong(
            |value| value["rules"][0]["limit"]["amount"] = json!(-5),
            "rules[0].limit.amount: found -5; write a whole number from 1 to",
        ),
        wrong(
            |value| {
                let rule = value["rules"][0].clone();
                value["rules"] = json!([rule, rule]);
            },
            "rules[1].name: found \"per-key\"; another rule has this name",
        ),
        wrong(
            |value| value["counter"]["timeout"] = json!("soon"),
            "counter.timeout: found \"soon\"; write a duration from",
        ),
    ]
}

#[test]
fn a_wrong_update_is_refused_with_its_reason_and_changes_nothing() -> Result<()> {
    in_one_window("configuration-update", async |scene: &Scene| {
        let mut plan = Plan::new(good()).envoys(1);
        plan.delivery = Delivery::Live;
        let mut fleet = plan.start(scene).await?;
        let (mut admitted, each) = (0, 3);
        for (configuration, said) in mistakes() {
            let envoy = &mut fleet.envoys[0];
            let before = envoy.process.log()?.len();
            let mut filter = filter(&good())?;
            filter.configuration.clone_from(&configuration);
            let update = envoy.update(Some(filter)).await?;
            assert_eq!(update, Update::Rejected, "{configuration}");
            let log = envoy.process.log()?;
            let log = log.get(before..).unwrap_or_default();
            assert!(log.contains(said), "{said} is not in: {log}");
            // Still the same counter, with what it has counted.
            let outcome = fleet.load_of("alice", each)?.run().await?;
            assert_eq!(outcome.total(), decided(each, 0), "{configuration}");
            admitted += each;
        }
        let outcome = fleet.load_of("alice", LIMIT)?.run().await?;
        assert_eq!(outcome.total(), decided(LIMIT - admitted, admitted));

        // And a right one is taken, with another counter beside the first, which goes on.
        let team = HeaderName::from_static("x-team");
        let both = Rules::new(vec![
            Rule::new("per-key", LIMIT, Per::Day),
            Rule::new("per-team", 5, Per::Day).header(&team),
        ]);
        let update = fleet.envoys[0].update(Some(filter(&both)?)).await?;
        assert_eq!(update, Update::Accepted);
        let mut load = fleet.load_of("alice", 8)?;
        assert_eq!(
            load.run().await?.total(),
            decided(0, 8),
            "the first goes on"
        );
        load.header = team;
        assert_eq!(load.run().await?.total(), decided(5, 3));
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn without_a_good_one_before_nothing_passes() -> Result<()> {
    in_one_window("configuration-first", async |scene: &Scene| {
        let upstream = Upstream::start(HeaderName::from_static("x-api-key")).await?;
        let mut plan = Plan::new(good());
        plan.delivery = Delivery::Live;
        // Nobody listens at the port 1, and nobody is asked.
        let counter = ([127, 0, 0, 1], 1).into();
        let mut config = plan.envoy("envoy", upstream.address(), counter)?;
        let filter = config.filter.as_mut().context("a filter")?;
        filter.configuration = "{}".to_owned();
        let envoy = Envoy::start_unready(scene, config).await?;
        let deadline = Duration::from_secs(20);
        envoy
            .stats_until("a rejected listener", deadline, |stats| {
                stats.value("listener_manager.lds.update_rejected") > Some(0)
            })
            .await?;
        assert!(envoy.process.log()?.contains("missing field `counter`"));
        assert!(
            tokio::net::TcpStream::connect(envoy.address())
                .await
                .is_err()
        );
        Ok(())
    })
}
