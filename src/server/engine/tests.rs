//! Effects never before durability, groups under load, and an end at the first doubt.
//!
//! Time is paused: it advances only while every task waits, so nothing here depends on speed.

mod failure;

use std::collections::BTreeMap;

use tokio::{sync::Notify, task::JoinHandle};

use super::*;
use crate::store::{
    Candidate, MAX_BATCH_CHANGES, MAX_VALUE_BYTES,
    memory::{Fault, MemoryStore, Outcome},
};

/// Adds up: a command adds to a key and hears the sum.
#[derive(Default)]
struct Sums {
    sums: BTreeMap<u8, u64>,
    parked: Vec<(LocalTime, oneshot::Sender<u64>)>,
}

enum Command {
    Add(u8, u64, oneshot::Sender<u64>),
    Read(u8, oneshot::Sender<u64>),
    /// Answered with 0 after a second, or with 1 when the service stops.
    Park(oneshot::Sender<u64>),
    /// Changes this many records at once.
    Fill(usize, oneshot::Sender<u64>),
    /// Writes a value of this many bytes.
    Grow(usize, oneshot::Sender<u64>),
}

impl Shard for Sums {
    type Command = Command;
    type Effect = (oneshot::Sender<u64>, u64);

    fn apply(&mut self, now: LocalTime, command: Command, step: &mut Step<Self::Effect>) {
        match command {
            Command::Add(key, amount, reply) => {
                let sum = self.sums.entry(key).or_default();
                *sum += amount;
                let value = sum.to_be_bytes().to_vec();
                step.changes.push(Change {
                    key: vec![key],
                    value: Some(value),
                });
                step.effects.push((reply, *sum));
            }
            Command::Read(key, reply) => {
                step.effects
                    .push((reply, self.sums.get(&key).copied().unwrap_or(0)));
            }
            Command::Park(reply) => {
                self.parked
                    .push((LocalTime::new(now.get() + 1_000_000_000), reply));
            }
            Command::Fill(count, reply) => {
                let change = |i: usize| Change {
                    key: i.to_be_bytes().to_vec(),
                    value: Some(vec![]),
                };
                step.changes.extend((0..count).map(change));
                step.effects.push((reply, 0));
            }
            Command::Grow(bytes, reply) => {
                step.changes.push(Change {
                    key: vec![0],
                    value: Some(vec![0; bytes]),
                });
                step.effects.push((reply, 0));
            }
        }
    }

    fn next_wakeup(&self) -> Option<LocalTime> {
        self.parked.first().map(|(due, _)| *due)
    }

    fn wake(&mut self, now: LocalTime, step: &mut Step<Self::Effect>) {
        let due = self.parked.partition_point(|(due, _)| *due <= now);
        step.effects
            .extend(self.parked.drain(..due).map(|(_, reply)| (reply, 0)));
    }

    fn stop(&mut self, _: LocalTime, step: &mut Step<Self::Effect>) {
        step.effects
            .extend(self.parked.drain(..).map(|(_, reply)| (reply, 1)));
    }

    fn release((reply, sum): Self::Effect) {
        // The caller may have given up.
        let _ = reply.send(sum);
    }
}

struct World {
    store: MemoryStore,
    queue: Queue<Command>,
    metrics: EngineMetrics,
    stop: Option<oneshot::Sender<()>>,
    engine: JoinHandle<Result<(), EngineError>>,
}

fn candidate(id: u128) -> Candidate {
    Candidate {
        id,
        address: format!("replica-{id}"),
    }
}

async fn world(store: MemoryStore, queue_length: usize) -> World {
    let metrics = EngineMetrics::default();
    let tenure = elect(&store, &candidate(1)).await.unwrap();
    let (queue, commands) = queue(queue_length, metrics.clone());
    let clock = Monotonic::start();
    let shared = Arc::new(store.clone());
    let engine = Engine::new(
        Sums::default(),
        shared,
        tenure,
        commands,
        clock,
        metrics.clone(),
    );
    let (stop, stopped) = oneshot::channel();
    let engine = tokio::spawn(engine.run(stopped));
    World {
        store,
        queue,
        metrics,
        stop: Some(stop),
        engine,
    }
}

async fn plain_world() -> World {
    world(MemoryStore::new(None), 10_000).await
}

impl World {
    fn ask(&self, command: impl FnOnce(oneshot::Sender<u64>) -> Command) -> oneshot::Receiver<u64> {
        let (reply, answer) = oneshot::channel();
        assert!(self.queue.submit(command(reply)).is_ok());
        answer
    }

    fn add(&self, key: u8, amount: u64) -> oneshot::Receiver<u64> {
        self.ask(|reply| Command::Add(key, amount, reply))
    }

    /// The next append waits for the notification, then ends so.
    fn hold(&self, outcome: Outcome) -> Arc<Notify> {
        let hold = Arc::new(Notify::new());
        self.store.inject(Fault {
            hold: Some(Arc::clone(&hold)),
            outcome,
        });
        hold
    }

    fn stored(&self, key: u8) -> Option<u64> {
        self.store
            .get(&[key])
            .map(|value| u64::from_be_bytes(value.try_into().unwrap()))
    }
}

/// Everything that can happen without more input has happened.
async fn settle() {
    // Pacing: the clock is paused, and this drives it.
    sleep(Duration::from_micros(1)).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_means_that_its_change_is_durable() {
    let world = plain_world().await;
    for i in 1..=20_u64 {
        assert_eq!(world.add(1, 1).await, Ok(i));
        assert_eq!(world.stored(1), Some(i));
    }
}

#[tokio::test(start_paused = true)]
async fn no_effect_leaves_before_its_own_and_all_earlier_changes_are_durable() {
    let world = plain_world().await;
    let first_hold = world.hold(Outcome::Normal);
    let second_hold = world.hold(Outcome::Normal);
    let mut first = world.add(1, 5);
    settle().await;
    // Decided on a state that is not durable yet, with changes and without.
    let mut second = world.add(1, 5);
    let mut read = world.ask(|reply| Command::Read(1, reply));
    // Pacing: the clock is paused, and this drives it.
    sleep(Duration::from_secs(60)).await;
    assert!(first.try_recv().is_err() && second.try_recv().is_err() && read.try_recv().is_err());
    assert_eq!(world.stored(1), None);

    first_hold.notify_one();
    assert_eq!(first.await, Ok(5));
    settle().await;
    assert!(second.try_recv().is_err() && read.try_recv().is_err());
    assert_eq!(world.stored(1), Some(5));

    second_hold.notify_one();
    assert_eq!((second.await, read.await), (Ok(10), Ok(10)));
    assert_eq!(world.stored(1), Some(10));
}

#[tokio::test(start_paused = true)]
async fn an_effect_without_changes_waits_only_for_the_write_before_it() {
    let world = plain_world().await;
    assert_eq!(world.ask(|reply| Command::Read(1, reply)).await, Ok(0));
    let hold = world.hold(Outcome::Normal);
    let add = world.add(1, 7);
    settle().await;
    let mut read = world.ask(|reply| Command::Read(1, reply));
    settle().await;
    assert!(read.try_recv().is_err());
    hold.notify_one();
    assert_eq!((add.await, read.await), (Ok(7), Ok(7)));
    assert_eq!(world.store.appended(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_comes_during_a_write_goes_into_one_next_write() {
    let world = plain_world().await;
    let hold = world.hold(Outcome::Normal);
    let first = world.add(0, 1);
    settle().await;
    let others: Vec<_> = (0..1000).map(|i| world.add((i % 50) as u8, 1)).collect();
    settle().await;
    hold.notify_one();
    first.await.unwrap();
    for other in others {
        other.await.unwrap();
    }
    assert_eq!(world.store.appended(), 2);
    // Of changes of one key only the last is written.
    assert_eq!(world.metrics.changes.get(), 1 + 50);
    assert_eq!(world.stored(49), Some(20));
}

#[tokio::test(start_paused = true)]
async fn a_full_group_is_followed_by_another() {
    let world = plain_world().await;
    let hold = world.hold(Outcome::Normal);
    let first = world.add(0, 1);
    settle().await;
    let fill = || world.ask(|reply| Command::Fill(MAX_BATCH_CHANGES, reply));
    let fills = [fill(), fill(), fill()];
    let last = world.add(0, 1);
    settle().await;
    hold.notify_one();
    assert_eq!(first.await, Ok(1));
    for fill in fills {
        assert_eq!(fill.await, Ok(0));
    }
    assert_eq!(last.await, Ok(2));
    assert_eq!(world.store.appended(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_step_larger_than_a_batch_is_answered_after_its_last_write() {
    let world = plain_world().await;
    let holds = [0; 3].map(|_| world.hold(Outcome::Normal));
    let mut answer = world.ask(|reply| Command::Fill(2 * MAX_BATCH_CHANGES + 1, reply));
    for (written, hold) in holds.iter().enumerate() {
        // Pacing: the clock is paused, and this drives it.
        sleep(Duration::from_secs(1)).await;
        assert!(answer.try_recv().is_err());
        assert_eq!(world.store.appended(), written as u64);
        hold.notify_one();
    }
    assert_eq!(answer.await, Ok(0));
    assert_eq!(world.store.appended(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_full_queue_refuses_and_counts() {
    let world = world(MemoryStore::new(None), 8).await;
    let _hold = world.hold(Outcome::Normal);
    let _first = world.add(0, 1);
    settle().await;
    // The store hangs: one group fills up, then the queue, then callers are refused.
    let mut taken = 0;
    let refused = loop {
        let (reply, _) = oneshot::channel();
        match world.queue.submit(Command::Add(1, 1, reply)) {
            Ok(()) => taken += 1,
            Err(refused) => break refused,
        }
        if taken % 8 == 0 {
            settle().await;
        }
    };
    assert!(matches!(refused, Refused::Full(_)));
    assert_eq!(world.metrics.queue_full.get(), 1);
    assert!(world.metrics.store_waits.get() > 0);
    let bound = COMMANDS_A_GROUP + COMMANDS_AT_ONCE + 8;
    assert!((COMMANDS_A_GROUP..=bound).contains(&taken), "{taken}");
}

#[tokio::test(start_paused = true)]
async fn a_write_that_did_not_happen_is_repeated() {
    let world = plain_world().await;
    for _ in 0..3 {
        world.store.inject(Fault {
            hold: None,
            outcome: Outcome::NotWritten,
        });
    }
    assert_eq!(world.add(1, 3).await, Ok(3));
    assert_eq!(
        (world.stored(1), world.metrics.write_retries.get()),
        (Some(3), 3)
    );
}

#[tokio::test(start_paused = true)]
async fn a_wakeup_comes_when_it_is_due() {
    let world = plain_world().await;
    let started = Instant::now();
    assert_eq!(world.ask(Command::Park).await, Ok(0));
    let waited = started.elapsed();
    assert!((1000..1010).contains(&waited.as_millis()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_answers_what_waits_writes_everything_and_resigns() {
    let mut world = plain_world().await;
    let hold = world.hold(Outcome::Normal);
    let (first, parked) = (world.add(1, 1), world.ask(Command::Park));
    settle().await;
    let queued = world.add(1, 1);
    drop(world.stop.take());
    settle().await;
    let (reply, _) = oneshot::channel();
    let refused = world.queue.submit(Command::Add(1, 1, reply));
    assert!(matches!(refused, Err(Refused::Stopped(_))));
    hold.notify_one();
    assert_eq!(
        (first.await, queued.await, parked.await),
        (Ok(1), Ok(2), Ok(1))
    );
    (&mut world.engine).await.unwrap().unwrap();
    assert_eq!(world.stored(1), Some(2));
    // Nobody has to wait for a lease to run out.
    assert_eq!(
        elect(&world.store, &candidate(2)).await.unwrap().epoch(),
        Epoch::new(2)
    );
}

#[tokio::test(start_paused = true)]
async fn a_candidate_leads_as_soon_as_the_lease_before_it_is_over() {
    let store = MemoryStore::new(Some(Duration::from_secs(2)));
    elect(&store, &candidate(1)).await.unwrap();
    let started = Instant::now();
    assert_eq!(
        elect(&store, &candidate(2)).await.unwrap().epoch(),
        Epoch::new(2)
    );
    assert!((2000..2010).contains(&started.elapsed().as_millis()));
}
