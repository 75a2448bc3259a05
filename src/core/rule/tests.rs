use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

mod mistakes;

const WHOLE: &str = r#"{
  "domain": "shop",
  "counter": {"cluster": "outbound|8081||headgate.hg.svc.cluster.local", "timeout": "250ms"},
  "rules": [
    {"name": "per-key",
     "key": [{"header": "X-Api-Key", "missing": "share"}, {"header": ":path"}],
     "limit": {"amount": 100, "per": "minute", "algorithm": "fixed_window"},
     "when_undecided": "deny", "revision": 7},
    {"name": "all", "limit": {"amount": "10000", "per": "DAY"}, "when_undecided": "allow"}
  ]
}"#;

/// A configuration of one rule with the given pieces in place of the right ones.
fn with(counter: &str, rules: &str) -> String {
    format!(r#"{{"counter": {counter}, "rules": {rules}}}"#)
}

const COUNTER: &str = r#"{"cluster": "c"}"#;

fn rule_with(limit: &str, rest: &str) -> String {
    let rule = format!(r#"[{{"name": "r", "limit": {limit}, "when_undecided": "deny"{rest}}}]"#);
    with(COUNTER, &rule)
}

fn amount_of(text: &str) -> Option<u64> {
    let text = rule_with(&format!(r#"{{"amount": {text}, "per": "hour"}}"#), "");
    let config = Config::parse(text.as_bytes()).ok()?;
    config
        .rules()
        .first()
        .map(|rule| rule.limit().amount().get())
}

/// The mistakes as (path, found, wanted).
fn issues(text: &str) -> Vec<(String, Option<String>, String)> {
    let errors = Config::parse(text.as_bytes()).expect_err("refused");
    let triple = |issue: &Issue| {
        (
            issue.path().to_owned(),
            issue.found().map(str::to_owned),
            issue.wanted().to_owned(),
        )
    };
    errors.issues().iter().map(triple).collect()
}

#[test]
fn reads_every_field() {
    let config = Config::parse(WHOLE.as_bytes()).expect("usable");
    assert_eq!(config.domain(), "shop");
    assert_eq!(
        config.counter().cluster(),
        "outbound|8081||headgate.hg.svc.cluster.local"
    );
    assert_eq!(config.counter().authority(), "headgate");
    assert_eq!(config.counter().timeout(), Span::from_millis(250));
    let [first, second] = config.rules() else {
        panic!("two rules")
    };
    assert_eq!(first.name(), "per-key");
    let headers: Vec<_> = first
        .key()
        .iter()
        .map(|part| (part.header(), part.missing()))
        .collect();
    assert_eq!(
        headers,
        [("x-api-key", Missing::Share), (":path", Missing::Skip)]
    );
    assert_eq!(first.limit().amount().get(), 100);
    assert_eq!(first.limit().per(), Per::Minute);
    assert_eq!(first.limit().algorithm(), Algorithm::FixedWindow);
    assert_eq!(
        (first.when_undecided(), first.revision()),
        (Policy::Deny, 7)
    );
    assert_eq!(second.key(), []);
    assert_eq!(second.limit().amount().get(), 10_000);
    assert_eq!(second.limit().period().length(), Span::from_secs(86_400));
    assert_eq!(
        (second.when_undecided(), second.revision()),
        (Policy::Allow, 0)
    );
}

#[test]
fn fills_in_what_may_be_left_out() {
    let text = rule_with(r#"{"amount": 1, "per": "second"}"#, "");
    let config = Config::parse(text.as_bytes()).expect("usable");
    assert_eq!(config.domain(), DEFAULT_DOMAIN);
    assert_eq!(config.counter().authority(), DEFAULT_AUTHORITY);
    assert_eq!(config.counter().timeout(), DEFAULT_TIMEOUT);
}

#[test]
fn amounts_are_whole_however_they_are_written() {
    let cases = [
        ("1", Some(1)),
        ("100.0", Some(100)),
        ("1e3", Some(1_000)),
        ("\"100\"", Some(100)),
        ("9007199254740992", Some(MAX_AMOUNT)),
        ("9007199254740992.0", Some(MAX_AMOUNT)),
        ("\"9007199254740992\"", Some(MAX_AMOUNT)),
        ("9007199254740993", None),
        ("1e300", None),
        ("0", None),
        ("0.0", None),
        ("-0.0", None),
        ("-1", None),
        ("1.5", None),
        ("\"\"", None),
        ("\"+1\"", None),
        ("\"1.0\"", None),
        ("\"99999999999999999999\"", None),
        ("true", None),
        ("null", None),
    ];
    for (text, amount) in cases {
        assert_eq!(amount_of(text), amount, "{text}");
    }
}

#[test]
fn timeouts_have_units_and_bounds() {
    let cases = [
        ("1ms", Some(1)),
        ("100ms", Some(100)),
        ("2s", Some(2_000)),
        ("5s", Some(5_000)),
        ("0ms", None),
        ("6s", None),
        ("5001ms", None),
        ("100", None),
        ("ms", None),
        ("s", None),
        ("", None),
        ("1.5s", None),
        ("-1s", None),
        ("+1s", None),
        ("99999999999999999999s", None),
        ("1 s", None),
    ];
    for (text, millis) in cases {
        let counter = format!(r#"{{"cluster": "c", "timeout": "{text}"}}"#);
        let rule = r#"[{"name": "r", "limit": {"amount": 1, "per": "hour"},
                        "when_undecided": "deny"}]"#;
        let config = Config::parse(with(&counter, rule).as_bytes());
        let read = config
            .ok()
            .map(|config| config.counter().timeout().as_millis());
        assert_eq!(read, millis, "{text:?}");
    }
}

#[test]
fn finds_the_mistakes_of_all_parts_at_once() {
    let text = r#"{
      "domain": "a b",
      "counter": {"cluster": "", "timeout": "0s"},
      "rules": [
        {"name": "", "limit": {"amount": 0, "per": "week"}, "when_undecided": "deny"},
        {"name": "b", "cost": 1, "limit": {"amount": 1, "per": "day"}, "when_undecided": "deny"},
        {"name": "c", "limit": {"amount": 1, "per": "day"}, "when_undecided": "deny"},
        {"name": "c", "limit": {"amount": 1, "per": "day"}, "when_undecided": "deny"}
      ]
    }"#;
    let paths: Vec<String> = issues(text).into_iter().map(|(path, _, _)| path).collect();
    let expected = [
        "domain",
        "counter.cluster",
        "counter.timeout",
        "rules[0].name",
        "rules[0].limit.amount",
        "rules[0].limit.per",
        "rules[1].cost",
        "rules[3].name",
    ];
    assert_eq!(paths, expected);
}

#[test]
fn an_issue_reads_as_a_sentence() {
    let text = rule_with(r#"{"amount": 0, "per": "hour"}"#, "");
    let errors = Config::parse(text.as_bytes()).expect_err("refused");
    assert_eq!(
        errors.to_string(),
        "rules[0].limit.amount: found 0; write a whole number from 1 to 9007199254740992"
    );
}

#[test]
fn too_many_rules_headers_or_bytes_are_refused() {
    let rule = |index: usize| {
        format!(
            r#"{{"name": "r{index}", "limit": {{"amount": 1, "per": "day"}},
                 "when_undecided": "deny"}}"#
        )
    };
    let rules = |count: usize| {
        let all: Vec<String> = (0..count).map(rule).collect();
        with(COUNTER, &format!("[{}]", all.join(",")))
    };
    assert!(Config::parse(rules(MAX_RULES).as_bytes()).is_ok());
    let all = issues(&rules(MAX_RULES + 1));
    assert_eq!(all.len(), 1, "{all:?}");
    assert_eq!(all.first().map(|(path, ..)| path.as_str()), Some("rules"));

    let key = |count: usize| {
        let all: Vec<String> = (0..count)
            .map(|i| format!(r#"{{"header": "h{i}"}}"#))
            .collect();
        rule_with(
            r#"{"amount": 1, "per": "day"}"#,
            &format!(r#", "key": [{}]"#, all.join(",")),
        )
    };
    assert!(Config::parse(key(MAX_KEY_HEADERS).as_bytes()).is_ok());
    assert!(Config::parse(key(MAX_KEY_HEADERS + 1).as_bytes()).is_err());

    let mut long = WHOLE.to_owned();
    long.push_str(&" ".repeat(MAX_CONFIG_BYTES));
    assert!(
        issues(&long)
            .iter()
            .any(|(_, _, wanted)| wanted.contains("at most 1048576 bytes"))
    );
}

#[test]
fn the_list_of_mistakes_is_bounded_and_says_so() {
    let bad = r#"{"name": "", "limit": {"amount": 0, "per": ""}, "when_undecided": "deny"}"#;
    let text = with(COUNTER, &format!("[{}]", vec![bad; MAX_RULES].join(",")));
    let errors = Config::parse(text.as_bytes()).expect_err("refused");
    assert_eq!(errors.issues().len(), MAX_ISSUES);
    assert_eq!(errors.more(), MAX_RULES * 3 - MAX_ISSUES);
    assert!(errors.to_string().ends_with("and 160 more"));
}

#[test]
fn found_values_are_shortened_and_cannot_forge_log_lines() {
    let name = format!("a\\u0085{}", "é".repeat(100));
    let text = with(COUNTER, &format!(r#"[{{"name": "{name}"}}]"#));
    let all = issues(&text.replace(
        r#""}]"#,
        r#"", "limit": {"amount":1,"per":"day"}, "when_undecided":"deny"}]"#,
    ));
    let found = all
        .first()
        .and_then(|(_, found, _)| found.clone())
        .unwrap_or_default();
    assert!(found.ends_with("..."), "{found}");
    assert_eq!(found.chars().count(), 67);
    assert!(!found.contains('\u{85}'));
}

#[test]
fn not_utf8_is_an_answer() {
    let errors = Config::parse(b"{\"domain\": \"\xff\"}").expect_err("refused");
    assert_eq!(
        errors.to_string(),
        "configuration: not UTF-8 after byte 12; write JSON in UTF-8"
    );
}

#[test]
fn any_text_gives_an_answer() {
    // Cut and damaged texts reach every branch of the reader; none may panic.
    for end in 0..WHOLE.len() {
        if let Some(text) = WHOLE.get(..end) {
            assert!(Config::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
    for (index, _) in WHOLE.bytes().enumerate() {
        for byte in *b"\"{}[],:0x\xff" {
            let mut bytes = WHOLE.as_bytes().to_vec();
            if let Some(place) = bytes.get_mut(index) {
                *place = byte;
            }
            let _answer = Config::parse(&bytes);
        }
    }
}
