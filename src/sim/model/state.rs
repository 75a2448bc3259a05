//! One state of a model, and the steps that lead from one to the next.

use headgate_core::owner::effect::{Outcome, Reply, ReplyTo};

use super::instance::{Instance, Purpose, UnderWay};
use super::judge::Book;
use super::memory::Memory;
use super::plan::Budget;
use super::pool::{Part, Pool};
use crate::service::Body;
use crate::store::Records;
use headgate_core::owner::shard::Shard;

/// A call, as its caller knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Call {
    pub(super) instance: usize,
    pub(super) number: u16,
    pub(super) purpose: Purpose,
    /// The connection ends with the service that it was made to.
    pub(super) epoch: u64,
}

impl Call {
    /// How the owner names one copy of its request.
    pub(super) fn reply_to(&self, copy: u8) -> ReplyTo {
        let instance = u64::try_from(self.instance).unwrap_or(u64::MAX) << 32;
        ReplyTo::new(instance | u64::from(self.number) << 8 | u64::from(copy))
    }

    /// Whether this is the call that the owner names so.
    pub(super) fn is_named(&self, name: ReplyTo) -> bool {
        self.reply_to(0).get() == name.get() & !0xFF
    }
}

/// What is on its way.
#[derive(Clone, Debug)]
pub(super) enum Message {
    Request { call: Call, copy: u8, body: Body },
    Answer { call: Call, reply: Reply },
}

/// One replica's part of a state.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct ReplicaState {
    pub(super) memory: Memory,
    pub(super) is_dead: bool,
}

/// One instance's part of a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct InstanceState {
    pub(super) part: Part,
    /// What it is in the middle of.
    pub(super) under_way: Option<Part>,
    /// Calls it has made.
    pub(super) calls: u16,
}

/// A state: everything that decides what can happen from here on.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct State {
    /// How often time has gone on.
    pub(super) passed: u8,
    pub(super) left: Budget,
    pub(super) epoch: u64,
    /// None while there is no service.
    pub(super) owner: Option<Part>,
    pub(super) records: Part,
    /// Steps of the owner whose changes are not durable yet, in order.
    pub(super) unwritten: Vec<Part>,
    pub(super) replicas: Vec<ReplicaState>,
    pub(super) instances: Vec<InstanceState>,
    /// Sorted: there is no order among messages.
    pub(super) network: Vec<Part>,
    /// Calls whose caller still waits.
    pub(super) open: Vec<Part>,
    pub(super) book: Part,
}

/// One step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// This request comes.
    Visit(u8),
    /// The client of this request goes.
    Leave(u8),
    /// An instance sends what it has to send.
    Send(u8),
    /// An instance looks at the time.
    Tick(u8),
    /// An instance goes on with what it is in the middle of.
    GoOn(u8),
    /// A message arrives.
    Deliver(Part),
    /// A request arrives, and is on its way once more.
    Duplicate(Part),
    /// A caller gives up.
    GiveUp(Part),
    /// A call's connection has ended with its service.
    BreakOff(Part),
    /// The owner looks at the time.
    Wake,
    /// The owner's oldest step becomes durable, and its replies leave.
    Write,
    /// Time goes on.
    Pass,
    KillReplica(u8),
    KillService,
    StartService,
}

/// Every distinct part of the states.
#[derive(Debug, Default)]
pub(super) struct Pools {
    pub(super) owners: Pool<Shard>,
    pub(super) records: Pool<Records>,
    pub(super) outcomes: Pool<Outcome>,
    pub(super) instances: Pool<Instance>,
    pub(super) under_way: Pool<UnderWay>,
    pub(super) messages: Pool<Message>,
    pub(super) calls: Pool<Call>,
    pub(super) books: Pool<Book>,
}

/// Adds a part to a sorted list.
pub(super) fn insert(list: &mut Vec<Part>, part: Part) {
    let place = list.partition_point(|other| *other < part);
    list.insert(place, part);
}

/// Takes one such part out of a list.
pub(super) fn remove(list: &mut Vec<Part>, part: Part) -> bool {
    let found = list.iter().position(|other| *other == part);
    if let Some(place) = found {
        list.remove(place);
    }
    found.is_some()
}
