//! Values of headers are hostile: any bytes, any length, none at all.

use anyhow::Result;
use headgate_tests::fleet::Plan;
use headgate_tests::load::Key;
use headgate_tests::rules::{Per, Rule, Rules};
use headgate_tests::scene::Scene;
use hyper::header::HeaderValue;

use crate::{assert_unharmed, decided, in_one_window};

const LIMIT: u64 = 6;

/// 60 KB, and the same but for its last byte.
fn long(last: u8) -> Vec<u8> {
    let mut value = vec![b'x'; 60 * 1024];
    value[60 * 1024 - 1] = last;
    value
}

#[test]
fn every_value_is_a_key_of_its_own() -> Result<()> {
    in_one_window("headers-odd", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)]);
        let mut fleet = Plan::new(rules).start(scene).await?;
        let values = [
            b"\xff\xfe".to_vec(),
            b"\xff".to_vec(),
            "\u{e9}".as_bytes().to_vec(),
            b"\xe9".to_vec(),
            b"".to_vec(),
            b"\t".to_vec(),
            long(b'y'),
            long(b'z'),
        ];
        for value in values {
            let start = String::from_utf8_lossy(&value[..value.len().min(8)]).into_owned();
            // Envoy takes white space from both ends, so this one is the empty value again.
            let again = value == b"\t";
            let key = Key {
                name: start.clone(),
                value: Some(HeaderValue::from_bytes(&value)?),
                weight: 1,
            };
            let outcome = fleet.load(vec![key], LIMIT + 3).run().await?;
            let right = if again {
                decided(0, LIMIT + 3)
            } else {
                decided(LIMIT, 3)
            };
            assert_eq!(outcome.total(), right, "{start:?}: {:?}", outcome.failures);
        }
        assert_unharmed(&mut fleet.envoys)
    })
}

#[test]
fn a_rule_without_its_header_does_not_apply() -> Result<()> {
    in_one_window("headers-missing", async |scene: &Scene| {
        let rules = Rules::new(vec![Rule::new("per-key", LIMIT, Per::Day)]);
        let fleet = Plan::new(rules).start(scene).await?;
        let admitted = fleet.sum("headgate_admitted_total").await?;
        let key = Key {
            name: "missing".to_owned(),
            value: None,
            weight: 1,
        };
        let outcome = fleet.load(vec![key], 3 * LIMIT).run().await?;
        assert_eq!(outcome.total(), decided(3 * LIMIT, 0));
        assert_eq!(fleet.sum("headgate_admitted_total").await?, admitted);
        Ok(())
    })
}
