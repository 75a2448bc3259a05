//! Rules of standing shares.

use super::*;

/// Two replicas, and a key of 20 tokens in 10 s. In the window that begins at 10 s each of the two
/// holds 5 of them without asking.
fn shares() -> Plan {
    let mut plan = world(2, 1, &[(20, 10), (40, 1)]);
    plan.loaded = Span::from_secs(19);
    plan
}

#[test]
fn trap_1_the_share_of_a_dead_seat_that_is_leased_again_is_over() {
    // Replica 1 spends from its share, too little to ask for more, and dies. The owner hears of the
    // key when that is over.
    let mut plan = shares();
    plan.come(&come(11_000, 1, 3));
    plan.faults = vec![(at(11_500), Fault::CrashReplica(1))];
    plan.come(&come(16_000, 0, 30));
    is_over(Trap::DirtySeatForgotten, &plan);
}

#[test]
fn trap_7_a_recall_that_is_not_recorded_is_over() {
    // Replica 1 returns the share of a key that it has not met, and meets it then.
    let mut plan = shares();
    plan.come(&come(11_000, 0, 20));
    plan.come(&come(12_000, 1, 2));
    is_over(Trap::RecallUnrecorded, &plan);
}

/// Replica 1 returns the share of key 7, for which its only bucket has no place. A second later
/// there are places, since three of them were for windows of a second.
fn turned_away() -> Plan {
    let mut plan = shares();
    plan.buckets = 1;
    for keys in [&[5, 0], &[5, 1], &[5, 2]] {
        plan.come(&Come {
            keys,
            ..come(11_100, 1, 1)
        });
    }
    let keys = &[7];
    plan.come(&Come {
        keys,
        ..come(11_200, 0, 20)
    });
    plan.come(&Come {
        keys,
        ..come(12_200, 1, 2)
    });
    plan
}

#[test]
fn trap_9_a_share_that_comes_back_is_over() {
    is_over(Trap::ShareComesBack, &turned_away());
}

#[test]
fn trap_19_a_mark_without_its_generation_is_over() {
    is_over(Trap::MarkWithoutGeneration, &turned_away());
}

#[test]
fn trap_26_a_table_in_force_before_all_know_it_is_over() {
    // A third replica comes just before the boundary. Replica 0, cut off, does not hear of it, and
    // spends its larger share.
    let mut plan = shares();
    plan.faults = vec![
        (at(9_700), Fault::CutOff(0, Span::from_millis(2_000))),
        (at(9_800), Fault::AddReplica),
    ];
    plan.come(&come(10_500, 0, 5));
    plan.come(&come(13_000, 1, 30));
    is_over(Trap::TableTooSoon, &plan);
}
