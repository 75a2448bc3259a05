//! Repeated asks: the same number is the same ask, charged once, answered the same.

use super::{KeyState, LastAnswer};
use crate::message::{Answer, AnswerKind, Ask, AskId, Decision};
use crate::owner::effect::{KeyEffect, ReplyTo};
use crate::trap::{self, Trap};
use crate::units::Tenancy;

impl KeyState {
    /// Answers an ask that was answered before, and one that is older than that; renews the way
    /// back of one that still waits.
    pub(super) fn is_repeated(
        &mut self,
        from: Option<Tenancy>,
        ask: &Ask,
        reply: ReplyTo,
        out: &mut Vec<KeyEffect>,
    ) -> bool {
        let mut same = self
            .waiting
            .iter_mut()
            .filter(|other| other.ask.id.asker == ask.id.asker);
        if let Some(other) = same.next() {
            match other.ask.id.sequence.cmp(&ask.id.sequence) {
                std::cmp::Ordering::Equal => other.reply = reply,
                std::cmp::Ordering::Greater => {
                    out.push(self.unjudged(ask, reply, AnswerKind::Stale));
                }
                std::cmp::Ordering::Less => return false,
            }
            return true;
        }
        let Some(last) = self.askers.get(&ask.id.asker) else {
            return false;
        };
        match last.sequence.cmp(&ask.id.sequence) {
            std::cmp::Ordering::Less => return false,
            std::cmp::Ordering::Greater => {
                out.push(self.unjudged(ask, reply, AnswerKind::Stale));
            }
            std::cmp::Ordering::Equal if trap::is_off(Trap::RepeatJudgedAnew) => return false,
            std::cmp::Ordering::Equal => {
                let running = last.window == self.ledger.window();
                let answer = Answer {
                    id: ask.id,
                    kind: AnswerKind::Judged,
                    window: Some(last.window),
                    decisions: last.decisions.clone(),
                    lease: from
                        .filter(|_| running)
                        .and_then(|from| self.lease_of(from, ask)),
                    total: self.proof_if_exhausted().filter(|_| running),
                    parked: false,
                };
                out.push(KeyEffect::Answer(reply, answer));
            }
        }
        true
    }

    pub(super) fn unjudged(&self, ask: &Ask, reply: ReplyTo, kind: AnswerKind) -> KeyEffect {
        let answer = Answer {
            id: ask.id,
            kind,
            window: Some(self.ledger.window()),
            decisions: Vec::new(),
            lease: None,
            total: None,
            parked: false,
        };
        KeyEffect::Answer(reply, answer)
    }

    /// Nobody is to know, though the ask could be read.
    pub(super) fn undecided(&self, ask: &Ask, reply: ReplyTo) -> KeyEffect {
        let decisions = ask.costs.iter().map(|_| Decision::Undecided).collect();
        match self.unjudged(ask, reply, AnswerKind::Judged) {
            KeyEffect::Answer(reply, answer) => KeyEffect::Answer(
                reply,
                Answer {
                    decisions,
                    ..answer
                },
            ),
            other => other,
        }
    }

    /// Keeps the answer for repetitions of its ask.
    pub(super) fn remember(&mut self, id: AskId, decisions: &[Decision]) {
        let window = self.ledger.window();
        let decisions = decisions.to_vec();
        self.changed = true;
        self.askers.insert(
            id.asker,
            LastAnswer {
                sequence: id.sequence,
                window,
                decisions,
            },
        );
    }
}
