//! Folds a snapshot and the logs after it into a new snapshot, beside the running writer.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use super::{
    OpenError,
    frame::{Builder, Entry},
    replay::{Chain, Contents, Part},
};
use crate::store::Record;

/// After this many bytes a new snapshot is synced, so that the writer's own syncs never wait for
/// much of it.
const SYNC_BYTES: usize = 8 * 1024 * 1024;

/// Reads a chain into memory: one record a key.
pub(super) fn records(chain: &Chain) -> Result<(Vec<Record>, Contents), OpenError> {
    // A snapshot has each key once, so only the log's changes need to be found by key. That makes
    // a start with a million keys a matter of copying them.
    let mut records = Vec::new();
    let mut later = HashMap::<Vec<u8>, Option<Vec<u8>>>::new();
    let contents = chain.replay(|part, key, value| match (part, value) {
        (Part::Snapshot, Some(value)) => {
            records.push(Record {
                key: key.to_vec(),
                value: value.to_vec(),
            });
        }
        (Part::Snapshot, None) => {}
        (Part::Log, value) => drop(later.insert(key.to_vec(), value.map(<[u8]>::to_vec))),
    })?;
    records.retain_mut(|record| match later.remove(&record.key) {
        Some(Some(value)) => {
            record.value = value;
            true
        }
        Some(None) => false,
        None => true,
    });
    let added = later
        .into_iter()
        .filter_map(|(key, value)| Some(Record { key, value: value? }));
    records.extend(added);
    Ok((records, contents))
}

/// A snapshot being written by its own thread.
#[derive(Debug)]
pub(super) struct Compaction {
    thread: JoinHandle<()>,
    cancelled: Arc<AtomicBool>,
}

/// What to fold into what.
#[derive(Debug)]
pub(super) struct Job {
    /// Files that no longer change.
    pub(super) chain: Chain,
    /// The unfinished snapshot.
    pub(super) target: PathBuf,
    /// The snapshot is before this frame.
    pub(super) number: u64,
}

/// What came of a job.
#[derive(Debug)]
pub(super) struct Outcome {
    /// The job.
    pub(super) job: Job,
    /// Size of the snapshot, whole and synced, under its unfinished name.
    pub(super) result: Result<u64, String>,
}

impl Compaction {
    /// Starts the thread, which hands its outcome to `done`.
    pub(super) fn start(job: Job, done: impl FnOnce(Outcome) + Send + 'static) -> io::Result<Self> {
        let cancelled = Arc::new(AtomicBool::new(false));
        let cancel = Arc::clone(&cancelled);
        let thread = thread::Builder::new()
            .name("store-compact".into())
            .spawn(move || {
                let result = write_snapshot(&job, &cancel);
                done(Outcome { job, result });
            })?;
        Ok(Self { thread, cancelled })
    }

    /// Waits for the thread to end; `cancel` makes it end soon.
    pub(super) fn join(self, cancel: bool) {
        self.cancelled.fetch_or(cancel, Ordering::Relaxed);
        if self.thread.join().is_err() {
            tracing::error!("the store's compaction thread panicked");
        }
    }
}

fn write_snapshot(job: &Job, cancelled: &AtomicBool) -> Result<u64, String> {
    let (records, contents) = records(&job.chain).map_err(|error| error.to_string())?;
    if contents.next != job.number || contents.torn_bytes > 0 {
        return Err(format!(
            "the logs end at frame {} instead of {}",
            contents.next, job.number
        ));
    }
    let write = || -> io::Result<u64> {
        let mut file = File::create(&job.target)?;
        let (mut number, mut size, mut unsynced) = (1_u64, 0_u64, 0_usize);
        let mut put = |frame: Builder| -> io::Result<()> {
            let bytes = frame.finish(number);
            file.write_all(&bytes)?;
            number = number.saturating_add(1);
            size = size.saturating_add(bytes.len() as u64);
            unsynced = unsynced.saturating_add(bytes.len());
            if unsynced >= SYNC_BYTES {
                file.sync_data()?;
                unsynced = 0;
            }
            if cancelled.load(Ordering::Relaxed) {
                return Err(io::Error::other("the service stops"));
            }
            Ok(())
        };
        let mut frame = Builder::new(contents.epoch);
        for Record { key, value } in &records {
            frame.push(Entry::Change(key, Some(value)));
            if frame.is_full() {
                put(std::mem::replace(&mut frame, Builder::new(contents.epoch)))?;
            }
        }
        frame.push(Entry::End(records.len() as u64));
        put(frame)?;
        file.sync_all()?;
        Ok(size)
    };
    write().map_err(|error| format!("{}: {error}", job.target.display()))
}
