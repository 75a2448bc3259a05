//! Steps of the owner, each at once, and of the store behind it.

use std::collections::BTreeMap;

use headgate_core::message::call::{AskAnswer, AskCall, Join};
use headgate_core::message::{Answer, AnswerKind, AskId, Proof, Resolution};
use headgate_core::owner::effect::{Outcome, Reply, ReplyTo};
use headgate_core::owner::shard::Shard;
use headgate_core::window::Window;

use super::invariants::Look;
use super::machine::Machine;
use super::plan::{Broken, Seen};
use super::state::{Message, State, insert};
use super::wrong::{Promise, Wrong};
use crate::service::Body;
use crate::store::Records;
use headgate_core::key::KeyHash;

impl Machine {
    /// A request is with the owner.
    pub(super) fn reach_owner(
        &mut self,
        state: &mut State,
        reply: ReplyTo,
        body: &Body,
    ) -> Result<(), Wrong> {
        self.note_request(body);
        let at = self.readings(state);
        self.own(state, |shard| match body {
            Body::Ask(call) => shard.ask(at, call.clone(), reply),
            Body::Join(join) => shard.join(at, join, reply),
            Body::Watch(sender) => shard.watch(at, sender, reply),
            Body::Leave(leave) => shard.leave(at, leave, reply),
        })
    }

    pub(super) fn wake(&mut self, state: &mut State) -> Result<(), Wrong> {
        let at = self.readings(state);
        self.own(state, |shard| shard.wake(at))
    }

    fn note_request(&mut self, body: &Body) {
        match body {
            Body::Ask(AskCall {
                returns,
                resolutions,
                ..
            }) => {
                for returned in returns {
                    self.sees(Seen::Returned);
                    if returned.lease.amounts.reserved.get() > 0 {
                        self.sees(Seen::ReturnedReserved);
                    }
                    if !returned.has_cell {
                        self.sees(Seen::ReturnedWithoutCell);
                    }
                }
                let back = |resolution: &&Resolution| !resolution.commit;
                if resolutions.iter().any(|resolution| back(&resolution)) {
                    self.sees(Seen::Released);
                }
            }
            Body::Join(Join {
                fenced_for, leases, ..
            }) if fenced_for.is_some() && !leases.is_empty() => self.sees(Seen::Registered),
            Body::Join(_) | Body::Watch(_) | Body::Leave(_) => {}
        }
    }

    /// One step of the owner, with all that follows.
    fn own(&mut self, state: &mut State, act: impl FnOnce(&mut Shard)) -> Result<(), Wrong> {
        let before = state.owner.and_then(|owner| self.pools.owners.get(owner));
        let before = before.ok_or_else(|| Wrong::model("no owner"))?;
        let mut after = Shard::clone(&before);
        act(&mut after);
        let outcome = after.finish(self.readings(state));
        let counts = after.take_counts();
        if counts.invariants_broken > 0 {
            return Err(Wrong::new(Promise::EveryTokenOnce, "core found it itself"));
        }
        // A worker may send what a recall took back only when its replica's next tenancy has begun.
        // The owner refuses it and changes nothing; otherwise there is no such report.
        if counts.reports_refused > 0 && !self.model.ends_tenancies() {
            let what = "a replica reported what it was never granted";
            return Err(Wrong::new(Promise::NothingBroken, what));
        }
        self.note_dead(state, &before, &after)?;
        state.owner = Some(self.pools.owners.put(after));
        self.check_replies(state, &before, &outcome)?;
        self.store(state, outcome)
    }

    /// Tokens of those that the owner no longer knows have died, but for what was truly used.
    fn note_dead(&mut self, state: &mut State, before: &Shard, after: &Shard) -> Result<(), Wrong> {
        for (rule, key) in self.keys.clone().into_iter().enumerate() {
            let (Some(was), Some(is)) = (before.keys().get(&key), after.keys().get(&key)) else {
                continue;
            };
            let (was, is) = (was.ledger(), is.ledger());
            if was.window() != is.window() || was.holders().len() == is.holders().len() {
                continue;
            }
            let gone = was
                .holders()
                .iter()
                .filter(|(it, _)| !is.holders().contains_key(it));
            let mut died = 0_u64;
            for (tenancy, holder) in gone {
                let used = self.truly_used(state, before, (key, *tenancy));
                let unused = holder.granted.get().saturating_sub(used.unwrap_or(0));
                died = died.saturating_add(unused);
            }
            if died > 0 {
                self.sees(Seen::Died);
                let window = self.number(was.window());
                self.change_book(state, |book| {
                    book.loses(rule, window, died);
                    Ok(())
                })?;
            }
        }
        Ok(())
    }

    /// Invariant C, for every proof that the owner gives now.
    fn check_replies(
        &mut self,
        state: &State,
        before: &Shard,
        outcome: &Outcome,
    ) -> Result<(), Wrong> {
        let look = self.look(state)?;
        for (_, reply) in &outcome.replies {
            match reply {
                Reply::Ask(AskAnswer { answers, .. }) => {
                    for answer in answers {
                        self.note_answer(before, answer);
                        let proven = answer.total.zip(answer.window);
                        check_proof(&look, answer.id.key, proven)?;
                    }
                }
                Reply::Watch(answer) => {
                    for exhausted in &answer.exhausted {
                        let proven = Some((exhausted.total, exhausted.window));
                        check_proof(&look, exhausted.key, proven)?;
                    }
                }
                Reply::Welcome(_) | Reply::Left | Reply::Rejected(_) => {}
            }
        }
        Ok(())
    }

    fn note_answer(&mut self, before: &Shard, answer: &Answer) {
        if answer.lease.is_some() {
            self.sees(Seen::Granted);
        }
        if answer.kind == AnswerKind::WrongWindow {
            self.sees(Seen::WrongWindow);
        }
        if is_answered(before, answer.id) && answer.kind == AnswerKind::Judged {
            self.sees(Seen::Repeated);
        }
    }

    /// Replies leave when all that came before them is durable. Where the service never dies, that
    /// is at once.
    fn store(&mut self, state: &mut State, outcome: Outcome) -> Result<(), Wrong> {
        if self.model.budget.service_killed == 0 {
            self.let_out(state, outcome.replies);
            return Ok(());
        }
        if !self.is_searching() {
            return self.make_durable(state, outcome);
        }
        if state.unwritten.is_empty() && outcome.changes.is_empty() {
            self.let_out(state, outcome.replies);
            return Ok(());
        }
        let mut outcome = outcome;
        if self.model.is_broken(Broken::EarlyReplies) {
            let replies = std::mem::take(&mut outcome.replies);
            self.let_out(state, replies);
        }
        state.unwritten.push(self.pools.outcomes.put(outcome));
        Ok(())
    }

    pub(super) fn write(&mut self, state: &mut State) -> Result<(), Wrong> {
        if state.unwritten.is_empty() {
            return Err(Wrong::model("nothing to write"));
        }
        let oldest = state.unwritten.remove(0);
        let outcome = self.pools.outcomes.get(oldest);
        let outcome = outcome.ok_or_else(|| Wrong::model("no such step"))?;
        self.make_durable(state, Outcome::clone(&outcome))
    }

    fn make_durable(&mut self, state: &mut State, outcome: Outcome) -> Result<(), Wrong> {
        let records = self.pools.records.get(state.records);
        let records = records.ok_or_else(|| Wrong::model("no records"))?;
        let mut records: Records = BTreeMap::clone(&records);
        for change in outcome.changes {
            match change.value {
                Some(value) => records.insert(change.key, value),
                None => records.remove(&change.key),
            };
        }
        state.records = self.pools.records.put(records);
        self.let_out(state, outcome.replies);
        Ok(())
    }

    fn let_out(&mut self, state: &mut State, replies: Vec<(ReplyTo, Reply)>) {
        for (to, reply) in replies {
            let open = state
                .open
                .iter()
                .filter_map(|part| self.pools.calls.get(*part));
            let Some(call) = open.into_iter().find(|call| call.is_named(to)) else {
                continue;
            };
            let message = Message::Answer { call: *call, reply };
            let part = self.pools.messages.put(message);
            insert(&mut state.network, part);
        }
    }

    /// The service dies with all that was not durable; no request to it arrives any more.
    pub(super) fn kill_service(&mut self, state: &mut State) -> Result<(), Wrong> {
        state.left.service_killed = state.left.service_killed.saturating_sub(1);
        state.owner = None;
        state.unwritten.clear();
        let pools = &self.pools;
        state.network.retain(|part| {
            let message = pools.messages.get(*part);
            matches!(message.as_deref(), Some(Message::Answer { .. }))
        });
        Ok(())
    }

    pub(super) fn start_service(&mut self, state: &mut State) -> Result<(), Wrong> {
        state.epoch = state.epoch.saturating_add(1);
        let records = self.pools.records.get(state.records);
        let records = records.ok_or_else(|| Wrong::model("no records"))?;
        let shard = self.start_shard(state.epoch, self.readings(state), &records)?;
        state.owner = Some(self.pools.owners.put(shard));
        // What was sent while there was no service reached nobody.
        let pools = &self.pools;
        state.network.retain(|part| {
            let message = pools.messages.get(*part);
            matches!(message.as_deref(), Some(Message::Answer { .. }))
        });
        Ok(())
    }
}

/// Whether an ask had its answer before.
fn is_answered(shard: &Shard, ask: AskId) -> bool {
    let key = shard.keys().get(&ask.key);
    let last = key.and_then(|key| key.askers().get(&ask.asker));
    last.is_some_and(|last| last.sequence == ask.sequence)
}

fn check_proof(look: &Look, key: KeyHash, proven: Option<(Proof, Window)>) -> Result<(), Wrong> {
    let Some((proof, window)) = proven else {
        return Ok(());
    };
    match look.left(key, window) {
        Some(left) if proof.left.get() < left => {
            let what = format!("{key}: {left} left, proven {}", proof.left);
            Err(Wrong::new(Promise::ProofsAreTrue, what))
        }
        _ => Ok(()),
    }
}
