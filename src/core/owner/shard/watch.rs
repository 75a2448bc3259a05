//! The Watch call: what there is to push, and the heartbeat.

use super::{Readings, Reply, ReplyTo, Shard};
use crate::message::call::WatchAnswer;
use crate::message::{Directory, Exhausted, Lease, Recall, SeatState, Sender};
use crate::owner::effect::Change;
use crate::owner::member::OpenWatch;
use crate::owner::record;
use crate::units::{ServiceTime, Tenancy};

/// What goes along with the answer to a poll.
#[derive(Default)]
pub(super) struct Pushes {
    recalls: Vec<Recall>,
    exhausted: Vec<Exhausted>,
    leases: Vec<Lease>,
    directory: Option<Directory>,
}

impl Shard {
    /// Takes in a poll. The one before it, if still open, is answered empty.
    pub fn watch(&mut self, at: Readings, sender: &Sender, reply: ReplyTo) {
        self.hear_time(at, sender);
        let now = self.clock.now(at.local);
        let (from, seat_state) = self.hear(at, sender);
        let (Some(from), Some(now)) = (from, now) else {
            self.answer_watch(
                at,
                reply,
                now.unwrap_or(ServiceTime::ZERO),
                seat_state,
                Pushes::default(),
            );
            return;
        };
        let until = at.local.plus(self.config.watch_poll);
        let opened = OpenWatch {
            reply,
            received: now,
            until,
            directory: sender.directory,
        };
        let member = self.members.get_mut(from);
        let before = member.and_then(|member| member.watch.replace(opened));
        if let Some(before) = before {
            let pushes = Pushes {
                directory: self.news(from, before.directory),
                ..Pushes::default()
            };
            self.answer_watch(at, before.reply, before.received, SeatState::Ok, pushes);
        }
    }

    /// Answers the polls that have something to say, or are due.
    pub(super) fn answer_watches(&mut self, at: Readings) {
        let due: Vec<(Tenancy, OpenWatch)> = self
            .members
            .iter()
            .filter_map(|member| {
                let watch = member.watch?;
                let news = watch.directory != self.seating.revision();
                let due = watch.until <= at.local || member.has_pushes(at.local) || news;
                due.then_some((member.stored.tenancy, watch))
            })
            .collect();
        for (tenancy, watch) in due {
            let Some(member) = self.members.get_mut(tenancy) else {
                continue;
            };
            member.watch = None;
            let pushes = Pushes {
                recalls: member.take_recalls(at.local),
                exhausted: member.take_exhausted(),
                leases: member.take_leases(),
                directory: self.news(tenancy, watch.directory),
            };
            self.answer_watch(at, watch.reply, watch.received, SeatState::Ok, pushes);
        }
    }

    /// The directory for a member that knows another one. Every answer to a poll has it, because a
    /// replica takes an answer without one for word that nothing has changed.
    fn news(&self, tenancy: Tenancy, known: u64) -> Option<Directory> {
        let rules = || self.rules.of(tenancy);
        (known != self.seating.revision()).then(|| self.seating.directory(rules()))
    }

    /// Publishes what standing shares are computed from, and stores what has changed of it.
    pub(super) fn publish(&mut self, at: Readings) {
        // Before all have stated their rules again, the lowest limit is not known.
        let complete = self.members.iter().all(|member| member.registered);
        if let Some(now) = self.clock.now(at.local).filter(|_| complete) {
            self.seating.publish(now, &self.members, &self.rules);
        }
        self.store_seating();
    }

    pub(super) fn store_seating(&mut self) {
        for change in self.seating.take_changes() {
            let (key, value) = record::write_seating(&change);
            self.outcome.changes.push(Change { key, value });
        }
    }

    pub(super) fn answer_watch(
        &mut self,
        at: Readings,
        reply: ReplyTo,
        received: ServiceTime,
        seat_state: SeatState,
        pushes: Pushes,
    ) {
        let stamps = self.stamps(received, at);
        let epoch = self.epoch;
        let answer = WatchAnswer {
            epoch,
            stamps,
            seat_state,
            recalls: pushes.recalls,
            exhausted: pushes.exhausted,
            leases: pushes.leases,
            directory: pushes.directory,
        };
        self.outcome.replies.push((reply, Reply::Watch(answer)));
    }
}
