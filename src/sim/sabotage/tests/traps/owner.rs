//! Rules of the owner.

use super::*;

#[test]
fn trap_2_a_repeated_ask_that_is_judged_anew_is_false() {
    // Every call comes twice, and what the second one is charged nobody uses.
    let mut plan = world(1, 1, &[(10, 10)]);
    plan.network.doubled = 1_000;
    for turn in 0..12 {
        plan.come(&come(1_000 + 50 * turn, 0, 1));
    }
    is_false(Trap::RepeatJudgedAnew, &plan);
}

#[test]
fn trap_10_decisions_charged_to_a_lease_are_over() {
    // Two workers ask at once.
    let mut plan = world(1, 2, &[(10, 10)]);
    for turn in 0..10 {
        for worker in 0..2 {
            let come = come(1_000 + 50 * turn, 0, 1);
            plan.come(&Come { worker, ..come });
        }
    }
    is_over(Trap::ChargedToLease, &plan);
}

#[test]
fn trap_15_a_join_that_makes_a_second_tenancy_is_false() {
    // A worker starts anew, and states its rules by a Join while the replica holds a lease.
    let mut plan = world(1, 2, &[(20, 10)]);
    plan.come(&come(1_000, 0, 1));
    plan.come(&come(1_100, 0, 2));
    plan.faults = vec![(at(2_000), Fault::CrashWorker(0, 1))];
    // The first tenancy's time is over in between, and what it had is lost.
    for turn in 0..10 {
        plan.come(&come(2_500 + 50 * turn, 0, 1));
        plan.come(&come(7_000 + 50 * turn, 0, 1));
    }
    is_false(Trap::JoinedTwice, &plan);
}

#[test]
fn trap_17_a_recall_that_is_told_once_leaves_all_undecided() {
    // The poll that brings the recall is lost; seconds later nothing is lost any more.
    let mut plan = world(2, 1, &[(20, 10)]);
    plan.come(&come(1_000, 0, 1));
    plan.faults = vec![(at(2_000), Fault::LoseAnswers(0, Span::from_millis(20)))];
    plan.come(&come(2_000, 1, 30));
    plan.come(&come(6_000, 1, 1));
    plan.decided = Some((at(6_000), at(9_000)));
    is_undecided(Trap::RecallToldOnce, &plan);
}

#[test]
fn trap_18_a_decision_after_its_deadline_is_false() {
    // Near the boundary at 2 s the ask names no window. The service, stopped, reads it in another.
    let mut plan = world(1, 1, &[(10, 1)]);
    plan.network.delay = Span::from_millis(4);
    plan.network.jitter = Span::from_millis(2);
    plan.faults = vec![(at(1_900), Fault::HaltService(Span::from_millis(1_500)))];
    plan.come(&come(500, 0, 1));
    let near = come(2_000, 0, 1);
    plan.come(&Come { cost: 5, ..near });
    plan.come(&come(3_600, 0, 12));
    is_false(Trap::DecidedLate, &plan);
}

/// Replica 0 is charged all of the first rule, but the second rule will refuse it: the only token
/// there was spent by replica 1.
fn refused_by_the_second_rule(first: u64, cost: u64) -> Plan {
    let mut plan = world(2, 1, &[(first, 10), (1, 10)]);
    let keys = &[3, 9];
    plan.come(&Come {
        keys,
        ..come(1_000, 1, 1)
    });
    plan.come(&Come {
        keys: &[0, 9],
        cost,
        ..come(2_000, 0, 1)
    });
    plan
}

#[test]
fn trap_21_a_refusal_on_a_provisional_charge_is_false() {
    let mut plan = refused_by_the_second_rule(10, 10);
    let then = at(2_000).plus(Span::new(200_000));
    let slow = Fault::SlowCalls(0, Span::from_millis(3), Span::from_millis(60));
    plan.faults = vec![(then, slow)];
    plan.come(&come(2_010, 1, 1));
    is_false(Trap::ProvisionalIgnored, &plan);
}

#[test]
fn trap_22_an_ask_that_waits_for_itself_is_undecided() {
    // The second and the third request travel in one ask; the second takes the last token.
    let mut plan = world(1, 1, &[(2, 10), (100, 10)]);
    let keys = &[0, 0];
    plan.come(&Come {
        keys,
        ..come(1_000, 0, 3)
    });
    plan.decided = Some((at(1_000), at(9_000)));
    is_undecided(Trap::WaitsForItself, &plan);
}

#[test]
fn trap_23_a_total_taken_after_the_lease_is_false() {
    let mut plan = world(1, 1, &[(10, 10)]);
    // 9 of 8 are refused, a lease goes along, and 8 are there.
    for (turn, cost) in [(0, 2), (1, 9), (2, 8)] {
        let come = come(1_000 + 100 * turn, 0, 1);
        plan.come(&Come { cost, ..come });
    }
    is_false(Trap::TotalTakenLate, &plan);
}

#[test]
fn trap_24_an_ask_charged_in_two_windows_is_false() {
    // The last 10 of a window are charged to replica 0, whose answer is lost; it asks again in the
    // next window. Replica 1 is refused in both.
    let mut plan = world(2, 1, &[(30, 1)]);
    plan.come(&Come {
        cost: 20,
        ..come(1_100, 1, 1)
    });
    plan.faults = vec![(at(1_990), Fault::LoseAnswers(0, Span::from_millis(9)))];
    plan.come(&Come {
        cost: 10,
        ..come(1_992, 0, 1)
    });
    plan.come(&come(1_996, 1, 1));
    plan.come(&come(2_500, 1, 40));
    is_false(Trap::AnswersForgotten, &plan);
}
