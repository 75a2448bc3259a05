//! One root's filter: takes requests in, has them decided, and acts on the decisions.
//!
//! Invariants: a request is answered or let go at most once, counted at most once, and never left
//! waiting for longer than the configured timeout and two ticks, whatever the host, the decider or
//! the service does.

#[cfg(test)]
mod tests;
mod wake;

use std::collections::BTreeMap;

use headgate_core::key::Value;
use headgate_core::replica::worker::{Charge, Settled, Verdict};
use headgate_core::rule::{Missing, Policy, Rule};
use headgate_core::units::{LocalTime, Span, Tokens};

use crate::decide::{Decider, Env, request_id};
use crate::host_api::{CallFailure, CallToken, HostError, QueueId, Reply, StreamId};
use crate::metrics::Count;
use crate::reply;

use wake::Wake;

/// Period of the tick while requests wait or the replica has no seat: a deadline is met within it,
/// and a seat that another worker got is seen within it.
pub const TICK_BUSY_MS: u32 = 10;

/// Period of the tick otherwise. It keeps the watch and the estimate of time; every worker and the
/// main thread run it, at a few microseconds each time.
pub const TICK_IDLE_MS: u32 = 100;

/// What Envoy is to do with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Next {
    /// Pass it on.
    Continue,
    /// Hold it: it was answered, or waits.
    Stop,
}

/// A request that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    since: LocalTime,
    /// When it is given up here if the decider has lost it.
    until: LocalTime,
    /// Its answer then.
    fallback: Verdict,
}

/// The filter of one root in one worker.
#[derive(Debug)]
pub struct Filter<D> {
    env: Env,
    decider: D,
    wake: Wake,
    waiting: BTreeMap<StreamId, Waiting>,
    tick_ms: u32,
    /// The last time that was read.
    clock: LocalTime,
}

impl<D: Decider> Filter<D> {
    /// A filter that decides with `decider`, and starts its tick.
    #[must_use]
    pub fn new(env: Env, decider: D) -> Self {
        let mut filter = Self {
            env,
            decider,
            wake: Wake::default(),
            waiting: BTreeMap::new(),
            tick_ms: 0,
            clock: LocalTime::ZERO,
        };
        filter.set_tick(TICK_BUSY_MS);
        filter
    }

    /// The headers of a request have come. Call once for each request, from its headers callback.
    pub fn request(&mut self, stream: StreamId) -> Next {
        let charges = match self.charges() {
            Ok(charges) if charges.is_empty() => return Next::Continue,
            Ok(charges) => charges,
            Err((rules, error)) => {
                self.env.metrics.failed(Count::ErrorsRequest, &error);
                return self.decided(stream, self.undecided(rules));
            }
        };
        let fallback = self.undecided(charges.iter().map(|charge| charge.rule));
        match self.decide(stream, charges, fallback) {
            Ok(next) => next,
            Err(error) => {
                self.env.metrics.failed(Count::ErrorsRequest, &error);
                self.decided(stream, fallback)
            }
        }
    }

    fn decide(
        &mut self,
        stream: StreamId,
        charges: Vec<Charge>,
        fallback: Verdict,
    ) -> Result<Next, HostError> {
        let since = self.now()?;
        let deadline = since.plus(self.env.config.counter().timeout());
        let settled = self.decider.request(since, deadline, stream, charges)?;
        if settled.is_none() || self.decider.has_something_to_send() {
            self.wake.call(&self.env);
        }
        Ok(match settled {
            Some(settled) => self.decided(stream, settled.verdict),
            None => {
                let until = deadline.plus(Span::from_millis(TICK_BUSY_MS.into()));
                let waiting = Waiting {
                    since,
                    until,
                    fallback,
                };
                self.waiting.insert(stream, waiting);
                Next::Stop
            }
        })
    }

    /// A request is over. One that waited is forgotten.
    pub fn gone(&mut self, stream: StreamId) {
        if self.waiting.remove(&stream).is_some() {
            self.env.metrics.count(Count::Abandoned);
            self.decider.gone(stream);
        }
    }

    /// A queue of this root has something: it woke itself up.
    pub fn queue_ready(&mut self, queue: QueueId) {
        if !self.wake.take(&self.env, queue) {
            return;
        }
        match self.now() {
            Ok(now) => {
                let settled = self.decider.wake(now);
                self.settle(settled);
            }
            // The tick does the same, and deals with what it cannot do.
            Err(error) => self.env.metrics.failed(Count::ErrorsRequest, &error),
        }
        if self.decider.is_busy() {
            self.set_tick(TICK_BUSY_MS);
        }
    }

    /// The tick.
    pub fn tick(&mut self) {
        self.wake.forget_lost();
        let now = match self.now() {
            Ok(now) => now,
            Err(error) => {
                // Without a clock nobody can say that one may wait on.
                self.env.metrics.failed(Count::ErrorsRequest, &error);
                self.give_up(self.clock, |_| true);
                return;
            }
        };
        let settled = self.decider.tick(now);
        self.settle(settled);
        self.give_up(now, |waiting| waiting.until <= now);
        let is_busy = self.decider.is_busy() || !self.waiting.is_empty();
        self.set_tick(if is_busy { TICK_BUSY_MS } else { TICK_IDLE_MS });
    }

    /// A call has ended.
    pub fn answered(&mut self, token: CallToken, answer: Result<&[u8], CallFailure>) {
        // An answer without a time is none: it cannot be said what in it still holds.
        let (now, answer) = match self.now() {
            Ok(now) => (now, answer),
            Err(error) => {
                self.env.metrics.failed(Count::ErrorsRequest, &error);
                (self.clock, Err(CallFailure::Unreadable))
            }
        };
        let settled = self.decider.answered(now, token, answer);
        self.settle(settled);
    }

    /// The root ends. No request will come for it any more, so none may wait. Gives whether Envoy
    /// may delete it now; if not, it ticks on until [`Self::is_over`].
    pub fn close(&mut self) -> bool {
        self.give_up(self.clock, |_| true);
        let now = self.now().ok();
        let may_go = now.is_none_or(|now| self.decider.close(now));
        if may_go {
            self.set_tick(0);
        }
        may_go
    }

    /// Whether a root that Envoy was asked to keep may be deleted; true once.
    pub fn is_over(&mut self) -> bool {
        let over = self.tick_ms > 0 && self.decider.is_over();
        if over {
            self.set_tick(0);
        }
        over
    }

    fn now(&mut self) -> Result<LocalTime, HostError> {
        self.clock = self.env.host.now()?;
        Ok(self.clock)
    }

    fn set_tick(&mut self, period_ms: u32) {
        if period_ms == self.tick_ms {
            return;
        }
        match self.env.host.set_tick_ms(period_ms) {
            Ok(()) => self.tick_ms = period_ms,
            Err(error) => self.env.metrics.failed(Count::ErrorsWake, &error),
        }
    }

    /// What the rules that apply to the current request charge; or the rules of which that could
    /// not be read.
    fn charges(&self) -> Result<Vec<Charge>, (Vec<usize>, HostError)> {
        let rules = self.env.config.rules();
        let mut read = Headers {
            env: &self.env,
            known: Vec::new(),
        };
        let mut charges = Vec::with_capacity(rules.len());
        let mut failed = None;
        let mut unreadable = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            match read.values(rule) {
                Ok(None) => {}
                Ok(Some(values)) => charges.push(Charge {
                    rule: index,
                    values,
                    cost: COST,
                }),
                Err(error) => {
                    unreadable.push(index);
                    failed = Some(error);
                }
            }
        }
        failed.map_or(Ok(charges), |error| Err((unreadable, error)))
    }

    /// Nobody can decide about these rules: the first one whose policy stops the request counts,
    /// else the first one.
    fn undecided(&self, rules: impl IntoIterator<Item = usize>) -> Verdict {
        let mut first = None;
        for index in rules {
            let rule = self.env.config.rules().get(index);
            if rule.is_none_or(|rule| rule.when_undecided() == Policy::Deny) {
                return Verdict::Undecided {
                    rule: index,
                    passes: false,
                };
            }
            first.get_or_insert(index);
        }
        Verdict::Undecided {
            rule: first.unwrap_or_default(),
            passes: true,
        }
    }

    /// Acts on a verdict inside of the request's own callback.
    fn decided(&self, stream: StreamId, verdict: Verdict) -> Next {
        match self.outcome(verdict) {
            None => Next::Continue,
            Some(reply) => {
                self.reply(stream, &reply);
                Next::Stop
            }
        }
    }

    /// Acts on verdicts for waiting requests. One that does not wait (any more) was answered or
    /// has gone, and gets nothing.
    fn settle(&mut self, settled: Vec<Settled>) {
        for settled in settled {
            let stream = StreamId(settled.request.get());
            if self.waiting.remove(&stream).is_none() {
                continue;
            }
            if let Some(waited) = settled.waited {
                self.env.metrics.waited(waited);
            }
            match self.outcome(settled.verdict) {
                None => {
                    if let Err(error) = self.env.host.resume(stream) {
                        self.env.metrics.failed(Count::ErrorsRequest, &error);
                    }
                }
                Some(reply) => self.reply(stream, &reply),
            }
        }
    }

    /// Counts a verdict, and says what to reply; nothing lets the request pass.
    fn outcome(&self, verdict: Verdict) -> Option<Reply> {
        let rule_of = |index: usize| self.env.config.rules().get(index);
        match verdict {
            Verdict::Admit => {
                self.env.metrics.count(Count::Admitted);
                None
            }
            Verdict::Refuse { rule, retry_after } => {
                self.env.metrics.count(Count::Refused);
                let reply = rule_of(rule).map(|rule| reply::refused(rule, retry_after));
                Some(reply.unwrap_or_else(reply::unconfigured))
            }
            Verdict::Undecided { rule, passes } => {
                self.env.metrics.count(Count::Undecided);
                let reply = || rule_of(rule).map_or_else(reply::unconfigured, reply::undecided);
                (!passes).then(reply)
            }
        }
    }

    fn reply(&self, stream: StreamId, reply: &Reply) {
        if let Err(error) = self.env.host.reply(stream, reply) {
            self.env.metrics.failed(Count::ErrorsRequest, &error);
        }
    }

    /// The last resort against a wait without end: the decider ends waits at their deadline, this
    /// ends those it has lost, or cannot end.
    fn give_up(&mut self, now: LocalTime, is_over: impl Fn(&Waiting) -> bool) {
        let over: Vec<(StreamId, Waiting)> = (self.waiting.iter())
            .filter(|(_, waiting)| is_over(waiting))
            .map(|(stream, waiting)| (*stream, *waiting))
            .collect();
        let mut settled = Vec::with_capacity(over.len());
        for (stream, waiting) in over {
            self.decider.gone(stream);
            settled.push(Settled {
                request: request_id(stream),
                verdict: waiting.fallback,
                waited: Some(now.since(waiting.since)),
            });
        }
        self.settle(settled);
    }
}

/// What a request costs under each of its rules.
const COST: Tokens = Tokens::new(1);

/// The headers of one request, each read once: a read costs about 0.8 microseconds.
struct Headers<'a> {
    env: &'a Env,
    known: Vec<(&'a str, Value)>,
}

impl<'a> Headers<'a> {
    /// The values of the rule's key; none if the rule does not apply.
    fn values(&mut self, rule: &'a Rule) -> Result<Option<Vec<Value>>, HostError> {
        let mut values = Vec::with_capacity(rule.key().len());
        for part in rule.key() {
            let value = self.get(part.header())?;
            if value.is_none() && part.missing() == Missing::Skip {
                return Ok(None);
            }
            values.push(value);
        }
        Ok(Some(values))
    }

    fn get(&mut self, name: &'a str) -> Result<Value, HostError> {
        if let Some((_, value)) = self.known.iter().find(|(known, _)| *known == name) {
            return Ok(value.clone());
        }
        let value: Value = self.env.host.request_header(name)?.map(Into::into);
        self.known.push((name, value.clone()));
        Ok(value)
    }
}
