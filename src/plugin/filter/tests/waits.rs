//! Waits end, whatever fails.

use super::*;

#[test]
fn a_wait_ends_though_the_decider_has_lost_it() {
    let mut world = World::new(&[WAIT]);
    let _stop = world.request(1);
    let mut ticks = 0;
    while world.endings(1).is_empty() {
        assert!(ticks < 12, "100 ms of timeout and two ticks");
        world.tick();
        ticks += 1;
    }
    assert!(ticks > 10, "the decider is to end it at its deadline");
    assert_eq!(
        (world.endings(1), world.counts()),
        (vec![503], [0, 0, 1, 0, 1])
    );
    assert_eq!(world.filter.decider.gone, [StreamId(1)]);
}

#[test]
fn a_wait_ends_though_the_clock_has_failed() {
    let mut world = World::new(&[WAIT, WAIT]);
    let _stop = world.request(1);
    world.envoy.fail(Operation::Clock, true);
    world.tick();
    assert_eq!(
        (world.endings(1), world.filter.decider.ticks),
        (vec![503], 0)
    );
    assert_eq!(world.request(2), Next::Stop);
    assert_eq!(
        (world.endings(2), world.counts()),
        (vec![503], [0, 0, 2, 0, 1])
    );
    world.filter.answered(CallToken(1), Ok(b""));
    let lost = [CallFailure::Unreadable];
    assert_eq!(world.filter.decider.failures, lost, "no time, no answer");
    assert_eq!(world.errors("request"), 3);
}

#[test]
fn what_the_decider_cannot_look_at_is_undecided() {
    let mut world = World::new(&[Step::Fail]);
    assert_eq!(world.request(1), Next::Stop);
    assert_eq!(
        (world.endings(1), world.counts()),
        (vec![503], [0, 0, 1, 0, 0])
    );
    assert_eq!(world.errors("request"), 1);
}

#[test]
fn a_lost_wake_up_does_not_silence_the_next() {
    let mut world = World::new(&[WAIT, WAIT]);
    let _stop = world.request(1);
    world.envoy.next_ready().expect("woken, and lost here");
    world.tick();
    world.tick();
    assert_eq!(world.filter.decider.ticks, 2, "does what was to be done");
    let _stop = world.request(2);
    assert!(world.envoy.next_ready().is_some());

    for operation in [Operation::Queue, Operation::Random] {
        let mut world = World::new(&[WAIT, WAIT]);
        world.envoy.fail(operation, true);
        assert_eq!(world.request(1), Next::Stop);
        assert_eq!(world.errors("wake"), 1);
        world.envoy.fail(operation, false);
        world.tick();
        assert_eq!(world.request(2), Next::Stop);
        assert!(world.envoy.next_ready().is_some(), "{operation:?}");
    }
}

#[test]
fn the_tick_is_short_while_something_is_to_come() {
    let mut world = World::new(&[WAIT]);
    assert_eq!(world.host.tick_ms(), TICK_BUSY_MS);
    world.filter.decider.is_busy = true;
    world.tick();
    assert_eq!(world.host.tick_ms(), TICK_BUSY_MS, "no seat yet");
    world.filter.decider.is_busy = false;
    world.tick();
    assert_eq!(world.host.tick_ms(), TICK_IDLE_MS);
    let _stop = world.request(1);
    world.filter.decider.is_busy = true;
    let (_, queue) = world.envoy.next_ready().expect("woken");
    world.filter.queue_ready(queue);
    assert_eq!(world.host.tick_ms(), TICK_BUSY_MS);
    world.filter.decider.is_busy = false;
    world.tick();
    assert_eq!(world.host.tick_ms(), TICK_BUSY_MS, "one waits");
    world.answer(&[(1, Verdict::Admit)]);
    world.tick();
    assert_eq!(world.host.tick_ms(), TICK_IDLE_MS);
    world.envoy.fail(Operation::Tick, true);
    world.filter.decider.is_busy = true;
    world.tick();
    assert_eq!(world.errors("wake"), 1);
}

#[test]
fn a_root_that_ends_leaves_nobody_waiting() {
    let mut world = World::new(&[WAIT]);
    let _stop = world.request(1);
    world.filter.close();
    assert_eq!((world.endings(1), world.host.tick_ms()), (vec![503], 0));
    assert_eq!(world.counts(), [0, 0, 1, 0, 1]);
    assert!(world.filter.decider.is_closed);
}
