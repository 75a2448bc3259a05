//! The replies that the filter gives itself.

use headgate_core::rule::Rule;
use headgate_core::units::Span;
use serde::Serialize;

use crate::host_api::Reply;

/// gRPC's RESOURCE_EXHAUSTED.
const GRPC_EXHAUSTED: u8 = 8;
/// gRPC's UNAVAILABLE.
const GRPC_UNAVAILABLE: u8 = 14;

#[derive(Serialize)]
struct Body<'a> {
    code: u16,
    msg: &'a str,
    rule: &'a str,
}

/// 429: the request is over the rule's limit, until `retry_after` is over.
#[must_use]
pub fn refused(rule: &Rule, retry_after: Span) -> Reply {
    let limit = rule.limit();
    let message = format!(
        "rate limit exceeded: {} per {}",
        limit.amount(),
        limit.per()
    );
    let mut reply = reply(
        429,
        GRPC_EXHAUSTED,
        "headgate_refused",
        &message,
        rule.name(),
    );
    reply
        .headers
        .push(("retry-after", whole_seconds(retry_after).to_string()));
    reply
}

/// 503: whether the request is over the rule's limit could not be known.
#[must_use]
pub fn undecided(rule: &Rule) -> Reply {
    let message = "the rate limit could not be decided in time";
    reply(
        503,
        GRPC_UNAVAILABLE,
        "headgate_undecided",
        message,
        rule.name(),
    )
}

/// 503: the filter has no configuration. Envoy sends no request to such a filter; if it did,
/// passing it on would lift every limit.
#[must_use]
pub fn unconfigured() -> Reply {
    reply(
        503,
        GRPC_UNAVAILABLE,
        "headgate_unconfigured",
        "the filter is not configured",
        "",
    )
}

fn reply(status: u16, grpc_status: u8, why: &str, message: &str, rule: &str) -> Reply {
    let body = Body {
        code: status,
        msg: message,
        rule,
    };
    Reply {
        status,
        grpc_status,
        // A rule's name has no character that would need escaping here: see `rule::check`.
        details: if rule.is_empty() {
            why.to_owned()
        } else {
            format!("{why}{{{rule}}}")
        },
        headers: vec![("content-type", "application/json".to_owned())],
        // Three plain fields always serialize; an empty body would still be a valid reply.
        body: serde_json::to_string(&body).unwrap_or_default(),
    }
}

/// For `retry-after`, which knows no fractions: rounded up, so that a client does not come back
/// just before the window ends, and never 0, which would invite it at once.
fn whole_seconds(span: Span) -> u64 {
    span.get().div_ceil(Span::from_secs(1).get()).max(1)
}

/// Headers as the host takes them: the number of pairs, all lengths, then all names and values,
/// each with a zero byte after it.
#[must_use]
pub fn header_pairs(headers: &[(&str, String)]) -> Vec<u8> {
    let length = |text: &str| u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
    let count = u32::try_from(headers.len()).unwrap_or(u32::MAX);
    let mut pairs = count.to_le_bytes().to_vec();
    for (name, value) in headers {
        pairs.extend(length(name));
        pairs.extend(length(value));
    }
    for (name, value) in headers {
        for text in [*name, value.as_str()] {
            pairs.extend(text.bytes());
            pairs.push(0);
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use headgate_core::rule::Config;

    use super::*;

    fn rule() -> Rule {
        let text = r#"{"counter": {"cluster": "c"}, "rules": [{"name": "per-key",
            "limit": {"amount": 10, "per": "minute"}, "when_undecided": "deny"}]}"#;
        let config = Config::parse(text.as_bytes()).expect("usable");
        config.rules().first().cloned().expect("one rule")
    }

    #[test]
    fn a_refusal_names_the_rule_and_the_time_to_wait() {
        let reply = refused(&rule(), Span::from_millis(1_001));
        assert_eq!((reply.status, reply.grpc_status), (429, 8));
        assert_eq!(reply.details, "headgate_refused{per-key}");
        let body = r#"{"code":429,"msg":"rate limit exceeded: 10 per minute","rule":"per-key"}"#;
        assert_eq!(reply.body, body);
        let headers = [
            ("content-type", "application/json".into()),
            ("retry-after", "2".into()),
        ];
        assert_eq!(reply.headers, headers);
    }

    #[test]
    fn undecided_is_never_called_over_the_limit() {
        let reply = undecided(&rule());
        assert_eq!((reply.status, reply.grpc_status), (503, 14));
        assert_eq!(reply.details, "headgate_undecided{per-key}");
        assert!(!reply.body.contains("exceeded"), "{}", reply.body);
    }

    #[test]
    fn seconds_to_wait_are_rounded_up_and_never_zero() {
        let cases = [
            (0, 1),
            (1, 1),
            (999, 1),
            (1_000, 1),
            (1_001, 2),
            (60_000, 60),
        ];
        for (millis, seconds) in cases {
            assert_eq!(
                whole_seconds(Span::from_millis(millis)),
                seconds,
                "{millis} ms"
            );
        }
        assert_eq!(whole_seconds(Span::new(u64::MAX)), 18_446_744_074);
    }

    #[test]
    fn headers_are_written_as_the_host_reads_them() {
        assert_eq!(header_pairs(&[]), [0, 0, 0, 0]);
        let pairs = header_pairs(&[("a", "bc".into()), ("d", String::new())]);
        let expected = b"\x02\0\0\0\x01\0\0\0\x02\0\0\0\x01\0\0\0\0\0\0\0a\0bc\0d\0\0";
        assert_eq!(pairs, expected);
    }
}
