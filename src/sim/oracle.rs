//! The judge. It knows the limits, sees every arrival and every answer at the true service time,
//! and nothing else: no lease, no message, no line of core's logic. It says
//!
//! - **over**: tokens admitted beyond the limit of a window, wherever the requests that live across
//!   a boundary are placed to the defendant's advantage (`excess`);
//! - **false**: refusals for which no instant between arrival and answer had too little left, even
//!   if every request that was in flight then, and every one that nobody decided, had been charged
//!   (`refusal`);
//! - **undecided**: where the plan says that nothing excuses it any more;
//! - **crash-lost**: tokens that would have had to be left for an honest refusal and were not,
//!   where replicas died with at least so many.
//!
//! Both checks look at one key and rule at a time and give every benefit of the doubt, so what they
//! convict is certainly wrong.

use std::collections::{BTreeMap, HashMap};

use headgate_core::replica::worker::{RequestId, Verdict};
use headgate_core::units::{ServiceTime, Span, Tokens};
use headgate_core::window::{Period, Window};

mod delays;
mod excess;
mod refusal;

pub use delays::Delays;

use crate::time::Truth;

/// A rule as the judge knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limit {
    /// Tokens per window.
    pub amount: Tokens,
    /// Length of the windows.
    pub period: Period,
}

/// Which counter: index of the rule, number of the key.
pub type Counter = (usize, u64);

/// What became of one request at one counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Admitted,
    Refused,
    /// Undecided or never answered: it may have been charged, or not.
    Unknown,
}

/// One request at one counter, from its arrival to its answer: in service time, which says in which
/// windows it lived, and in true time, which says what came before what.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Deed {
    from: ServiceTime,
    to: ServiceTime,
    arrived: Truth,
    answered: Truth,
    cost: Tokens,
    fate: Fate,
}

impl Deed {
    /// The windows that it lives in.
    fn windows(&self, period: Period) -> impl Iterator<Item = Window> {
        let first = period.window_at(self.from);
        let to = self.to;
        std::iter::successors(Some(first), move |window| {
            let next = period.window_at(window.end());
            (next.start() <= to).then_some(next)
        })
    }
}

#[derive(Debug)]
struct Open {
    from: ServiceTime,
    arrived: Truth,
    charges: Vec<Counter>,
    cost: Tokens,
    near_boundary: bool,
}

/// Totals of one run.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Requests that arrived.
    pub requests: u64,
    /// Answered with yes.
    pub admitted: u64,
    /// Answered with no.
    pub refused: u64,
    /// Answered by the policy.
    pub undecided: u64,
    /// Never answered: their worker died, or their client went away.
    pub gone: u64,
    /// Requests that had to ask, but for those near a boundary.
    pub asked: u64,
    /// Those near a boundary.
    pub asked_near_boundary: u64,
}

/// What the judge says of one counter in one window.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crime {
    /// So many tokens were admitted beyond the limit.
    Over(u64),
    /// So many requests were refused, with so many tokens unaccounted for at the worst of them.
    False(u64, u64),
    /// A request was undecided while nothing excused it.
    Undecided,
}

/// A conviction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Conviction {
    /// Which counter.
    pub counter: Counter,
    /// Which window.
    pub window: Window,
    /// What was done.
    pub crime: Crime,
}

/// All that the judge has to say.
#[derive(Clone, Debug, Default)]
pub struct Verdicts {
    /// What was wrong.
    pub convictions: Vec<Conviction>,
    /// Tokens that were missed and had died with a replica.
    pub crash_lost: u64,
}

impl Verdicts {
    /// Tokens admitted beyond limits.
    #[must_use]
    pub fn over(&self) -> u64 {
        let over = self.convictions.iter().map(|one| match one.crime {
            Crime::Over(tokens) => tokens,
            Crime::False(..) | Crime::Undecided => 0,
        });
        over.sum()
    }

    /// Requests undecided without an excuse.
    #[must_use]
    pub fn undecided(&self) -> usize {
        let all = self.convictions.iter();
        all.filter(|one| one.crime == Crime::Undecided).count()
    }

    /// Requests refused although something was left.
    #[must_use]
    pub fn false_refusals(&self) -> u64 {
        let refused = self.convictions.iter().map(|one| match one.crime {
            Crime::Over(_) | Crime::Undecided => 0,
            Crime::False(requests, _) => requests,
        });
        refused.sum()
    }
}

/// The judge.
#[derive(Debug)]
pub struct Oracle {
    limits: Vec<Limit>,
    open: HashMap<RequestId, Open>,
    deeds: BTreeMap<Counter, Vec<Deed>>,
    /// Between these instants everything has to be decided.
    decided: Option<(Truth, Truth)>,
    undecided: Vec<Conviction>,
    /// Totals.
    pub counts: Counts,
    /// How long requests waited.
    pub delays: Delays,
}

impl Oracle {
    /// A judge of these rules. Between two instants, if they are given, nothing excuses it that a
    /// request is undecided.
    #[must_use]
    pub fn new(limits: Vec<Limit>, decided: Option<(Truth, Truth)>) -> Self {
        Self {
            limits,
            open: HashMap::new(),
            deeds: BTreeMap::new(),
            decided,
            undecided: Vec::new(),
            counts: Counts::default(),
            delays: Delays::default(),
        }
    }

    /// A request arrives; it costs the same on each of its counters.
    pub fn arrives(
        &mut self,
        id: RequestId,
        charges: Vec<Counter>,
        cost: Tokens,
        (arrived, from): (Truth, ServiceTime),
    ) {
        self.counts.requests += 1;
        let open = Open {
            from,
            arrived,
            charges,
            cost,
            near_boundary: false,
        };
        self.open.insert(id, open);
    }

    /// It came so near a boundary that asking is the only way.
    pub fn is_near_boundary(&mut self, id: RequestId) {
        if let Some(open) = self.open.get_mut(&id) {
            open.near_boundary = true;
        }
    }

    /// A request has its answer; `false` if it had one, or was never there.
    pub fn answered(
        &mut self,
        id: RequestId,
        verdict: Verdict,
        (answered, to): (Truth, ServiceTime),
    ) -> Option<Span> {
        let open = self.open.remove(&id)?;
        let waited = answered.since(open.arrived);
        self.delays.add(waited);
        if waited > Span::ZERO && open.near_boundary {
            self.counts.asked_near_boundary += 1;
        } else if waited > Span::ZERO {
            self.counts.asked += 1;
        }
        match verdict {
            Verdict::Admit => {
                self.counts.admitted += 1;
                self.keep(&open, (answered, to), Fate::Admitted, &open.charges);
            }
            Verdict::Refuse { rule, .. } => {
                self.counts.refused += 1;
                let by: Vec<Counter> = open
                    .charges
                    .iter()
                    .copied()
                    .filter(|it| it.0 == rule)
                    .collect();
                self.keep(&open, (answered, to), Fate::Refused, &by);
            }
            Verdict::Undecided { .. } => {
                self.counts.undecided += 1;
                self.accuse(&open, answered);
                self.keep(&open, (answered, to), Fate::Unknown, &open.charges);
            }
        }
        Some(waited)
    }

    /// A request will have no answer. Until `to` it may have been charged.
    pub fn gone(&mut self, id: RequestId, to: (Truth, ServiceTime)) {
        if let Some(open) = self.open.remove(&id) {
            self.counts.gone += 1;
            self.keep(&open, to, Fate::Unknown, &open.charges);
        }
    }

    fn accuse(&mut self, open: &Open, answered: Truth) {
        let inexcusable = |(from, to)| from <= open.arrived && answered <= to;
        let limit = open.charges.first().and_then(|it| self.limits.get(it.0));
        if let (Some(counter), Some(limit)) = (open.charges.first(), limit)
            && self.decided.is_some_and(inexcusable)
        {
            self.undecided.push(Conviction {
                counter: *counter,
                window: limit.period.window_at(open.from),
                crime: Crime::Undecided,
            });
        }
    }

    fn keep(
        &mut self,
        open: &Open,
        (answered, to): (Truth, ServiceTime),
        fate: Fate,
        counters: &[Counter],
    ) {
        // Where service time was moved while a request lived, its life covers both.
        let deed = Deed {
            from: open.from.min(to),
            to: to.max(open.from),
            arrived: open.arrived,
            answered,
            cost: open.cost,
            fate,
        };
        for counter in counters {
            self.deeds.entry(*counter).or_default().push(deed);
        }
    }

    /// Requests without an answer so far.
    #[must_use]
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Judges. `died` says how many tokens of a counter died with replicas in a window.
    pub fn judge(&self, died: impl Fn(Counter, Window) -> u64) -> Verdicts {
        let mut verdicts = Verdicts {
            convictions: self.undecided.clone(),
            crash_lost: 0,
        };
        for (counter, deeds) in &self.deeds {
            let Some(limit) = self.limits.get(counter.0) else {
                continue;
            };
            for (window, tokens) in excess::find(limit, deeds) {
                verdicts.convictions.push(Conviction {
                    counter: *counter,
                    window,
                    crime: Crime::Over(tokens),
                });
            }
            let dead = |window| died(*counter, window);
            let suspects = refusal::find(limit, deeds, dead);
            verdicts.crash_lost += suspects.crash_lost;
            for (window, (requests, missing)) in suspects.convicted {
                verdicts.convictions.push(Conviction {
                    counter: *counter,
                    window,
                    crime: Crime::False(requests, missing),
                });
            }
        }
        verdicts
    }
}

#[cfg(test)]
mod tests;
