//! Whole requests through the real filter, core's replica and core's owner.

use headgate_core::units::Span;

use crate::fake::counter::Mode;
use crate::fake::fleet::{Asked, Fleet, MILLISECOND};
use crate::host_api::{CallFailure, Method, Operation};

fn rules(amount: u64) -> String {
    format!(
        r#"{{"counter": {{"cluster": "c", "timeout": "100ms"}}, "rules": [{{"name": "r",
        "key": [{{"header": "k"}}], "limit": {{"amount": {amount}, "per": "hour"}},
        "when_undecided": "deny"}}]}}"#
    )
}

/// Two Envoys of two workers that have joined.
fn fleet(amount: u64) -> Fleet {
    let mut fleet = Fleet::new(2, 2, &rules(amount));
    fleet.pass(Span::from_millis(30));
    fleet
}

/// So many requests in turn over all workers, and what they need to end.
fn offer(fleet: &mut Fleet, requests: u64, every: Span) {
    let envoys = fleet.envoys.len();
    for number in 0..usize::try_from(requests).expect("few") {
        let _asked = fleet.request(number % envoys, 1 + (number / envoys) % 2, "a");
        fleet.pass(every);
    }
    fleet.pass(Span::from_millis(150));
}

fn count(fleet: &Fleet, status: u16) -> u64 {
    let counted = fleet.statuses().get(&status).copied().unwrap_or(0);
    u64::try_from(counted).expect("few")
}

fn ask_calls(fleet: &Fleet) -> u64 {
    fleet.counter.calls(Method::Ask)
}

/// Requests end in one of four metrics each.
fn assert_counted(fleet: &Fleet, requests: u64) {
    let names = ["admitted", "refused", "undecided", "abandoned"];
    let totals = names.map(|name| fleet.metric(&format!("{name}_total")));
    let sum: i64 = totals.iter().sum();
    assert_eq!(u64::try_from(sum), Ok(requests), "{names:?} {totals:?}");
}

#[test]
fn exactly_the_limit_over_two_envoys_of_two_workers() {
    for every in [Span::ZERO, MILLISECOND] {
        for limit in [1, 3, 10, 100, 1_000] {
            let mut fleet = fleet(limit);
            let offered = limit * 3 / 2 + 4;
            offer(&mut fleet, offered, every);
            let refused = offered - limit;
            let statuses = [(200, limit as usize), (429, refused as usize)];
            assert_eq!(
                fleet.statuses(),
                statuses.into(),
                "limit {limit}, {every:?}"
            );
            assert_counted(&fleet, offered);
            assert_eq!(fleet.metric("errors_call_total"), 0);
        }
    }
}

#[test]
fn most_requests_of_a_large_limit_are_decided_here() {
    let mut fleet = fleet(10_000);
    offer(&mut fleet, 3_000, MILLISECOND);
    assert_eq!(count(&fleet, 200), 3_000);
    let asked = fleet.metric("asked_total");
    assert!(asked < 60, "{asked} of 3,000 asked on the path");
    assert!(fleet.metric("asked_ahead_total") > 0);
    let waits: usize = (fleet.envoys.iter())
        .map(|envoy| envoy.recorded("headgate_ask_wait_us").len())
        .sum();
    assert_eq!(i64::try_from(waits), Ok(asked));
}

#[test]
fn a_refused_key_costs_no_call_and_no_wait() {
    let mut fleet = fleet(10);
    offer(&mut fleet, 20, MILLISECOND);
    let (calls, asked) = (ask_calls(&fleet), fleet.metric("asked_total"));
    offer(&mut fleet, 500, MILLISECOND);
    assert_eq!((count(&fleet, 200), count(&fleet, 429)), (10, 510));
    assert_eq!(ask_calls(&fleet), calls);
    assert_eq!(fleet.metric("asked_total"), asked);
}

#[test]
fn tokens_that_lie_elsewhere_come_back_through_the_watch() {
    let mut fleet = fleet(100);
    // The first Envoy takes a lease and uses little of it; all else is asked for at the second.
    for _ in 0..5 {
        let _asked = fleet.request(0, 1, "a");
        fleet.pass(MILLISECOND);
    }
    let mut asked: Vec<Asked> = Vec::new();
    for _ in 0..100 {
        asked.push(fleet.request(1, 2, "a"));
        fleet.pass(MILLISECOND);
    }
    fleet.pass(Span::from_millis(150));
    assert_eq!((count(&fleet, 200), count(&fleet, 429)), (100, 5));
    let counts = fleet.counter.shard().counts();
    assert!(counts.recalls > 0 && counts.returns > 0, "{counts:?}");
}

#[test]
fn a_service_that_restarts_keeps_the_count() {
    let mut fleet = fleet(100);
    offer(&mut fleet, 60, MILLISECOND);
    assert_eq!(count(&fleet, 200), 60);
    fleet.counter.kill();
    fleet.pass(Span::from_millis(300));
    fleet.counter.start();
    fleet.pass(Span::from_millis(500));
    offer(&mut fleet, 90, MILLISECOND);
    assert_eq!((count(&fleet, 200), count(&fleet, 429)), (100, 50));
    assert_counted(&fleet, 150);
}

#[test]
fn what_is_held_is_spent_while_the_service_is_away() {
    let mut fleet = fleet(1_000);
    offer(&mut fleet, 40, MILLISECOND);
    fleet.counter.kill();
    let before = fleet.metric("asked_total");
    offer(&mut fleet, 20, MILLISECOND);
    assert_eq!(count(&fleet, 200), 60);
    assert_eq!(fleet.metric("asked_total"), before, "from the leases");
    // The time-to-live ends: what is held may have been given to others.
    fleet.pass(Span::from_secs(5));
    let asked = fleet.request(0, 1, "a");
    fleet.pass(Span::from_millis(110));
    assert_eq!(fleet.status(asked), 503);
}

#[test]
fn a_service_that_says_nothing_costs_the_timeout_and_no_more() {
    for mode in [Mode::Silent, Mode::Refusing(14), Mode::Refusing(16)] {
        let mut fleet = fleet(10);
        fleet.counter.mode = mode.clone();
        let asked = fleet.request(0, 1, "a");
        fleet.pass(Span::from_millis(99));
        assert_eq!(fleet.status(asked), 0, "{mode:?}: still in time");
        fleet.pass(Span::from_millis(11));
        assert_eq!(fleet.status(asked), 503, "{mode:?}");
        assert_eq!(fleet.metric("undecided_total"), 1);
        assert!(fleet.metric("errors_call_total") > 0, "{mode:?}");
        fleet.counter.mode = Mode::Sound;
        fleet.pass(Span::from_millis(3_000));
        offer(&mut fleet, 20, MILLISECOND);
        // The request that nobody waited for may have been charged.
        assert!((9..=10).contains(&count(&fleet, 200)), "{mode:?}");
    }
}

#[test]
fn nonsense_for_an_answer_is_counted_and_changes_nothing() {
    let nothing = Vec::new();
    let noise = vec![0xff; 40];
    let empty_answers = vec![0x22, 0x00];
    for bytes in [nothing, noise, empty_answers] {
        let mut fleet = fleet(10);
        fleet.counter.mode = Mode::Nonsense(bytes.clone());
        let asked = fleet.request(0, 1, "a");
        fleet.pass(Span::from_millis(1_200));
        assert_eq!(fleet.status(asked), 503, "{bytes:?}");
        assert!(fleet.metric("errors_answer_total") > 0, "{bytes:?}");
        assert_eq!(fleet.metric("errors_call_total"), 0, "{bytes:?}");
        // Retries have pauses: 3 roots of 2 Envoys, one poll and one ask at a time.
        let calls = ask_calls(&fleet) + fleet.counter.calls(Method::Watch);
        assert!(calls < 200, "{calls} calls in 1.2 s");
        fleet.counter.mode = Mode::Sound;
        fleet.pass(Span::from_millis(1_000));
        offer(&mut fleet, 20, MILLISECOND);
        assert_eq!(count(&fleet, 200), 10, "{bytes:?}");
    }
}

#[test]
fn requests_before_the_seat_are_decided_when_it_is_there() {
    let mut fleet = Fleet::new(1, 2, &rules(3));
    let first: Vec<Asked> = (0..5).map(|_| fleet.request(0, 1, "a")).collect();
    fleet.pass(Span::from_millis(25));
    let statuses = fleet.statuses();
    assert_eq!(statuses, [(200, 3), (429, 2)].into(), "{first:?}");
    assert_eq!(fleet.metric("asked_total"), 5);
}

#[test]
fn a_service_that_is_not_there_from_the_start_and_then_comes() {
    let mut fleet = Fleet::new(2, 2, &rules(3));
    fleet.counter.kill();
    let asked = fleet.request(0, 1, "a");
    fleet.pass(Span::from_millis(110));
    assert_eq!(fleet.status(asked), 503);
    let joins = fleet.counter.calls(Method::Join);
    fleet.pass(Span::from_secs(1));
    let more = fleet.counter.calls(Method::Join) - joins;
    assert!((10..60).contains(&more), "{more} joins a second");
    fleet.counter.start();
    fleet.pass(Span::from_millis(100));
    offer(&mut fleet, 6, MILLISECOND);
    assert_eq!((count(&fleet, 200), count(&fleet, 429)), (3, 3));
}

#[test]
fn a_call_that_envoy_does_not_take_is_tried_again_and_not_at_once() {
    let mut fleet = fleet(10);
    for envoy in &fleet.envoys {
        envoy.fail(Operation::Call, true);
    }
    let asked = fleet.request(0, 1, "a");
    fleet.pass(Span::from_millis(50));
    let failed = fleet.metric("errors_call_total");
    assert!((1..20).contains(&failed), "{failed} in 50 ms");
    for envoy in &fleet.envoys {
        envoy.fail(Operation::Call, false);
    }
    fleet.pass(Span::from_millis(50));
    assert_eq!(fleet.status(asked), 200, "within its time");
}

#[test]
fn an_end_that_envoy_does_not_report_is_given_up() {
    let mut fleet = fleet(10);
    let asked = fleet.request(0, 1, "a");
    let (_, queue) = fleet.envoys[0].next_ready().expect("woken");
    for root in &mut fleet.roots {
        root.filter.queue_ready(queue);
    }
    let lost = fleet.envoys[0].next_call().expect("sent");
    assert_eq!(lost.method, Method::Ask);
    fleet.pass(Span::from_millis(110));
    assert_eq!(fleet.status(asked), 503);
    let second = fleet.request(0, 1, "a");
    fleet.pass(Span::from_millis(110));
    assert_eq!(fleet.status(second), 503, "behind the ask that is out");
    fleet.pass(Span::from_millis(1_000));
    let third = fleet.request(0, 1, "a");
    fleet.pass(Span::from_millis(20));
    assert_eq!(fleet.status(third), 200);
    // Its end, after all: nobody knows it any more.
    for root in &mut fleet.roots {
        root.filter
            .answered(lost.token, Err(CallFailure::Status(14)));
    }
    assert_counted(&fleet, 3);
}

#[test]
fn shared_data_that_fails_or_is_not_ours_leaves_requests_undecided() {
    let mut fleet = fleet(10);
    let _asked = fleet.request(0, 1, "a");
    fleet.pass(MILLISECOND);
    fleet.envoys[0].fail(Operation::SharedData, true);
    let failed = fleet.request(0, 1, "a");
    fleet.pass(Span::from_millis(110));
    assert_eq!(fleet.status(failed), 503);
    assert!(fleet.metric("errors_shared_data_total") > 0);
    fleet.envoys[0].fail(Operation::SharedData, false);
    for key in fleet.envoys[0].keys() {
        if key.contains(".b") {
            fleet.envoys[0].overwrite(&key, b"not a bucket");
        }
    }
    let broken = fleet.request(0, 1, "a");
    fleet.pass(Span::from_millis(110));
    assert_eq!(fleet.status(broken), 503);
    assert!(fleet.metric("errors_invariant_total") > 0);
    assert_counted(&fleet, 3);
}

#[test]
fn a_client_that_leaves_while_it_waits_does_not_disturb_the_others() {
    let mut fleet = fleet(3);
    let leaves = fleet.request(0, 1, "a");
    let stays = fleet.request(0, 1, "a");
    fleet.hang_up(leaves);
    fleet.pass(Span::from_millis(20));
    assert_eq!((fleet.status(leaves), fleet.status(stays)), (0, 200));
    assert_eq!(fleet.metric("abandoned_total"), 1);
    assert_counted(&fleet, 2);
}

#[test]
fn a_new_configuration_takes_over_and_the_old_ones_requests_end() {
    let mut fleet = fleet(10);
    offer(&mut fleet, 6, MILLISECOND);
    let waits = {
        fleet.counter.mode = Mode::Silent;
        fleet.request(0, 1, "b")
    };
    fleet.pass(MILLISECOND);
    for envoy in 0..2 {
        fleet.configure(envoy, 2, &rules(10));
    }
    fleet.pass(Span::from_millis(50));
    for envoy in 0..2 {
        fleet.end_old_roots(envoy, 2);
    }
    assert_eq!(fleet.status(waits), 503);
    fleet.counter.mode = Mode::Sound;
    fleet.pass(Span::from_millis(2_500));
    offer(&mut fleet, 10, MILLISECOND);
    assert_eq!((count(&fleet, 200), count(&fleet, 429)), (10, 6));
    assert_eq!(
        fleet.counter.shard().members().len(),
        2,
        "the same replicas"
    );
}

#[test]
fn a_plugin_that_is_removed_gives_everything_back() {
    let mut fleet = fleet(10);
    // The second Envoy holds what the first one's share and leases do not.
    for envoy in 0..2 {
        let _asked = fleet.request(envoy, 1, "a");
        fleet.pass(MILLISECOND);
    }
    fleet.end_old_roots(1, 2);
    fleet.pass(Span::from_millis(2_500));
    assert_eq!(fleet.counter.shard().members().len(), 1, "one has left");
    for _ in 0..12 {
        let _asked = fleet.request(0, 1, "a");
        fleet.pass(MILLISECOND);
    }
    assert_eq!((count(&fleet, 200), count(&fleet, 429)), (10, 4));
}

#[test]
fn the_cells_in_use_are_counted_once_for_all_workers() {
    let mut fleet = Fleet::new(1, 2, &rules(10));
    fleet.pass(Span::from_millis(30));
    for number in 0..50 {
        let _asked = fleet.request(0, 1 + number % 2, &format!("key-{number}"));
        fleet.pass(MILLISECOND);
    }
    fleet.pass(Span::from_secs(14));
    assert_eq!(fleet.metric("cells_in_use"), 50);
    fleet.end_old_roots(0, 2);
    assert_eq!(fleet.metric("cells_in_use"), 0);
}

#[test]
fn several_rules_are_charged_together_or_not_at_all() {
    let text = r#"{"counter": {"cluster": "c"}, "rules": [
        {"name": "all", "limit": {"amount": 30, "per": "hour"}, "when_undecided": "deny"},
        {"name": "key", "key": [{"header": "k"}], "limit": {"amount": 4, "per": "hour"},
         "when_undecided": "deny"}]}"#;
    let mut fleet = Fleet::new(2, 2, text);
    fleet.pass(Span::from_millis(30));
    for number in 0..120 {
        let key = format!("key-{}", number % 6);
        let _asked = fleet.request(number % 2, 1 + (number / 2) % 2, &key);
        fleet.pass(MILLISECOND);
    }
    fleet.pass(Span::from_millis(150));
    assert_eq!((count(&fleet, 200), count(&fleet, 429)), (24, 96));
    let _asked: Vec<Asked> = (0..10)
        .map(|number| fleet.request(number % 2, 1, &format!("other-{number}")))
        .collect();
    fleet.pass(Span::from_millis(150));
    assert_eq!(count(&fleet, 200), 30, "refusals have cost nothing");
}
