//! A store in memory, for tests and the simulator: it keeps the whole contract of
//! [`Store`] except outliving the process, and fails on demand.
//!
//! Clones share their content, as processes on one store do.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::{Batch, Candidate, Election, Epoch, Leadership, Record, Store, StoreError};

/// What one append shall do.
#[derive(Clone, Debug, Default)]
pub struct Fault {
    /// First waits until this is notified.
    pub hold: Option<Arc<Notify>>,
    /// Then ends so.
    pub outcome: Outcome,
}

/// How an append ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    #[default]
    Normal,
    /// It writes nothing and says so.
    NotWritten,
    /// It writes, but its answer is lost.
    WrittenUnknown,
    /// It does not write, and its answer is lost.
    LostUnknown,
}

/// The store.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    lease: Option<Duration>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    epoch: Epoch,
    leader: Option<Leader>,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
    faults: VecDeque<Fault>,
    appended: u64,
}

#[derive(Debug)]
struct Leader {
    candidate: Candidate,
    until: Option<Instant>,
}

impl MemoryStore {
    /// An empty store whose leaderships last for `lease`, `None` for ever.
    pub fn new(lease: Option<Duration>) -> Self {
        Self {
            lease,
            state: Arc::default(),
        }
    }

    /// Lines a fault up; each append takes one.
    pub fn inject(&self, fault: Fault) {
        self.state().faults.push_back(fault);
    }

    /// Batches with changes that were written.
    pub fn appended(&self) -> u64 {
        self.state().appended
    }

    /// The value of a key, as the next leader would load it.
    pub fn get(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.state().records.get(key).cloned()
    }

    /// The leader's process ends without a word; what happens to its lease is as if it ran out.
    pub fn forget_leader(&self) {
        self.state().leader = None;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing panics while it holds the lock half way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn until(&self) -> Option<Instant> {
        self.lease
            .and_then(|lease| Instant::now().checked_add(lease))
    }

    fn write(&self, epoch: Epoch, batch: Batch, outcome: Outcome) -> Result<(), StoreError> {
        let mut state = self.state();
        state.check(epoch)?;
        match outcome {
            Outcome::NotWritten => return Err(StoreError::NotWritten("injected fault".into())),
            Outcome::LostUnknown => return Err(StoreError::Unknown("injected fault".into())),
            Outcome::Normal | Outcome::WrittenUnknown => {}
        }
        if !batch.is_empty() {
            state.appended = state.appended.saturating_add(1);
        }
        for (key, value) in batch {
            match value {
                Some(value) => state.records.insert(key, value),
                None => state.records.remove(&key),
            };
        }
        match outcome {
            Outcome::WrittenUnknown => Err(StoreError::Unknown("injected fault".into())),
            _ => Ok(()),
        }
    }
}

impl State {
    fn check(&self, epoch: Epoch) -> Result<(), StoreError> {
        if epoch == self.epoch {
            return Ok(());
        }
        Err(StoreError::Fenced {
            epoch,
            current: self.epoch,
        })
    }
}

impl Store for MemoryStore {
    async fn lead(&self, candidate: &Candidate) -> Result<Election, StoreError> {
        let mut state = self.state();
        let now = Instant::now();
        if let Some(Leader {
            candidate: leader,
            until,
        }) = &state.leader
            && leader.id != candidate.id
            && until.is_none_or(|until| now < until)
        {
            let retry_after = match until {
                Some(until) => until.saturating_duration_since(now),
                None => Duration::from_secs(1),
            };
            return Ok(Election::Lost {
                leader: leader.address.clone(),
                retry_after,
            });
        }
        state.epoch = Epoch::new(state.epoch.get().saturating_add(1));
        state.leader = Some(Leader {
            candidate: candidate.clone(),
            until: self.until(),
        });
        Ok(Election::Won(Leadership {
            epoch: state.epoch,
            lease: self.lease,
        }))
    }

    async fn load(&self, epoch: Epoch) -> Result<Vec<Record>, StoreError> {
        let state = self.state();
        state.check(epoch)?;
        let records = state.records.iter();
        Ok(records
            .map(|(key, value)| Record {
                key: key.clone(),
                value: value.clone(),
            })
            .collect())
    }

    async fn append(&self, epoch: Epoch, batch: Batch) -> Result<(), StoreError> {
        let fault = self.state().faults.pop_front().unwrap_or_default();
        if let Some(hold) = fault.hold {
            hold.notified().await;
        }
        self.write(epoch, batch, fault.outcome)
    }

    async fn renew(&self, epoch: Epoch) -> Result<Leadership, StoreError> {
        let until = self.until();
        let mut state = self.state();
        state.check(epoch)?;
        match &mut state.leader {
            Some(leader) => leader.until = until,
            None => {
                return Err(StoreError::Fenced {
                    epoch,
                    current: epoch,
                });
            }
        }
        Ok(Leadership {
            epoch,
            lease: self.lease,
        })
    }

    async fn resign(&self, epoch: Epoch) -> Result<(), StoreError> {
        let mut state = self.state();
        if state.epoch == epoch {
            state.leader = None;
        }
        Ok(())
    }
}
