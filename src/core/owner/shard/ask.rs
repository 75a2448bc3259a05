//! The Ask call.

use super::{AskAnswer, AskCall, OpenAsk, Readings, Rejection, Reply, ReplyTo, Shard};
use crate::message::{Answer, AnswerKind, Ask, Decision, RuleSpec};
use crate::owner::key::KeyState;
use crate::units::{ServiceTime, Tenancy};

impl Shard {
    /// Takes in a batch. It is answered by [`Shard::finish`] of the step in which one of its asks
    /// is decided.
    pub fn ask(&mut self, at: Readings, call: AskCall, reply: ReplyTo) {
        self.hear_time(at, &call.sender);
        let Some(now) = self.clock.now(at.local) else {
            self.reject(reply, Rejection::Recovering);
            return;
        };
        if self.waiting.saturating_add(call.asks.len()) > self.config.waiting_max {
            self.counts.waiting_full = self.counts.waiting_full.saturating_add(1);
            self.reject(reply, Rejection::WaitingFull);
            return;
        }
        let (from, seat_state) = self.hear(at, &call.sender);
        let open = OpenAsk {
            from,
            seat_state,
            received: now,
            answers: Vec::new(),
            open: call.asks.len(),
        };
        self.calls.insert(reply, open);
        if let Some(from) = from {
            for returned in &call.returns {
                self.counts.returns = self.counts.returns.saturating_add(1);
                self.with_key(now, returned.lease.key, |state, around, out| {
                    state.give_back(around, from, returned, out);
                });
            }
        }
        for resolution in &call.resolutions {
            self.with_key(now, resolution.ask.key, |state, around, out| {
                state.resolve(around, resolution, out);
            });
        }
        for ask in call.asks {
            self.counts.asks = self.counts.asks.saturating_add(1);
            self.take_ask(now, from, ask, reply);
        }
    }

    fn take_ask(&mut self, now: ServiceTime, from: Option<Tenancy>, ask: Ask, reply: ReplyTo) {
        let key = ask.id.key;
        if let (Some(from), Some(descriptor)) = (from, &ask.descriptor) {
            self.state_rule(from, &descriptor.rule);
        }
        if !self.keys.contains_key(&key) {
            let Some(descriptor) = &ask.descriptor else {
                self.take_key_answer(reply, unjudged(&ask, AnswerKind::UnknownKey));
                return;
            };
            if self.keys.len() >= self.config.keys_max {
                self.counts.keys_full = self.counts.keys_full.saturating_add(1);
                self.take_key_answer(reply, undecided(&ask));
                return;
            }
            let rule = &descriptor.rule;
            let in_force = self.rules.limit(&rule.id, rule.period);
            let limit = in_force.unwrap_or(rule.amount);
            let (of, window) = ((&rule.counters(), key), rule.period.window_at(now));
            let ledger = self.seating.begin(of, window, &self.members, limit);
            self.counts.died(ledger.dead());
            self.keys.insert(key, KeyState::begun(key, rule, ledger));
        }
        self.with_key(now, key, |state, around, out| {
            state.ask(around, from, ask, reply, out);
        });
    }

    /// A replica states a rule. One that is not kept counts with the amount its asks name.
    pub(super) fn state_rule(&mut self, by: Tenancy, rule: &RuleSpec) {
        match self.rules.state(by, rule) {
            Some(changed) => changed
                .into_iter()
                .for_each(|counters| self.seating.look_at(counters)),
            None => self.counts.rules_full = self.counts.rules_full.saturating_add(1),
        }
    }

    /// An ask has its answer. If its call is gone, the replica repeats the ask and is told again.
    pub(super) fn take_key_answer(&mut self, reply: ReplyTo, answer: Answer) {
        for decision in &answer.decisions {
            let [admitted, refused, undecided] = &mut self.counts.decisions;
            let count = match decision {
                Decision::Admit => admitted,
                Decision::Refuse => refused,
                Decision::Undecided => undecided,
            };
            *count = count.saturating_add(1);
        }
        if let Some(call) = self.calls.get_mut(&reply) {
            call.open = call.open.saturating_sub(1);
            call.answers.push(answer);
        }
    }

    /// Answers the calls of which something is decided, or nothing waits.
    pub(super) fn answer_asks(&mut self, at: Readings) {
        let ready = |call: &OpenAsk| !call.answers.is_empty() || call.open == 0;
        let done: Vec<ReplyTo> = self
            .calls
            .iter()
            .filter(|(_, call)| ready(call))
            .map(|(reply, _)| *reply)
            .collect();
        for reply in done {
            let Some(call) = self.calls.remove(&reply) else {
                continue;
            };
            let member = call.from.and_then(|from| self.members.get_mut(from));
            let recalls = member.map_or(Vec::new(), |member| member.take_recalls(at.local));
            let answer = AskAnswer {
                epoch: self.epoch,
                stamps: self.stamps(call.received, at),
                seat_state: call.seat_state,
                answers: call.answers,
                recalls,
            };
            self.outcome.replies.push((reply, Reply::Ask(answer)));
        }
    }
}

fn unjudged(ask: &Ask, kind: AnswerKind) -> Answer {
    Answer {
        id: ask.id,
        kind,
        window: None,
        decisions: Vec::new(),
        lease: None,
        total: None,
        parked: false,
    }
}

fn undecided(ask: &Ask) -> Answer {
    let decisions = ask.costs.iter().map(|_| Decision::Undecided).collect();
    Answer {
        decisions,
        ..unjudged(ask, AnswerKind::Judged)
    }
}
