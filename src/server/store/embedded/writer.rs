//! The thread that owns the folder: takes calls in order, writes groups, starts compactions.

use std::{fs, path::Path};

use tokio::sync::{mpsc, oneshot};

use super::{
    OpenError, Options, QUEUE_CALLS,
    compact::{self, Compaction, Job},
    folder::Folder,
    frame::{Builder, Entry},
    log::{Log, WriteError},
    replay::Chain,
};
use crate::store::{Batch, Candidate, Election, Epoch, Leadership, Record, StoreError};

/// Where the outcome of a call goes.
pub(super) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// How long somebody who lost an election to a candidate of this process waits. It is never a
/// standby's case, since another process cannot open the folder.
const RETRY_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// What the writer does, in order.
#[derive(Debug)]
pub(super) enum Command {
    Lead {
        candidate: Candidate,
        reply: Reply<Election>,
    },
    Load {
        epoch: Epoch,
        reply: Reply<Vec<Record>>,
    },
    Append {
        epoch: Epoch,
        batch: Batch,
        reply: Reply<()>,
    },
    Renew {
        epoch: Epoch,
        reply: Reply<Leadership>,
    },
    Resign {
        epoch: Epoch,
        reply: Reply<()>,
    },
    Compacted(compact::Outcome),
}

/// Batches that become durable with one write and one sync.
#[derive(Debug, Default)]
struct Group {
    frame: Option<Builder>,
    replies: Vec<Reply<()>>,
}

/// The thread's state.
#[derive(Debug)]
pub(super) struct Writer {
    folder: Folder,
    options: Options,
    calls: mpsc::Receiver<Command>,
    /// For the compaction thread; weak, so that the queue closes with the store.
    myself: mpsc::WeakSender<Command>,
    chain: Chain,
    log: Log,
    /// Number of the next frame.
    next: u64,
    epoch: Epoch,
    leader: Option<Candidate>,
    /// Why no more can be written.
    broken: Option<String>,
    compaction: Option<Compaction>,
    snapshot_bytes: u64,
    log_bytes: u64,
    /// Size of the logs at which the next compaction starts.
    compact_at: u64,
}

impl Writer {
    /// Opens the folder, checks all of it and cuts a torn frame off.
    pub(super) fn open(
        path: &Path,
        options: Options,
    ) -> Result<(Self, mpsc::Sender<Command>), OpenError> {
        let folder = Folder::open(path)?;
        let (mut chain, stale) = Chain::of(&folder, folder.files()?)?;
        let contents = chain.replay(|_, _, _| {})?;
        if chain.logs.is_empty() {
            chain.logs.push((contents.next, folder.log(contents.next)));
        }
        let log_path = chain
            .logs
            .last()
            .map_or_else(|| folder.log(1), |(_, path)| path.clone());
        if contents.torn_bytes > 0 {
            tracing::warn!(
                path = %log_path.display(),
                dropped_bytes = contents.torn_bytes,
                kept_bytes = contents.last_log_bytes,
                kept_frames = contents.next.saturating_sub(1),
                "dropped a last write that a crash had cut off; everything before it is intact"
            );
            options.metrics.dropped_bytes.inc_by(contents.torn_bytes);
        }
        let log = Log::open(&log_path, contents.last_log_bytes)
            .map_err(|error| OpenError::io(&log_path, error))?;
        for path in stale {
            fs::remove_file(&path).map_err(|error| OpenError::io(&path, error))?;
        }
        folder.sync().map_err(|error| OpenError::io(path, error))?;

        let (sender, calls) = mpsc::channel(QUEUE_CALLS);
        let mut writer = Self {
            folder,
            calls,
            myself: sender.downgrade(),
            chain,
            log,
            next: contents.next,
            epoch: contents.epoch,
            leader: None,
            broken: None,
            compaction: None,
            snapshot_bytes: contents.snapshot_bytes,
            log_bytes: contents.log_bytes,
            compact_at: 0,
            options,
        };
        writer.sizes_changed();
        Ok((writer, sender))
    }

    #[cfg(test)]
    pub(super) fn fault_cell(&self) -> super::log::FaultCell {
        self.log.fault_cell()
    }

    /// Serves calls until the queue is closed and empty.
    pub(super) fn run(mut self) {
        while let Some(command) = self.calls.blocking_recv() {
            let mut group = Group::default();
            self.take(command, &mut group);
            // What waited while the last group was synced goes into this one.
            while !group.frame.as_ref().is_some_and(Builder::is_full)
                && let Ok(command) = self.calls.try_recv()
            {
                self.take(command, &mut group);
            }
            // Not before the first batch: a leader that starts is in a hurry to load.
            let wrote = group.frame.is_some();
            self.write(group);
            if wrote {
                self.compact_if_due();
            }
        }
        if let Some(compaction) = self.compaction.take() {
            compaction.join(true);
        }
    }

    fn take(&mut self, command: Command, group: &mut Group) {
        if let Command::Append {
            epoch,
            batch,
            reply,
        } = command
        {
            return match self.check(epoch) {
                Ok(()) => group.add(epoch, &batch, reply),
                Err(error) => answer(reply, Err(error)),
            };
        }
        // Everything else sees the appends before it as done.
        self.write(std::mem::take(group));
        match command {
            Command::Append { .. } => {}
            Command::Lead { candidate, reply } => answer(reply, self.lead(candidate)),
            Command::Load { epoch, reply } => answer(reply, self.load(epoch)),
            Command::Renew { epoch, reply } => answer(reply, self.renew(epoch)),
            Command::Resign { epoch, reply } => {
                if epoch == self.epoch {
                    self.leader = None;
                }
                answer(reply, Ok(()));
            }
            Command::Compacted(outcome) => self.compacted(outcome),
        }
    }

    fn check(&self, epoch: Epoch) -> Result<(), StoreError> {
        if epoch == self.epoch {
            return Ok(());
        }
        Err(StoreError::Fenced {
            epoch,
            current: self.epoch,
        })
    }

    fn lead(&mut self, candidate: Candidate) -> Result<Election, StoreError> {
        if let Some(leader) = &self.leader
            && leader.id != candidate.id
        {
            let leader = leader.address.clone();
            return Ok(Election::Lost {
                leader,
                retry_after: RETRY_AFTER,
            });
        }
        let epoch = Epoch::new(self.epoch.get().saturating_add(1));
        // The epoch must outlive a crash, or the next leader would take the same.
        self.append(Builder::new(epoch))?;
        self.epoch = epoch;
        self.leader = Some(candidate);
        Ok(Election::Won(Leadership { epoch, lease: None }))
    }

    fn load(&self, epoch: Epoch) -> Result<Vec<Record>, StoreError> {
        self.check(epoch)?;
        let (records, contents) = compact::records(&self.chain).map_err(|error| match error {
            OpenError::Damaged { .. } => StoreError::Damaged(error.to_string()),
            _ => StoreError::NotWritten(error.to_string()),
        })?;
        if contents.next != self.next {
            let what = format!(
                "it ends at frame {} instead of {}",
                contents.next, self.next
            );
            return Err(StoreError::Damaged(what));
        }
        Ok(records)
    }

    fn renew(&self, epoch: Epoch) -> Result<Leadership, StoreError> {
        self.check(epoch)?;
        match &self.leader {
            Some(_) => Ok(Leadership { epoch, lease: None }),
            None => Err(StoreError::Fenced {
                epoch,
                current: self.epoch,
            }),
        }
    }

    fn write(&mut self, group: Group) {
        let result = group.frame.map_or(Ok(()), |frame| self.append(frame));
        self.options
            .metrics
            .batches
            .inc_by(group.replies.len() as u64);
        for reply in group.replies {
            answer(reply, result.clone());
        }
    }

    fn append(&mut self, frame: Builder) -> Result<(), StoreError> {
        if let Some(reason) = &self.broken {
            let sentence = format!("an earlier write failed ({reason}); only a restart helps");
            return Err(StoreError::Damaged(sentence));
        }
        let bytes = frame.finish(self.next);
        let started = std::time::Instant::now();
        let result = self.log.append(&bytes);
        self.options
            .metrics
            .write_seconds
            .observe(started.elapsed().as_secs_f64());
        match result {
            Ok(()) => {
                self.next = self.next.saturating_add(1);
                self.log_bytes = self.log_bytes.saturating_add(bytes.len() as u64);
                self.options
                    .metrics
                    .written_bytes
                    .inc_by(bytes.len() as u64);
                self.show_size();
                Ok(())
            }
            Err(WriteError::NotWritten(error)) => Err(StoreError::NotWritten(error.to_string())),
            Err(WriteError::Unknown(error)) => {
                self.broken = Some(error.to_string());
                Err(StoreError::Unknown(error.to_string()))
            }
        }
    }

    fn compact_if_due(&mut self) {
        if self.compaction.is_some() || self.broken.is_some() || self.log_bytes < self.compact_at {
            return;
        }
        if let Err(error) = self.start_compaction() {
            self.compaction_failed(&error.to_string());
        }
    }

    /// The present log is closed and a new one begun, so that the compaction reads files that no
    /// longer change.
    fn start_compaction(&mut self) -> std::io::Result<()> {
        let path = self.folder.log(self.next);
        let log = Log::open(&path, 0)?;
        self.folder.sync()?;
        #[cfg(test)]
        let log = log.with_faults(self.log.fault_cell());
        let closed = self.chain.clone();
        self.log = log;
        self.chain.logs.push((self.next, path));
        let job = Job {
            chain: closed,
            target: self.folder.unfinished_snapshot(self.next),
            number: self.next,
        };
        let writer = self.myself.clone();
        self.compaction = Some(Compaction::start(job, move |outcome| {
            // A store that was closed meanwhile does without: the next start removes the file.
            if let Some(writer) = writer.upgrade() {
                drop(writer.blocking_send(Command::Compacted(outcome)));
            }
        })?);
        Ok(())
    }

    fn compacted(&mut self, outcome: compact::Outcome) {
        if let Some(compaction) = self.compaction.take() {
            compaction.join(false);
        }
        let job = outcome.job;
        let finished = outcome.result.and_then(|size| {
            let path = self.folder.snapshot(job.number);
            let done = fs::rename(&job.target, &path).and_then(|()| self.folder.sync());
            done.map(|()| (path, size))
                .map_err(|error| error.to_string())
        });
        let (path, size) = match finished {
            Ok(finished) => finished,
            Err(error) => {
                drop(fs::remove_file(&job.target));
                return self.compaction_failed(&error);
            }
        };
        self.chain.snapshot = Some((job.number, path));
        self.chain.logs.retain(|(number, _)| *number >= job.number);
        for (_, old) in job.chain.logs.iter().chain(&job.chain.snapshot) {
            if let Err(error) = fs::remove_file(old) {
                tracing::warn!(path = %old.display(), %error, "cannot remove an old file");
            }
        }
        self.snapshot_bytes = size;
        self.log_bytes = self.chain.logs.iter().fold(0, |sum: u64, (_, path)| {
            sum.saturating_add(fs::metadata(path).map_or(0, |metadata| metadata.len()))
        });
        self.options.metrics.compactions.inc();
        tracing::debug!(bytes = size, frame = job.number, "wrote a snapshot");
        self.sizes_changed();
    }

    fn compaction_failed(&mut self, error: &str) {
        tracing::warn!(%error, "cannot write a snapshot; the log goes on and grows meanwhile");
        self.options.metrics.compaction_failures.inc();
        self.compact_at = self.log_bytes.saturating_add(self.options.compact_at_bytes);
    }

    fn sizes_changed(&mut self) {
        self.compact_at = self.options.compact_at_bytes.max(self.snapshot_bytes);
        self.show_size();
    }

    fn show_size(&self) {
        let bytes = self.snapshot_bytes.saturating_add(self.log_bytes);
        self.options
            .metrics
            .disk_bytes
            .set(i64::try_from(bytes).unwrap_or(i64::MAX));
    }
}

impl Group {
    fn add(&mut self, epoch: Epoch, batch: &Batch, reply: Reply<()>) {
        if !batch.is_empty() {
            let frame = self.frame.get_or_insert_with(|| Builder::new(epoch));
            for (key, value) in batch.changes() {
                frame.push(Entry::Change(key, value));
            }
        }
        self.replies.push(reply);
    }
}

/// A caller that is gone does not want to know.
fn answer<T>(reply: Reply<T>, result: Result<T, StoreError>) {
    drop(reply.send(result));
}
