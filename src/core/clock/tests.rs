//! The true service time is always inside the bounds.

use proptest::prelude::*;

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const MS: u64 = 1_000_000;

fn echo(sent_ms: u64, received_ms: u64, stamps_ms: (u64, u64)) -> Option<OffsetEstimate> {
    OffsetEstimate::from_echo(
        LocalTime::new(sent_ms * MS),
        LocalTime::new(received_ms * MS),
        Stamps {
            received: ServiceTime::new(stamps_ms.0 * MS),
            sent: ServiceTime::new(stamps_ms.1 * MS),
        },
    )
}

#[test]
fn a_long_poll_is_as_good_as_a_short_call() {
    let poll = echo(0, 1_002, (5_001, 6_001)).unwrap();
    let bounds = poll.at(LocalTime::new(1_002 * MS));
    // 2 ms of travel, and 701.4 microseconds of drift to either side.
    assert_eq!(bounds.earliest, ServiceTime::new(6_001 * MS - 701_400));
    assert_eq!(bounds.latest, ServiceTime::new(6_003 * MS + 701_400));
}

#[test]
fn impossible_stamps_are_no_estimate() {
    assert_eq!(echo(0, 2, (10, 9)), None, "sent before received");
    assert_eq!(
        echo(0, 2, (10, 15)),
        None,
        "the service took longer than the call"
    );
    assert_eq!(echo(3, 2, (10, 10)), None, "answered before it was sent");
}

#[test]
fn near_a_boundary_no_window_is_certain() {
    let second = Period::new(Span::from_secs(1)).unwrap();
    let bounds = |earliest: u64, latest: u64| TimeBounds {
        earliest: ServiceTime::new(earliest * MS),
        latest: ServiceTime::new(latest * MS),
    };
    assert!(bounds(998, 999).window(second).is_some());
    assert_eq!(bounds(999, 1_000).window(second), None);
    assert!(bounds(1_000, 1_001).window(second).is_some());
}

#[test]
fn contradiction_leaves_the_newer() {
    let old = echo(0, 2, (1_000, 1_000)).unwrap();
    let newer = echo(10, 12, (5_000, 5_000)).unwrap();
    assert_eq!(old.narrowed_by(newer), newer);
}

proptest! {
    /// Whatever the offset, the delays, and a drift within the bound: truth lies inside.
    #[test]
    fn truth_lies_inside(
        offset in 0_u64..1_000_000_000_000,
        calls in prop::collection::vec((0_u64..2_000_000_000, 0_u64..50_000_000, 0_u64..50_000_000,
            0_u64..1_000_000_000), 1..12),
        drift in -450_i64..450,
    ) {
        // Service time runs at (1 + drift / 1e6) of the local clock.
        let truth = |local: u64| {
            let drifted = i128::from(local) * i128::from(drift) / 1_000_000;
            ServiceTime::new(u64::try_from(i128::from(offset + 1_000_000_000) + i128::from(local)
                + drifted).unwrap())
        };
        let mut now = 0_u64;
        let mut estimate: Option<OffsetEstimate> = None;
        for (pause, out, back, served) in calls {
            let sent = now + pause;
            let received = sent + out + served + back;
            let stamps = Stamps {
                received: truth(sent + out),
                sent: truth(sent + out + served),
            };
            now = received;
            let newer = OffsetEstimate::from_echo(
                LocalTime::new(sent), LocalTime::new(received), stamps).unwrap();
            let narrowed = estimate.map_or(newer, |old| old.narrowed_by(newer));
            let bounds = narrowed.at(LocalTime::new(now));
            prop_assert!(bounds.earliest <= truth(now));
            prop_assert!(bounds.latest >= truth(now));
            estimate = Some(narrowed);
        }
    }
}
