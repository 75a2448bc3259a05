//! The Watch call: what there is to push, and the heartbeat.

use super::{Readings, Reply, ReplyTo, Shard};
use crate::message::call::WatchAnswer;
use crate::message::{Exhausted, Recall, SeatState, Sender};
use crate::owner::member::OpenWatch;
use crate::units::{ServiceTime, Tenancy};

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
                None,
            );
            return;
        };
        let until = at.local.plus(self.config.watch_poll);
        let opened = OpenWatch {
            reply,
            received: now,
            until,
        };
        let member = self.members.get_mut(from);
        let before = member.and_then(|member| member.watch.replace(opened));
        if let Some(before) = before {
            self.answer_watch(at, before.reply, before.received, SeatState::Ok, None);
        }
    }

    /// Answers the polls that have something to say, or are due.
    pub(super) fn answer_watches(&mut self, at: Readings) {
        let due: Vec<(Tenancy, OpenWatch)> = self
            .members
            .iter()
            .filter_map(|member| {
                let watch = member.watch?;
                let due = watch.until <= at.local || member.has_pushes(at.local);
                due.then_some((member.stored.tenancy, watch))
            })
            .collect();
        for (tenancy, watch) in due {
            let Some(member) = self.members.get_mut(tenancy) else {
                continue;
            };
            member.watch = None;
            let pushes = (member.take_recalls(at.local), member.take_exhausted());
            self.answer_watch(at, watch.reply, watch.received, SeatState::Ok, Some(pushes));
        }
    }

    pub(super) fn answer_watch(
        &mut self,
        at: Readings,
        reply: ReplyTo,
        received: ServiceTime,
        seat_state: SeatState,
        pushes: Option<(Vec<Recall>, Vec<Exhausted>)>,
    ) {
        let (recalls, exhausted) = pushes.unwrap_or_default();
        let stamps = self.stamps(received, at);
        let epoch = self.epoch;
        let answer = WatchAnswer {
            epoch,
            stamps,
            seat_state,
            recalls,
            exhausted,
        };
        self.outcome.replies.push((reply, Reply::Watch(answer)));
    }
}
