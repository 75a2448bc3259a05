//! Every kind of mistake, one at a time: where, what was found, what would be right.

use super::*;

mod written;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const LIMIT: &str = r#"{"amount": 1, "per": "hour"}"#;

/// A configuration, the path of its one mistake, how the found value starts, a piece of the advice.
type Case<'a> = (String, &'a str, Option<&'a str>, &'a str);

fn counter(counter: &str) -> String {
    with(
        counter,
        &format!(r#"[{{"name": "r", "limit": {LIMIT}, "when_undecided": "deny"}}]"#),
    )
}

fn rule(rest: &str) -> String {
    rule_with(LIMIT, rest)
}

fn named(name: &str, policy: &str) -> String {
    let rule = format!(r#"[{{"name": "{name}", "limit": {LIMIT}{policy}}}]"#);
    with(COUNTER, &rule)
}

fn check(cases: &[Case<'_>]) {
    for (text, path, found, wanted) in cases {
        let all = issues(text);
        let [(at, value, message)] = all.as_slice() else {
            panic!("{text}: {all:?}")
        };
        assert_eq!(at, path, "{text}: {message}");
        assert!(message.contains(wanted), "{text}: {message}");
        match (value, found) {
            (Some(value), Some(found)) => assert!(value.starts_with(found), "{text}: {value}"),
            (value, found) => assert_eq!(value.as_deref(), *found, "{text}: {message}"),
        }
    }
}

#[test]
fn of_the_whole() {
    check(&[
        (String::new(), "", None, "empty; write a JSON object"),
        (
            "{".into(),
            "",
            None,
            "not JSON: EOF while parsing an object at line 1 column 1",
        ),
        ("[]".into(), "", Some("[]"), "write a JSON object"),
        ("7".into(), "", Some("7"), "write a JSON object"),
        (
            format!("{} x", rule("")),
            "",
            None,
            "not JSON: trailing characters",
        ),
        (
            r#"{"rules": []}"#.into(),
            "",
            None,
            "missing field `counter`",
        ),
        (
            r#"{"mode": 1}"#.into(),
            "mode",
            Some("1"),
            r#"unknown field, write one of "domain", "counter", "rules""#,
        ),
        (
            with(COUNTER, "{}"),
            "rules",
            Some("{}"),
            "write a JSON array",
        ),
        (
            with(COUNTER, "[]"),
            "rules",
            Some("0 rules"),
            "write 1 to 64 rules",
        ),
        (
            with(COUNTER, r#"[["r"]]"#),
            "rules[0]",
            Some("[\"r\"]"),
            "write a JSON object",
        ),
    ]);
}

#[test]
fn of_the_counter() {
    let authority = r#"{"cluster": "c", "authority": "a|b"}"#;
    let unit = r#"{"cluster": "c", "timeout": 100}"#;
    let late = r#"{"cluster": "c", "timeout": "9s"}"#;
    let bounds = "from \"1ms\" to \"5s\", such as \"100ms\"";
    let spaces = r#"{"cluster": "a b"}"#;
    let empty = r#"{"cluster": ""}"#;
    check(&[
        (counter("{}"), "counter", None, "missing field `cluster`"),
        (
            counter("null"),
            "counter",
            Some("null"),
            "write a JSON object",
        ),
        (
            counter(r#"["c"]"#),
            "counter",
            Some("[\"c\"]"),
            "write a JSON object",
        ),
        (
            counter(empty),
            "counter.cluster",
            Some("\"\""),
            "write 1 to 125 visible",
        ),
        (
            counter(spaces),
            "counter.cluster",
            Some("\"a b\""),
            "without spaces",
        ),
        (
            counter(r#"{"cluster": 5}"#),
            "counter.cluster",
            Some("5"),
            "write a string",
        ),
        (
            counter(authority),
            "counter.authority",
            Some("\"a|b\""),
            "write a host name",
        ),
        (
            counter(unit),
            "counter.timeout",
            Some("100"),
            "write a string",
        ),
        (counter(late), "counter.timeout", Some("\"9s\""), bounds),
    ]);
}

#[test]
fn of_a_rule() {
    let long = "n".repeat(MAX_NAME_BYTES + 1);
    let deny = r#", "when_undecided": "deny""#;
    let guess = r#", "when_undecided": "guess""#;
    let refused = "rules[0].when_undecided";
    check(&[
        (
            rule(r#", "cost": 1"#),
            "rules[0].cost",
            Some("1"),
            "unknown field",
        ),
        (
            rule(r#", "match": "x""#),
            "rules[0].match",
            Some("\"x\""),
            "unknown field",
        ),
        (
            rule(r#", "mode": []"#),
            "rules[0].mode",
            Some("[]"),
            "unknown field",
        ),
        (
            rule(r#", "name": "s""#),
            "rules[0]",
            None,
            "duplicate field `name`",
        ),
        (
            rule(r#", "revision": -1"#),
            "rules[0].revision",
            Some("-1"),
            "from 0 to",
        ),
        (
            named("r", ""),
            "rules[0]",
            None,
            "missing field `when_undecided`",
        ),
        (
            named("r", guess),
            refused,
            Some("\"guess\""),
            r#"write one of "deny", "allow""#,
        ),
        (
            named(&long, deny),
            "rules[0].name",
            Some("\"nnnn"),
            "write 1 to 128 ASCII letters",
        ),
        (
            named("", deny),
            "rules[0].name",
            Some("\"\""),
            "write 1 to 128 ASCII letters",
        ),
        (
            named("a b", deny),
            "rules[0].name",
            Some("\"a b\""),
            "write 1 to 128 ASCII letters",
        ),
    ]);
}

#[test]
fn of_a_key() {
    let key = |key: &str| rule(&format!(r#", "key": {key}"#));
    let twice = r#"[{"header": "a"}, {"header": "A"}]"#;
    let refuse = r#"[{"header": "a", "missing": "refuse"}]"#;
    let header = "rules[0].key[0].header";
    check(&[
        (
            key("\"x-api-key\""),
            "rules[0].key",
            Some("\"x-api-key\""),
            "write a JSON array",
        ),
        (
            key(r#"[["a"]]"#),
            "rules[0].key[0]",
            Some("[\"a\"]"),
            "write a JSON object",
        ),
        (
            key(r#"["a"]"#),
            "rules[0].key[0]",
            Some("\"a\""),
            "write a JSON object",
        ),
        (
            key("[{}]"),
            "rules[0].key[0]",
            None,
            "missing field `header`",
        ),
        (
            key(r#"[{"header": "a b"}]"#),
            header,
            Some("\"a b\""),
            "write the name of a header",
        ),
        (
            key(r#"[{"header": ""}]"#),
            header,
            Some("\"\""),
            "write the name of a header",
        ),
        (
            key(r#"[{"header": ":"}]"#),
            header,
            Some("\":\""),
            "write the name of a header",
        ),
        (
            key(twice),
            "rules[0].key[1].header",
            Some("\"A\""),
            "each header of a key once",
        ),
        (
            key(refuse),
            "rules[0].key[0].missing",
            Some("\"refuse\""),
            r#"write one of "skip", "share""#,
        ),
    ]);
}

#[test]
fn of_a_limit() {
    let limit = |limit: &str| rule_with(limit, "");
    let whole = "write a whole number from 1 to 9007199254740992";
    let amount = "rules[0].limit.amount";
    check(&[
        (
            limit("5"),
            "rules[0].limit",
            Some("5"),
            "write a JSON object",
        ),
        (
            limit(r#"[1, "day"]"#),
            "rules[0].limit",
            Some("[1"),
            "write a JSON object",
        ),
        (
            limit(r#"{"per": "hour"}"#),
            "rules[0].limit",
            None,
            "missing field `amount`",
        ),
        (
            limit(r#"{"amount": 1}"#),
            "rules[0].limit",
            None,
            "missing field `per`",
        ),
        (
            limit(r#"{"amount": 0, "per": "hour"}"#),
            amount,
            Some("0"),
            whole,
        ),
        (
            limit(r#"{"amount": -5, "per": "hour"}"#),
            amount,
            Some("-5"),
            whole,
        ),
        (
            limit(r#"{"amount": 1.5, "per": "hour"}"#),
            amount,
            Some("1.5"),
            whole,
        ),
        (
            limit(r#"{"amount": "ten", "per": "hour"}"#),
            amount,
            Some("\"ten\""),
            whole,
        ),
        (
            limit(r#"{"amount": [], "per": "hour"}"#),
            amount,
            Some("[]"),
            whole,
        ),
    ]);
}

#[test]
fn of_a_limits_period_and_algorithm() {
    let limit = |limit: &str| rule_with(limit, "");
    let gcra = r#"{"amount": 1, "per": "hour", "algorithm": "gcra"}"#;
    let week = r#"{"amount": 1, "per": "week"}"#;
    let periods = "write \"second\", \"minute\", \"hour\" or \"day\"";
    check(&[
        (limit(week), "rules[0].limit.per", Some("\"week\""), periods),
        (
            limit(gcra),
            "rules[0].limit.algorithm",
            Some("\"gcra\""),
            r#"write one of "fixed_window""#,
        ),
    ]);
}
