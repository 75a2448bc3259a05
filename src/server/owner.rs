//! Core's shard as the engine runs it: commands in, changes to store and answers out.
//!
//! The shard decides; here is only the way from a call to its answer. An answer's stamps are made
//! where it was received and where it leaves, so that neither the queue nor the disk blurs what a
//! replica learns of service time.

use std::collections::HashMap;

use headgate_core::{
    clock::Stamps,
    key::HashKey,
    message::{
        Sender,
        call::{AskCall, Join, Leave},
    },
    owner::{
        clock::{ClockCounts, Readings, ServiceClock},
        effect::{Outcome, Reply, ReplyTo},
        shard::{Shard as Keys, ShardConfig, Start},
    },
    units::{LocalTime, Span},
};
use tokio::sync::oneshot;

use crate::{
    args::Limits,
    clock::{Monotonic, SinceBoot, wall},
    engine::{Shard, Step},
    metrics::OwnerMetrics,
    rpc,
    serve::{Context, Failure},
};

/// What a call asks for.
#[derive(Debug)]
pub enum Request {
    /// Join.
    Join(Join),
    /// Ask.
    Ask(AskCall),
    /// Watch.
    Watch(Sender),
    /// Leave, with the leases that go back.
    Leave(Leave),
}

/// A call with the way back to it.
#[derive(Debug)]
pub struct Command {
    /// What it asks for.
    pub request: Request,
    /// When it came.
    pub received: LocalTime,
    /// Where the answer goes. Dropped unanswered when the service stops.
    pub reply: oneshot::Sender<Reply>,
}

/// An open call.
#[derive(Debug)]
struct Open {
    received: LocalTime,
    reply: oneshot::Sender<Reply>,
}

/// An answer that waits for its changes to be durable.
#[derive(Debug)]
pub struct Answer {
    reply: Reply,
    to: Open,
    clock: ServiceClock,
    monotonic: Monotonic,
}

/// The owner of all keys.
#[derive(Debug)]
pub struct Owner {
    keys: Keys,
    open: HashMap<ReplyTo, Open>,
    next_reply: u64,
    monotonic: Monotonic,
    since_boot: SinceBoot,
    /// What has been logged of the clocks.
    told: ClockCounts,
    metrics: OwnerMetrics,
}

/// Makes the owner of the records, and adds the calls that lead to it.
///
/// # Errors
/// A record means nothing to this version, or the system gives no random bytes.
pub fn build(context: Context<'_, Command>) -> Result<Owner, Failure> {
    let mut fresh_hash_key = [0; 16];
    getrandom::fill(&mut fresh_hash_key)
        .map_err(|error| Failure::System(std::io::Error::other(error.to_string())))?;
    let since_boot = SinceBoot::find();
    let start = Start {
        epoch: context.epoch,
        at: readings(context.clock.now(), since_boot),
        fresh_hash_key: HashKey::new(fresh_hash_key),
    };
    let records = context
        .records
        .iter()
        .map(|record| (record.key.as_slice(), record.value.as_slice()));
    let keys = Keys::load(config(context.limits), &start, records)
        .map_err(|error| Failure::Records(error.to_string()))?;
    let service = rpc::Calls::new(context.queue, context.clock);
    let size = usize::try_from(context.limits.max_message_bytes).unwrap_or(usize::MAX);
    context.routes.add_service(service.into_server(size));
    Ok(Owner {
        keys,
        open: HashMap::new(),
        next_reply: 0,
        monotonic: context.clock,
        since_boot,
        told: ClockCounts::default(),
        metrics: context.metrics.owner.clone(),
    })
}

fn config(limits: &Limits) -> ShardConfig {
    let span = |duration: std::time::Duration| {
        Span::new(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    };
    let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
    ShardConfig {
        time_to_live: span(limits.seat_ttl),
        recall_timeout: span(limits.recall_timeout),
        watch_poll: span(limits.watch_poll),
        keys_max: count(limits.max_keys),
        members_max: count(limits.max_replicas),
        waiting_max: count(limits.max_waiting_asks),
    }
}

fn readings(local: LocalTime, since_boot: SinceBoot) -> Readings {
    Readings {
        local,
        wall: wall(),
        boot: since_boot.now(),
    }
}

impl Owner {
    /// Ends a step: what has to be stored, and the answers that wait for it.
    fn finish(&mut self, at: Readings, step: &mut Step<Answer>) {
        let Outcome { changes, replies } = self.keys.finish(at);
        step.changes.extend(changes);
        let clock = self.keys.clock();
        for (reply_to, reply) in replies {
            let Some(to) = self.open.remove(&reply_to) else {
                continue;
            };
            step.effects.push(Answer {
                reply,
                to,
                clock,
                monotonic: self.monotonic,
            });
        }
        self.metrics.follow(&self.keys);
        self.tell_of_clocks();
    }

    fn tell_of_clocks(&mut self) {
        let (now, before) = (self.keys.clock().counts(), self.told);
        self.told = now;
        if now.continued > before.continued {
            tracing::info!("service time goes on from before the restart");
        }
        if now.suspensions > before.suspensions {
            tracing::warn!("the machine slept; service time goes on by its clock since boot");
        }
        if now.wall_steps > before.wall_steps {
            tracing::warn!(
                "the wall clock was set; service time does not jump, it nears it slowly; check \
                 this machine's time synchronisation"
            );
        }
    }
}

impl Shard for Owner {
    type Command = Command;
    type Effect = Answer;

    fn apply(&mut self, now: LocalTime, command: Command, step: &mut Step<Answer>) {
        let at = readings(now, self.since_boot);
        let reply = ReplyTo::new(self.next_reply);
        self.next_reply = self.next_reply.wrapping_add(1);
        let open = Open {
            received: command.received,
            reply: command.reply,
        };
        self.open.insert(reply, open);
        match command.request {
            Request::Join(join) => self.keys.join(at, &join, reply),
            Request::Ask(call) => self.keys.ask(at, call, reply),
            Request::Watch(sender) => self.keys.watch(at, &sender, reply),
            Request::Leave(leave) => self.keys.leave(at, &leave, reply),
        }
        self.finish(at, step);
    }

    fn next_wakeup(&self) -> Option<LocalTime> {
        self.keys.next_wake()
    }

    fn wake(&mut self, now: LocalTime, step: &mut Step<Answer>) {
        let at = readings(now, self.since_boot);
        self.keys.wake(at);
        self.finish(at, step);
    }

    fn stop(&mut self, _: LocalTime, _: &mut Step<Answer>) {
        // Callers learn from the closed way back that the service stops, and try another one.
        self.open.clear();
    }

    fn release(answer: Answer) {
        let Answer {
            mut reply,
            to,
            clock,
            monotonic,
        } = answer;
        if let (Some(stamps), Some(received), Some(sent)) = (
            stamps_of(&mut reply),
            clock.stamp(to.received),
            clock.stamp(monotonic.now()),
        ) {
            *stamps = Stamps { received, sent };
        }
        // A caller that has gone repeats its call.
        drop(to.reply.send(reply));
    }
}

fn stamps_of(reply: &mut Reply) -> Option<&mut Stamps> {
    match reply {
        Reply::Welcome(welcome) => Some(&mut welcome.stamps),
        Reply::Ask(answer) => Some(&mut answer.stamps),
        Reply::Watch(answer) => Some(&mut answer.stamps),
        Reply::Left | Reply::Rejected(_) => None,
    }
}
