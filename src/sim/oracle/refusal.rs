//! False refusals: was there an instant between arrival and answer at which less than the cost was
//! left?
//!
//! Within a window what is left only falls, so the last instant of the request's life in each
//! window that it touches is the best for the refusal; who arrives later than that instant lives in
//! no window before it. As much as possible is taken to be spent by then: every request that was
//! admitted and had arrived, and every one that nobody decided. But
//!
//! - a request that lives across a boundary is charged in one of its windows: what the refusals of
//!   the earlier one need of it is not there for those of the later one;
//! - whoever arrives after a refusal was answered finds no more left than the refused one did,
//!   whatever has died: if more is admitted then, the refusal was false.

use std::collections::BTreeMap;

use headgate_core::units::Tokens;
use headgate_core::window::Window;

use super::{Deed, Fate, Limit};
use crate::time::Truth;

/// What was found at one counter.
#[derive(Debug, Default)]
pub(super) struct Suspects {
    /// Refusals that nothing excuses, and the most tokens that one of them would have needed to be
    /// gone.
    pub(super) convicted: BTreeMap<Window, (u64, u64)>,
    /// Tokens that excused refusals needed to be gone and that had died.
    pub(super) crash_lost: u64,
}

/// Costs by arrival: sorted, with the sums so far.
#[derive(Debug, Default)]
struct Sums(Vec<(Truth, u64)>);

impl Sums {
    fn add(&mut self, deed: &Deed) {
        self.0.push((deed.arrived, deed.cost.get()));
    }

    fn sort(&mut self) {
        self.0.sort_by_key(|(at, _)| *at);
        let mut sum = 0_u64;
        for (_, cost) in &mut self.0 {
            sum = sum.saturating_add(*cost);
            *cost = sum;
        }
    }

    /// Of those who had arrived at this instant.
    fn by(&self, at: Truth) -> u64 {
        let count = self.0.partition_point(|(arrived, _)| *arrived <= at);
        let last = count.checked_sub(1).and_then(|last| self.0.get(last));
        last.map_or(0, |(_, sum)| *sum)
    }

    fn total(&self) -> u64 {
        self.0.last().map_or(0, |(_, sum)| *sum)
    }
}

/// What may have been spent of one window.
#[derive(Debug, Default)]
struct Spent {
    /// By all that may have been charged in it.
    all: Sums,
    /// By those that were admitted and lived in no other.
    certain: Sums,
    /// By those that lived in the window before as well, and in the one after.
    before: Sums,
    after: Sums,
    /// Of what came from the window before, so much is needed there.
    taken: u64,
}

/// The windows of one counter.
struct Windows(BTreeMap<Window, Spent>);

impl Windows {
    fn new(limit: &Limit, deeds: &[Deed]) -> Self {
        let mut windows: BTreeMap<Window, Spent> = BTreeMap::new();
        for deed in deeds.iter().filter(|deed| deed.fate != Fate::Refused) {
            let lived: Vec<Window> = deed.windows(limit.period).collect();
            for window in &lived {
                windows.entry(*window).or_default().all.add(deed);
            }
            match *lived.as_slice() {
                [only] if deed.fate == Fate::Admitted => {
                    windows.entry(only).or_default().certain.add(deed);
                }
                [first, last] => {
                    windows.entry(first).or_default().after.add(deed);
                    windows.entry(last).or_default().before.add(deed);
                }
                _ => {}
            }
        }
        for spent in windows.values_mut() {
            let sums = [
                &mut spent.all,
                &mut spent.certain,
                &mut spent.before,
                &mut spent.after,
            ];
            sums.into_iter().for_each(Sums::sort);
        }
        Self(windows)
    }

    /// Gives each request that lives across a boundary to the earlier window as far as refusals
    /// there need it, and else to the later one. `needed` says how much has to be spent, and by
    /// when, for the refusals that lived in one window only.
    fn share_out(&mut self, needed: &BTreeMap<Window, Vec<(Truth, u64)>>) {
        let mut taken = 0;
        for (window, spent) in &mut self.0 {
            spent.taken = std::mem::take(&mut taken).min(spent.before.total());
            let needs = needed.get(window).into_iter().flatten();
            let from_after = needs.map(|(at, need)| {
                let others = spent.all.by(*at).saturating_sub(spent.after.by(*at));
                need.saturating_sub(others.saturating_sub(spent.taken))
            });
            let most = from_after.max().unwrap_or(0);
            taken = most.min(spent.after.total());
        }
    }

    /// At most so much was spent by this instant; less by what the window before needs, for
    /// refusals that can appeal to no other window.
    fn spent(&self, window: Window, at: Truth, is_only: bool) -> u64 {
        let Some(spent) = self.0.get(&window) else {
            return 0;
        };
        let taken = if is_only { spent.taken } else { 0 };
        spent.all.by(at).saturating_sub(taken)
    }

    /// So much was admitted to those who arrived later. What is beyond the limit is another crime.
    fn later(&self, window: Window, at: Truth, limit: Tokens) -> u64 {
        self.0.get(&window).map_or(0, |spent| {
            let certain = &spent.certain;
            let admitted = certain.total().min(limit.get());
            admitted.saturating_sub(certain.by(at))
        })
    }
}

/// Looks at every refusal. `dead` says how many tokens died with replicas in a window.
pub(super) fn find(limit: &Limit, deeds: &[Deed], dead: impl Fn(Window) -> u64) -> Suspects {
    let mut windows = Windows::new(limit, deeds);
    let refused = || deeds.iter().filter(|deed| deed.fate == Fate::Refused);
    let mut needed: BTreeMap<Window, Vec<(Truth, u64)>> = BTreeMap::new();
    for deed in refused() {
        let mut lived = deed.windows(limit.period);
        if let (Some(window), None) = (lived.next(), lived.next()) {
            let need = missing(limit.amount, 0, deed.cost).saturating_sub(dead(window));
            let all = needed.entry(window).or_default();
            all.push((deed.answered, need));
        }
    }
    windows.share_out(&needed);
    let mut suspects = Suspects::default();
    let mut lost: BTreeMap<Window, u64> = BTreeMap::new();
    for deed in refused() {
        let lived: Vec<Window> = deed.windows(limit.period).collect();
        let judged = lived.iter().map(|window| {
            let spent = windows.spent(*window, deed.answered, lived.len() == 1);
            let missing = missing(limit.amount, spent, deed.cost);
            let later = windows.later(*window, deed.answered, limit.amount);
            let regained = later.saturating_add(1).saturating_sub(judged(deed.cost));
            // What was admitted later had not died.
            let excess = missing.saturating_sub(dead(*window)).max(regained);
            (excess, missing, *window)
        });
        let Some((excess, missing, window)) = judged.min() else {
            continue;
        };
        if excess == 0 {
            let most = lost.entry(window).or_default();
            *most = missing.max(*most);
        } else {
            let (requests, most) = suspects.convicted.entry(window).or_default();
            *requests += 1;
            *most = excess.max(missing).max(*most);
        }
    }
    suspects.crash_lost = lost.values().sum();
    suspects
}

/// What has to be left for a cost.
fn judged(cost: Tokens) -> u64 {
    cost.max(Tokens::new(1)).get()
}

/// How many more tokens would have to be gone for the refusal to be honest.
fn missing(limit: Tokens, spent: u64, cost: Tokens) -> u64 {
    let left = limit.get().saturating_sub(spent);
    left.saturating_add(1).saturating_sub(judged(cost))
}
