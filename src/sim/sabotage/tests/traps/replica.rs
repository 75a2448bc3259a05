//! Rules of the replica.

use super::*;

#[test]
fn trap_3_a_request_served_while_its_ask_is_out_is_false() {
    // The first worker's answer is late; meanwhile the second one brings a lease.
    let mut plan = world(1, 2, &[(10, 10)]);
    let slow = Fault::SlowAnswers(0, Span::from_millis(5), Span::from_millis(60));
    plan.faults = vec![(at(1_000), slow)];
    plan.come(&come(1_000, 0, 1));
    let worker = 1;
    plan.come(&Come {
        worker,
        ..come(1_010, 0, 1)
    });
    plan.come(&come(1_500, 0, 12));
    is_false(Trap::ServedElsewhere, &plan);
}

#[test]
fn trap_8_two_cells_for_one_key_are_over() {
    // Keys 5 and 7 of the first rule, and between them a cell of the second rule, which is free
    // again after a second.
    let mut plan = world(1, 1, &[(30, 10), (30, 1)]);
    plan.buckets = 1;
    plan.come(&Come {
        keys: &[5, 0],
        ..come(1_100, 0, 1)
    });
    for turn in 0..40 {
        let keys = &[7];
        plan.come(&Come {
            keys,
            ..come(1_200 + 100 * turn, 0, 1)
        });
    }
    is_over(Trap::TwoCells, &plan);
}

#[test]
fn trap_12_used_tokens_that_come_back_are_false() {
    // Two requests spend from the lease and wait for the second rule, which will refuse them.
    let mut plan = world(2, 2, &[(20, 10), (1, 10)]);
    let keys = &[3, 9];
    plan.come(&Come {
        keys,
        ..come(1_000, 1, 1)
    });
    plan.come(&come(1_100, 0, 1));
    let slow = Fault::SlowCalls(0, Span::from_millis(1), Span::from_millis(100));
    plan.faults = vec![(at(2_000), slow)];
    let keys = &[0, 9];
    plan.come(&Come {
        keys,
        ..come(2_000, 0, 2)
    });
    // Meanwhile the rest is spent at the other worker.
    let worker = 1;
    plan.come(&Come {
        worker,
        ..come(2_010, 0, 30)
    });
    is_false(Trap::UsedFalls, &plan);
}

#[test]
fn trap_16_a_lease_for_a_cell_of_another_window_is_over() {
    // An ask at the end of a window; its answer comes in the next one.
    let mut plan = world(1, 2, &[(40, 1)]);
    for (millis, times) in [(1_100, 1), (1_200, 9), (1_300, 10), (1_400, 6)] {
        plan.come(&come(millis, 0, times));
    }
    let slow = Fault::SlowAnswers(0, Span::from_millis(8), Span::from_millis(30));
    plan.faults = vec![(at(1_990), slow)];
    plan.come(&Come {
        cost: 8,
        ..come(1_990, 0, 1)
    });
    let worker = 1;
    plan.come(&Come {
        worker,
        ..come(2_005, 0, 1)
    });
    plan.come(&come(2_200, 0, 60));
    is_over(Trap::CellChangedHands, &plan);
}

#[test]
fn trap_25_a_seat_that_spends_after_its_life_makes_refusals_false() {
    // Replica 0 has a lease and is cut off for longer than its time-to-live. Replica 1 is refused,
    // as what replica 0 held is lost.
    let mut plan = world(2, 1, &[(20, 60)]);
    plan.come(&come(500, 0, 1));
    plan.faults = vec![(at(1_000), Fault::CutOff(0, Span::from_secs(8)))];
    plan.come(&come(6_000, 1, 30));
    plan.come(&come(6_500, 0, 2));
    is_false(Trap::SpentAfterLife, &plan);
}
