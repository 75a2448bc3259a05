//! One root's filter: takes requests in, has them decided, and acts on the decisions.
//!
//! Invariants: a request is answered or let go at most once, counted at most once, and never left
//! waiting for longer than the configured timeout and two ticks, whatever the host, the decider or
//! the service does.

#[cfg(test)]
mod tests;
mod wake;

use std::collections::BTreeMap;
use std::rc::Rc;

use headgate_core::rule::{Config, Missing, Policy, Rule};
use headgate_core::units::{LocalTime, Span};

use crate::decide::{Applied, Decider, Env, RuleIndex, Settled, Step, Value, Verdict};
use crate::host_api::{CallFailure, CallToken, HostError, QueueId, Reply, StreamId};
use crate::metrics::Count;
use crate::reply;

use wake::Wake;

/// Period of the tick. It finds what was lost (a wake-up, an answer), so it needs to be short only
/// against the timeouts; every worker and the main thread run it.
pub const TICK_MS: u32 = 50;

/// Most requests that wait in one worker: they cost about 100 bytes each here and tens of
/// kilobytes in Envoy, whose circuit breakers are of this order. One more is undecided at once.
pub const MAX_WAITING: usize = 16_384;

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
    rule: RuleIndex,
}

/// The filter of one root in one worker.
#[derive(Debug)]
pub struct Filter<D> {
    env: Env,
    decider: D,
    wake: Wake,
    waiting: BTreeMap<StreamId, Waiting>,
}

impl<D: Decider> Filter<D> {
    /// A filter that decides with `decider`.
    #[must_use]
    pub fn new(env: Env, decider: D) -> Self {
        Self {
            env,
            decider,
            wake: Wake::default(),
            waiting: BTreeMap::new(),
        }
    }

    /// The headers of a request have come. Call once for each request, from its headers callback.
    pub fn request(&mut self, stream: StreamId) -> Next {
        let applied = match self.applied() {
            Ok(applied) if applied.is_empty() => return Next::Continue,
            Ok(applied) => applied,
            Err((rule, error)) => {
                self.env.metrics.failed(Count::ErrorsRequest, &error);
                return self.decided(stream, Verdict::Undecided { rule });
            }
        };
        match self.decider.request(stream, applied) {
            Step::Done(verdict) => self.decided(stream, verdict),
            Step::Wait { rule } => self.wait(stream, rule),
        }
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
        if self.wake.take(&self.env, queue) {
            let settled = self.decider.wake();
            self.settle(settled);
        }
    }

    /// The tick.
    pub fn tick(&mut self) {
        // A wake-up may be lost; what it was for must not be.
        if self.wake.overdue() {
            let settled = self.decider.wake();
            self.settle(settled);
        }
        let settled = self.decider.tick();
        self.settle(settled);
        self.end_long_waits();
    }

    /// A call has ended.
    pub fn answered(&mut self, token: CallToken, answer: Result<&[u8], CallFailure>) {
        let settled = self.decider.answered(token, answer);
        self.settle(settled);
    }

    /// The rules that apply to the current request, or the first whose header was unreadable.
    fn applied(&self) -> Result<Vec<Applied>, (RuleIndex, HostError)> {
        let config = &self.env.config;
        let mut read = Headers {
            env: &self.env,
            known: Vec::new(),
        };
        let mut applied = Vec::with_capacity(config.rules().len());
        for (index, rule) in config.rules().iter().enumerate() {
            let rule_index = RuleIndex(index);
            if let Some(values) = read.values(rule).map_err(|error| (rule_index, error))? {
                applied.push(Applied {
                    rule: rule_index,
                    values,
                });
            }
        }
        Ok(applied)
    }

    fn wait(&mut self, stream: StreamId, rule: RuleIndex) -> Next {
        let undecided = Verdict::Undecided { rule };
        if self.waiting.len() >= MAX_WAITING {
            self.decider.gone(stream);
            self.env.metrics.count(Count::ErrorsOverload);
            return self.decided(stream, undecided);
        }
        let since = match self.env.host.now() {
            Ok(now) => now,
            Err(error) => {
                // Without a clock nobody could say when it has waited long enough.
                self.decider.gone(stream);
                self.env.metrics.failed(Count::ErrorsRequest, &error);
                return self.decided(stream, undecided);
            }
        };
        self.waiting.insert(stream, Waiting { since, rule });
        self.env.metrics.count(Count::Asked);
        self.wake.call(&self.env);
        Next::Stop
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
        for (stream, verdict) in settled {
            let Some(waiting) = self.waiting.remove(&stream) else {
                continue;
            };
            self.record_wait(waiting);
            match self.outcome(verdict) {
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
        let config: &Config = &self.env.config;
        match verdict {
            Verdict::Admit => {
                self.env.metrics.count(Count::Admitted);
                None
            }
            Verdict::Refuse { rule, retry_after } => {
                self.env.metrics.count(Count::Refused);
                let reply = rule
                    .of(config)
                    .map(|rule| reply::refused(rule, retry_after));
                Some(reply.unwrap_or_else(reply::unconfigured))
            }
            Verdict::Undecided { rule } => {
                self.env.metrics.count(Count::Undecided);
                match rule.of(config) {
                    Some(rule) if rule.when_undecided() == Policy::Allow => None,
                    Some(rule) => Some(reply::undecided(rule)),
                    None => Some(reply::unconfigured()),
                }
            }
        }
    }

    fn reply(&self, stream: StreamId, reply: &Reply) {
        if let Err(error) = self.env.host.reply(stream, reply) {
            self.env.metrics.failed(Count::ErrorsRequest, &error);
        }
    }

    fn record_wait(&self, waiting: Waiting) {
        if let Ok(now) = self.env.host.now() {
            self.env
                .metrics
                .waited(now.since(waiting.since).get() / 1_000);
        }
    }

    /// The last resort against a wait without end: the decider ends waits at their deadline, this
    /// ends those it has lost.
    fn end_long_waits(&mut self) {
        // Without a clock nobody can say that one may wait on.
        let now = self.env.host.now().unwrap_or(LocalTime::MAX);
        let timeout = self.env.config.counter().timeout();
        let tick = Span::from_millis(TICK_MS.into());
        let longest = Span::new(timeout.get().saturating_add(tick.get()));
        let over: Vec<Settled> = (self.waiting.iter())
            .filter(|(_, waiting)| now.since(waiting.since) >= longest)
            .map(|(stream, waiting)| (*stream, Verdict::Undecided { rule: waiting.rule }))
            .collect();
        for (stream, _) in &over {
            self.decider.gone(*stream);
        }
        self.settle(over);
    }
}

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
        let value: Value = self.env.host.request_header(name)?.map(Rc::from);
        self.known.push((name, value.clone()));
        Ok(value)
    }
}
