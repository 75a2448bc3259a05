//! Rules of time.

use super::*;

#[test]
fn trap_4_tokens_spent_near_a_boundary_are_over() {
    // A lease is left over; a hair's breadth after the boundary it is spent.
    let mut plan = world(1, 1, &[(20, 1)]);
    plan.network.delay = Span::from_millis(4);
    plan.network.jitter = Span::from_millis(2);
    plan.come(&come(1_500, 0, 1));
    let then = at(2_000).plus(Span::new(1_000));
    plan.come(&Come {
        at: then,
        ..come(2_000, 0, 4)
    });
    plan.come(&come(2_200, 0, 30));
    is_over(Trap::SpentNearBoundary, &plan);
}

#[test]
fn trap_13_time_that_steps_back_is_convicted() {
    // The service comes back behind, in a window that is over.
    let mut plan = world(2, 1, &[(20, 1)]);
    plan.come(&come(1_500, 0, 30));
    plan.faults = vec![
        (at(2_100), Fault::CrashService),
        (at(2_110), Fault::StartServiceElsewhere(-400)),
    ];
    for turn in 0..40 {
        plan.come(&come(2_000 + 50 * turn, 0, 2));
        plan.come(&come(2_025 + 50 * turn, 1, 2));
    }
    let verdicts = without(Trap::TimeStepsBack, &plan);
    assert!(
        verdicts.over() + verdicts.false_refusals() > 0,
        "{verdicts:?}"
    );
}

#[test]
fn trap_20_time_that_jumps_to_the_ceiling_is_over() {
    // The next window begins early. Replica 0, cut off, spends its lease of the old one in it.
    let mut plan = world(2, 1, &[(40, 2)]);
    plan.come(&come(1_000, 0, 1));
    plan.faults = vec![
        (at(1_800), Fault::CrashService),
        (at(1_800), Fault::CutOff(0, Span::from_millis(500))),
        (at(1_810), Fault::StartServiceElsewhere(0)),
    ];
    plan.come(&come(1_900, 0, 5));
    plan.come(&come(1_950, 1, 60));
    is_over(Trap::TimeJumps, &plan);
}
