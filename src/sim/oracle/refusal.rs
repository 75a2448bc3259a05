//! False refusals: was there an instant between arrival and answer at which less than the cost was
//! left?
//!
//! Within a window what is left only falls, so the last instant of the request's life in each
//! window that it touches is the best for the refusal; who arrives later than that instant lives in
//! no window before it. As much as possible is taken to be spent by then: every request that was
//! admitted and had arrived, and every one that nobody decided.

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

/// What may have been spent of one window, by arrival: sorted, with the sums so far.
#[derive(Debug, Default)]
struct Spent(Vec<(Truth, u64)>);

impl Spent {
    fn sort(&mut self) {
        self.0.sort_by_key(|(at, _)| *at);
        let mut sum = 0_u64;
        for (_, cost) in &mut self.0 {
            sum = sum.saturating_add(*cost);
            *cost = sum;
        }
    }

    /// By those who had arrived at this instant.
    fn by(&self, at: Truth) -> u64 {
        let count = self.0.partition_point(|(arrived, _)| *arrived <= at);
        let last = count.checked_sub(1).and_then(|last| self.0.get(last));
        last.map_or(0, |(_, sum)| *sum)
    }
}

/// Looks at every refusal. `dead` says how many tokens died with replicas in a window.
pub(super) fn find(limit: &Limit, deeds: &[Deed], dead: impl Fn(Window) -> u64) -> Suspects {
    let mut windows: BTreeMap<Window, Spent> = BTreeMap::new();
    for deed in deeds.iter().filter(|deed| deed.fate != Fate::Refused) {
        for window in deed.windows(limit.period) {
            let spent = windows.entry(window).or_default();
            spent.0.push((deed.arrived, deed.cost.get()));
        }
    }
    windows.values_mut().for_each(Spent::sort);
    let mut suspects = Suspects::default();
    let mut lost: BTreeMap<Window, u64> = BTreeMap::new();
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Refused) {
        let needed = deed.windows(limit.period).map(|window| {
            let spent = windows
                .get(&window)
                .map_or(0, |spent| spent.by(deed.answered));
            (missing(limit.amount, spent, deed.cost), window)
        });
        let Some((missing, window)) = needed.min() else {
            continue;
        };
        if missing == 0 {
            continue;
        }
        if missing <= dead(window) {
            let most = lost.entry(window).or_default();
            *most = missing.max(*most);
        } else {
            let (requests, most) = suspects.convicted.entry(window).or_default();
            *requests += 1;
            *most = missing.max(*most);
        }
    }
    suspects.crash_lost = lost.values().sum();
    suspects
}

/// How many more tokens would have to be gone for the refusal to be honest.
fn missing(limit: Tokens, spent: u64, cost: Tokens) -> u64 {
    let judged = cost.max(Tokens::new(1)).get();
    let left = limit.get().saturating_sub(spent);
    left.saturating_add(1).saturating_sub(judged)
}
