//! Fractions as text, computed in whole numbers.

use std::time::Duration;

/// `value` thousandths of something with three digits after the point: -1234 is `-1.234`.
pub(crate) fn thousandths(value: i128) -> String {
    let sign = if value < 0 { "-" } else { "" };
    let value = value.unsigned_abs();
    format!("{sign}{}.{:03}", value / 1000, value % 1000)
}

/// How much longer `one` is than `other`, in thousandths of a millisecond.
pub(crate) fn added_micros(one: Duration, other: Duration) -> i128 {
    let micros = |duration: Duration| i128::try_from(duration.as_micros()).unwrap_or(i128::MAX);
    micros(one).saturating_sub(micros(other))
}

/// `part` of `whole` in millionths, rounded down; 0 of nothing.
pub(crate) fn millionths(part: u64, whole: u64) -> u64 {
    let share = u128::from(part) * 1_000_000;
    let share = share.checked_div(u128::from(whole)).unwrap_or(0);
    u64::try_from(share).unwrap_or(u64::MAX)
}

/// A count with a separator between thousands: `12,345`.
pub(crate) fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{added_micros, grouped, millionths, thousandths};
    use std::time::Duration;

    #[test]
    fn fractions_are_written_as_people_read_them() {
        assert_eq!(thousandths(0), "0.000");
        assert_eq!(thousandths(-5), "-0.005");
        assert_eq!(thousandths(12_345), "12.345");
    }

    #[test]
    fn what_is_faster_has_added_less_than_nothing() {
        let (one, other) = (Duration::from_micros(900), Duration::from_micros(1_000));
        assert_eq!(added_micros(one, other), -100);
        assert_eq!(added_micros(other, one), 100);
    }

    #[test]
    fn shares_of_nothing_are_zero() {
        assert_eq!(millionths(1, 0), 0);
        assert_eq!(millionths(3, 1_000), 3_000);
        assert_eq!(millionths(u64::MAX, u64::MAX), 1_000_000);
    }

    #[test]
    fn counts_are_grouped_by_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(1_234_567), "1,234,567");
    }
}
