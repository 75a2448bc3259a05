//! A counter service for tests: core's owner behind the bytes of the wire, without a network. It
//! can be silent, speak nonsense, refuse, die and come back from what it has stored.

use std::collections::BTreeMap;

use headgate_core::key::HashKey;
use headgate_core::message::Sender;
use headgate_core::owner::clock::Readings;
use headgate_core::owner::effect::{Reply, ReplyTo};
use headgate_core::owner::shard::{Shard, ShardConfig, Start};
use headgate_core::units::{Epoch, LocalTime, ServiceTime, Span};
use headgate_core::wire as pb;
use prost::Message;

use super::SentCall;
use crate::host_api::{CallFailure, Method};

/// Service time when the service's clock says 0: some minute and 30 seconds of the hour.
const EPOCH: u64 = 1_800_000_030_000_000_000;

/// How the service behaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mode {
    /// As it should.
    Sound,
    /// Takes calls and says nothing.
    Silent,
    /// Answers every call with these bytes.
    Nonsense(Vec<u8>),
    /// Ends every call with a gRPC status.
    Refusing(u32),
}

/// A call by its sender: which Envoy, and the call.
pub(crate) type From = (usize, SentCall);

/// The end of a call.
pub(crate) type Answered = (From, Result<Vec<u8>, CallFailure>);

#[derive(Debug)]
pub(crate) struct Counter {
    pub(crate) mode: Mode,
    shard: Option<Shard>,
    store: BTreeMap<Vec<u8>, Vec<u8>>,
    epoch: u64,
    now: LocalTime,
    open: BTreeMap<ReplyTo, (LocalTime, From)>,
    taken: u64,
    answered: Vec<Answered>,
    calls: BTreeMap<&'static str, u64>,
}

impl Counter {
    pub(crate) fn new() -> Self {
        let mut counter = Self {
            mode: Mode::Sound,
            shard: None,
            store: BTreeMap::new(),
            epoch: 0,
            now: LocalTime::new(5_000_000_000),
            open: BTreeMap::new(),
            taken: 0,
            answered: Vec::new(),
            calls: BTreeMap::new(),
        };
        counter.start();
        counter
    }

    /// Starts it from what is stored, as the next leader.
    pub(crate) fn start(&mut self) {
        self.epoch += 1;
        let start = Start {
            epoch: Epoch::new(self.epoch),
            at: self.readings(),
            fresh_hash_key: HashKey::new([7; 16]),
        };
        let records = self.store.iter();
        let records = records.map(|(key, value)| (key.as_slice(), value.as_slice()));
        let shard = Shard::load(ShardConfig::default(), &start, records);
        self.shard = Some(shard.expect("its own records"));
    }

    /// It dies: every call that is open fails, as those will that come.
    pub(crate) fn kill(&mut self) {
        self.shard = None;
        let gone = std::mem::take(&mut self.open).into_values();
        let failed = gone.map(|(_, from)| (from, Err(CallFailure::Status(14))));
        self.answered.extend(failed);
    }

    /// The owner itself.
    pub(crate) fn shard(&self) -> &Shard {
        self.shard.as_ref().expect("alive")
    }

    /// Calls taken of one method.
    pub(crate) fn calls(&self, method: Method) -> u64 {
        self.calls.get(method.name()).copied().unwrap_or(0)
    }

    /// Calls that have ended since this was asked.
    pub(crate) fn take_answered(&mut self) -> Vec<Answered> {
        std::mem::take(&mut self.answered)
    }

    /// Time passes, at most to the next thing that happens by itself.
    pub(crate) fn advance(&mut self, span: Span) {
        self.now = self.now.plus(span);
        let due = self.shard.as_ref().and_then(Shard::next_wake);
        if self.mode == Mode::Sound && due.is_some_and(|due| due <= self.now) {
            self.step(|shard, at| shard.wake(at));
        }
        let now = self.now;
        // Envoy ends a call at its timeout; 14 is what it says then.
        let over = self.open.extract_if(.., |_, (sent, (_, call))| {
            sent.plus(Span::from_millis(call.timeout_ms.into())) <= now
        });
        let over: Vec<Answered> = over
            .map(|(_, (_, from))| (from, Err(CallFailure::Status(14))))
            .collect();
        self.answered.extend(over);
    }

    /// A call comes.
    pub(crate) fn take(&mut self, from: usize, call: SentCall) {
        *self.calls.entry(call.method.name()).or_default() += 1;
        self.taken += 1;
        let reply = ReplyTo::new(self.taken);
        let (method, message) = (call.method, call.message.clone());
        self.open.insert(reply, (self.now, (from, call)));
        match self.mode.clone() {
            Mode::Silent => {}
            Mode::Nonsense(bytes) => self.answer(reply, Ok(bytes)),
            Mode::Refusing(status) => self.answer(reply, Err(CallFailure::Status(status))),
            Mode::Sound if self.shard.is_none() => {
                self.answer(reply, Err(CallFailure::Status(14)));
            }
            Mode::Sound => self.serve(method, &message, reply),
        }
    }

    fn serve(&mut self, method: Method, message: &[u8], reply: ReplyTo) {
        self.step(|shard, at| match method {
            Method::Join => {
                let join = pb::JoinRequest::decode(message).expect("a Join");
                shard.join(at, &join.try_into().expect("sound"), reply);
            }
            Method::Ask => {
                let ask = pb::AskRequest::decode(message).expect("an Ask");
                shard.ask(at, ask.try_into().expect("sound"), reply);
            }
            Method::Watch => {
                let watch = pb::WatchRequest::decode(message).expect("a Watch");
                let sender: Sender = watch.sender.try_into().expect("sound");
                shard.watch(at, &sender, reply);
            }
            Method::Leave => {
                let leave = pb::LeaveRequest::decode(message).expect("a Leave");
                shard.leave(at, &leave.try_into().expect("sound"), reply);
            }
        });
    }

    fn step(&mut self, act: impl FnOnce(&mut Shard, Readings)) {
        let at = self.readings();
        let Some(shard) = &mut self.shard else { return };
        act(shard, at);
        let outcome = shard.finish(at);
        assert_eq!(shard.counts().invariants_broken, 0);
        for change in outcome.changes {
            match change.value {
                Some(value) => self.store.insert(change.key, value),
                None => self.store.remove(&change.key),
            };
        }
        for (to, reply) in outcome.replies {
            let bytes = match reply {
                Reply::Welcome(welcome) => Ok(pb::JoinResponse::from(welcome).encode_to_vec()),
                Reply::Ask(answer) => Ok(pb::AskResponse::from(answer).encode_to_vec()),
                Reply::Watch(answer) => Ok(pb::WatchResponse::from(answer).encode_to_vec()),
                Reply::Left => Ok(pb::LeaveResponse::default().encode_to_vec()),
                Reply::Rejected(_) => Err(CallFailure::Status(14)),
            };
            self.answer(to, bytes);
        }
    }

    fn answer(&mut self, to: ReplyTo, answer: Result<Vec<u8>, CallFailure>) {
        if let Some((_, from)) = self.open.remove(&to) {
            self.answered.push((from, answer));
        }
    }

    fn readings(&self) -> Readings {
        Readings {
            local: self.now,
            wall: ServiceTime::new(EPOCH).plus(self.now.since(LocalTime::ZERO)),
            boot: None,
        }
    }
}
