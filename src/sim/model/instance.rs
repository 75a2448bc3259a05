//! One worker's instance of the plugin, and what it can be given to do.

use headgate_core::message::call::{AskAnswer, WatchAnswer, Welcome};
use headgate_core::replica::leader::{Leader, LeaderCall, Ticket};
use headgate_core::replica::shared::{Shared, SharedError};
use headgate_core::replica::worker::{CallId, Request, RequestId, Rule, Settled, Worker};
use headgate_core::units::{Asker, LocalTime, ReplicaId, Span};

use super::memory::Access;
use crate::service::Body;

/// All keys live in one bucket, so that they compete for its places.
pub(super) const BUCKETS: u32 = 1;

/// What a call was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Purpose {
    Ask(CallId),
    Join(Ticket),
    Watch(Ticket),
}

/// What an instance is given to do.
#[derive(Clone, Debug)]
pub(super) enum Task {
    Arrive(Request),
    /// The client has gone.
    Forget(RequestId),
    Answer(CallId, Option<AskAnswer>),
    Joined(Ticket, Option<Welcome>),
    Watched(Ticket, Option<WatchAnswer>),
    Tick,
    /// Send what is to be sent.
    Send,
}

/// A task that is not at its end.
#[derive(Clone, Debug)]
pub(super) struct UnderWay {
    pub(super) task: Task,
    pub(super) seen: Vec<Access>,
}

/// What came of a task.
#[derive(Debug, Default)]
pub(super) struct Output {
    pub(super) settled: Vec<Settled>,
    pub(super) calls: Vec<(Purpose, Body)>,
    pub(super) failed: Option<SharedError>,
    /// Values in shared memory that broke an invariant.
    pub(super) broken: u64,
}

/// One instance.
#[derive(Clone, Debug)]
pub(super) struct Instance {
    worker: Worker,
    /// Only the first instance of a replica holds the watch.
    leader: Option<Leader>,
}

impl Instance {
    pub(super) fn new(number: u64, leads: bool, rules: &[Rule]) -> Self {
        let specs = rules.iter().map(|rule| rule.spec.clone()).collect();
        let patience = Span::from_millis(100);
        let worker = Worker::new(Asker::new(number), rules.to_vec(), BUCKETS, patience);
        let leader = leads.then(|| Leader::new(number, specs, BUCKETS));
        Self { worker, leader }
    }

    pub(super) fn has_something_to_send(&self) -> bool {
        self.worker.has_something_to_send()
    }

    /// Whether a tick may change something: requests wait, or it holds the watch.
    pub(super) const fn looks_at_time(&self) -> bool {
        self.worker.is_waiting() || self.leader.is_some()
    }

    /// Does a task, as far as the memory lets it.
    pub(super) fn perform(
        &mut self,
        task: &Task,
        shared: &impl Shared,
        (now, id): (LocalTime, ReplicaId),
    ) -> Output {
        let mut output = Output::default();
        match task {
            Task::Arrive(request) => {
                let settled = self.worker.arrive(shared, now, request.clone());
                output.settled.extend(settled);
            }
            Task::Forget(request) => self.worker.forget(shared, *request),
            Task::Answer(call, answer) => {
                output.settled = self.worker.answered(shared, now, *call, answer.clone());
            }
            Task::Joined(ticket, welcome) => {
                if let Some(leader) = &mut self.leader {
                    output.check(leader.joined(shared, now, *ticket, welcome.clone()));
                }
                output.settled = self.worker.tick(shared, now);
                self.lead(shared, (now, id), &mut output);
            }
            Task::Watched(ticket, answer) => {
                let leader = self.leader.as_mut();
                let returns = leader
                    .map(|leader| leader.watched(shared, now, *ticket, answer.clone()))
                    .and_then(|result| output.check(result));
                for returned in returns.unwrap_or_default() {
                    self.worker.send_return(returned);
                }
                self.lead(shared, (now, id), &mut output);
            }
            Task::Tick => {
                output.settled = self.worker.tick(shared, now);
                self.lead(shared, (now, id), &mut output);
            }
            Task::Send => {
                while let Some(call) = self.worker.next_call(shared, now) {
                    output
                        .calls
                        .push((Purpose::Ask(call.id), Body::Ask(call.body)));
                }
            }
        }
        output.broken = self.worker.take_counts().invariants_broken;
        output
    }

    fn lead(
        &mut self,
        shared: &impl Shared,
        (now, id): (LocalTime, ReplicaId),
        output: &mut Output,
    ) {
        let Some(leader) = &mut self.leader else {
            return;
        };
        let call = leader.next_call(shared, now, id);
        match output.check(call).flatten() {
            Some(LeaderCall::Join(ticket, join)) => {
                output.calls.push((Purpose::Join(ticket), Body::Join(join)));
            }
            Some(LeaderCall::Watch(ticket, sender)) => {
                output
                    .calls
                    .push((Purpose::Watch(ticket), Body::Watch(sender)));
            }
            None => {}
        }
    }
}

impl Output {
    fn check<T>(&mut self, result: Result<T, SharedError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failed = Some(error);
                None
            }
        }
    }
}
