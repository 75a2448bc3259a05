//! The averages against what they average.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const SECOND: Span = Span::from_secs(1);

fn at(micros: u64) -> LocalTime {
    LocalTime::new(5_000_000_000_000).plus(Span::new(micros * 1_000))
}

/// Demand after so many requests of one token, one each `gap` microseconds.
fn steady(requests: u64, gap: u64, window: Span) -> (Demand, LocalTime) {
    let mut demand = Demand::default();
    for request in 0..requests {
        demand.note(Tokens::new(1), at(request * gap), window);
    }
    (demand, at(requests * gap))
}

#[test]
fn a_steady_rate_is_found() {
    for (requests, gap, window, per_second) in [
        (10_000, 1_000, SECOND, 1_000),
        (100_000, 10, SECOND, 100_000),
        (3_000, 20_000, Span::from_secs(60), 50),
        (4_000, 1_000_000, Span::from_secs(3_600), 1),
    ] {
        let (demand, now) = steady(requests, gap, window);
        let found = demand.rate(now, window).get();
        let right = per_second * 1_000;
        assert!(found.abs_diff(right) <= right / 8, "{found} for {right}");
    }
}

#[test]
fn a_burst_is_seen_at_once_and_a_slow_key_is_not_forgotten() {
    let hour = Span::from_secs(3_600);
    let mut demand = Demand::default();
    for request in 0..200 {
        demand.note(Tokens::new(1), at(request * 500), hour);
    }
    let burst = demand.rate(at(100_000), hour);
    assert!(burst > Rate::new(500_000), "{burst}");
    // A token a minute: nothing is left of it in the fast average.
    let (demand, now) = steady(300, 60_000_000, hour);
    let slow = demand.rate(now, hour).get();
    assert!((10..25).contains(&slow), "{slow}");
}

#[test]
fn demand_ends() {
    let (demand, now) = steady(10_000, 1_000, SECOND);
    let second_later = demand.rate(now.plus(SECOND), SECOND);
    assert!(second_later < Rate::new(20_000), "{second_later}");
    assert_eq!(
        demand.rate(now.plus(Span::from_secs(60)), SECOND),
        Rate::ZERO
    );
}

#[test]
fn a_time_that_is_not_counted_lowers_nothing() {
    let (mut demand, now) = steady(10_000, 1_000, SECOND);
    let before = demand.rate(now, SECOND);
    let later = now.plus(Span::from_millis(400));
    demand.resume(later, Span::ZERO);
    let after = demand.rate(later, SECOND);
    assert!(before.get().abs_diff(after.get()) <= before.get() / 50);
}

#[test]
fn the_bounds_do_not_wrap() {
    let mut demand = Demand::default();
    for window in [Span::ZERO, SECOND, Span::new(u64::MAX)] {
        demand.note(Tokens::new(u64::MAX), LocalTime::MAX, window);
        demand.note(Tokens::new(u64::MAX), LocalTime::ZERO, window);
        let _ = demand.rate(LocalTime::MAX, window);
    }
}
