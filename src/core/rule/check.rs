//! From the written shape to a [`Config`] that holds all bounds.

use std::num::NonZeroU64;

use super::bounds::{
    DEFAULT_AUTHORITY, DEFAULT_DOMAIN, DEFAULT_TIMEOUT, MAX_AMOUNT, MAX_AUTHORITY_BYTES,
    MAX_CLUSTER_BYTES, MAX_CONFIG_BYTES, MAX_HEADER_BYTES, MAX_KEY_HEADERS, MAX_NAME_BYTES,
    MAX_RULES, MAX_TIMEOUT, MIN_TIMEOUT,
};
use super::error::{ConfigErrors, Issue, Issues};
use super::json::{Array, Value, digits};
use super::raw::{RawConfig, RawCounter, RawKeyPart, RawLimit, RawRule};
use super::{Config, Counter, KeyPart, Limit, Per, Rule};
use crate::units::Span;
use crate::window::Period;

/// See [`Config::parse`].
pub(super) fn parse(json: &[u8]) -> Result<Config, ConfigErrors> {
    let text = as_text(json)?;
    let raw = RawConfig::read(&Value::root(text))?;
    let mut issues = Issues::default();
    let domain = domain(raw.domain, &mut issues);
    let counter = match RawCounter::read(&raw.counter) {
        Ok(raw) => counter(raw, &mut issues),
        Err(issue) => note(issue, &mut issues),
    };
    let count = raw.rules.len();
    if !(1..=MAX_RULES).contains(&count) {
        let wanted = format!("write 1 to {MAX_RULES} rules");
        issues.push(Issue::new(
            "rules".into(),
            Some(&format!("{count} rules")),
            wanted,
        ));
    }
    let rules: Vec<Option<Rule>> = (raw.rules.iter().take(MAX_RULES))
        .map(|value| match RawRule::read(&value) {
            Ok(raw) => rule(value.path(), raw, &mut issues),
            Err(issue) => note(issue, &mut issues),
        })
        .collect();
    unique_names(&rules, &mut issues);
    let rules: Option<Vec<Rule>> = rules.into_iter().collect();
    let config = domain.zip(counter).zip(rules);
    issues.finish(config.map(|((domain, counter), rules)| Config {
        domain,
        counter,
        rules,
    }))
}

fn note<T>(issue: Issue, issues: &mut Issues) -> Option<T> {
    issues.push(issue);
    None
}

fn as_text(json: &[u8]) -> Result<&str, Issue> {
    let whole = |found: Option<&str>, wanted: String| Issue::new(String::new(), found, wanted);
    if json.len() > MAX_CONFIG_BYTES {
        let found = format!("{} bytes", json.len());
        return Err(whole(
            Some(&found),
            format!("write at most {MAX_CONFIG_BYTES} bytes"),
        ));
    }
    let text = std::str::from_utf8(json).map_err(|error| {
        whole(
            None,
            format!(
                "not UTF-8 after byte {}; write JSON in UTF-8",
                error.valid_up_to()
            ),
        )
    })?;
    if text.trim().is_empty() {
        return Err(whole(
            None,
            "empty; write a JSON object with `counter` and `rules`".into(),
        ));
    }
    Ok(text)
}

fn domain(raw: Option<String>, issues: &mut Issues) -> Option<String> {
    let domain = raw.unwrap_or_else(|| DEFAULT_DOMAIN.to_owned());
    name("domain".into(), domain, issues)
}

/// A rule's name or a domain. The characters are those that need no escaping wherever a name is
/// shown: JSON, response details, log lines, metrics' labels.
fn name(path: String, name: String, issues: &mut Issues) -> Option<String> {
    let fits = (1..=MAX_NAME_BYTES).contains(&name.len());
    let plain = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    if fits && plain {
        return Some(name);
    }
    let wanted = format!("write 1 to {MAX_NAME_BYTES} ASCII letters, digits and . _ - /");
    note(Issue::new(path, Some(&quoted(&name)), wanted), issues)
}

fn counter(raw: RawCounter, issues: &mut Issues) -> Option<Counter> {
    let cluster = graphic("counter.cluster", raw.cluster, MAX_CLUSTER_BYTES, issues);
    let authority = raw
        .authority
        .unwrap_or_else(|| DEFAULT_AUTHORITY.to_owned());
    let authority = authority_of(authority, issues);
    let timeout = match raw.timeout {
        None => Some(DEFAULT_TIMEOUT),
        Some(text) => timeout(&text, issues),
    };
    let ((cluster, authority), timeout) = cluster.zip(authority).zip(timeout)?;
    Some(Counter {
        cluster,
        authority,
        timeout,
    })
}

fn graphic(path: &str, text: String, longest: usize, issues: &mut Issues) -> Option<String> {
    let fits = (1..=longest).contains(&text.len());
    if fits && text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Some(text);
    }
    let wanted = format!("write 1 to {longest} visible ASCII characters without spaces");
    note(
        Issue::new(path.into(), Some(&quoted(&text)), wanted),
        issues,
    )
}

/// The characters of a host name and a port; servers refuse calls with any other authority.
fn authority_of(text: String, issues: &mut Issues) -> Option<String> {
    let fits = (1..=MAX_AUTHORITY_BYTES).contains(&text.len());
    let plain = text
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._-:[]".contains(&byte));
    if fits && plain {
        return Some(text);
    }
    let wanted = format!(
        "write a host name, with a port if you like, of at most {MAX_AUTHORITY_BYTES} characters"
    );
    note(
        Issue::new("counter.authority".into(), Some(&quoted(&text)), wanted),
        issues,
    )
}

fn timeout(text: &str, issues: &mut Issues) -> Option<Span> {
    let parsed = match text.strip_suffix("ms") {
        Some(number) => digits(number).map(Span::from_millis),
        None => text.strip_suffix('s').and_then(digits).map(Span::from_secs),
    };
    match parsed {
        Some(timeout) if (MIN_TIMEOUT..=MAX_TIMEOUT).contains(&timeout) => Some(timeout),
        _ => {
            let wanted = format!(
                "write a duration from \"{}ms\" to \"{}s\", such as \"100ms\" or \"2s\"",
                MIN_TIMEOUT.as_millis(),
                MAX_TIMEOUT.as_millis() / 1_000
            );
            note(
                Issue::new("counter.timeout".into(), Some(&quoted(text)), wanted),
                issues,
            )
        }
    }
}

fn rule(path: &str, raw: RawRule<'_>, issues: &mut Issues) -> Option<Rule> {
    let name = name(format!("{path}.name"), raw.name, issues);
    let key = key(&format!("{path}.key"), &raw.key, issues);
    let limit = match RawLimit::read(&raw.limit) {
        Ok(limit_raw) => limit(raw.limit.path(), limit_raw, issues),
        Err(issue) => note(issue, issues),
    };
    let revision = match &raw.revision {
        None => Some(0),
        Some(value) => number(value, 0, u64::MAX, issues),
    };
    let (((name, key), limit), revision) = name.zip(key).zip(limit).zip(revision)?;
    Some(Rule {
        name,
        key,
        limit,
        when_undecided: raw.when_undecided,
        revision,
    })
}

fn key(path: &str, raw: &Array<'_>, issues: &mut Issues) -> Option<Vec<KeyPart>> {
    if raw.len() > MAX_KEY_HEADERS {
        let found = format!("{} headers", raw.len());
        let wanted = format!("write at most {MAX_KEY_HEADERS}");
        return note(Issue::new(path.into(), Some(&found), wanted), issues);
    }
    let mut parts: Vec<KeyPart> = Vec::with_capacity(raw.len());
    for value in raw.iter() {
        match key_part(&value, &parts) {
            Ok(part) => parts.push(part),
            Err(issue) => issues.push(issue),
        }
    }
    (parts.len() == raw.len()).then_some(parts)
}

fn key_part(value: &Value<'_>, before: &[KeyPart]) -> Result<KeyPart, Issue> {
    let RawKeyPart { header, missing } = RawKeyPart::read(value)?;
    let name = header.to_ascii_lowercase();
    let wanted = if !is_header_name(&name) {
        format!("write the name of a header, 1 to {MAX_HEADER_BYTES} characters")
    } else if before.iter().any(|other| other.header == name) {
        "write each header of a key once".into()
    } else {
        return Ok(KeyPart {
            header: name,
            missing,
        });
    };
    Err(Issue::new(
        format!("{}.header", value.path()),
        Some(&quoted(&header)),
        wanted,
    ))
}

/// A token of RFC 9110, or one after a colon: Envoy's pseudo headers.
fn is_header_name(name: &str) -> bool {
    let token = name.strip_prefix(':').unwrap_or(name);
    (1..=MAX_HEADER_BYTES).contains(&token.len())
        && (token.bytes())
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn limit(path: &str, raw: RawLimit<'_>, issues: &mut Issues) -> Option<Limit> {
    let amount = number(&raw.amount, 1, MAX_AMOUNT, issues).and_then(NonZeroU64::new);
    let per = Per::ALL
        .into_iter()
        .find(|per| raw.per.eq_ignore_ascii_case(per.name()));
    let period = per.and_then(|per| Period::new(per.length()));
    if period.is_none() {
        let wanted = "write \"second\", \"minute\", \"hour\" or \"day\"";
        issues.push(Issue::new(
            format!("{path}.per"),
            Some(&quoted(&raw.per)),
            wanted,
        ));
    }
    let ((amount, per), period) = amount.zip(per).zip(period)?;
    Some(Limit {
        amount,
        per,
        period,
        algorithm: raw.algorithm,
    })
}

fn number(value: &Value<'_>, least: u64, most: u64, issues: &mut Issues) -> Option<u64> {
    match value.number() {
        Ok(Some(number)) if (least..=most).contains(&number) => Some(number),
        Ok(_) => {
            let wanted = format!("write a whole number from {least} to {most}");
            note(value.issue(wanted), issues)
        }
        Err(issue) => note(issue, issues),
    }
}

/// Two rules of one name would share their counters.
fn unique_names(rules: &[Option<Rule>], issues: &mut Issues) {
    for (index, rule) in rules.iter().enumerate() {
        let Some(rule) = rule else { continue };
        if rules
            .iter()
            .take(index)
            .flatten()
            .any(|other| other.name == rule.name)
        {
            let wanted = "another rule has this name; give each rule a name of its own";
            let path = format!("rules[{index}].name");
            issues.push(Issue::new(path, Some(&quoted(&rule.name)), wanted));
        }
    }
}

/// A text as JSON would show it.
fn quoted(text: &str) -> String {
    // A text always serializes; an empty one would still be a message.
    serde_json::to_string(text).unwrap_or_default()
}
