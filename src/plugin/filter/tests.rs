use std::collections::VecDeque;
use std::rc::Rc;

use headgate_core::replica::worker::RequestId;
use headgate_core::rule::Config;

use super::*;
use crate::fake::{Ending, FakeEnvoy, FakeHost};
use crate::host_api::{Operation, Reply};
use crate::metrics::Metrics;
use crate::upstream::Upstream;

mod waits;

/// What is to become of a request.
#[derive(Debug, Clone, Copy)]
enum Step {
    Done(Verdict),
    Wait,
    /// Refused by the host.
    Fail,
}

/// Answers as it is told, and remembers what it was told.
#[derive(Debug, Default)]
struct Scripted {
    steps: VecDeque<Step>,
    on_answer: Vec<Settled>,
    seen: Vec<(StreamId, Vec<Charge>)>,
    has_something_to_send: bool,
    is_busy: bool,
    is_closed: bool,
    wakes: usize,
    ticks: usize,
    failures: Vec<CallFailure>,
    gone: Vec<StreamId>,
}

impl Decider for Scripted {
    fn request(
        &mut self,
        now: LocalTime,
        deadline: LocalTime,
        stream: StreamId,
        charges: Vec<Charge>,
    ) -> Result<Option<Settled>, HostError> {
        assert_eq!(deadline.since(now), Span::from_millis(100));
        self.seen.push((stream, charges));
        match self.steps.pop_front().expect("a step for every request") {
            Step::Done(verdict) => Ok(Some(settled(stream.0, verdict, None))),
            Step::Wait => Ok(None),
            Step::Fail => Err(HostError {
                operation: Operation::Random,
                status: 10,
            }),
        }
    }

    fn has_something_to_send(&self) -> bool {
        self.has_something_to_send
    }

    fn wake(&mut self, _: LocalTime) -> Vec<Settled> {
        self.wakes += 1;
        Vec::new()
    }

    fn tick(&mut self, _: LocalTime) -> Vec<Settled> {
        self.ticks += 1;
        Vec::new()
    }

    fn is_busy(&self) -> bool {
        self.is_busy
    }

    fn answered(
        &mut self,
        _: LocalTime,
        _: CallToken,
        answer: Result<&[u8], CallFailure>,
    ) -> Vec<Settled> {
        self.failures.extend(answer.err());
        std::mem::take(&mut self.on_answer)
    }

    fn gone(&mut self, stream: StreamId) {
        self.gone.push(stream);
    }

    fn close(&mut self, _now: LocalTime) -> bool {
        self.is_closed = true;
        true
    }

    fn is_over(&self) -> bool {
        false
    }
}

fn settled(request: u32, verdict: Verdict, waited: Option<Span>) -> Settled {
    Settled {
        request: RequestId::new(request),
        verdict,
        waited,
    }
}

const RULES: &str = r#"{"counter": {"cluster": "c", "timeout": "100ms"}, "rules": [
  {"name": "pair", "key": [{"header": "k"}, {"header": "o", "missing": "share"}],
   "limit": {"amount": 1, "per": "day"}, "when_undecided": "allow"},
  {"name": "key", "key": [{"header": "k"}], "limit": {"amount": 1, "per": "day"},
   "when_undecided": "deny"}]}"#;

const ALLOWS: usize = 0;
const DENIES: usize = 1;
const WAIT: Step = Step::Wait;
const UNDECIDED: Verdict = Verdict::Undecided {
    rule: DENIES,
    passes: false,
};
const PASSES: Verdict = Verdict::Undecided {
    rule: ALLOWS,
    passes: true,
};

struct World {
    envoy: FakeEnvoy,
    host: Rc<FakeHost>,
    filter: Filter<Scripted>,
}

impl World {
    fn new(steps: &[Step]) -> Self {
        let envoy = FakeEnvoy::new();
        let host = envoy.worker(0);
        let config = Rc::new(Config::parse(RULES.as_bytes()).expect("usable"));
        let metrics = Rc::new(Metrics::define(host.clone()));
        let decider = Scripted {
            steps: steps.iter().copied().collect(),
            ..Scripted::default()
        };
        let upstream = Rc::new(Upstream::new("c", "headgate").expect("short"));
        let env = Env {
            host: host.clone(),
            metrics,
            config,
            upstream,
        };
        let filter = Filter::new(env, decider);
        Self {
            envoy,
            host,
            filter,
        }
    }

    fn request(&mut self, stream: u32) -> Next {
        self.host.begin(StreamId(stream), &[("k", b"v")]);
        self.filter.request(StreamId(stream))
    }

    fn tick(&mut self) {
        self.envoy.advance(Span::from_millis(TICK_BUSY_MS.into()));
        self.filter.tick();
    }

    /// Settles requests that have waited for 2 ms.
    fn answer(&mut self, verdicts: &[(u32, Verdict)]) {
        let waited = Some(Span::from_millis(2));
        self.filter.decider.on_answer = verdicts
            .iter()
            .map(|(stream, verdict)| settled(*stream, *verdict, waited))
            .collect();
        self.filter.answered(CallToken(1), Ok(b""));
    }

    /// The status that a request was answered with; 0 if it was resumed.
    fn endings(&self, stream: u32) -> Vec<u16> {
        let status = |ending| match ending {
            Ending::Resumed => 0,
            Ending::Replied(Reply { status, .. }) => status,
        };
        self.host
            .endings(StreamId(stream))
            .into_iter()
            .map(status)
            .collect()
    }

    /// Admitted, refused, undecided, abandoned, asked.
    fn counts(&self) -> [i64; 5] {
        ["admitted", "refused", "undecided", "abandoned", "asked"]
            .map(|name| self.envoy.metric(&format!("headgate_{name}_total")))
    }

    fn errors(&self, cause: &str) -> i64 {
        self.envoy.metric(&format!("headgate_errors_{cause}_total"))
    }
}

fn refuse() -> Verdict {
    Verdict::Refuse {
        rule: DENIES,
        retry_after: Span::from_secs(3),
    }
}

#[test]
fn a_decision_at_once_costs_no_wait() {
    let cases = [
        (Verdict::Admit, Next::Continue, vec![], [1, 0, 0, 0, 0]),
        (refuse(), Next::Stop, vec![429], [0, 1, 0, 0, 0]),
        (UNDECIDED, Next::Stop, vec![503], [0, 0, 1, 0, 0]),
        (PASSES, Next::Continue, vec![], [0, 0, 1, 0, 0]),
    ];
    for (verdict, next, endings, counts) in cases {
        let mut world = World::new(&[Step::Done(verdict)]);
        assert_eq!(world.request(1), next, "{verdict:?}");
        assert_eq!(
            (world.endings(1), world.counts()),
            (endings, counts),
            "{verdict:?}"
        );
        assert_eq!(world.envoy.next_ready(), None);
    }
}

#[test]
fn a_waiting_request_wakes_its_root_and_ends_by_the_answer() {
    let cases = [
        (Verdict::Admit, 0, [1, 0, 0, 0, 1]),
        (refuse(), 429, [0, 1, 0, 0, 1]),
        (UNDECIDED, 503, [0, 0, 1, 0, 1]),
        (PASSES, 0, [0, 0, 1, 0, 1]),
    ];
    for (verdict, ending, counts) in cases {
        let mut world = World::new(&[WAIT]);
        assert_eq!(world.request(1), Next::Stop);
        let (worker, queue) = world.envoy.next_ready().expect("woken");
        assert_eq!(worker, 0);
        world.filter.queue_ready(queue);
        assert_eq!(world.filter.decider.wakes, 1);
        world.answer(&[(1, verdict)]);
        assert_eq!(
            (world.endings(1), world.counts()),
            (vec![ending], counts),
            "{verdict:?}"
        );
        assert_eq!(world.envoy.recorded("headgate_ask_wait_us"), [2_000]);
    }
}

#[test]
fn requests_of_one_turn_share_a_wake_up() {
    let mut world = World::new(&[WAIT, WAIT, WAIT]);
    for stream in 1..=2 {
        assert_eq!(world.request(stream), Next::Stop);
    }
    let (_, queue) = world.envoy.next_ready().expect("woken");
    assert_eq!(world.envoy.next_ready(), None);
    world.filter.queue_ready(queue);
    assert_eq!(world.request(3), Next::Stop);
    let again = world.envoy.next_ready().map(|(_, queue)| queue);
    assert_eq!(again, Some(queue), "the same queue serves every turn");
}

#[test]
fn a_second_root_of_the_worker_has_a_queue_of_its_own() {
    let envoy = FakeEnvoy::new();
    let mut queues = Vec::new();
    for _ in 0..2 {
        let mut world = World::new(&[WAIT]);
        world.host = envoy.worker(0);
        world.filter.env.host = world.host.clone();
        assert_eq!(world.request(1), Next::Stop);
        queues.push(envoy.next_ready().map(|(_, queue)| queue));
        world.filter.queue_ready(QueueId(77));
        assert_eq!(world.filter.decider.wakes, 0, "another root's queue");
    }
    assert_ne!(queues.first(), queues.last());
}

#[test]
fn no_request_is_answered_twice() {
    let mut world = World::new(&[WAIT]);
    let _stop = world.request(1);
    world.answer(&[(1, refuse()), (1, Verdict::Admit), (2, Verdict::Admit)]);
    world.answer(&[(1, Verdict::Admit)]);
    for _ in 0..10 {
        world.tick();
    }
    assert_eq!((world.endings(1), world.endings(2)), (vec![429], vec![]));
    assert_eq!(world.counts(), [0, 1, 0, 0, 1]);
}

#[test]
fn a_client_that_leaves_is_counted_once_and_answered_never() {
    let mut world = World::new(&[WAIT, Step::Done(Verdict::Admit)]);
    let _stop = world.request(1);
    let _continue = world.request(2);
    for stream in [1, 2, 1, 9] {
        world.host.hang_up(StreamId(stream));
        world.filter.gone(StreamId(stream));
    }
    world.answer(&[(1, Verdict::Admit)]);
    assert!(world.endings(1).is_empty());
    assert_eq!(world.filter.decider.gone, [StreamId(1)]);
    assert_eq!(world.counts(), [1, 0, 0, 1, 0], "asked in vain");
}

#[test]
fn an_admission_that_runs_a_lease_low_wakes_the_root_too() {
    let done = Step::Done(Verdict::Admit);
    let mut world = World::new(&[done, done]);
    assert_eq!(world.request(1), Next::Continue);
    assert_eq!(world.envoy.next_ready(), None);
    world.filter.decider.has_something_to_send = true;
    assert_eq!(world.request(2), Next::Continue);
    let (_, queue) = world.envoy.next_ready().expect("woken");
    world.filter.queue_ready(queue);
    assert_eq!(world.filter.decider.wakes, 1);
}

#[test]
fn rules_apply_by_the_headers_that_are_there() {
    let done = Step::Done(Verdict::Admit);
    let mut world = World::new(&[done, done]);
    world
        .host
        .begin(StreamId(1), &[("k", b"\xff\x00"), ("o", b"")]);
    assert_eq!(world.filter.request(StreamId(1)), Next::Continue);
    world.host.begin(StreamId(2), &[("k", b"")]);
    assert_eq!(world.filter.request(StreamId(2)), Next::Continue);
    world.host.begin(StreamId(3), &[("o", b"x")]);
    assert_eq!(world.filter.request(StreamId(3)), Next::Continue);

    let seen = world.filter.decider.seen.iter();
    let values = seen.map(|(_, charges)| {
        charges
            .iter()
            .map(|charge| (charge.rule, charge.values.clone()))
            .collect::<Vec<_>>()
    });
    let bytes = |bytes: &[u8]| Some(Rc::from(bytes));
    let first = vec![
        (ALLOWS, vec![bytes(b"\xff\x00"), bytes(b"")]),
        (DENIES, vec![bytes(b"\xff\x00")]),
    ];
    let second = vec![(ALLOWS, vec![bytes(b""), None]), (DENIES, vec![bytes(b"")])];
    assert_eq!(values.collect::<Vec<_>>(), [first, second]);
    assert_eq!(
        world.counts(),
        [2, 0, 0, 0, 0],
        "no rule applied to the third"
    );
}

#[test]
fn an_unreadable_header_is_left_to_the_strictest_policy() {
    let mut world = World::new(&[]);
    world.envoy.fail(Operation::Header, true);
    assert_eq!(world.request(1), Next::Stop);
    assert_eq!(
        (world.endings(1), world.counts()),
        (vec![503], [0, 0, 1, 0, 0])
    );
    assert_eq!(world.errors("request"), 1);
}

#[test]
fn what_envoy_refuses_to_do_is_counted() {
    let mut world = World::new(&[WAIT, WAIT, Step::Done(Verdict::Admit)]);
    let _stop = world.request(1);
    let _stop = world.request(2);
    world.envoy.fail(Operation::Resume, true);
    world.envoy.fail(Operation::Reply, true);
    world.answer(&[(1, Verdict::Admit), (2, refuse())]);
    assert_eq!(world.errors("request"), 2);
    world.envoy.fail(Operation::Metric, true);
    assert_eq!(
        world.request(3),
        Next::Continue,
        "a request is worth more than its metric"
    );
}
