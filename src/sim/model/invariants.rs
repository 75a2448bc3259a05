//! Invariants A to D of the protocol, over the owner and every replica's memory at once.

use std::collections::BTreeMap;

use headgate_core::key::KeyHash;
use headgate_core::owner::ledger::Ledger;
use headgate_core::owner::shard::Shard;
use headgate_core::replica::cell::Cell;
use headgate_core::replica::seat::SeatRecord;
use headgate_core::units::{Generation, ReplicaId, Tenancy};
use headgate_core::window::Window;

use super::machine::{Machine, replica_id};
use super::state::State;
use super::wrong::{Promise, Wrong};

/// The truth about one state.
#[derive(Debug, Default)]
pub(super) struct Look {
    /// The leader that it was seen with.
    epoch: u64,
    /// What is unused of each key, wherever it is.
    left: BTreeMap<KeyHash, (Window, u64)>,
}

impl Look {
    /// What is unused of a key in a window.
    pub(super) fn left(&self, key: KeyHash, window: Window) -> Option<u64> {
        let (at, left) = self.left.get(&key)?;
        (*at == window).then_some(*left)
    }

    /// Invariant D: what is left never grows.
    pub(super) fn check_after(&self, before: &Self) -> Result<(), Wrong> {
        if self.epoch != before.epoch {
            return Ok(());
        }
        for (key, (window, left)) in &self.left {
            let was = before.left(*key, *window);
            if was.is_some_and(|was| was < *left) {
                let what = format!("{key}: {left} left, after {was:?}");
                return Err(Wrong::new(Promise::ProofsStayTrue, what));
            }
        }
        Ok(())
    }
}

/// A replica's cells, and who it is.
struct Holdings {
    id: ReplicaId,
    cells: Vec<Cell>,
    seat: Option<SeatRecord>,
}

impl Machine {
    /// Checks a state; gives what is left in it.
    pub(super) fn look(&self, state: &State) -> Result<Look, Wrong> {
        let Some(owner) = state.owner.and_then(|owner| self.pools.owners.get(owner)) else {
            return Ok(Look::default());
        };
        let holdings: Vec<Holdings> = (0..state.replicas.len())
            .filter_map(|replica| self.holdings(state, replica))
            .collect();
        for held in &holdings {
            for cell in &held.cells {
                self.check_cell(state, &owner, held, cell)?;
            }
        }
        let mut look = Look {
            epoch: state.epoch,
            left: BTreeMap::new(),
        };
        for (key, known) in owner.keys() {
            let ledger = known.ledger();
            check_sum(*key, ledger)?;
            let used = true_use(*key, ledger, &owner, &holdings);
            let gone = u128::from(ledger.spent().get())
                .saturating_add(u128::from(ledger.dead().get()))
                .saturating_add(used);
            let left = u128::from(ledger.limit().get()).checked_sub(gone);
            let left = left
                .and_then(|left| u64::try_from(left).ok())
                .ok_or_else(|| {
                    let what = format!("{key}: {gone} are gone of {}", ledger.limit());
                    Wrong::new(Promise::LeasesAreKnown, what)
                })?;
            look.left.insert(*key, (ledger.window(), left));
        }
        self.add_unheard(&owner, &holdings, &mut look)?;
        self.check_proofs(state, &holdings, &look)?;
        Ok(look)
    }

    fn holdings(&self, state: &State, replica: usize) -> Option<Holdings> {
        let memory = &state.replicas.get(replica)?.memory;
        Some(Holdings {
            id: replica_id(replica),
            cells: memory.cells(&self.values),
            seat: self.seat_of(memory),
        })
    }

    /// Invariant B, for one cell.
    fn check_cell(
        &self,
        state: &State,
        owner: &Shard,
        held: &Holdings,
        cell: &Cell,
    ) -> Result<(), Wrong> {
        let wrong = |how: &str| {
            let what = format!("{how}: replica {} has {cell:?}", held.id);
            Err(Wrong::new(Promise::LeasesAreKnown, what))
        };
        if !cell.is_sound() {
            return wrong("U + R is more than G");
        }
        let ledger = owner.keys().get(&cell.key).map(|key| key.ledger());
        if ledger.is_some_and(|ledger| ledger.window() != cell.window) {
            return Ok(());
        }
        let tenancy = owner.members().find(held.id, cell.tenant.incarnation);
        let known = ledger
            .zip(tenancy)
            .and_then(|(ledger, tenancy)| ledger.holders().get(&tenancy));
        let granted = cell.amounts.granted;
        match known {
            Some(known) if cell.amounts.generation < known.generation => {
                wrong("the owner knows a later generation")
            }
            Some(known) if granted > known.granted => wrong("the owner knows of less"),
            Some(known)
                if cell.amounts.generation == known.generation
                    && cell.amounts.used < known.used =>
            {
                wrong("the owner knows of more that is used")
            }
            Some(_) => Ok(()),
            None if ledger.is_none() && self.is_standing(cell) => Ok(()),
            None if self.can_spend(state, held, cell) => wrong("the owner knows of nothing"),
            None => Ok(()),
        }
    }

    /// Tokens of a rule's limit that stand: half of it, by the protocol's section 10.
    fn standing(&self, key: KeyHash) -> u64 {
        let rule = self.keys.iter().position(|other| *other == key);
        let limit = rule.and_then(|rule| self.model.limits.get(rule));
        let limit = limit.filter(|_| self.model.has_standing());
        limit.map_or(0, |limit| limit.amount / 2)
    }

    /// Whether a cell may hold so much although the owner has not heard of its key: at most one
    /// seat's share, as it was when the window began.
    fn is_standing(&self, cell: &Cell) -> bool {
        let seats = u64::try_from(self.model.workers.len()).unwrap_or(1).max(1);
        let share = self.standing(cell.key).div_ceil(seats);
        cell.amounts.generation == Generation::default() && cell.amounts.granted.get() <= share
    }

    /// What is left of keys that the owner has not heard of: their standing shares can be used.
    fn add_unheard(
        &self,
        owner: &Shard,
        holdings: &[Holdings],
        look: &mut Look,
    ) -> Result<(), Wrong> {
        for (key, limit) in self.keys.iter().zip(&self.model.limits) {
            let cells = holdings.iter().flat_map(|held| &held.cells);
            let cells: Vec<&Cell> = cells.filter(|cell| cell.key == *key).collect();
            let Some(window) = cells.iter().map(|cell| cell.window).max() else {
                continue;
            };
            if owner.keys().contains_key(key) {
                continue;
            }
            let cells = cells.iter().filter(|cell| cell.window == window);
            let amounts = cells.map(|cell| (cell.amounts.granted.get(), cell.amounts.used.get()));
            let (granted, used) = amounts.fold((0_u64, 0_u64), |sum, one| {
                (sum.0.saturating_add(one.0), sum.1.saturating_add(one.1))
            });
            let standing = self.standing(*key);
            if granted > standing {
                let what = format!("{key}: {granted} held, {standing} stand");
                return Err(Wrong::new(Promise::LeasesAreKnown, what));
            }
            let left = limit.amount.saturating_sub(used);
            look.left.insert(*key, (window, left));
        }
        Ok(())
    }

    /// Whether something can be spent from a cell.
    fn can_spend(&self, state: &State, held: &Holdings, cell: &Cell) -> bool {
        let replica = held.id.get().checked_sub(1);
        let replica = replica
            .and_then(|replica| usize::try_from(replica).ok())
            .unwrap_or(0);
        if state
            .replicas
            .get(replica)
            .is_some_and(|replica| replica.is_dead)
        {
            return false;
        }
        let now = self.local(state, replica);
        let alive = held.seat.is_some_and(|seat| {
            let same = seat.incarnation == cell.tenant.incarnation;
            same && seat.seated.is_some_and(|seated| seated.is_alive(now))
        });
        alive && cell.amounts.free().get() > 0
    }

    /// Invariant D, for every proof that is kept.
    fn check_proofs(&self, state: &State, holdings: &[Holdings], look: &Look) -> Result<(), Wrong> {
        for (replica, held) in holdings.iter().enumerate() {
            let now = self.local(state, replica);
            for cell in &held.cells {
                let proof = cell.total.filter(|proof| now < proof.until);
                let left = look.left(cell.key, cell.window);
                if proof
                    .zip(left)
                    .is_some_and(|(proof, left)| proof.left.get() < left)
                {
                    let what = format!("{left:?} left: replica {replica} has {cell:?}");
                    return Err(Wrong::new(Promise::ProofsStayTrue, what));
                }
            }
        }
        Ok(())
    }
}

/// Invariant A.
fn check_sum(key: KeyHash, ledger: &Ledger) -> Result<(), Wrong> {
    let granted = ledger.holders().values().map(|holder| holder.granted);
    let charged = ledger.provisional().values().map(|charge| charge.amount);
    let own = [ledger.pool(), ledger.spent(), ledger.dead()];
    let parts = granted.chain(charged).chain(own);
    let sum: u128 = parts.map(|part| u128::from(part.get())).sum();
    if sum == u128::from(ledger.limit().get()) {
        return Ok(());
    }
    Err(Wrong::new(
        Promise::EveryTokenOnce,
        format!("{key}: {ledger:?}"),
    ))
}

/// What those that the owner knows have really used.
fn true_use(key: KeyHash, ledger: &Ledger, owner: &Shard, holdings: &[Holdings]) -> u128 {
    let used = ledger.holders().iter().map(|(tenancy, holder)| {
        let used = used_by(key, ledger.window(), owner, (*tenancy, holdings));
        u128::from(used.unwrap_or(holder.used.get()))
    });
    used.sum()
}

fn used_by(
    key: KeyHash,
    window: Window,
    owner: &Shard,
    (tenancy, holdings): (Tenancy, &[Holdings]),
) -> Option<u64> {
    let member = owner.members().get(tenancy)?.stored;
    let held = holdings.iter().find(|held| held.id == member.replica)?;
    let cell = held.cells.iter().find(|cell| {
        cell.key == key && cell.window == window && cell.tenant.incarnation == member.incarnation
    })?;
    Some(cell.amounts.used.get())
}

impl Machine {
    /// What a tenancy has really used of a key.
    pub(super) fn truly_used(
        &self,
        state: &State,
        owner: &Shard,
        (key, tenancy): (KeyHash, Tenancy),
    ) -> Option<u64> {
        let holdings: Vec<Holdings> = (0..state.replicas.len())
            .filter_map(|replica| self.holdings(state, replica))
            .collect();
        let window = owner.keys().get(&key)?.ledger().window();
        used_by(key, window, owner, (tenancy, &holdings))
    }
}
