//! The bounded way into an engine.

use tokio::sync::mpsc;

use crate::metrics::EngineMetrics;

/// Hands commands to an engine; clones share the queue.
#[derive(Debug)]
pub struct Queue<C> {
    sender: mpsc::Sender<C>,
    metrics: EngineMetrics,
}

/// Why a command was not taken. It had no effect and comes back.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<C> {
    /// Too many wait: a moment later there may be room.
    Full(C),
    /// The engine has stopped or is about to.
    Stopped(C),
}

/// A queue that holds up to `length` commands.
pub fn queue<C>(length: usize, metrics: EngineMetrics) -> (Queue<C>, mpsc::Receiver<C>) {
    let (sender, receiver) = mpsc::channel(length.max(1));
    (Queue { sender, metrics }, receiver)
}

impl<C> Queue<C> {
    /// Queues a command; never waits. Full is counted in `headgate_engine_queue_full_total`.
    pub fn submit(&self, command: C) -> Result<(), Refused<C>> {
        self.sender.try_send(command).map_err(|error| match error {
            mpsc::error::TrySendError::Full(command) => {
                self.metrics.queue_full.inc();
                Refused::Full(command)
            }
            mpsc::error::TrySendError::Closed(command) => Refused::Stopped(command),
        })
    }
}

impl<C> Clone for Queue<C> {
    fn clone(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            metrics: self.metrics.clone(),
        }
    }
}
