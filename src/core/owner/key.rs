//! One key at its owner: the ledger of the running window, the asks that wait, and the last answer
//! to every asker, so that a repeated ask is charged once.

use std::collections::{BTreeMap, VecDeque};

use crate::key::KeyHash;
use crate::message::{
    AnswerKind, Ask, DEADLINE_MAX, Decision, Lease, LeaseAmounts, Resolution, Return, RuleId,
    RuleSpec,
};
use crate::owner::effect::{KeyEffect, ReplyTo};
use crate::owner::ledger::{Holder, Ledger};
use crate::trap::{self, Trap};
use crate::units::{Asker, Sequence, ServiceTime, Span, Tenancy, Tokens};
use crate::window::{Period, Window};

mod drain;
mod lease;
mod recall;
mod repeat;
mod wish;

use recall::Round;

/// Most askers whose last answer one key keeps: workers of all replicas, several configurations
/// each. With the longest answers that is some 450 KB of a record, below what a store takes.
/// Beyond it, new askers are undecided until the window after is over.
pub const ASKERS_MAX: usize = 4_096;

/// What a key needs to know besides its own state.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// Service time.
    pub now: ServiceTime,
    /// Replicas alive, at least one.
    pub replicas: u64,
    /// A recall without a return for so long has failed.
    pub recall_timeout: Span,
    /// The limit in force for windows that begin now.
    pub limit: Tokens,
}

/// The last answer to one asker.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LastAnswer {
    /// The ask's number.
    pub sequence: Sequence,
    /// The window it was decided in.
    pub window: Window,
    /// What was decided.
    pub decisions: Vec<Decision>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Waiting {
    /// The replica, if it is registered: only then its lease counts.
    from: Option<Tenancy>,
    ask: Ask,
    reply: ReplyTo,
    /// Decided so far.
    decisions: Vec<Decision>,
    /// Taken at the moment of the last refusal.
    total: Option<Tokens>,
}

/// One key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyState {
    key: KeyHash,
    rule: RuleId,
    period: Period,
    ledger: Ledger,
    askers: BTreeMap<Asker, LastAnswer>,
    waiting: VecDeque<Waiting>,
    round: Round,
    exhausted_told: bool,
    /// Something that has to be stored has changed.
    changed: bool,
}

impl KeyState {
    /// A key heard of for the first time, without standing shares.
    #[must_use]
    pub fn new(key: KeyHash, rule: &RuleSpec, around: &Surroundings) -> Self {
        let window = rule.period.window_at(around.now);
        Self::begun(key, rule, Ledger::new(window, around.limit))
    }

    /// A key heard of for the first time in a window that begins like this.
    #[must_use]
    pub fn begun(key: KeyHash, rule: &RuleSpec, ledger: Ledger) -> Self {
        Self::restored(key, rule.id.clone(), rule.period, ledger, BTreeMap::new())
    }

    /// A key as it was stored.
    #[must_use]
    pub const fn restored(
        key: KeyHash,
        rule: RuleId,
        period: Period,
        ledger: Ledger,
        askers: BTreeMap<Asker, LastAnswer>,
    ) -> Self {
        Self {
            key,
            rule,
            period,
            ledger,
            askers,
            waiting: VecDeque::new(),
            round: Round::None,
            exhausted_told: false,
            changed: false,
        }
    }

    /// Which rule it belongs to.
    #[must_use]
    pub const fn rule(&self) -> &RuleId {
        &self.rule
    }

    /// Length of its windows.
    #[must_use]
    pub const fn period(&self) -> Period {
        self.period
    }

    /// The amounts of the running window.
    #[must_use]
    pub const fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The last answers.
    #[must_use]
    pub const fn askers(&self) -> &BTreeMap<Asker, LastAnswer> {
        &self.askers
    }

    /// How many asks wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Whether something that has to be stored has changed since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Whether nothing of it matters any more: its window is over, and so is the time in which an
    /// ask that was answered in it could be repeated.
    #[must_use]
    pub fn is_over(&self, now: ServiceTime) -> bool {
        self.waiting.is_empty() && self.ledger.window().end().plus(DEADLINE_MAX) <= now
    }

    /// The running window, if the one at hand is over.
    #[must_use]
    pub fn next_window(&self, now: ServiceTime) -> Option<Window> {
        (self.ledger.window().end() <= now).then(|| self.period.window_at(now))
    }

    /// Begins the running window without standing shares, if the one at hand is over.
    pub fn roll(&mut self, around: &Surroundings, out: &mut Vec<KeyEffect>) {
        if let Some(window) = self.next_window(around.now) {
            self.begin(around, Ledger::new(window, around.limit), out);
        }
    }

    /// Begins a window with this ledger.
    pub fn begin(&mut self, around: &Surroundings, ledger: Ledger, out: &mut Vec<KeyEffect>) {
        for (tenancy, holder) in self.ledger.holders() {
            if holder.recall.is_some() || holder.owes_return {
                out.push(KeyEffect::RecallEnded(*tenancy, self.key));
            }
        }
        let window = ledger.window();
        let before = std::mem::replace(&mut self.ledger, ledger);
        self.ledger.take_demand(&before);
        self.round = Round::None;
        self.exhausted_told = false;
        self.changed = true;
        let forgets = trap::is_off(Trap::AnswersForgotten);
        let kept =
            |answer: &LastAnswer| !forgets && around.now < answer.window.end().plus(DEADLINE_MAX);
        self.askers.retain(|_, answer| kept(answer));
        // Whoever named the old window asks again; whoever named none waits on in the new one.
        for waiting in std::mem::take(&mut self.waiting) {
            match waiting.ask.window {
                Some(named) if named != window => {
                    out.push(self.unjudged(&waiting.ask, waiting.reply, AnswerKind::WrongWindow));
                }
                _ => self.waiting.push_back(waiting),
            }
        }
    }

    /// Takes in an ask. `from` is the replica's tenancy if it is registered; the costs of others
    /// are decided, but what they say of leases does not count.
    pub fn ask(
        &mut self,
        around: &Surroundings,
        from: Option<Tenancy>,
        ask: Ask,
        reply: ReplyTo,
        out: &mut Vec<KeyEffect>,
    ) {
        self.roll(around, out);
        if self.is_repeated(from, &ask, reply, out) {
            return;
        }
        if ask
            .window
            .is_some_and(|named| named != self.ledger.window())
        {
            out.push(self.unjudged(&ask, reply, AnswerKind::WrongWindow));
            return;
        }
        if self.askers.len() >= ASKERS_MAX && !self.askers.contains_key(&ask.id.asker) {
            out.push(KeyEffect::AskersFull);
            out.push(self.undecided(&ask, reply));
            return;
        }
        if let (Some(from), Some(_)) = (from, ask.window) {
            self.take_report(from, &ask, out);
        }
        let asker = ask.id.asker;
        self.waiting.retain(|waiting| waiting.ask.id.asker != asker);
        let waiting = Waiting {
            from,
            ask,
            reply,
            decisions: Vec::new(),
            total: None,
        };
        if waiting.ask.costs.is_empty() {
            // A wish is answered at once, whoever waits.
            self.answer(around, &waiting, true, out);
            // What it could not be given may be called back; who waits for a decision comes first.
            if self.waiting.is_empty() {
                self.serve_wishes(around, out);
            }
            return;
        }
        self.waiting.push_back(waiting);
        self.drain(around, out);
    }

    fn take_report(&mut self, from: Tenancy, ask: &Ask, out: &mut Vec<KeyEffect>) {
        let holder = self.ledger.holder(from);
        holder.has_cell = ask.lease.is_some();
        holder.demand = ask.demand;
        if let Some(said) = ask.lease {
            self.report(from, said, false, out);
        }
    }

    /// What any message says of a lease. A recall ends by whichever comes first: its Return, or an
    /// ask that another worker of the replica sent after the fence.
    fn report(
        &mut self,
        from: Tenancy,
        said: LeaseAmounts,
        fenced: bool,
        out: &mut Vec<KeyEffect>,
    ) {
        let is_called = |holder: &Holder| holder.recall.is_some() || holder.owes_return;
        let was_called = is_called(self.ledger.holder(from));
        match self.ledger.report(from, said, fenced) {
            Some(changed) => self.changed |= changed,
            None => out.push(KeyEffect::ReportRefused),
        }
        if was_called && !is_called(self.ledger.holder(from)) {
            out.push(KeyEffect::RecallEnded(from, self.key));
        }
    }

    /// Takes in the answer to a recall, or tokens given back unasked.
    pub fn give_back(
        &mut self,
        around: &Surroundings,
        from: Tenancy,
        returned: &Return,
        out: &mut Vec<KeyEffect>,
    ) {
        self.roll(around, out);
        self.register(from, &returned.lease, returned.has_cell, true, out);
        if returned.lease.window == self.ledger.window() {
            self.ledger.holder(from).demand = returned.demand;
        }
        self.drain(around, out);
    }

    /// Takes in what a replica still holds, under a new leader.
    pub fn register(
        &mut self,
        from: Tenancy,
        lease: &Lease,
        has_cell: bool,
        fenced: bool,
        out: &mut Vec<KeyEffect>,
    ) {
        if lease.window != self.ledger.window() {
            return;
        }
        let holder = self.ledger.holder(from);
        holder.has_cell = has_cell;
        self.report(from, lease.amounts, fenced, out);
    }

    /// A replica that leaves has used nothing of what it holds here.
    pub fn let_go(&mut self, from: Tenancy, out: &mut Vec<KeyEffect>) {
        let holder = *self.ledger.holder(from);
        if holder.used == Tokens::ZERO {
            let nothing = LeaseAmounts {
                generation: holder.generation.next(),
                ..LeaseAmounts::default()
            };
            self.report(from, nothing, true, out);
        }
    }

    /// Ends a provisional charge.
    pub fn resolve(
        &mut self,
        around: &Surroundings,
        resolution: &Resolution,
        out: &mut Vec<KeyEffect>,
    ) {
        self.roll(around, out);
        let id = (resolution.ask, resolution.cost);
        self.changed |= self.ledger.resolve(id, resolution.commit);
        self.drain(around, out);
    }

    /// A replica is gone, and nothing else can be looked at yet.
    pub fn bury_holder(&mut self, gone: Tenancy) {
        self.changed |= self.ledger.bury(gone);
    }

    /// A replica's time-to-live is over.
    pub fn bury(&mut self, around: &Surroundings, gone: Tenancy, out: &mut Vec<KeyEffect>) {
        self.roll(around, out);
        self.changed |= self.ledger.bury(gone);
        for waiting in &mut self.waiting {
            if waiting.from == Some(gone) {
                waiting.from = None;
            }
        }
        out.push(KeyEffect::RecallEnded(gone, self.key));
        self.drain(around, out);
    }

    /// Looks at what time alone has changed.
    pub fn wake(&mut self, around: &Surroundings, out: &mut Vec<KeyEffect>) {
        if self.waiting.is_empty() {
            return;
        }
        self.roll(around, out);
        self.changed |= self.ledger.expire_provisional(around.now);
        self.drain(around, out);
    }

    /// When [`Self::wake`] is due next, or the key may be dropped.
    #[must_use]
    pub fn next_wake(&self, now: ServiceTime, recall_timeout: Span) -> ServiceTime {
        let end = self.ledger.window().end();
        if self.waiting.is_empty() {
            return end.plus(DEADLINE_MAX);
        }
        let costs = self.waiting.iter().flat_map(|waiting| {
            waiting
                .ask
                .costs
                .iter()
                .skip(waiting.decisions.len())
                .map(|cost| cost.decide_by)
        });
        let holders = self.ledger.holders().values();
        let recalls = holders.filter_map(|holder| {
            holder
                .recall
                .map(|recall| recall.since.plus(recall_timeout))
        });
        let charges = self
            .ledger
            .provisional()
            .values()
            .map(|charge| charge.expires);
        // What is past has been looked at: a recall that has failed is not waited for.
        let coming = costs.chain(recalls).chain(charges).filter(|at| now < *at);
        coming.chain([end]).min().unwrap_or(end)
    }
}

#[cfg(test)]
mod tests;
