//! Service time never runs backwards, whoever leads.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MS: u64 = 1_000_000;

fn at(local_ms: u64, wall_ms: u64) -> Readings {
    let (local, wall) = (
        LocalTime::new(local_ms * MS),
        ServiceTime::new(wall_ms * MS),
    );
    Readings {
        local,
        wall,
        boot: None,
    }
}

fn bounds(earliest_ms: u64, latest_ms: u64) -> TimeBounds {
    let (earliest, latest) = (earliest_ms * MS, latest_ms * MS);
    TimeBounds {
        earliest: ServiceTime::new(earliest),
        latest: ServiceTime::new(latest),
    }
}

const TTL: Span = Span::from_millis(5_000);

#[test]
fn a_fresh_store_starts_with_the_wall_clock_and_goes_by_the_monotonic_one() {
    let clock = ServiceClock::fresh(at(10, 50_000));
    assert_eq!(
        clock.now(LocalTime::new(30 * MS)),
        Some(ServiceTime::new(50_020 * MS))
    );
    assert_eq!(clock.recovers_at(), None);
}

#[test]
fn a_live_replica_tells_a_new_leader_the_time() {
    // The old leader died at 50,400 with a ceiling of 51,000; the wall clock was set back since.
    let mut clock = ServiceClock::following(ServiceTime::new(51_000 * MS), at(0, 48_000), TTL);
    assert_eq!(clock.now(LocalTime::new(100 * MS)), None);
    clock.hear(at(200, 48_200), bounds(50_600, 50_601));
    assert_eq!(
        clock.now(LocalTime::new(200 * MS)),
        Some(ServiceTime::new(50_601 * MS))
    );
    clock.hear(at(300, 48_300), bounds(10, 20));
    assert_eq!(
        clock.now(LocalTime::new(300 * MS)),
        Some(ServiceTime::new(50_701 * MS))
    );
}

#[test]
fn a_replica_whose_clock_went_wrong_cannot_push_time_ahead() {
    let mut clock = ServiceClock::following(ServiceTime::new(51_000 * MS), at(0, 50_500), TTL);
    clock.hear(at(0, 50_500), bounds(50_500, 99_000_000));
    assert_eq!(
        clock.now(LocalTime::ZERO),
        Some(ServiceTime::new(57_000 * MS))
    );
}

#[test]
fn the_first_words_put_time_forward_by_what_a_late_join_was_behind() {
    let mut clock = ServiceClock::following(ServiceTime::new(51_000 * MS), at(0, 40_000), TTL);
    let local = |millis| LocalTime::new(millis * MS);
    let service = |millis| Some(ServiceTime::new(millis * MS));
    // A Join that took 200 ms, and a poll that took none.
    clock.hear(at(300, 40_300), bounds(50_400, 50_401));
    assert_eq!(clock.now(local(300)), service(50_401));
    clock.hear(at(310, 40_310), bounds(50_610, 50_611));
    assert_eq!(clock.now(local(310)), service(50_610));
    // Never back, nor beyond what a live seat can know, nor once the first time is over.
    clock.hear(at(320, 40_320), bounds(50_600, 60_000));
    assert_eq!(clock.now(local(320)), service(50_620));
    clock.hear(at(330, 40_330), bounds(90_600, 99_000_000));
    assert_eq!(clock.now(local(330)), service(57_000));
    clock.hear(at(5_000, 45_000), bounds(90_000, 90_001));
    assert_eq!(clock.now(local(5_000)), service(61_670));
}

#[test]
fn time_does_not_go_back_after_an_outage_longer_than_the_ceilings_lead() {
    // The old leader died at 50,400 with a ceiling of 51,000. Since then replicas have gone on by
    // their own clocks, into windows beyond it; the wall clock is behind.
    let mut clock = ServiceClock::following(ServiceTime::new(51_000 * MS), at(0, 40_000), TTL);
    clock.hear(at(0, 40_000), bounds(53_000, 53_001));
    assert_eq!(
        clock.now(LocalTime::ZERO),
        Some(ServiceTime::new(53_001 * MS))
    );
}

#[test]
fn without_a_live_replica_time_goes_on_from_beyond_what_the_last_one_saw() {
    // A replica that heard the old leader at the ceiling lived on for its time-to-live.
    for (wall_ms, expected_ms) in [(40_000, 57_000), (90_000, 90_000)] {
        let ceiling = ServiceTime::new(51_000 * MS);
        let mut clock = ServiceClock::following(ceiling, at(0, wall_ms), TTL);
        clock.give_up_waiting(at(4_999, wall_ms));
        assert_eq!(clock.now(LocalTime::new(4_999 * MS)), None);
        clock.give_up_waiting(at(5_000, wall_ms));
        let now = clock.now(LocalTime::new(5_000 * MS));
        assert_eq!(now, Some(ServiceTime::new(expected_ms * MS)));
    }
}

#[test]
fn the_ceiling_is_always_ahead_of_use() {
    let mut clock = ServiceClock::fresh(at(0, 50_000));
    let first = clock.raise_ceiling(ServiceTime::new(50_000 * MS)).unwrap();
    assert_eq!(first, ServiceTime::new(51_000 * MS));
    assert_eq!(clock.raise_ceiling(ServiceTime::new(50_499 * MS)), None);
    let second = clock.raise_ceiling(ServiceTime::new(50_500 * MS)).unwrap();
    assert_eq!(second, ServiceTime::new(51_500 * MS));
}

/// As [`at`], on a boot that began `up_ms` before.
fn on_boot(id: u128, up_ms: u64, local_ms: u64, wall_ms: u64) -> Readings {
    let since = Span::from_millis(up_ms);
    Readings {
        boot: Some(Boot { id, since }),
        ..at(local_ms, wall_ms)
    }
}

#[test]
fn a_restart_on_the_same_boot_goes_on_exactly() {
    let mut old = ServiceClock::fresh(on_boot(7, 90_000, 10, 50_000));
    // The wall clock is a second ahead by now, so that time is being slewed.
    let anchor = old.drop_anchor(on_boot(7, 90_100, 110, 51_100));
    let expected = old.now(LocalTime::new(2_110 * MS)).unwrap();
    assert!(expected > ServiceTime::new(52_100 * MS), "slewed");
    // Two seconds later, in a process whose clock began to count again.
    let ceiling = ServiceTime::new(51_200 * MS);
    let new = ServiceClock::resuming(ceiling, anchor, on_boot(7, 92_100, 3, 40_000), TTL);
    assert_eq!(new.now(LocalTime::new(3 * MS)), Some(expected));
    let later = LocalTime::new(1_003 * MS);
    assert_eq!(new.now(later), old.now(LocalTime::new(3_110 * MS)));
    assert_eq!(new.counts().continued, 1);
}

#[test]
fn on_another_boot_an_anchor_says_nothing() {
    let mut old = ServiceClock::fresh(on_boot(7, 90_000, 10, 50_000));
    let anchor = old.drop_anchor(on_boot(7, 90_000, 10, 50_000));
    let ceiling = ServiceTime::new(51_000 * MS);
    for (id, up) in [(8, 99_000), (7, 89_999)] {
        let new = ServiceClock::resuming(ceiling, anchor, on_boot(id, up, 0, 50_000), TTL);
        assert_eq!(new.now(LocalTime::ZERO), None);
    }
    let new = ServiceClock::resuming(ceiling, anchor, at(0, 50_000), TTL);
    assert_eq!(new.now(LocalTime::ZERO), None);
}

#[test]
fn a_wall_clock_that_is_set_is_neared_and_never_followed_at_once() {
    for wall_step in [-300_000_i64, -2, 2, 300_000] {
        let mut clock = ServiceClock::fresh(at(0, 500_000));
        let wall = 501_000_u64.checked_add_signed(wall_step).unwrap();
        clock.look(at(1_000, wall));
        clock.drop_anchor(at(1_000, wall));
        assert_eq!(clock.counts().wall_steps > 0, wall_step.abs() > 100);
        let mut last = clock.now(LocalTime::new(1_000 * MS)).unwrap();
        assert_eq!(last, ServiceTime::new(501_000 * MS));
        for second in 2..20 {
            let local = LocalTime::new(second * 1_000 * MS);
            let now = clock.now(local).unwrap();
            let passed = now.since(last).get().cast_signed() - 1_000_000_000;
            assert!(passed.unsigned_abs() <= 200_000, "{passed}");
            assert!(wall_step > 0 || passed <= 0);
            // The way back finds the first instant.
            let found = clock.local_at(now);
            assert!(clock.now(found).unwrap() >= now && found <= local);
            last = now;
        }
        // 2 ms are made up for in ten seconds, and not one nanosecond more.
        let small = wall_step.unsigned_abs() == 2;
        let reached = last == ServiceTime::new(519_000_u64.saturating_add_signed(wall_step) * MS);
        assert_eq!(small, reached);
    }
}

#[test]
fn time_goes_on_while_the_machine_sleeps() {
    let mut clock = ServiceClock::fresh(on_boot(7, 90_000, 0, 50_000));
    clock.look(on_boot(7, 91_000, 1_000, 51_000));
    assert_eq!(clock.counts(), ClockCounts::default());
    clock.look(on_boot(7, 99_000, 2_000, 59_000));
    assert_eq!(clock.counts().suspensions, 1);
    assert_eq!(clock.counts().wall_steps, 0);
    assert!(clock.has_moved());
    let now = clock.now(LocalTime::new(2_000 * MS));
    assert_eq!(now, Some(ServiceTime::new(59_000 * MS)));
}
