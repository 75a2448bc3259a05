//! The requests of one key that wait for the owner: those of the ask that is out, and those behind.

use std::collections::VecDeque;

use super::RequestId;
use super::call::CallId;
use super::request::Pending;
use crate::key::{KeyHash, Value};
use crate::message::Ask;
use crate::units::{LocalTime, Span};

/// First pause before a failed call is repeated. It doubles with each failure up to
/// [`RETRY_PAUSE_MAX`]: a refused connection fails within a millisecond, and the deadline of a
/// request leaves room for several tries.
const RETRY_PAUSE_FIRST: Span = Span::from_millis(10);

/// Longest pause between repetitions.
const RETRY_PAUSE_MAX: Span = Span::from_millis(160);

/// What a queue is about.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) key: KeyHash,
    /// Index of the rule.
    pub(super) rule: usize,
    /// For the descriptor.
    pub(super) values: Vec<Value>,
}

/// An ask that is out. Its requests keep their places, because decisions come in their order.
#[derive(Clone, Debug)]
pub(super) struct Outstanding {
    pub(super) ask: Ask,
    /// `None` where the request was settled or has gone meanwhile.
    pub(super) requests: Vec<Option<Pending>>,
    /// The call it travels in; `None` between calls.
    pub(super) call: Option<CallId>,
    /// When it may travel again.
    pub(super) retry_at: LocalTime,
    failures: u32,
}

#[derive(Clone, Debug)]
pub(super) struct KeyQueue {
    pub(super) subject: Subject,
    waiting: VecDeque<Pending>,
    pub(super) outstanding: Option<Outstanding>,
    /// The cell runs low: ask although nobody waits.
    wishes: bool,
    /// The owner did not know the key.
    pub(super) describe: bool,
}

impl KeyQueue {
    pub(super) fn new(subject: Subject) -> Self {
        Self {
            subject,
            waiting: VecDeque::new(),
            outstanding: None,
            wishes: false,
            describe: false,
        }
    }

    pub(super) fn push(&mut self, pending: Pending) {
        self.waiting.push_back(pending);
    }

    /// Wishes for more; `false` if an ask is out or due anyway.
    pub(super) fn wish(&mut self) -> bool {
        let idle = self.outstanding.is_none() && self.waiting.is_empty() && !self.wishes;
        self.wishes |= idle;
        idle
    }

    /// Whether a new ask can be made, and is wanted.
    pub(super) fn wants_ask(&self) -> bool {
        self.outstanding.is_none() && (!self.waiting.is_empty() || self.wishes)
    }

    pub(super) fn is_idle(&self) -> bool {
        self.outstanding.is_none() && self.waiting.is_empty() && !self.wishes
    }

    /// The requests of the next ask, at most `max`.
    pub(super) fn take_waiting(&mut self, max: usize) -> Vec<Pending> {
        let count = self.waiting.len().min(max);
        self.waiting.drain(..count).collect()
    }

    /// All that wait behind the ask.
    pub(super) fn take_all_waiting(&mut self) -> VecDeque<Pending> {
        std::mem::take(&mut self.waiting)
    }

    /// Requests that an ask did not decide wait again, before the others.
    pub(super) fn put_back(&mut self, requests: impl DoubleEndedIterator<Item = Pending>) {
        for pending in requests.rev() {
            self.waiting.push_front(pending);
        }
    }

    pub(super) fn sent(&mut self, ask: Ask, requests: Vec<Pending>, call: CallId) {
        self.wishes = false;
        self.describe = false;
        self.outstanding = Some(Outstanding {
            ask,
            requests: requests.into_iter().map(Some).collect(),
            call: Some(call),
            retry_at: LocalTime::ZERO,
            failures: 0,
        });
    }

    /// The call failed. The same ask travels again after a pause; one that nobody waits for any
    /// more is dropped.
    pub(super) fn call_failed(&mut self, now: LocalTime) {
        let Some(outstanding) = &mut self.outstanding else {
            return;
        };
        if outstanding.requests.iter().all(Option::is_none) {
            self.outstanding = None;
            return;
        }
        let doubled = RETRY_PAUSE_FIRST.get() << outstanding.failures.min(8);
        let pause = Span::new(doubled).min(RETRY_PAUSE_MAX);
        outstanding.failures = outstanding.failures.saturating_add(1);
        outstanding.call = None;
        outstanding.retry_at = now.plus(pause);
    }

    /// The call was answered without this ask: it still waits at the owner and travels again.
    pub(super) fn still_waits(&mut self, now: LocalTime) {
        if let Some(outstanding) = &mut self.outstanding {
            outstanding.call = None;
            outstanding.retry_at = now;
        }
    }

    /// Whether the ask that is out is due to travel again.
    pub(super) fn retry_is_due(&self, now: LocalTime) -> bool {
        let due = |ask: &Outstanding| ask.call.is_none() && ask.retry_at <= now;
        self.outstanding.as_ref().is_some_and(due)
    }

    /// Takes out what has reached its deadline. A later decision for it is void here (the owner may
    /// have charged it: an undecided request may count as admitted).
    pub(super) fn take_expired(&mut self, now: LocalTime, expired: &mut Vec<Pending>) {
        self.take_where(|pending| pending.deadline() <= now, expired);
    }

    /// Takes out a request that has gone.
    pub(super) fn remove(&mut self, request: RequestId) -> Vec<Pending> {
        let mut removed = Vec::new();
        self.take_where(|pending| pending.id() == request, &mut removed);
        removed
    }

    fn take_where(&mut self, gone: impl Fn(&Pending) -> bool, taken: &mut Vec<Pending>) {
        for place in self
            .outstanding
            .iter_mut()
            .flat_map(|ask| ask.requests.iter_mut())
        {
            if place.as_ref().is_some_and(&gone) {
                taken.extend(place.take());
            }
        }
        if self.waiting.iter().any(&gone) {
            let (out, kept) = std::mem::take(&mut self.waiting)
                .into_iter()
                .partition(&gone);
            self.waiting = kept;
            taken.extend::<VecDeque<_>>(out);
        }
        let nobody =
            |ask: &Outstanding| ask.call.is_none() && ask.requests.iter().all(Option::is_none);
        if self.outstanding.as_ref().is_some_and(nobody) {
            self.outstanding = None;
        }
    }
}
