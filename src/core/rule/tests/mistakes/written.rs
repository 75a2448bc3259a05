//! Nulls, names and numbers as nobody should write them.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn a_null_is_not_a_field_left_out() {
    let algorithm = r#"{"amount": 1, "per": "hour", "algorithm": null}"#;
    check(&[
        (
            rule(r#", "key": null"#),
            "rules[0].key",
            Some("null"),
            "write a JSON array",
        ),
        (
            rule(r#", "revision": null"#),
            "rules[0].revision",
            Some("null"),
            "from 0 to",
        ),
        (
            rule_with(algorithm, ""),
            "rules[0].limit.algorithm",
            Some("null"),
            "write a string",
        ),
        (
            counter(r#"{"cluster": "c", "timeout": null}"#),
            "counter.timeout",
            Some("null"),
            "write a string",
        ),
    ]);
}

#[test]
fn the_name_of_an_unknown_field_cannot_forge_log_lines() {
    let long = format!(r#", "{}": 1"#, "n".repeat(100));
    let shown = format!("rules[0].{}...", "n".repeat(64));
    check(&[
        (
            rule(r#", "a\nb": 1"#),
            "rules[0].a b",
            Some("1"),
            "unknown field",
        ),
        (rule(&long), &shown, Some("1"), "unknown field"),
    ]);
}

#[test]
fn a_number_that_no_double_holds_is_told_from_other_mistakes() {
    let text = rule_with(r#"{"amount": 1e999, "per": "hour"}"#, "");
    let wanted = "not JSON: number out of range";
    check(&[(text, "rules[0].limit.amount", None, wanted)]);
}
