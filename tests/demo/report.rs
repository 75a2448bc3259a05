//! What came of it, for programs: `target/demo/report.json`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use headgate_tests::load::Latency;
use headgate_tests::scene::target_folder;
use serde::Serialize;
use serde_json::Number;

use crate::decimal::{added_micros, millionths, thousandths};
use crate::flags::Flags;
use crate::run::KeyResult;

/// The whole.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    envoys: u8,
    workers: u8,
    keys: Vec<KeyReport>,
    requests: u64,
    asked_share: Number,
    added_ms: Added,
}

/// One key.
#[derive(Debug, Serialize)]
struct KeyReport {
    key: String,
    limit: u64,
    offered: u64,
    admitted: u64,
    refused: u64,
    undecided: u64,
    over: u64,
    asked: u64,
}

/// What the plugin adds to a request's latency; less than nothing where the noise is larger.
#[derive(Debug, Serialize)]
struct Added {
    p50: Number,
    p99: Number,
}

impl Report {
    pub(crate) fn new(flags: &Flags, results: &[KeyResult]) -> Result<Self> {
        let requests = results.iter().map(|result| result.counts.offered).sum();
        let asked = results.iter().map(|result| result.asked).sum();
        let (mut with, mut without) = (Latency::default(), Latency::default());
        for result in results {
            with.merge(result.with.clone());
            without.merge(result.without.clone());
        }
        let added = |permille| {
            number(&thousandths(added_micros(
                with.permille(permille),
                without.permille(permille),
            )))
        };
        Ok(Self {
            envoys: flags.envoys,
            workers: flags.workers,
            keys: results.iter().map(KeyReport::new).collect(),
            requests,
            asked_share: share(asked, requests)?,
            added_ms: Added {
                p50: added(500)?,
                p99: added(990)?,
            },
        })
    }

    /// Writes it, and says where.
    pub(crate) fn write(&self) -> Result<PathBuf> {
        let folder = target_folder().join("demo");
        let path = folder.join("report.json");
        let text = serde_json::to_string_pretty(self)?;
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(&path, text + "\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

impl KeyReport {
    fn new(result: &KeyResult) -> Self {
        let counts = result.counts;
        Self {
            key: result.name.clone(),
            limit: result.limit,
            offered: counts.offered,
            admitted: counts.admitted,
            refused: counts.refused,
            undecided: counts.undecided,
            over: counts.admitted.saturating_sub(result.limit),
            asked: result.asked,
        }
    }
}

/// A part of 1, to a millionth.
fn share(part: u64, whole: u64) -> Result<Number> {
    let millionths = millionths(part, whole);
    let (units, rest) = (millionths / 1_000_000, millionths % 1_000_000);
    number(&format!("{units}.{rest:06}"))
}

fn number(text: &str) -> Result<Number> {
    serde_json::from_str(text).with_context(|| format!("{text} is no number"))
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn shares_are_numbers() {
        let text = |part, whole| share(part, whole).expect("a number").to_string();
        assert_eq!(text(1, 8), "0.125");
        assert_eq!(text(0, 0), "0.0");
        assert_eq!(text(3, 3), "1.0");
        assert_eq!(text(1_234, 1_000_000), "0.001234");
    }
}
