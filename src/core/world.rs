//! A small world for core's own tests: replicas with several workers, one owner, a network that
//! delays, loses, duplicates and reorders, a driven clock. Everything follows from a seed.

use std::collections::BTreeMap;

use crate::key::HashKey;
use crate::message::call::{AskCall, Join};
use crate::message::{Algorithm, RuleId, RuleSpec, Sender};
use crate::owner::clock::Readings;
use crate::owner::effect::{Outcome, Reply, ReplyTo};
use crate::owner::shard::{Shard, ShardConfig};
use crate::replica::leader::{Leader, Ticket};
use crate::replica::worker::{CallId, RequestId, Rule, Worker};
use crate::units::{Asker, Epoch, LocalTime, ReplicaId, ServiceTime, Span, Tokens};
use crate::window::Period;

mod judge;
mod memory;
mod random;
mod replica;
mod tests;

use judge::Judge;
pub(crate) use memory::Memory;
use random::Random;

/// Service time when a world begins: the middle of a minute.
const START: ServiceTime = ServiceTime::new(1_800_000_030_000_000_000);
const BUCKETS: u32 = 4;
const TICK: Span = Span::from_millis(10);

struct Replica {
    memory: Memory,
    workers: Vec<Worker>,
    leader: Leader,
    /// Its clock is ahead of true time by so much.
    offset: u64,
    id: ReplicaId,
    dead: bool,
}

/// A call on its way, or its answer.
#[derive(Clone)]
enum Message {
    Ask {
        replica: usize,
        worker: usize,
        call: CallId,
        body: AskCall,
    },
    Join {
        replica: usize,
        ticket: Ticket,
        body: Join,
    },
    Watch {
        replica: usize,
        ticket: Ticket,
        sender: Sender,
    },
}

#[derive(Clone)]
enum Event {
    Arrive {
        replica: usize,
        worker: usize,
        values: Vec<String>,
    },
    AtService {
        epoch: Epoch,
        message: Message,
    },
    AtReplica {
        message: Message,
        reply: Option<Reply>,
    },
    Tick {
        replica: usize,
    },
}

/// What may go wrong, in thousandths.
#[derive(Clone, Copy, Default)]
struct Faults {
    lost: u64,
    duplicated: u64,
    slow: u64,
}

struct World {
    random: Random,
    /// True time, nanoseconds.
    now: u64,
    events: BTreeMap<(u64, u64), Event>,
    scheduled: u64,
    replicas: Vec<Replica>,
    rules: Vec<Rule>,
    shard: Option<Shard>,
    config: ShardConfig,
    store: BTreeMap<Vec<u8>, Vec<u8>>,
    epoch: u64,
    open: BTreeMap<ReplyTo, Message>,
    faults: Faults,
    requests: BTreeMap<RequestId, usize>,
    next_request: u32,
    judge: Judge,
    asks_sent: u64,
}

fn rule(name: &str, amount: u64, per: Span) -> Rule {
    let spec = RuleSpec {
        id: RuleId {
            domain: "test".to_owned(),
            name: name.to_owned(),
        },
        algorithm: Algorithm::FixedWindow,
        amount: Tokens::new(amount),
        period: Period::new(per).unwrap(),
        revision: 0,
    };
    Rule {
        spec,
        undecided_passes: false,
    }
}

impl World {
    fn new(seed: u64, replicas: usize, workers: usize, rules: Vec<Rule>) -> Self {
        let limits = rules.iter().map(|rule| rule.spec.clone()).collect();
        let mut world = Self {
            random: Random::new(seed),
            now: 1_000_000_000,
            events: BTreeMap::new(),
            scheduled: 0,
            replicas: Vec::new(),
            rules,
            shard: None,
            config: ShardConfig::default(),
            store: BTreeMap::new(),
            epoch: 0,
            open: BTreeMap::new(),
            faults: Faults::default(),
            requests: BTreeMap::new(),
            next_request: 0,
            judge: Judge::new(limits),
            asks_sent: 0,
        };
        world.start_service();
        for _ in 0..replicas {
            world.add_replica(workers);
        }
        world
    }

    fn add_replica(&mut self, workers: usize) {
        let index = self.replicas.len();
        let specs = self.rules.iter().map(|rule| rule.spec.clone()).collect();
        let holder = self.random.next();
        let worker = |random: &mut Random| {
            let asker = Asker::new(random.next());
            Worker::new(asker, self.rules.clone(), BUCKETS, Span::from_millis(100))
        };
        let workers = (0..workers).map(|_| worker(&mut self.random)).collect();
        self.replicas.push(Replica {
            memory: Memory::default(),
            workers,
            leader: Leader::new(holder, specs, BUCKETS),
            offset: self.random.below(1_000_000_000_000),
            id: ReplicaId::new(u128::from(self.random.next())),
            dead: false,
        });
        self.schedule(Span::ZERO, Event::Tick { replica: index });
    }

    fn readings(&self) -> Readings {
        let local = LocalTime::new(self.now);
        Readings {
            local,
            wall: START.plus(local.since(LocalTime::ZERO)),
            boot: None,
        }
    }

    fn start_service(&mut self) {
        self.epoch += 1;
        let start = crate::owner::shard::Start {
            epoch: Epoch::new(self.epoch),
            at: self.readings(),
            fresh_hash_key: HashKey::new([7; 16]),
        };
        let records = self
            .store
            .iter()
            .map(|(key, value)| (key.as_slice(), value.as_slice()));
        self.shard = Some(Shard::load(self.config, &start, records).unwrap());
    }

    /// The service dies; what is on its way to it, or open at it, gets no answer.
    fn kill_service(&mut self) {
        self.shard = None;
        for (_, message) in std::mem::take(&mut self.open) {
            self.schedule(
                Span::from_millis(1),
                Event::AtReplica {
                    message,
                    reply: None,
                },
            );
        }
    }

    fn schedule(&mut self, after: Span, event: Event) {
        self.scheduled += 1;
        self.events
            .insert((self.now + after.get(), self.scheduled), event);
    }

    fn travel(&mut self) -> Span {
        let slow = self.random.below(1_000) < self.faults.slow;
        let most = if slow { 40_000_000 } else { 600_000 };
        Span::new(100_000 + self.random.below(most))
    }

    fn lost(&mut self) -> bool {
        self.random.below(1_000) < self.faults.lost
    }

    fn send(&mut self, message: Message) {
        self.asks_sent += u64::from(matches!(message, Message::Ask { .. }));
        // A lost message looks to its sender like one that times out.
        if self.lost() {
            self.schedule(
                Span::from_millis(150),
                Event::AtReplica {
                    message,
                    reply: None,
                },
            );
            return;
        }
        let epoch = Epoch::new(self.epoch);
        let times = 1 + u64::from(self.random.below(1_000) < self.faults.duplicated);
        for _ in 0..times {
            let after = self.travel();
            self.schedule(
                after,
                Event::AtService {
                    epoch,
                    message: message.clone(),
                },
            );
        }
    }

    fn run_for(&mut self, span: Span) {
        let end = self.now + span.get();
        loop {
            let wake = self
                .shard
                .as_ref()
                .and_then(Shard::next_wake)
                .map(LocalTime::get);
            let next = self.events.first_key_value().map(|(at, _)| at.0);
            let at = wake.unwrap_or(u64::MAX).min(next.unwrap_or(u64::MAX));
            if at > end {
                break;
            }
            self.now = self.now.max(at);
            if next.is_some_and(|next| next <= self.now) {
                let (_, event) = self.events.pop_first().unwrap();
                self.handle(event);
            } else {
                let at = self.readings();
                let mut shard = self.shard.take().unwrap();
                shard.wake(at);
                self.finish(shard);
            }
        }
        self.now = end;
    }

    fn finish(&mut self, mut shard: Shard) {
        let outcome: Outcome = shard.finish(self.readings());
        assert_eq!(
            shard.counts().invariants_broken,
            0,
            "an invariant of the owner"
        );
        self.shard = Some(shard);
        for change in outcome.changes {
            match change.value {
                Some(value) => self.store.insert(change.key, value),
                None => self.store.remove(&change.key),
            };
        }
        for (to, reply) in outcome.replies {
            let Some(message) = self.open.remove(&to) else {
                continue;
            };
            let after = self.travel();
            let lost = self.lost();
            let after = if lost { Span::from_millis(150) } else { after };
            let reply = (!lost).then_some(reply);
            self.schedule(after, Event::AtReplica { message, reply });
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive {
                replica,
                worker,
                values,
            } => self.arrive(replica, worker, &values),
            Event::AtService { epoch, message } => self.at_service(epoch, message),
            Event::AtReplica { message, reply } => self.at_replica(message, reply),
            Event::Tick { replica } => self.tick(replica),
        }
    }

    fn at_service(&mut self, epoch: Epoch, message: Message) {
        let at = self.readings();
        // A connection ends with the service that it was made to.
        let same = epoch.get() == self.epoch;
        let Some(mut shard) = self.shard.take_if(|_| same) else {
            self.schedule(
                Span::from_millis(1),
                Event::AtReplica {
                    message,
                    reply: None,
                },
            );
            return;
        };
        self.scheduled += 1;
        let reply = ReplyTo::new(self.scheduled);
        self.open.insert(reply, message.clone());
        match message {
            Message::Ask { body, .. } => shard.ask(at, body, reply),
            Message::Join { body, .. } => shard.join(at, &body, reply),
            Message::Watch { sender, .. } => shard.watch(at, &sender, reply),
        }
        self.finish(shard);
    }
}
