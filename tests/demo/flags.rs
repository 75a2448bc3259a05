//! What can be chosen.

use std::str::FromStr;
use std::time::Duration;

use clap::Parser;
use headgate_core::rule::MAX_AMOUNT;
use hyper::header::{HeaderName, HeaderValue};

/// Starts Envoys with the plugin, one counter service and an upstream, sends requests for one key
/// after the other through all Envoys at once, and shows what was admitted.
///
/// Beside each request through the plugin, one goes through the same Envoy without it, so that the
/// added latency is that of the plugin. Fails (exit code 1) if a key is over its limit, or under it
/// though more was offered.
#[derive(Clone, Debug, Parser)]
#[command(name = "./build.sh demo", max_term_width = 100)]
pub(crate) struct Flags {
    /// How many Envoys.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) envoys: u8,

    /// Worker threads of each.
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(crate) workers: u8,

    /// Requests per second through the plugin, over all Envoys; as many go past it.
    #[arg(long, default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pub(crate) rate: u32,

    /// How long to send requests, in seconds, all keys together.
    #[arg(long, value_name = "SECONDS", default_value = "24", value_parser = seconds)]
    pub(crate) duration: Duration,

    /// A key and its limit, per day; repeat it for more keys.
    ///
    /// Keys of one limit share a rule.
    #[arg(long = "key", value_name = "NAME=LIMIT")]
    #[arg(default_values = ["alice=1000", "bob=1000", "carol=4000", "dave=10000"])]
    pub(crate) keys: Vec<KeyLimit>,
}

/// A key and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyLimit {
    pub(crate) name: String,
    pub(crate) limit: u64,
}

impl KeyLimit {
    /// The header that carries keys of this limit: each rule counts by a header of its own.
    pub(crate) fn header(&self) -> anyhow::Result<HeaderName> {
        Ok(HeaderName::from_str(&format!("x-key-of-{}", self.limit))?)
    }
}

impl FromStr for KeyLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wanted = "write a name, =, and a limit from 1 to 2^53, as in alice=1000";
        let (name, limit) = text.split_once('=').ok_or(wanted)?;
        let limit = limit.parse().map_err(|_| wanted)?;
        if name.is_empty()
            || HeaderValue::from_str(name).is_err()
            || !(1..=MAX_AMOUNT).contains(&limit)
        {
            return Err(wanted.to_owned());
        }
        Ok(Self {
            name: name.to_owned(),
            limit,
        })
    }
}

/// Longest run: an hour is enough to look at.
const LONGEST: u64 = 3600;

fn seconds(text: &str) -> Result<Duration, String> {
    match text.strip_suffix('s').unwrap_or(text).parse() {
        Ok(seconds @ 1..=LONGEST) => Ok(Duration::from_secs(seconds)),
        _ => Err(format!("write whole seconds, 1 to {LONGEST}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Flags, KeyLimit};
    use clap::Parser;
    use std::time::Duration;

    fn parse(words: &[&str]) -> Result<Flags, String> {
        let words = ["demo"].iter().chain(words);
        Flags::try_parse_from(words).map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_needs_to_be_said() {
        let flags = parse(&[]).expect("defaults");
        assert_eq!((flags.envoys, flags.workers), (3, 2));
        assert_eq!(flags.duration, Duration::from_secs(24));
        assert!(flags.keys.len() > 1);
    }

    #[test]
    fn keys_and_seconds_are_read() {
        let flags = parse(&["--key", "a=5", "--key", "b=6", "--duration", "2s"]).expect("right");
        let key = |name: &str, limit| KeyLimit {
            name: name.into(),
            limit,
        };
        assert_eq!(flags.keys, [key("a", 5), key("b", 6)]);
        assert_eq!(flags.duration, Duration::from_secs(2));
    }

    #[test]
    fn nonsense_is_refused_with_what_would_be_right() {
        for key in [
            "a",
            "a=",
            "=1",
            "a=0",
            "a=-1",
            "a=9007199254740993",
            "a=x",
            "\n=1",
        ] {
            let error = parse(&["--key", key]).expect_err(key);
            assert!(error.contains("alice=1000"), "{key}: {error}");
        }
        for other in [["--envoys", "0"], ["--duration", "0"], ["--rate", "0"]] {
            assert!(parse(&other).is_err(), "{other:?}");
        }
    }
}
