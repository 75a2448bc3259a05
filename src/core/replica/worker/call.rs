//! Calls of a worker: all asks of one turn travel together.

use super::queue::KeyQueue;
use super::{Rule, Worker};
use crate::key::{KeyHash, masked};
use crate::message::call::AskCall;
use crate::message::{ASKS_PER_CALL_MAX, Ask, AskId, COSTS_PER_ASK_MAX, Descriptor, Resolution};
use crate::replica::seat::{SeatRecord, Seated};
use crate::replica::shared::Shared;
use crate::replica::table::Table;
use crate::units::{Incarnation, LocalTime, Rate, Span, Tokens};

/// Most calls of one worker in flight. Each key has at most one ask out, so many calls mean many
/// keys at the edge at once; beyond the bound they wait for a call to end and then travel together.
pub const CALLS_IN_FLIGHT_MAX: usize = 128;

/// Shortest time a call is given: hosts truncate to milliseconds, and zero would mean none.
const CALL_TIMEOUT_MIN: Span = Span::from_millis(1);

/// Names a call of one worker.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(u64);

/// A call to make. Its answer goes to [`Worker::answered`], also when there is none.
#[derive(Debug)]
pub struct Call {
    /// Names it.
    pub id: CallId,
    /// What to send.
    pub body: AskCall,
    /// How long to wait for the answer.
    pub timeout: Span,
}

/// What has to be known when the answer comes.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) id: CallId,
    pub(super) sent: LocalTime,
    pub(super) incarnation: Incarnation,
    pub(super) keys: Vec<KeyHash>,
    pub(super) resolutions: Vec<Resolution>,
}

impl Worker {
    /// The next call to make, if there is something to send.
    pub fn next_call(&mut self, shared: &impl Shared, now: LocalTime) -> Option<Call> {
        if !self.has_something_to_send() || self.calls.len() >= CALLS_IN_FLIGHT_MAX {
            return None;
        }
        self.reload_seat(shared);
        let seat = self.seat?;
        let seated = seat.seated?;
        let id = CallId(self.next_call);
        let mut asks = Vec::new();
        let mut timeout = Span::ZERO;
        while asks.len() < ASKS_PER_CALL_MAX {
            let Some(key) = self.ready.pop_first() else {
                break;
            };
            let Some(ask) = self.ask_for(shared, now, key, &seated, id) else {
                continue;
            };
            timeout = timeout.max(self.time_left(key, now));
            asks.push(ask);
        }
        let keys: Vec<KeyHash> = asks.iter().map(|ask| ask.id.key).collect();
        let returns = self.outbox.take_returns();
        let resolutions = self.outbox.take_resolutions();
        if asks.is_empty() && returns.is_empty() && resolutions.is_empty() {
            return None;
        }
        self.next_call = self.next_call.saturating_add(1);
        let in_flight = InFlight {
            id,
            sent: now,
            incarnation: seat.incarnation,
            keys,
            resolutions: resolutions.clone(),
        };
        self.calls.push(in_flight);
        let timeout = if timeout == Span::ZERO {
            self.patience
        } else {
            timeout
        };
        let body = AskCall {
            sender: seat.sender(now),
            asks,
            returns,
            resolutions,
        };
        Some(Call {
            id,
            body,
            timeout: timeout.max(CALL_TIMEOUT_MIN),
        })
    }

    /// The ask of one key: the one that is due again, or a new one.
    fn ask_for(
        &mut self,
        shared: &impl Shared,
        now: LocalTime,
        key: KeyHash,
        seated: &Seated,
        call: CallId,
    ) -> Option<Ask> {
        let queue = self.queues.get_mut(&key)?;
        if queue.retry_is_due(now) {
            let outstanding = queue.outstanding.as_mut()?;
            outstanding.call = Some(call);
            return Some(outstanding.ask.clone());
        }
        if !queue.wants_ask() {
            if queue.is_idle() {
                self.queues.remove(&key);
            }
            return None;
        }
        let rule = self.rules.get(queue.subject.rule)?;
        let window = seated.moment(now).service.window(rule.spec.period);
        let table = Table::new(shared, self.buckets);
        let lease = match window.map(|window| table.lease(key, window, now)) {
            Some(Ok(lease)) => lease,
            None => None,
            Some(Err(error)) => {
                self.counts.shared_failed(error);
                None
            }
        };
        let requests = queue.take_waiting(COSTS_PER_ASK_MAX);
        self.sequence = self.sequence.next();
        let decide_by = |deadline| seated.offset.at(deadline).earliest;
        let costs = requests
            .iter()
            .filter_map(|request| request.cost(decide_by(request.deadline())));
        let first = lease.is_none_or(|(lease, _)| lease.granted == Tokens::ZERO);
        let ask = Ask {
            id: AskId {
                asker: self.asker,
                sequence: self.sequence,
                key,
            },
            window,
            lease: lease.map(|(amounts, _)| amounts),
            costs: costs.collect(),
            demand: lease.map_or(Rate::ZERO, |(_, rate)| rate),
            descriptor: (first || queue.describe).then(|| describe(rule, queue)),
        };
        queue.sent(ask.clone(), requests, call);
        Some(ask)
    }

    /// Time until the last request of this key's ask gives up.
    fn time_left(&self, key: KeyHash, now: LocalTime) -> Span {
        let outstanding = self
            .queues
            .get(&key)
            .and_then(|queue| queue.outstanding.as_ref());
        let requests = outstanding
            .into_iter()
            .flat_map(|ask| ask.requests.iter().flatten());
        requests
            .map(|request| request.deadline().since(now))
            .max()
            .unwrap_or(Span::ZERO)
    }

    /// Marks the asks whose pause is over.
    pub(super) fn wake_retries(&mut self, now: LocalTime) {
        let due = self
            .queues
            .iter()
            .filter(|(_, queue)| queue.retry_is_due(now));
        let due: Vec<KeyHash> = due.map(|(key, _)| *key).collect();
        self.ready.extend(due);
    }

    /// How this replica presents itself, for callers that make other calls.
    #[must_use]
    pub const fn seat(&self) -> Option<&SeatRecord> {
        self.seat.as_ref()
    }
}

fn describe(rule: &Rule, queue: &KeyQueue) -> Descriptor {
    let shown = queue.subject.values.iter().map(masked).collect();
    Descriptor {
        rule: rule.spec.clone(),
        shown,
    }
}
