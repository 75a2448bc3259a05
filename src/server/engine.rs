//! Runs a shard: one task that applies commands one after the other, makes what they changed
//! durable in groups, and lets their effects out afterwards.
//!
//! ```text
//!            queue             apply             append               release
//!  callers ---------> commands -----> next group -----> write under way -----> effects
//! ```
//! While a write is under way, commands go on being applied and gather in the next group, so the
//! slower the store, the larger the groups.
//!
//! **Invariant**: an effect is released only when every change that was made before it, by its own
//! command and by all earlier ones, is durable, and only inside the leadership lease. When that
//! cannot be known the engine ends with an error and releases nothing more: the state in memory
//! may never have happened.

mod queue;
mod tenure;

use std::{collections::VecDeque, future::Future, pin::Pin, slice, sync::Arc, time::Duration};

use headgate_core::units::{Epoch, LocalTime};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};

pub use self::{
    queue::{Queue, Refused, queue},
    tenure::{Tenure, elect},
};
use crate::{
    clock::Monotonic,
    metrics::EngineMetrics,
    store::{Batch, Change, Full, Store, StoreError},
};

/// Commands that are applied before the engine looks at its write, its clock and its lease again:
/// some hundred microseconds of work.
const COMMANDS_AT_ONCE: usize = 256;

/// Commands that wait for one write at most: bounds the replies held back while a store hangs. At
/// 100 writes a second this is still 400,000 commands a second.
const COMMANDS_A_GROUP: usize = 4096;

/// How long a write that fails without effect is repeated. After as long as a seat lives unheard,
/// every replica has to register again anyway, so a restart costs nothing more.
const WRITE_PATIENCE: Duration = Duration::from_secs(5);

/// Wait before the first repetition of a write; it doubles up to [`WRITE_PAUSE_MAX`].
const WRITE_PAUSE: Duration = Duration::from_millis(10);

/// Longest wait between two repetitions: a store that is back is noticed within this.
const WRITE_PAUSE_MAX: Duration = Duration::from_millis(320);

/// A pure state machine over records: no clock, no input or output of its own.
pub trait Shard: Send + 'static {
    /// What callers ask for.
    type Command: Send + 'static;
    /// What must not leave before it is durable: an answer with the way to its caller.
    type Effect: Send + 'static;

    /// Applies one command. Its changes become durable together; if they are more than one
    /// [`Batch`] takes, in several writes in their order, of which a crash may keep the first ones.
    /// Its effects wait for all of them.
    fn apply(&mut self, now: LocalTime, command: Self::Command, step: &mut Step<Self::Effect>);

    /// When [`wake`](Self::wake) is due; `None` if nothing waits for time to pass.
    fn next_wakeup(&self) -> Option<LocalTime>;

    /// Does what is due. Called at [`next_wakeup`](Self::next_wakeup) or later.
    fn wake(&mut self, now: LocalTime, step: &mut Step<Self::Effect>);

    /// The service stops: answers everything that waits. Nothing is applied afterwards.
    fn stop(&mut self, now: LocalTime, step: &mut Step<Self::Effect>);

    /// Lets an effect out. Must not block.
    fn release(effect: Self::Effect);
}

/// What one call of a [`Shard`] brought about.
#[derive(Debug)]
pub struct Step<E> {
    /// Records as they shall be, each whole.
    pub changes: Vec<Change>,
    /// For callers, once the changes are durable; also those of earlier commands.
    pub effects: Vec<E>,
}

impl<E> Default for Step<E> {
    fn default() -> Self {
        Self {
            changes: Vec::new(),
            effects: Vec::new(),
        }
    }
}

/// Why an engine ended other than by being stopped.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store refused, or cannot say what it did.
    #[error("{0}; stopping, so that nothing is answered that may not be durable")]
    Store(#[from] StoreError),
    /// The leadership could not be renewed in time.
    #[error(
        "the leadership lease of epoch {epoch} is over, not renewed in time; stopping, since \
         another service may lead by now"
    )]
    LeaseOver {
        /// The epoch.
        epoch: Epoch,
    },
    /// A record beyond the bounds of the store: a bound of the shard's is wrong.
    #[error("{0}; stopping, since the change cannot be made durable")]
    TooLarge(Full),
}

/// Changes that become durable together, and the effects that wait for them.
struct Group<E> {
    batch: Batch,
    effects: Vec<E>,
    commands: usize,
}

impl<E> Default for Group<E> {
    fn default() -> Self {
        Self {
            batch: Batch::default(),
            effects: Vec::new(),
            commands: 0,
        }
    }
}

/// A write under way with the effects that it holds back.
struct Write<E> {
    done: Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send>>,
    effects: Vec<E>,
}

/// The engine of one shard.
#[allow(
    missing_debug_implementations,
    reason = "it holds futures; it lives in one task"
)]
pub struct Engine<S: Shard, T: Store> {
    shard: S,
    store: Arc<T>,
    tenure: Tenure,
    clock: Monotonic,
    metrics: EngineMetrics,
    commands: mpsc::Receiver<S::Command>,
    write: Option<Write<S::Effect>>,
    /// What was applied since the write under way began, oldest first; all but the last are full.
    groups: VecDeque<Group<S::Effect>>,
}

impl<S: Shard, T: Store> Engine<S, T> {
    /// An engine for a shard that was made of the records loaded in this tenure.
    pub fn new(
        shard: S,
        store: Arc<T>,
        tenure: Tenure,
        commands: mpsc::Receiver<S::Command>,
        clock: Monotonic,
        metrics: EngineMetrics,
    ) -> Self {
        metrics
            .epoch
            .set(i64::try_from(tenure.epoch().get()).unwrap_or(i64::MAX));
        let (write, groups) = (None, VecDeque::new());
        Self {
            shard,
            store,
            tenure,
            clock,
            metrics,
            commands,
            write,
            groups,
        }
    }

    /// Runs until `stop` is fired (or its sender dropped): then refuses new commands, applies
    /// those that wait, lets the shard answer the rest, writes everything and resigns.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) -> Result<(), EngineError> {
        let result = self.serve(&mut stop).await;
        self.metrics.epoch.set(0);
        result?;
        // Whoever leads next only waits a little longer if this fails.
        if let Err(error) = self.store.resign(self.tenure.epoch()).await {
            tracing::warn!(%error, "could not give the leadership up");
        }
        Ok(())
    }

    async fn serve(&mut self, stop: &mut oneshot::Receiver<()>) -> Result<(), EngineError> {
        let mut waiting = Vec::with_capacity(COMMANDS_AT_ONCE);
        let (mut stopping, mut stopped) = (false, false);
        let mut renewal = Box::pin(self.tenure.clone().keep(Arc::clone(&self.store)));
        loop {
            self.advance()?;
            if stopped && self.write.is_none() {
                return Ok(());
            }
            let wakeup = self
                .shard
                .next_wakeup()
                .and_then(|time| self.clock.instant(time));
            let has_room = self.has_room();
            tokio::select! {
                biased;
                result = written(&mut self.write) => {
                    let effects = self.write.take().map(|write| write.effects);
                    result?;
                    self.release(effects.unwrap_or_default())?;
                }
                error = &mut renewal => return Err(error.into()),
                _ = &mut *stop, if !stopping => {
                    stopping = true;
                    self.commands.close();
                }
                () = at(wakeup), if !stopped => {
                    let now = self.clock.now();
                    self.step(|shard, step| shard.wake(now, step))?;
                }
                count = self.commands.recv_many(&mut waiting, COMMANDS_AT_ONCE),
                    if has_room && !stopped =>
                {
                    if count == 0 {
                        let now = self.clock.now();
                        self.step(|shard, step| shard.stop(now, step))?;
                        stopped = true;
                    }
                    self.apply(&mut waiting)?;
                }
            }
        }
    }

    fn apply(&mut self, waiting: &mut Vec<S::Command>) -> Result<(), EngineError> {
        self.metrics
            .queue_length
            .set(i64::try_from(self.commands.len()).unwrap_or(i64::MAX));
        self.metrics.commands.inc_by(waiting.len() as u64);
        let now = self.clock.now();
        for command in waiting.drain(..) {
            self.step(|shard, step| shard.apply(now, command, step))?;
        }
        if !self.has_room() {
            self.metrics.store_waits.inc();
        }
        Ok(())
    }

    /// Commands may be applied: what they change has a place.
    fn has_room(&self) -> bool {
        self.groups.len() <= 1
            && self
                .groups
                .back()
                .is_none_or(|group| group.commands < COMMANDS_A_GROUP)
    }

    /// Lets the shard take one step and puts what came of it into the last group.
    fn step(&mut self, take: impl FnOnce(&mut S, &mut Step<S::Effect>)) -> Result<(), EngineError> {
        let mut step = Step::default();
        take(&mut self.shard, &mut step);
        let fits = |groups: &VecDeque<Group<S::Effect>>, changes: &[Change]| {
            groups
                .back()
                .is_some_and(|group| group.batch.has_room_for(changes))
        };
        if !fits(&self.groups, &step.changes) {
            self.groups.push_back(Group::default());
        }
        for change in step.changes {
            // Only a step that is larger than a batch goes on in another.
            if !fits(&self.groups, slice::from_ref(&change)) {
                self.groups.push_back(Group::default());
            }
            if let Some(group) = self.groups.back_mut() {
                group.batch.add(change).map_err(EngineError::TooLarge)?;
            }
        }
        if let Some(group) = self.groups.back_mut() {
            group.effects.append(&mut step.effects);
            group.commands = group.commands.saturating_add(1);
        }
        Ok(())
    }

    /// Starts the next write once there is none; effects that wait for none leave at once.
    fn advance(&mut self) -> Result<(), EngineError> {
        while self.write.is_none()
            && let Some(group) = self.groups.pop_front()
        {
            if group.batch.is_empty() {
                self.release(group.effects)?;
                continue;
            }
            self.metrics.writes.inc();
            self.metrics.changes.inc_by(group.batch.len() as u64);
            let (store, metrics) = (Arc::clone(&self.store), self.metrics.clone());
            let done = Box::pin(append(store, self.tenure.epoch(), group.batch, metrics));
            self.write = Some(Write {
                done,
                effects: group.effects,
            });
        }
        Ok(())
    }

    fn release(&self, effects: Vec<S::Effect>) -> Result<(), EngineError> {
        if !self.tenure.is_running() {
            return Err(EngineError::LeaseOver {
                epoch: self.tenure.epoch(),
            });
        }
        effects.into_iter().for_each(S::release);
        Ok(())
    }
}

/// Waits for the write under way; for ever if there is none.
async fn written<E>(write: &mut Option<Write<E>>) -> Result<(), StoreError> {
    match write {
        Some(write) => (&mut write.done).await,
        None => std::future::pending().await,
    }
}

/// Waits for a moment; for ever if there is none.
async fn at(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// Appends a batch, and repeats that while it certainly did not happen.
async fn append(
    store: Arc<impl Store>,
    epoch: Epoch,
    batch: Batch,
    metrics: EngineMetrics,
) -> Result<(), StoreError> {
    let started = Instant::now();
    let mut pause = WRITE_PAUSE;
    loop {
        let error = match store.append(epoch, batch.clone()).await {
            Ok(()) => break,
            Err(StoreError::NotWritten(error)) if started.elapsed() < WRITE_PATIENCE => error,
            Err(error) => return Err(error),
        };
        tracing::warn!(%error, retry_after = ?pause, "the store wrote nothing; trying again");
        metrics.write_retries.inc();
        sleep(pause).await;
        pause = pause.saturating_mul(2).min(WRITE_PAUSE_MAX);
    }
    metrics
        .write_seconds
        .observe(started.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests;
