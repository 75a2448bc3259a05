//! One request on its way through its rules: it reserves on each in one global order, then commits
//! all or releases all, so that a refused request costs nothing anywhere. With a single rule the
//! reservation is spared.

use super::context::Context;
use super::counts::Counts;
use super::outbox::Outbox;
use super::queue::Subject;
use super::{Charge, Request, RequestId, Rule, Settled, Verdict};
use crate::key::{KeyHash, KeyParts};
use crate::message::{AskId, Cost, Resolution};
use crate::replica::bucket::{Claim, Take, Taken};
use crate::replica::seat::Seated;
use crate::replica::shared::{Shared, SharedError};
use crate::replica::table::Table;
use crate::trap::{self, Trap};
use crate::units::{LocalTime, ServiceTime, Span};
use crate::window::Window;

/// How one rule of the request is provided for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Held {
    /// Not at all.
    Nothing,
    /// Spent from the lease, for good: the only rule of its request.
    Spent,
    /// Reserved in the cell of this window.
    Reserved(Window),
    /// Charged by the owner, for good: the only rule of its request.
    Charged,
    /// Charged by the owner until resolved.
    Provisional(AskId, u32),
}

#[derive(Clone, Debug)]
struct PendingCharge {
    charge: Charge,
    key: Option<KeyHash>,
    held: Held,
}

#[derive(Clone, Debug)]
pub(super) struct Pending {
    id: RequestId,
    arrived: LocalTime,
    deadline: LocalTime,
    charges: Vec<PendingCharge>,
    /// The charge that is next.
    at: usize,
    /// It was not answered at once.
    waits: bool,
    /// The first rule that nobody could decide and whose policy let the request pass.
    undecided: Option<usize>,
}

pub(super) enum Progress {
    Done(Verdict),
    /// Only the owner can say.
    Waits(Subject),
}

enum Step {
    Held(Held),
    Refused(Window),
    Edge(KeyHash),
    Failed,
}

impl Pending {
    pub(super) fn new(request: Request, now: LocalTime, rules: &[Rule]) -> Self {
        let mut charges: Vec<PendingCharge> = request
            .charges
            .into_iter()
            .map(|charge| PendingCharge {
                charge,
                key: None,
                held: Held::Nothing,
            })
            .collect();
        // One order for all replicas: a request that holds a rule only waits for later ones.
        charges.sort_unstable_by_key(|pending| {
            rules.get(pending.charge.rule).map(|rule| &rule.spec.id)
        });
        Self {
            id: request.id,
            arrived: now,
            deadline: request.deadline,
            charges,
            at: 0,
            waits: false,
            undecided: None,
        }
    }

    pub(super) const fn id(&self) -> RequestId {
        self.id
    }

    pub(super) const fn deadline(&self) -> LocalTime {
        self.deadline
    }

    pub(super) const fn mark_waiting(&mut self) {
        self.waits = true;
    }

    /// What the owner is asked for the present charge.
    pub(super) fn cost(&self, decide_by: ServiceTime) -> Option<Cost> {
        let pending = self.charges.get(self.at)?;
        let provisional = self.charges.len() > 1;
        Some(Cost {
            amount: pending.charge.cost,
            provisional,
            decide_by,
        })
    }

    /// Holds one rule after the other, as far as the cells allow.
    pub(super) fn advance<S: Shared>(
        &mut self,
        context: &mut Context<'_, S>,
        may_wait: bool,
    ) -> Progress {
        while self.at < self.charges.len() {
            match self.step(context) {
                Step::Held(held) => self.hold(held),
                Step::Refused(window) => {
                    return Progress::Done(self.refused(window, context));
                }
                Step::Edge(key) if may_wait => {
                    if let Some(subject) = self.subject(key) {
                        return Progress::Waits(subject);
                    }
                    return Progress::Done(self.give_up_now(context));
                }
                Step::Edge(_) | Step::Failed => {
                    let (table, rules) = (&context.table, context.rules);
                    let stop = self.undecided(table, rules, context.outbox, context.counts);
                    if let Some(verdict) = stop {
                        return Progress::Done(verdict);
                    }
                }
            }
        }
        self.commit(&context.table, context.outbox, context.counts);
        Progress::Done(self.passed())
    }

    fn give_up_now<S: Shared>(&mut self, context: &mut Context<'_, S>) -> Verdict {
        let (table, rules) = (&context.table, context.rules);
        self.undecided(table, rules, context.outbox, context.counts)
            .unwrap_or(self.passed())
    }

    /// One rule, from its cell.
    fn step<S: Shared>(&mut self, context: &mut Context<'_, S>) -> Step {
        let alone = self.charges.len() == 1;
        let Some(seated) = context.seat.seated else {
            return Step::Failed;
        };
        let Some(pending) = self.charges.get_mut(self.at) else {
            return Step::Failed;
        };
        let Some(rule) = context.rules.get(pending.charge.rule) else {
            return Step::Failed;
        };
        let key = *pending
            .key
            .get_or_insert_with(|| key_of(rule, &pending.charge, &seated));
        let moment = seated.moment(context.now);
        let window = moment.service.window(rule.spec.period);
        // Near a boundary nobody here knows which window it is, and a seat whose time is over may
        // spend nothing: both ask, and touch no cell.
        let is_alive = seated.is_alive(context.now) || trap::is_off(Trap::SpentAfterLife);
        let Some(window) = window.filter(|_| is_alive) else {
            return Step::Edge(key);
        };
        let claim = Claim {
            key,
            window,
            tenant: context.seat.tenant(),
        };
        let how = if alone || trap::is_off(Trap::UsedFalls) {
            Take::Spend
        } else {
            Take::Reserve
        };
        let cost = pending.charge.cost;
        let taken = context.take(rule, claim, (cost, how), moment);
        match taken {
            Ok(Taken::Admitted { ask_ahead }) => {
                if ask_ahead {
                    let values = pending.charge.values.clone();
                    context.outbox.push_ahead(Subject {
                        key,
                        rule: pending.charge.rule,
                        values,
                    });
                }
                Step::Held(if alone {
                    Held::Spent
                } else {
                    Held::Reserved(window)
                })
            }
            Ok(Taken::Refused) => Step::Refused(window),
            // What its share depends on is not known yet.
            Ok(Taken::Unclaimed) => Step::Edge(key),
            Ok(Taken::Edge { has_cell }) => {
                if !has_cell {
                    context.counts.cells_missed = context.counts.cells_missed.saturating_add(1);
                }
                Step::Edge(key)
            }
            Err(error) => {
                context.counts.shared_failed(error);
                Step::Failed
            }
        }
    }

    fn subject(&self, key: KeyHash) -> Option<Subject> {
        let charge = &self.charges.get(self.at)?.charge;
        Some(Subject {
            key,
            rule: charge.rule,
            values: charge.values.clone(),
        })
    }

    fn hold(&mut self, held: Held) {
        if let Some(pending) = self.charges.get_mut(self.at) {
            pending.held = held;
        }
        self.at = self.at.saturating_add(1);
    }

    /// The owner admitted the present charge.
    pub(super) fn admitted(&mut self, ask: AskId, cost: u32) {
        let alone = self.charges.len() == 1;
        self.hold(if alone {
            Held::Charged
        } else {
            Held::Provisional(ask, cost)
        });
    }

    /// A rule refused: nothing is spent anywhere.
    pub(super) fn refused<S: Shared>(
        &mut self,
        window: Window,
        context: &mut Context<'_, S>,
    ) -> Verdict {
        self.release(&context.table, context.outbox, context.counts);
        let rule = self
            .charges
            .get(self.at)
            .map_or(0, |pending| pending.charge.rule);
        let earliest = context
            .seat
            .seated
            .map(|seated| seated.moment(context.now).service.earliest);
        let retry_after = earliest.map_or(Span::ZERO, |earliest| window.end().since(earliest));
        Verdict::Refuse { rule, retry_after }
    }

    /// Nobody can decide the present rule. `Some` if its policy stops the request; else the request
    /// goes on to its next rule.
    pub(super) fn undecided<S: Shared>(
        &mut self,
        table: &Table<'_, S>,
        rules: &[Rule],
        outbox: &mut Outbox,
        counts: &mut Counts,
    ) -> Option<Verdict> {
        let rule = self
            .charges
            .get(self.at)
            .map_or(0, |pending| pending.charge.rule);
        if rules.get(rule).is_some_and(|rule| rule.undecided_passes) {
            self.undecided.get_or_insert(rule);
            self.hold(Held::Nothing);
            return None;
        }
        self.release(table, outbox, counts);
        Some(Verdict::Undecided {
            rule,
            passes: false,
        })
    }

    /// The policies of all rules act, before anything is held.
    pub(super) fn give_up(&self, rules: &[Rule], now: LocalTime) -> Settled {
        let rule_of = |pending: &PendingCharge| pending.charge.rule;
        let stops = |index: &usize| !rules.get(*index).is_some_and(|rule| rule.undecided_passes);
        let stopped_by = self.charges.iter().map(rule_of).find(stops);
        let verdict = match (stopped_by, self.charges.first()) {
            (Some(rule), _) => Verdict::Undecided {
                rule,
                passes: false,
            },
            (None, Some(first)) => Verdict::Undecided {
                rule: rule_of(first),
                passes: true,
            },
            (None, None) => Verdict::Admit,
        };
        self.settled(verdict, now)
    }

    fn passed(&self) -> Verdict {
        match self.undecided {
            Some(rule) => Verdict::Undecided { rule, passes: true },
            None => Verdict::Admit,
        }
    }

    fn commit<S: Shared>(
        &mut self,
        table: &Table<'_, S>,
        outbox: &mut Outbox,
        counts: &mut Counts,
    ) {
        self.resolve(outbox, counts, true, |key, window, charge| {
            table.commit(key, window, charge.cost)
        });
    }

    /// Gives back all that is held.
    pub(super) fn release<S: Shared>(
        &mut self,
        table: &Table<'_, S>,
        outbox: &mut Outbox,
        counts: &mut Counts,
    ) {
        self.resolve(outbox, counts, false, |key, window, charge| {
            table.release(key, window, charge.cost)
        });
    }

    fn resolve(
        &mut self,
        outbox: &mut Outbox,
        counts: &mut Counts,
        commit: bool,
        in_cell: impl Fn(
            KeyHash,
            Window,
            &Charge,
        ) -> Result<Option<crate::message::Return>, SharedError>,
    ) {
        for pending in &mut self.charges {
            match std::mem::replace(&mut pending.held, Held::Nothing) {
                Held::Nothing | Held::Spent | Held::Charged => {}
                Held::Provisional(ask, cost) => {
                    outbox.push_resolution(Resolution { ask, cost, commit }, counts);
                }
                Held::Reserved(window) => {
                    let Some(key) = pending.key else { continue };
                    match in_cell(key, window, &pending.charge) {
                        Ok(Some(returned)) => outbox.push_return(returned, counts),
                        Ok(None) => {}
                        Err(error) => counts.shared_failed(error),
                    }
                }
            }
        }
    }

    pub(super) fn settled(&self, verdict: Verdict, now: LocalTime) -> Settled {
        let waited = self.waits.then(|| now.since(self.arrived));
        Settled {
            request: self.id,
            verdict,
            waited,
        }
    }
}

fn key_of(rule: &Rule, charge: &Charge, seated: &Seated) -> KeyHash {
    let spec = &rule.spec;
    KeyParts {
        domain: &spec.id.domain,
        rule: &spec.id.name,
        algorithm: spec.algorithm.number(),
        period: spec.period.length(),
        values: &charge.values,
    }
    .hash(seated.hash_key)
}
