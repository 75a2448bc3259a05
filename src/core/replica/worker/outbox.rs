//! What a worker has to send besides the asks of waiting requests.

use std::collections::VecDeque;

use super::counts::Counts;
use super::queue::Subject;
use crate::message::{ASKS_PER_CALL_MAX, Resolution, Return};

/// Most returns, and most resolutions, that wait to be sent: four full calls. Dropping one is safe
/// (the owner repeats recalls, provisional charges expire as spent), so the bound may be small.
pub(super) const OUTBOX_MAX: usize = 4 * ASKS_PER_CALL_MAX;

#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    returns: VecDeque<Return>,
    resolutions: VecDeque<Resolution>,
    ahead: Vec<Subject>,
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.returns.is_empty() && self.resolutions.is_empty()
    }

    pub(super) fn push_return(&mut self, returned: Return, counts: &mut Counts) {
        push_bounded(&mut self.returns, returned, counts);
    }

    pub(super) fn push_resolution(&mut self, resolution: Resolution, counts: &mut Counts) {
        push_bounded(&mut self.resolutions, resolution, counts);
    }

    /// Resolutions of a call that failed are sent again, first.
    pub(super) fn repeat_resolutions(&mut self, failed: Vec<Resolution>, counts: &mut Counts) {
        for resolution in failed.into_iter().rev() {
            if self.resolutions.len() < OUTBOX_MAX {
                self.resolutions.push_front(resolution);
            } else {
                counts.outbox_full = counts.outbox_full.saturating_add(1);
            }
        }
    }

    pub(super) fn push_ahead(&mut self, subject: Subject) {
        self.ahead.push(subject);
    }

    pub(super) fn take_ahead(&mut self) -> Vec<Subject> {
        std::mem::take(&mut self.ahead)
    }

    pub(super) fn take_returns(&mut self) -> Vec<Return> {
        let count = self.returns.len().min(ASKS_PER_CALL_MAX);
        self.returns.drain(..count).collect()
    }

    pub(super) fn take_resolutions(&mut self) -> Vec<Resolution> {
        let count = self.resolutions.len().min(ASKS_PER_CALL_MAX);
        self.resolutions.drain(..count).collect()
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T, counts: &mut Counts) {
    if queue.len() >= OUTBOX_MAX {
        queue.pop_front();
        counts.outbox_full = counts.outbox_full.saturating_add(1);
    }
    queue.push_back(item);
}
