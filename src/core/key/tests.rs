//! Different parts give different keys; the secret matters.

use std::collections::BTreeSet;

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn hash(secret: u8, domain: &str, rule: &str, secs: u64, values: &[&str]) -> KeyHash {
    let values: Vec<Value> = values.iter().map(|value| value_of(value)).collect();
    KeyParts {
        domain,
        rule,
        algorithm: 1,
        period: Span::from_secs(secs),
        values: &values,
    }
    .hash(HashKey::new([secret; 16]))
}

/// "-" stands for a missing value.
fn value_of(text: &str) -> Value {
    (text != "-").then(|| Rc::from(text.as_bytes()))
}

#[test]
fn every_part_counts() {
    let all = [
        hash(1, "shop", "per-key", 60, &["ab", "c"]),
        hash(1, "shop", "per-key", 60, &["a", "bc"]),
        hash(1, "shop", "per-key", 60, &["abc"]),
        hash(1, "shop", "per-key", 60, &[]),
        hash(1, "shop", "per-key", 60, &[""]),
        hash(1, "shop", "per-key", 60, &["-"]),
        hash(1, "shop", "per-key", 1, &["ab", "c"]),
        hash(1, "shopper", "-key", 60, &["ab", "c"]),
        hash(2, "shop", "per-key", 60, &["ab", "c"]),
    ];
    assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
}

#[test]
fn bytes_go_round_and_a_wrong_length_does_not() {
    let key = hash(1, "shop", "per-key", 60, &["x"]);
    assert_eq!(KeyHash::from_bytes(&key.to_bytes()), Some(key));
    assert_eq!(KeyHash::from_bytes(&[0; 15]), None);
    assert_eq!(key.bucket(0), 0);
    assert!(key.bucket(7) < 7);
}

#[test]
fn the_secret_is_not_printed() {
    assert!(!format!("{:?}", HashKey::new([0x5a; 16])).contains("5a"));
}

#[test]
fn only_the_start_of_a_long_value_is_shown() {
    for (value, shown) in [
        ("sk_live_0123456789", "sk_l***"),
        ("short", "***"),
        ("", "***"),
        ("\u{1}\u{2}\u{3}\u{4}0123456789", "***"),
        ("-", "(missing)"),
    ] {
        assert_eq!(masked(&value_of(value)), shown, "{value:?}");
    }
}
