//! Small limits over five Envoys, exactly, wherever the requests come in: in a minute that had
//! begun before the Envoys came, and in the next, in which they have standing shares.

use std::time::Duration;

use anyhow::Result;
use headgate_tests::fleet::{Fleet, Plan};
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::{self, Scene};
use headgate_tests::windows;
use hyper::header::HeaderName;

use crate::{assert_unharmed, decided};

/// Ways to spread requests over the Envoys, by weight.
const SPREADS: [[u32; 5]; 5] = [
    [1, 1, 1, 1, 1],
    [4, 0, 1, 2, 0],
    [0, 1, 0, 0, 3],
    [0, 0, 1, 0, 0],
    [0, 5, 5, 1, 1],
];

/// Offers three times each limit of a key that is new in this minute, for each spread.
async fn limits_of(fleet: &Fleet, minute: &str, limit: u64, header: &HeaderName) -> Result<()> {
    for (number, spread) in SPREADS.iter().enumerate() {
        let key = format!("{minute}-{limit}-{number}");
        let mut load = fleet.load_of(&key, 3 * limit)?;
        load.header = header.clone();
        for (target, weight) in load.targets.iter_mut().zip(spread) {
            target.weight = *weight;
        }
        let outcome = load.run().await?;
        let right = decided(limit, 2 * limit);
        assert_eq!(outcome.total(), right, "{key}: {:?}", outcome.failures);
    }
    Ok(())
}

/// All of the load comes in at one Envoy, which is given what the others hold.
async fn all_at_one(fleet: &Fleet, minute: &str, limit: u64, header: &HeaderName) -> Result<()> {
    let key = format!("{minute}-all-at-one");
    let mut everywhere = fleet.load_of(&key, 5)?;
    everywhere.header = header.clone();
    assert_eq!(everywhere.run().await?.total(), decided(5, 0), "{key}");
    let mut load = fleet.load_of(&key, limit)?;
    load.header = header.clone();
    load.targets = vec![load.targets[2].clone()];
    let outcome = load.run().await?;
    let right = decided(limit - 5, 5);
    assert_eq!(outcome.total(), right, "{key}: {:?}", outcome.failures);
    Ok(())
}

#[test]
fn ten_three_and_a_hundred_a_minute_in_this_minute_and_the_next() -> Result<()> {
    scene::run("five", async |scene: &Scene| {
        let rules = [(10, "x-api-key"), (3, "x-team"), (100, "x-user")];
        let rules = rules.map(|(limit, header)| (limit, HeaderName::from_static(header)));
        let configured = rules.iter().map(|(limit, header)| {
            Rule::new(&format!("of-{limit}"), *limit, Per::Minute).header(header)
        });
        let mut plan = Plan::new(Rules::new(configured.collect())).envoys(5);
        plan.headers = rules.iter().map(|(_, header)| header.clone()).collect();
        let mut fleet = plan.start(scene).await?;
        windows::make_room(Per::Minute, Duration::from_secs(15)).await?;
        for minute in ["this", "next"] {
            for (limit, header) in &rules {
                limits_of(&fleet, minute, *limit, header).await?;
            }
            let [.., (limit, header)] = &rules;
            all_at_one(&fleet, minute, *limit, header).await?;
            if minute == "this" {
                // Pacing: shares stand from the start of a window only.
                tokio::time::sleep(windows::until_next(Per::Minute)?).await;
            }
        }
        assert_unharmed(&mut fleet.envoys)
    })
}
