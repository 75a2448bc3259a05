//! One suite for all stores: what [`Store`](super::Store) promises, case by case.
//!
//! A store joins by a [`Fixture`] and a line in [`suite!`]; its tests are then named
//! `conformance::STORE::CASE`.

mod cases;

use super::{
    Batch, Candidate, Change, Election, Epoch, Record, Store, embedded as folder, memory as ram,
};

/// A place where a store's content outlives the process that uses it.
trait Fixture {
    /// The store.
    type Store: Store;
    /// A fresh, empty place.
    fn new() -> Self;
    /// A process starts on it. The processes before it have ended.
    async fn open(&mut self) -> Self::Store;
    /// The next append has an unknown outcome: written or not as said. The process that sees it
    /// may have to be started anew.
    fn unknown_next(&self, store: &Self::Store, written: bool);
    /// The next append fails without effect.
    fn not_written_next(&self, store: &Self::Store);
}

macro_rules! suite {
    ($($store:ident: $fixture:ty),+ ; $cases:tt) => {
        $(mod $store { suite!(@ $fixture; $cases); })+
    };
    (@ $fixture:ty; [$($case:ident),+ $(,)?]) => {
        $(#[tokio::test]
        async fn $case() {
            let fixture = <$fixture as super::Fixture>::new();
            super::cases::$case(fixture).await;
        })+
    };
}

suite! {
    embedded: super::EmbeddedFixture, memory: super::MemoryFixture;
    [
        empty,
        puts_and_deletes_outlive_a_restart,
        a_batch_is_atomic_and_its_last_change_of_a_key_counts,
        the_same_batch_again_changes_nothing,
        epochs_rise_over_restarts,
        a_wrong_epoch_is_fenced,
        of_two_leaders_only_the_later_one_writes,
        another_candidate_waits_until_the_leader_resigns,
        concurrent_appends_are_all_durable,
        an_append_sent_after_an_ok_is_applied_after_it,
        a_failed_append_changes_nothing_and_may_be_retried,
        an_unknown_outcome_is_all_or_nothing,
        large_values,
        ten_thousand_keys,
    ]
}

struct MemoryFixture(ram::MemoryStore);

impl Fixture for MemoryFixture {
    type Store = ram::MemoryStore;

    fn new() -> Self {
        Self(ram::MemoryStore::new(None))
    }

    async fn open(&mut self) -> Self::Store {
        // A process that ended does not hold the leadership of a store without leases.
        self.0.forget_leader();
        self.0.clone()
    }

    fn unknown_next(&self, store: &Self::Store, written: bool) {
        let outcome = if written {
            ram::Outcome::WrittenUnknown
        } else {
            ram::Outcome::LostUnknown
        };
        store.inject(ram::Fault {
            hold: None,
            outcome,
        });
    }

    fn not_written_next(&self, store: &Self::Store) {
        store.inject(ram::Fault {
            hold: None,
            outcome: ram::Outcome::NotWritten,
        });
    }
}

struct EmbeddedFixture(tempfile::TempDir);

impl Fixture for EmbeddedFixture {
    type Store = folder::EmbeddedStore;

    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    async fn open(&mut self) -> Self::Store {
        folder::EmbeddedStore::open(self.0.path(), folder::Options::default()).unwrap()
    }

    fn unknown_next(&self, store: &Self::Store, written: bool) {
        use folder::DiskFault;
        store.fail_next(if written {
            DiskFault::AfterWrite
        } else {
            DiskFault::BeforeWriteStuck
        });
    }

    fn not_written_next(&self, store: &Self::Store) {
        store.fail_next(folder::DiskFault::BeforeWrite);
    }
}

fn candidate(id: u128) -> Candidate {
    Candidate {
        id,
        address: format!("replica-{id}:8081"),
    }
}

async fn lead(store: &impl Store, id: u128) -> Epoch {
    match store.lead(&candidate(id)).await.unwrap() {
        Election::Won(leadership) => leadership.epoch,
        Election::Lost { leader, .. } => panic!("{leader} leads"),
    }
}

async fn load(store: &impl Store, epoch: Epoch) -> Vec<Record> {
    let mut records = store.load(epoch).await.unwrap();
    records.sort();
    records
}

fn put(key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Change {
    Change {
        key: key.as_ref().to_vec(),
        value: Some(value.as_ref().to_vec()),
    }
}

fn delete(key: impl AsRef<[u8]>) -> Change {
    Change {
        key: key.as_ref().to_vec(),
        value: None,
    }
}

fn batch(changes: impl IntoIterator<Item = Change>) -> Batch {
    let mut batch = Batch::default();
    for change in changes {
        batch.add(change).unwrap();
    }
    batch
}

fn records(pairs: &[(&str, &str)]) -> Vec<Record> {
    let record = |(key, value): &(&str, &str)| Record {
        key: key.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
    };
    pairs.iter().map(record).collect()
}
