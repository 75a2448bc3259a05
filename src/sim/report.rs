//! What people and programs read of the reference scenarios: a table, and `report.json`. Fractions
//! are computed in whole numbers and written as decimals.

use headgate_core::units::Span;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::scenario::Scenario;
use crate::world::Report;

/// A measured scenario.
#[derive(Debug)]
pub struct Row {
    /// Which.
    pub scenario: Scenario,
    /// What came of it.
    pub report: Report,
}

/// Millionths of a whole; 0 of nothing.
fn millionths(part: u64, whole: u64) -> u64 {
    let share = u128::from(part).saturating_mul(1_000_000);
    u64::try_from(share.checked_div(u128::from(whole)).unwrap_or(0)).unwrap_or(u64::MAX)
}

/// A number of the unit that `digits` digits after the point count: 1234 and 3 are `1.234`.
fn decimal(value: u64, digits: u32) -> String {
    let unit = 10_u64.saturating_pow(digits);
    let whole = value.checked_div(unit).unwrap_or(0);
    let rest = value.checked_rem(unit).unwrap_or(0);
    let width = usize::try_from(digits).unwrap_or(0);
    format!("{whole}.{rest:0width$}")
}

/// Thousandths per second.
fn per_second(count: u64, time: Span) -> u64 {
    let thousandths = u128::from(count).saturating_mul(1_000_000_000_000);
    let rate = thousandths.checked_div(u128::from(time.get())).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// Hundredths of a per cent, rounded.
fn percent(part: u64, whole: u64) -> String {
    decimal(millionths(part, whole).saturating_add(50) / 100, 2)
}

/// Tenths of a millisecond, rounded.
fn millis(micros: u64) -> String {
    decimal(micros.saturating_add(50) / 100, 1)
}

/// The head of the table.
#[must_use]
pub fn head() -> String {
    let what = "scenario (in brackets: the first simulation)";
    format!(
        "{what:58} {:>5} {:>5} {:>5} {:>18} {:>6} {:>14} {:>18}",
        "over", "false", "undec", "asked %", "zone %", "messages/s", "p99 / p99.9 ms"
    )
}

impl Row {
    /// One line of the table.
    #[must_use]
    pub fn line(&self) -> String {
        let Self { scenario, report } = self;
        let counts = &report.counts;
        let reference = scenario.reference;
        let asked = percent(counts.asked, counts.requests);
        let zone = percent(counts.asked_near_boundary, counts.requests);
        let messages = per_second(report.messages, report.loaded) / 1_000;
        let delay = |per_mille| millis(u64::from(report.delays.percentile(per_mille)));
        format!(
            "{:8} {:49} {:>5} {:>5} {:>5} {:>18} {:>6} {:>14} {:>18}",
            scenario.name,
            scenario.what,
            report.verdicts.over(),
            report.verdicts.false_refusals(),
            counts.undecided,
            format!("{asked} ({})", decimal(reference.path, 2)),
            zone,
            format!("{messages} ({})", reference.messages),
            format!(
                "{} / {} ({} / {})",
                delay(990),
                delay(999),
                millis(reference.p99),
                millis(reference.p999)
            ),
        )
    }

    /// Whether it is as it must be.
    #[must_use]
    pub fn is_right(&self) -> bool {
        self.report.is_right()
    }
}

#[derive(Serialize)]
struct Json {
    scenarios: Vec<JsonRow>,
}

#[derive(Serialize)]
struct JsonRow {
    name: &'static str,
    over: u64,
    #[serde(rename = "false")]
    false_refusals: u64,
    undecided: u64,
    asked_share: Box<RawValue>,
    boundary_share: Box<RawValue>,
    messages_per_s: Box<RawValue>,
    added_ms: JsonDelays,
}

#[derive(Serialize)]
struct JsonDelays {
    p50: Box<RawValue>,
    p99: Box<RawValue>,
    p999: Box<RawValue>,
}

/// The table as JSON.
///
/// # Errors
/// None that can happen: decimals are JSON.
pub fn json(rows: &[Row]) -> serde_json::Result<String> {
    let row = |row: &Row| -> serde_json::Result<JsonRow> {
        let counts = &row.report.counts;
        let share = |part| RawValue::from_string(decimal(millionths(part, counts.requests), 6));
        let delay = |per_mille| {
            let micros = row.report.delays.percentile(per_mille);
            RawValue::from_string(decimal(u64::from(micros), 3))
        };
        let messages = per_second(row.report.messages, row.report.loaded);
        Ok(JsonRow {
            name: row.scenario.name,
            over: row.report.verdicts.over(),
            false_refusals: row.report.verdicts.false_refusals(),
            undecided: counts.undecided,
            asked_share: share(counts.asked)?,
            boundary_share: share(counts.asked_near_boundary)?,
            messages_per_s: RawValue::from_string(decimal(messages, 3))?,
            added_ms: JsonDelays {
                p50: delay(500)?,
                p99: delay(990)?,
                p999: delay(999)?,
            },
        })
    };
    let scenarios = rows.iter().map(row).collect::<serde_json::Result<_>>()?;
    let mut text = serde_json::to_string_pretty(&Json { scenarios })?;
    text.push('\n');
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_what_they_count() {
        assert_eq!(decimal(1_234, 3), "1.234");
        assert_eq!(decimal(5, 6), "0.000005");
        assert_eq!(percent(1, 3), "33.33");
        assert_eq!(percent(82, 10_000), "0.82");
        assert_eq!(millis(1_449), "1.4");
        assert_eq!(per_second(3, Span::from_secs(2)), 1_500);
        assert_eq!(millionths(1, 0), 0);
    }
}
