//! Looks at arrivals, answers and the truth of time only, and says whether the answers were right.

use std::collections::BTreeMap;

use crate::message::RuleSpec;
use crate::replica::worker::{RequestId, Verdict};
use crate::units::ServiceTime;
use crate::window::Window;

/// An admitted request counts in one of the windows between its arrival and its answer.
struct Admitted {
    values: Vec<String>,
    arrived: ServiceTime,
    answered: ServiceTime,
}

/// One rule, one value, one window.
type Place = (usize, String, Window);

pub(super) struct Judge {
    limits: Vec<RuleSpec>,
    open: BTreeMap<RequestId, (Vec<String>, ServiceTime)>,
    admitted: Vec<Admitted>,
    pub(super) refused: BTreeMap<Place, u64>,
    pub(super) undecided: u64,
}

impl Judge {
    pub(super) fn new(limits: Vec<RuleSpec>) -> Self {
        let (open, refused) = (BTreeMap::new(), BTreeMap::new());
        Self {
            limits,
            open,
            admitted: Vec::new(),
            refused,
            undecided: 0,
        }
    }

    pub(super) fn arrived(&mut self, id: RequestId, values: &[String], at: ServiceTime) {
        self.open.insert(id, (values.to_vec(), at));
    }

    pub(super) fn settled(&mut self, id: RequestId, verdict: Verdict, answered: ServiceTime) {
        let (values, arrived) = self.open.remove(&id).unwrap();
        match verdict {
            Verdict::Admit => self.admitted.push(Admitted {
                values,
                arrived,
                answered,
            }),
            Verdict::Undecided { .. } => self.undecided += 1,
            Verdict::Refuse { rule, .. } => {
                // A refusal near a boundary may belong to either window; only one that lies inside
                // a window says something of that window.
                let period = self.limits[rule].period;
                let window = period.window_at(arrived);
                if window.contains(answered) {
                    let place = (rule, values[rule].clone(), window);
                    *self.refused.entry(place).or_default() += 1;
                }
            }
        }
    }

    /// Admitted in each window, every request in the earliest one that has room for it.
    pub(super) fn admitted(&self) -> BTreeMap<Place, u64> {
        let mut counts: BTreeMap<Place, u64> = BTreeMap::new();
        let mut by_arrival: Vec<&Admitted> = self.admitted.iter().collect();
        by_arrival.sort_by_key(|admitted| admitted.answered);
        for (rule, limit) in self.limits.iter().enumerate() {
            for admitted in &by_arrival {
                let Some(value) = admitted.values.get(rule) else {
                    continue;
                };
                let first = limit.period.window_at(admitted.arrived);
                let last = limit.period.window_at(admitted.answered);
                let room = |window: Window| {
                    let count = counts.get(&(rule, value.clone(), window));
                    count.copied().unwrap_or(0) < limit.amount.get()
                };
                let window = if room(first) { first } else { last };
                *counts.entry((rule, value.clone(), window)).or_default() += 1;
            }
        }
        counts
    }

    /// No window has admitted more than its limit.
    pub(super) fn assert_never_over(&self, seed: u64) {
        for ((rule, value, window), count) in self.admitted() {
            let limit = self.limits[rule].amount.get();
            assert!(
                count <= limit,
                "seed {seed}: rule {rule}, value {value}, {window:?}: {count} of {limit} admitted"
            );
        }
    }

    /// Where something was refused, the limit was spent, but for `lost` tokens that faults may have
    /// cost. For one rule: with several, a refusal by one leaves the others as they are.
    pub(super) fn assert_no_false_refusal(&self, seed: u64, lost: u64) {
        for (place, refused) in &self.refused {
            let count = self.may_count_in(place);
            let limit = self.limits[place.0].amount.get();
            assert!(
                count + lost >= limit,
                "seed {seed}: {place:?}: {refused} refused with {count} of {limit} admitted"
            );
        }
    }

    /// Admitted requests that may have been charged in a window.
    fn may_count_in(&self, (rule, value, window): &Place) -> u64 {
        let period = self.limits[*rule].period;
        let charged = |admitted: &&Admitted| {
            let first = period.window_at(admitted.arrived);
            let last = period.window_at(admitted.answered);
            admitted.values.get(*rule) == Some(value) && first <= *window && *window <= last
        };
        self.admitted.iter().filter(charged).count() as u64
    }
}
