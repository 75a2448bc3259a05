//! The end of a root: if it is the last one of the replica, the plugin has been removed, and it
//! gives back all that the replica holds before Envoy may delete it. When Envoy itself ends, it
//! does not wait, and nothing is sent.

use headgate_core::replica::departure::LOOKS_AFTER;
use headgate_core::units::{LocalTime, Span};
use headgate_core::wire as pb;
use prost::Message;

use super::calls::Purpose;
use super::{Worker, shared_failed};
use crate::host_api::Method;

/// How long the last root tries to have its Leave count as complete: it needs the watch, which
/// another root may have had, and an answer to its Join.
const TRIES_FOR: Span = Span::from_secs(2);

/// How long Leave may take. It carries every lease, as Join does.
const LEAVE_TIMEOUT: Span = Span::from_secs(1);

/// How far the end has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Ending {
    /// It has not begun.
    #[default]
    NotYet,
    /// Others may be about to begin.
    Waits(LocalTime),
    /// There are no others; it leaves as soon as it knows enough, then at the latest.
    Alone(LocalTime),
    /// Leave is under way.
    Leaves,
    /// Envoy may delete the root.
    Over,
}

impl Ending {
    /// Whether other roots need not leave because of this one.
    pub(super) const fn counts_as_alive(self) -> bool {
        matches!(self, Self::NotYet | Self::Waits(_))
    }

    /// Whether nothing is to be done for the replica any more: a Join would begin a new tenancy.
    pub(super) const fn has_left(self) -> bool {
        matches!(self, Self::Leaves | Self::Over)
    }
}

impl Worker {
    /// One step of giving back what lies idle.
    pub(super) fn return_idle(&mut self, now: LocalTime) {
        if self.ending.has_left() {
            return;
        }
        let Some(part) = &mut self.part else { return };
        match part.leader.return_idle(&self.shared, now) {
            Ok(returns) => {
                for returned in returns {
                    part.worker.send_return(returned);
                }
            }
            Err(error) => shared_failed(&self.env.metrics, error),
        }
    }

    /// Whether there is nothing to wait for.
    pub(super) fn begin_ending(&mut self, now: LocalTime) -> bool {
        // A root that has never ticked is a trial, and holds nothing.
        if self.part.is_none() || self.ending != Ending::NotYet {
            return self.part.is_none();
        }
        self.ending = Ending::Waits(now.plus(LOOKS_AFTER));
        false
    }

    /// The next step of the end, if it has begun; for every tick.
    pub(super) fn go_on_ending(&mut self, now: LocalTime) {
        match self.ending {
            Ending::Waits(until) if until <= now => self.look_for_others(now),
            Ending::Alone(until) => {
                let part = self.part.as_ref();
                let is_ready = part.is_some_and(|part| part.leader.is_watching());
                if is_ready || until <= now {
                    self.leave(now);
                }
            }
            Ending::NotYet | Ending::Waits(_) | Ending::Leaves | Ending::Over => {}
        }
    }

    fn look_for_others(&mut self, now: LocalTime) {
        let Some(part) = &mut self.part else { return };
        let last = part.presence.end(&self.shared, now).and_then(|last| {
            // Whoever had the watch is gone.
            let takes = !last || part.leader.holds_watch(&self.shared, now, true)?;
            Ok(last && takes)
        });
        self.ending = match last {
            Ok(true) => Ending::Alone(now.plus(TRIES_FOR)),
            Ok(false) => Ending::Over,
            Err(error) => {
                shared_failed(&self.env.metrics, error);
                Ending::Over
            }
        };
    }

    fn leave(&mut self, now: LocalTime) {
        self.ending = Ending::Over;
        let Some(part) = &self.part else { return };
        let leave = match part.leader.leave(&self.shared, now) {
            Ok(Some(leave)) => leave,
            Ok(None) => return,
            Err(error) => return shared_failed(&self.env.metrics, error),
        };
        let message = pb::LeaveRequest::from(leave).encode_to_vec();
        let purpose = Purpose::Leave;
        if (self.calls).send(now, Method::Leave, &message, LEAVE_TIMEOUT, purpose) {
            self.ending = Ending::Leaves;
        }
    }
}
