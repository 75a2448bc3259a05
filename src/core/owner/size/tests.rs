//! The formula of the protocol's section 10 at its edges.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

const SECOND: Span = Span::from_secs(1);

/// A thousand tokens over ten replicas in windows of a second, without demand: x R / N is 30.
const NEEDS: Needs = Needs {
    remaining: Tokens::new(1_000),
    replicas: 10,
    window: SECOND,
    rate: Rate::ZERO,
    all: Rate::ZERO,
};

fn per_second(tokens: u64) -> Rate {
    Rate::new(tokens * 1_000)
}

/// A holder's lease, with its demand and that of all in tokens a second.
fn lease_of(rate: u64, all: u64, needs: Needs) -> u64 {
    let (rate, all) = (per_second(rate), per_second(all));
    lease(&Needs { rate, all, ..needs }).get()
}

#[test]
fn without_demand_a_lease_is_a_part_of_an_even_share() {
    assert_eq!(lease(&NEEDS).get(), 30);
    assert_eq!(fair(&NEEDS).get(), 100);
}

#[test]
fn a_lease_lasts_for_a_while_of_demand() {
    // 100 ms in short windows, 3 % of longer ones, 5 s in the longest.
    let windows = [(1, 50), (3, 50), (10, 150), (60, 900), (3_600, 2_500)];
    for (seconds, right) in windows {
        let needs = Needs {
            remaining: Tokens::new(1_000_000),
            replicas: 10_000,
            window: Span::from_secs(seconds),
            ..NEEDS
        };
        assert_eq!(lease_of(500, 1_000, needs), right, "{seconds} s");
    }
}

#[test]
fn not_all_that_remains_is_leased_at_once() {
    // Demand would use all of its half up: three quarters of it.
    assert_eq!(lease_of(100_000, 200_000, NEEDS), 375);
    assert_eq!(lease_of(100_000, 100_000, NEEDS), 750);
}

#[test]
fn the_least_lease_is_bounded_where_demand_is_elsewhere() {
    // p R is below x R / N = 30, so the lease is three quarters of that, rounded down.
    for rate in [0, 1, 2_000, 3_000] {
        assert_eq!(lease_of(rate, 100_000, NEEDS), 22, "{rate}");
    }
    // From there on three quarters of p R bound it: below 30 until p R is 40.
    assert_eq!(lease_of(3_600, 100_000, NEEDS), 27);
    assert_eq!(lease_of(4_000, 100_000, NEEDS), 30);
    assert_eq!(lease_of(8_000, 100_000, NEEDS), 60);
}

#[test]
fn one_replica_gets_most_of_what_remains() {
    let alone = Needs {
        replicas: 1,
        ..NEEDS
    };
    assert_eq!(lease(&alone).get(), 300, "without demand");
    assert_eq!(lease_of(1_000, 1_000, alone), 300, "100 ms are less");
    assert_eq!(lease_of(5_000, 5_000, alone), 500);
    assert_eq!(lease_of(100_000, 100_000, alone), 750);
    // Nobody alive is counted as one.
    let nobody = Needs {
        replicas: 0,
        ..NEEDS
    };
    assert_eq!(lease(&nobody), lease(&alone));
}

#[test]
fn parts_of_tokens_are_not_leased() {
    let of = |remaining, replicas| Needs {
        remaining: Tokens::new(remaining),
        replicas,
        ..NEEDS
    };
    assert_eq!(lease_of(100, 100, of(0, 1)), 0);
    assert_eq!(lease_of(100, 100, of(1, 1)), 0, "0.75 of a token");
    assert_eq!(lease_of(100, 100, of(2, 1)), 1, "1.5 of them");
    assert_eq!(lease_of(0, 0, of(33, 10)), 0, "0.99");
    assert_eq!(lease_of(0, 0, of(34, 10)), 1, "1.02");
    assert_eq!(lease_of(0, 0, of(1_000, u64::MAX)), 0);
}

#[test]
fn no_lease_is_above_what_may_be_leased_at_once() {
    let most = u64::MAX;
    for remaining in [0, 1, 2, 3, 1_000, most] {
        for replicas in [0, 1, 3, 1_000, most] {
            for (rate, all) in [(0, 0), (0, 1), (1, 1), (1, most), (most, most)] {
                let needs = Needs {
                    remaining: Tokens::new(remaining),
                    replicas,
                    rate: Rate::new(rate),
                    all: Rate::new(all),
                    ..NEEDS
                };
                let bound = needs.remaining.scaled(3, 4);
                assert!(lease(&needs) <= bound, "{needs:?}");
                assert!(fair(&needs) <= needs.remaining, "{needs:?}");
            }
        }
    }
}

#[test]
fn a_fair_share_follows_demand_but_leaves_something_to_all() {
    let fair_of = |rate, all| {
        let (rate, all) = (per_second(rate), per_second(all));
        fair(&Needs { rate, all, ..NEEDS }).get()
    };
    assert_eq!(fair_of(1, 2), 500);
    assert_eq!(fair_of(4, 100), 40);
    assert_eq!(fair_of(2, 100), 30, "x R / N");
    assert_eq!(fair_of(0, 100), 30);
}

#[test]
fn far_above_is_half_as_much_again_and_one() {
    for (fair, most) in [(0, 1), (1, 2), (2, 4), (3, 5), (10, 16), (20, 31)] {
        let fair = Tokens::new(fair);
        assert!(!far_above(Tokens::new(most), fair), "{most} of {fair}");
        assert!(far_above(Tokens::new(most + 1), fair), "{most} of {fair}");
    }
    assert_eq!(background_keeps(Tokens::new(20)), Tokens::new(16));
    assert_eq!(background_keeps(Tokens::new(1)), Tokens::ZERO);
}

#[test]
fn who_runs_dry_first_is_known() {
    let lasts = |free, rate| time_to_empty(Tokens::new(free), rate);
    assert_eq!(lasts(10, per_second(10)), SECOND.get());
    assert_eq!(lasts(0, per_second(10)), 0);
    assert_eq!(lasts(5, Rate::ZERO), u64::MAX);
    assert_eq!(lasts(0, Rate::ZERO), u64::MAX, "nobody asks there");
    assert_eq!(lasts(u64::MAX, Rate::new(1)), u64::MAX);
    // Less than a token a second is not nothing.
    assert_eq!(lasts(1, Rate::new(100)), 10 * SECOND.get());
}

#[test]
fn the_first_round_is_wide_enough_in_small_and_large_fleets() {
    for (replicas, width) in [(0, 5), (1, 5), (29, 5), (30, 6), (100, 20)] {
        assert_eq!(first_round_width(replicas), width, "{replicas}");
    }
    assert_eq!(fair_share(Tokens::new(10), 0), Tokens::new(10));
    assert_eq!(first_round_keeps(Tokens::new(20)), Tokens::new(15));
}
