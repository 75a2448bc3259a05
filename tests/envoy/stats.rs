//! Envoy's statistics as its admin interface gives them: values of now, and histograms as they
//! were at most a tenth of a second ago.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde::Deserialize;

/// Where Envoy puts what the plugin defines.
const PLUGIN: &str = "wasmcustom.";

/// All statistics of one Envoy at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stats {
    values: BTreeMap<String, u64>,
    histograms: BTreeMap<String, Vec<(String, Option<f64>)>>,
}

impl Stats {
    /// A counter or gauge by its full name.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<u64> {
        self.values.get(name).copied()
    }

    /// A counter or gauge of the plugin, such as `headgate_admitted_total`.
    ///
    /// # Errors
    /// When the plugin has defined no such thing; names those it has.
    pub fn plugin(&self, name: &str) -> Result<u64> {
        self.value(&format!("{PLUGIN}{name}")).with_context(|| {
            let known: Vec<&str> = self.plugin_values("").map(|(name, _)| name).collect();
            format!(
                "the plugin has no statistic {name}; it has {}",
                known.join(", ")
            )
        })
    }

    /// All counters and gauges of the plugin whose names begin so, without Envoy's prefix.
    pub fn plugin_values<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, u64)> {
        self.values.iter().filter_map(move |(name, value)| {
            let name = name.strip_prefix(PLUGIN)?;
            name.starts_with(prefix).then_some((name, *value))
        })
    }

    /// A quantile (such as `"99"`) of a histogram since the start, in the histogram's own unit;
    /// `None` where nothing was recorded.
    #[must_use]
    pub fn quantile(&self, name: &str, quantile: &str) -> Option<f64> {
        self.histograms
            .get(name)?
            .iter()
            .find(|(name, _)| name == quantile)?
            .1
    }

    /// As [`Stats::quantile`], for a histogram of the plugin, such as `headgate_ask_wait_us`.
    #[must_use]
    pub fn plugin_quantile(&self, name: &str, quantile: &str) -> Option<f64> {
        self.quantile(&format!("{PLUGIN}{name}"), quantile)
    }

    /// Reads the answer to `/stats?format=json`.
    pub(super) fn parse(answer: &[u8]) -> Result<Self> {
        let answer: Answer = serde_json::from_slice(answer).context("statistics do not parse")?;
        let mut stats = Self::default();
        for entry in answer.stats {
            match entry {
                Entry::Value { name, value } => drop(stats.values.insert(name, value)),
                Entry::Histograms { histograms } => stats.add(histograms),
                Entry::Other(_) => {}
            }
        }
        Ok(stats)
    }

    fn add(&mut self, histograms: Histograms) {
        for computed in histograms.computed_quantiles {
            let values = computed.values.iter().map(|value| value.cumulative);
            let names = histograms
                .supported_quantiles
                .iter()
                .map(ToString::to_string);
            self.histograms
                .insert(computed.name, names.zip(values).collect());
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    stats: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Entry {
    Value { name: String, value: u64 },
    Histograms { histograms: Histograms },
    // Text readouts.
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct Histograms {
    #[serde(default)]
    supported_quantiles: Vec<serde_json::Number>,
    #[serde(default)]
    computed_quantiles: Vec<Computed>,
}

#[derive(Deserialize)]
struct Computed {
    name: String,
    values: Vec<Cumulative>,
}

#[derive(Deserialize)]
struct Cumulative {
    cumulative: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::Stats;

    const ANSWER: &str = r#"{"stats": [
        {"name": "server.live", "value": 1},
        {"name": "wasmcustom.headgate_admitted_total", "value": 12},
        {"name": "wasmcustom.headgate_errors_timeout_total", "value": 2},
        {"name": "a.text", "value": "words"},
        {"histograms": {
            "supported_quantiles": [50, 99, 99.9],
            "computed_quantiles": [{"name": "wasmcustom.headgate_ask_wait_us", "values": [
                {"interval": null, "cumulative": 1050},
                {"interval": 2, "cumulative": 2100.5},
                {"interval": null, "cumulative": null}]}]}}]}"#;

    #[test]
    fn values_and_quantiles_are_found_by_name() {
        let stats = Stats::parse(ANSWER.as_bytes()).expect("parses");
        assert_eq!(stats.value("server.live"), Some(1));
        assert_eq!(stats.value("a.text"), None);
        assert_eq!(
            stats.plugin("headgate_admitted_total").expect("defined"),
            12
        );
        let errors: Vec<_> = stats.plugin_values("headgate_errors_").collect();
        assert_eq!(errors, [("headgate_errors_timeout_total", 2)]);
        assert_eq!(
            stats.plugin_quantile("headgate_ask_wait_us", "99"),
            Some(2100.5)
        );
        assert_eq!(stats.plugin_quantile("headgate_ask_wait_us", "99.9"), None);
    }

    #[test]
    fn a_missing_statistic_is_an_error_that_lists_those_there_are() {
        let stats = Stats::parse(ANSWER.as_bytes()).expect("parses");
        let error = stats
            .plugin("headgate_refused_total")
            .expect_err("not defined")
            .to_string();
        assert!(error.contains("headgate_admitted_total"), "{error}");
    }
}
