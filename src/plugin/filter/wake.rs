//! How a request wakes its own worker's root: through a shared queue that only this root has.
//!
//! A call that a request sent itself would lose its answer, and the tokens in it, when the client
//! hangs up. Calls are sent by the root, and this is the way there, within 50 to 200 microseconds;
//! all requests of one turn share one wake-up, and so one call.

use std::fmt::Write;

use crate::decide::Env;
use crate::host_api::{HostError, QueueId};
use crate::metrics::Count;

/// Most items that one callback takes from the queue. One wake-up at a time is on its way, so more
/// than a few are somebody else's; each has a callback of its own to come.
const MAX_DRAIN: usize = 64;

/// The queue and what is on its way through it.
#[derive(Debug, Default)]
pub(super) struct Wake {
    queue: Option<QueueId>,
    pending: bool,
    /// `pending` was already so at the last tick.
    old: bool,
}

impl Wake {
    /// Sees to it that [`Wake::take`] comes. If the host refuses, the next tick does instead.
    pub(super) fn call(&mut self, env: &Env) {
        if self.pending {
            return;
        }
        self.pending = true;
        if let Err(error) = self.enqueue(env) {
            env.metrics.failed(Count::ErrorsWake, &error);
            self.old = true;
        }
    }

    /// A queue has something: true if it is this one and a wake-up was awaited.
    pub(super) fn take(&mut self, env: &Env, queue: QueueId) -> bool {
        if self.queue != Some(queue) {
            return false;
        }
        for _ in 0..MAX_DRAIN {
            match env.host.dequeue(queue) {
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    env.metrics.failed(Count::ErrorsWake, &error);
                    break;
                }
            }
        }
        self.old = false;
        std::mem::take(&mut self.pending)
    }

    /// Called once a tick, which does all that a wake-up is for: one that has not come since the
    /// last tick is not awaited any more, so that the next request tries again.
    pub(super) fn forget_lost(&mut self) {
        if self.pending && self.old {
            self.pending = false;
        }
        self.old = self.pending;
    }

    /// Puts one byte into the queue. It is made here, at the first need, and not when the root is
    /// configured: queues are never freed, and Envoy also configures roots that get no requests.
    /// The name is random, since a second root of this name would take the wake-ups over.
    fn enqueue(&mut self, env: &Env) -> Result<(), HostError> {
        let queue = match self.queue {
            Some(queue) => queue,
            None => {
                let mut name = String::from("headgate.wake.");
                for byte in env.host.random()? {
                    // Writing to a string cannot fail.
                    let _written = write!(name, "{byte:02x}");
                }
                let queue = env.host.register_queue(&name)?;
                self.queue = Some(queue);
                queue
            }
        };
        env.host.enqueue(queue, &[1])
    }
}
