//! A fixed short form of the fuzzing.

use super::*;

/// Enough worlds to meet every fault, few enough for some seconds.
const RUNS: u64 = 40;

#[test]
fn random_worlds_are_never_over_and_never_refuse_what_is_left() {
    let summary = run_many(1, RUNS, None, |_, _, _| {}).unwrap();
    assert!(
        summary.failed.is_empty(),
        "{summary}; ./build.sh sim --runs 1 --seed SEED repeats one"
    );
    assert!(summary.requests > 40_000, "{summary}");
}

#[test]
fn a_seed_gives_the_same_world_each_time() {
    for seed in [3, 4, 5] {
        let one = run(seed, None).unwrap();
        let other = run(seed, None).unwrap();
        let figures = |report: &Report| {
            let (messages, races) = (report.messages, report.races_lost);
            let counts = &report.counts;
            (
                counts.admitted,
                counts.refused,
                counts.undecided,
                messages,
                races,
            )
        };
        assert_eq!(figures(&one), figures(&other));
    }
}

#[test]
fn workers_race_for_values() {
    let races: u64 = (1..20)
        .map(|seed| run(seed, None).unwrap().races_lost)
        .sum();
    assert!(races > 100, "{races}");
}
