//! Admitted beyond the limit: is there a placement of all admitted requests, each in a window that
//! it lives in, that fills no window beyond its limit?
//!
//! Windows are filled in the order of time. Those that live in no later one come first; of the
//! others as many tokens as fit, because what is left over weighs on the next window only by its
//! sum. For requests that live in two windows at most (periods are longer than deadlines) this
//! finds a placement if there is one.

use std::collections::BTreeMap;

use headgate_core::units::ServiceTime;
use headgate_core::window::Window;

use super::{Deed, Fate, Limit};

/// One request that may be placed in this window or later, up to the window that begins then.
#[derive(Clone, Copy, Debug)]
struct Movable {
    last: ServiceTime,
    cost: u64,
}

#[derive(Debug, Default)]
struct Arrived {
    fixed: u64,
    movable: Vec<Movable>,
}

/// The windows that are beyond their limit in every placement, and by how much.
pub(super) fn find(limit: &Limit, deeds: &[Deed]) -> Vec<(Window, u64)> {
    let mut windows: BTreeMap<ServiceTime, Arrived> = BTreeMap::new();
    for deed in deeds.iter().filter(|deed| deed.fate == Fate::Admitted) {
        let first = limit.period.window_at(deed.from).start();
        let last = limit.period.window_at(deed.to).start();
        let cost = deed.cost.get();
        let arrived = windows.entry(first).or_default();
        if first == last {
            arrived.fixed = arrived.fixed.saturating_add(cost);
        } else {
            arrived.movable.push(Movable { last, cost });
        }
    }
    let mut found = Vec::new();
    let mut left: Vec<Movable> = Vec::new();
    let mut next: Option<ServiceTime> = None;
    while let Some(start) = next.take().or_else(|| windows.keys().next().copied()) {
        let window = limit.period.window_at(start);
        let mut arrived = windows.remove(&start).unwrap_or_default();
        arrived.movable.append(&mut left);
        let (now, later): (Vec<_>, Vec<_>) = arrived
            .movable
            .into_iter()
            .partition(|one| one.last <= start);
        let must = now
            .iter()
            .fold(arrived.fixed, |sum, one| sum.saturating_add(one.cost));
        let amount = limit.amount.get();
        if must > amount {
            found.push((window, must.saturating_sub(amount)));
        }
        left = without_best(later, amount.saturating_sub(must));
        if !left.is_empty() {
            next = Some(window.end());
        }
    }
    found
}

/// Places as many tokens as fit into the room; gives the requests that are left over.
fn without_best(mut movable: Vec<Movable>, room: u64) -> Vec<Movable> {
    // Those that cannot go far first, should there be a choice.
    movable.sort_by_key(|one| one.last);
    let total: u64 = movable.iter().map(|one| one.cost).sum();
    if total <= room {
        return Vec::new();
    }
    // Which sums can be reached, and by which request last; each request once.
    let mut reached: BTreeMap<u64, Option<(usize, u64)>> = BTreeMap::from([(0, None)]);
    for (index, one) in movable.iter().enumerate() {
        let sums: Vec<u64> = reached.keys().copied().collect();
        for sum in sums.into_iter().rev() {
            let larger = sum.saturating_add(one.cost);
            if larger <= room {
                reached.entry(larger).or_insert(Some((index, sum)));
            }
        }
    }
    let mut placed = vec![false; movable.len()];
    let mut sum = reached.keys().next_back().copied().unwrap_or(0);
    while let Some(Some((index, before))) = reached.get(&sum) {
        if let Some(place) = placed.get_mut(*index) {
            *place = true;
        }
        sum = *before;
    }
    let kept = movable.into_iter().zip(placed);
    kept.filter(|(_, placed)| !placed)
        .map(|(one, _)| one)
        .collect()
}
