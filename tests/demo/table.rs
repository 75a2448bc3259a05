//! What came of it, for people.

use crate::decimal::{added_micros, grouped, millionths, thousandths};
use crate::run::KeyResult;

/// The columns; `difference` is what was admitted less what is right: the limit, or what was
/// offered where that was less.
const TITLES: [&str; 11] = [
    "key",
    "limit",
    "offered",
    "admitted",
    "refused",
    "undecided",
    "difference",
    "asked",
    "share",
    "p50 ms",
    "p99 ms",
];

const LEGEND: &str = "\
difference: admitted, less the limit or what was offered if that was less; right is 0
asked, share: requests that waited for the counter service, and their part of those offered
p50, p99: latency of admitted requests, less that past the plugin through the same Envoys
";

/// The table.
pub(crate) fn table(results: &[KeyResult]) -> String {
    let titles = TITLES.map(str::to_owned);
    let rows: Vec<[String; 11]> = std::iter::once(titles)
        .chain(results.iter().map(row))
        .collect();
    align(&rows) + "\n" + LEGEND
}

fn row(result: &KeyResult) -> [String; 11] {
    let counts = result.counts;
    let difference = i128::from(counts.admitted) - i128::from(result.right());
    let added = |permille| {
        thousandths(added_micros(
            result.with.permille(permille),
            result.without.permille(permille),
        ))
    };
    // In thousandths of a percent.
    let share = i128::from(millionths(result.asked, counts.offered) / 10);
    [
        result.name.clone(),
        grouped(result.limit),
        grouped(counts.offered),
        grouped(counts.admitted),
        grouped(counts.refused),
        grouped(counts.undecided),
        difference.to_string(),
        grouped(result.asked),
        format!("{} %", thousandths(share)),
        added(500),
        added(990),
    ]
}

/// The first column to the left, all others to the right.
fn align(rows: &[[String; 11]]) -> String {
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let mut text = String::new();
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            let width = width(column);
            let aligned = if column == 0 {
                format!("{cell:<width$}")
            } else {
                format!("  {cell:>width$}")
            };
            text.push_str(&aligned);
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::align;

    #[test]
    fn columns_are_aligned() {
        let row = |first: &str, second: &str| {
            let mut row = std::array::from_fn(|_| String::new());
            row[0] = first.into();
            row[1] = second.into();
            row
        };
        let text = align(&[row("key", "limit"), row("a", "10")]);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(lines, ["key  limit", "a       10"]);
    }
}
