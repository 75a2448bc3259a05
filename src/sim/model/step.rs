//! Steps of the replicas, the network and time. Those of the owner are in [`super::owner`].

use headgate_core::message::call::AskAnswer;
use headgate_core::owner::effect::Reply;
use headgate_core::replica::shared::SharedError;
use headgate_core::replica::worker::{Settled, Verdict};

use super::instance::{Output, Purpose, Task, UnderWay};
use super::judge::{Answered, Status};
use super::machine::{Machine, replica_id};
use super::memory::{Access, Defects, Grain, View};
use super::plan::{Broken, Seen};
use super::pool::Part;
use super::state::{Call, Message, State, Step, insert, remove};
use super::wrong::{Promise, Wrong};
use crate::service::Body;

impl Machine {
    /// Takes a step.
    pub(super) fn step(&mut self, state: &mut State, step: Step) -> Result<(), Wrong> {
        match step {
            Step::Visit(request) => {
                let request = usize::from(request);
                let visit = self.visits.get(request).copied();
                let visit = visit.ok_or_else(|| Wrong::model("no such request"))?;
                self.visit(state, request, visit)
            }
            Step::Leave(request) => self.leave(state, usize::from(request)),
            Step::Send(instance) => self.begin_task(state, usize::from(instance), Task::Send),
            Step::Tick(instance) => self.begin_task(state, usize::from(instance), Task::Tick),
            Step::GoOn(instance) => self.go_on(state, usize::from(instance)),
            Step::Deliver(part) => {
                remove(&mut state.network, part);
                self.deliver(state, part)
            }
            Step::Duplicate(part) => self.duplicate(state, part),
            Step::GiveUp(part) => {
                state.left.given_up = state.left.given_up.saturating_sub(1);
                self.end_call(state, part, None)
            }
            Step::BreakOff(part) => self.end_call(state, part, None),
            Step::Wake => self.wake(state),
            Step::Write => self.write(state),
            Step::Pass => {
                state.passed = state.passed.saturating_add(1);
                Ok(())
            }
            Step::KillReplica(replica) => self.kill_replica(state, usize::from(replica)),
            Step::KillService => self.kill_service(state),
            Step::StartService => self.start_service(state),
        }
    }

    pub(super) fn begin_task(
        &mut self,
        state: &mut State,
        instance: usize,
        task: Task,
    ) -> Result<(), Wrong> {
        let under_way = UnderWay {
            task,
            seen: Vec::new(),
        };
        self.perform(state, instance, under_way)
    }

    fn go_on(&mut self, state: &mut State, instance: usize) -> Result<(), Wrong> {
        let place = state.instances.get(instance);
        let under_way = place.and_then(|place| self.pools.under_way.get(place.under_way?));
        let under_way = under_way.ok_or_else(|| Wrong::model("nothing under way"))?;
        self.perform(state, instance, UnderWay::clone(&under_way))
    }

    /// Does a task as far as one more access to shared memory.
    fn perform(
        &mut self,
        state: &mut State,
        instance: usize,
        under_way: UnderWay,
    ) -> Result<(), Wrong> {
        let replica = self.model.replica_of(instance);
        let (place, home) = state
            .instances
            .get_mut(instance)
            .zip(state.replicas.get_mut(replica))
            .ok_or_else(|| Wrong::model("no such instance"))?;
        let before = self.pools.instances.get(place.part);
        let before = before.ok_or_else(|| Wrong::model("no such instance"))?;
        let mut after = super::instance::Instance::clone(&before);
        let how = self.memory_of(replica, &under_way.task);
        let UnderWay { task, seen } = under_way;
        let tried = seen.len();
        let view = View::new(&self.values, std::mem::take(&mut home.memory), seen, how);
        let now = self.local(state, replica);
        let output = after.perform(&task, &view, (now, replica_id(replica)));
        let end = view.end();
        let place = state.instances.get_mut(instance);
        let place = place.ok_or_else(|| Wrong::model("no such instance"))?;
        if let Some(home) = state.replicas.get_mut(replica) {
            home.memory = end.memory;
        }
        let Some(seen) = end.under_way else {
            place.under_way = None;
            place.part = self.pools.instances.put(after);
            return self.take_output(state, instance, output);
        };
        if seen
            .get(tried..)
            .is_some_and(|new| new.contains(&Access::Wrote(false)))
        {
            self.sees(Seen::RaceLost);
        }
        place.under_way = Some(self.pools.under_way.put(UnderWay { task, seen }));
        Ok(())
    }

    fn memory_of(&self, replica: usize, task: &Task) -> (Grain, Defects) {
        let alone = self
            .model
            .workers
            .get(replica)
            .is_none_or(|workers| *workers == 1);
        let grain = if alone || !self.is_searching() {
            Grain::Whole
        } else {
            self.model.grain
        };
        let recalled = match task {
            Task::Watched(_, Some(answer)) => !answer.recalls.is_empty(),
            Task::Answer(_, Some(answer)) => !answer.recalls.is_empty(),
            _ => false,
        };
        if !self.is_searching() {
            return (grain, Defects::default());
        }
        let defects = Defects {
            is_blind: self.model.is_broken(Broken::BlindWrites),
            forgets: recalled && self.model.is_broken(Broken::UnrecordedReturns),
        };
        (grain, defects)
    }

    fn take_output(
        &mut self,
        state: &mut State,
        instance: usize,
        output: Output,
    ) -> Result<(), Wrong> {
        if let Some(error) = output.failed {
            return Err(Wrong::new(Promise::NothingBroken, error.to_string()));
        }
        if output.broken > 0 {
            let what = format!("instance {instance}: {}", SharedError::Corrupt);
            return Err(Wrong::new(Promise::NothingBroken, what));
        }
        for (purpose, body) in output.calls {
            self.send(state, instance, (purpose, body));
        }
        for settled in output.settled {
            self.take_settled(state, &settled)?;
        }
        Ok(())
    }

    fn send(&mut self, state: &mut State, instance: usize, (purpose, body): (Purpose, Body)) {
        let Some(place) = state.instances.get_mut(instance) else {
            return;
        };
        let call = Call {
            instance,
            number: place.calls,
            purpose,
            epoch: state.epoch,
        };
        place.calls = place.calls.saturating_add(1);
        insert(&mut state.open, self.pools.calls.put(call));
        let message = Message::Request {
            call,
            copy: 0,
            body,
        };
        insert(&mut state.network, self.pools.messages.put(message));
    }

    fn take_settled(&mut self, state: &mut State, settled: &Settled) -> Result<(), Wrong> {
        let request = usize::try_from(settled.request.get()).unwrap_or(usize::MAX);
        if request >= self.visits.len() {
            return Ok(());
        }
        let here = settled.waited.is_none();
        let (answered, seen) = match settled.verdict {
            Verdict::Admit if here => (Answered::Admitted, Seen::AdmittedHere),
            Verdict::Admit => (Answered::Admitted, Seen::AdmittedByOwner),
            Verdict::Refuse { rule, .. } if here => (Answered::Refused(rule), Seen::RefusedHere),
            Verdict::Refuse { rule, .. } => (Answered::Refused(rule), Seen::RefusedByOwner),
            Verdict::Undecided { .. } => (Answered::Undecided, Seen::Undecided),
        };
        self.sees(seen);
        let window = self.window(state);
        self.change_book(state, |book| book.answered(request, answered, window))
    }

    /// A client goes away; its request may have been charged.
    fn leave(&mut self, state: &mut State, request: usize) -> Result<(), Wrong> {
        state.left.clients_gone = state.left.clients_gone.saturating_sub(1);
        let instance = self.visits.get(request).map_or(0, |visit| visit.instance);
        let window = self.window(state);
        self.change_book(state, |book| {
            book.answered(request, Answered::Undecided, window)
        })?;
        let id = u32::try_from(request).unwrap_or(u32::MAX);
        let id = headgate_core::replica::worker::RequestId::new(id);
        self.begin_task(state, instance, Task::Forget(id))
    }

    fn deliver(&mut self, state: &mut State, part: Part) -> Result<(), Wrong> {
        let message = self.pools.messages.get(part);
        let message = message.ok_or_else(|| Wrong::model("no such message"))?;
        match &*message {
            Message::Request { call, copy, body } => {
                self.reach_owner(state, call.reply_to(*copy), body)
            }
            Message::Answer { call, reply } => {
                let part = self.pools.calls.put(*call);
                self.end_call(state, part, Some(reply.clone()))
            }
        }
    }

    /// A request arrives and stays on its way.
    fn duplicate(&mut self, state: &mut State, part: Part) -> Result<(), Wrong> {
        state.left.duplicated = state.left.duplicated.saturating_sub(1);
        remove(&mut state.network, part);
        let message = self.pools.messages.get(part);
        if let Some(Message::Request { call, body, .. }) = message.as_deref() {
            let again = Message::Request {
                call: *call,
                copy: 1,
                body: body.clone(),
            };
            insert(&mut state.network, self.pools.messages.put(again));
        }
        self.deliver(state, part)
    }

    /// A call ends for its caller, with or without an answer.
    fn end_call(
        &mut self,
        state: &mut State,
        part: Part,
        reply: Option<Reply>,
    ) -> Result<(), Wrong> {
        let call = self.pools.calls.get(part);
        let call = *call.ok_or_else(|| Wrong::model("no such call"))?;
        if !remove(&mut state.open, part) {
            return Ok(());
        }
        // Answers that come later find nobody.
        let pools = &self.pools;
        state.network.retain(|other| {
            let message = pools.messages.get(*other);
            !matches!(message.as_deref(), Some(Message::Answer { call: of, .. }) if *of == call)
        });
        let replica = self.model.replica_of(call.instance);
        let task = match (call.purpose, reply) {
            (Purpose::Ask(id), Some(Reply::Ask(answer))) => {
                let answer = self.spoil(state, replica, answer);
                Task::Answer(id, Some(answer))
            }
            (Purpose::Ask(id), _) => Task::Answer(id, None),
            (Purpose::Join(ticket), Some(Reply::Welcome(mut welcome))) => {
                if self.model.is_broken(Broken::EndlessSeats) {
                    welcome.time_to_live = headgate_core::units::Span::from_secs(1_000);
                }
                Task::Joined(ticket, Some(welcome))
            }
            (Purpose::Join(ticket), _) => Task::Joined(ticket, None),
            (Purpose::Watch(ticket), Some(Reply::Watch(answer))) => {
                Task::Watched(ticket, Some(answer))
            }
            (Purpose::Watch(ticket), _) => Task::Watched(ticket, None),
        };
        self.begin_task(state, call.instance, task)
    }

    /// What a broken network makes of an answer.
    fn spoil(&self, state: &State, replica: usize, mut answer: AskAnswer) -> AskAnswer {
        use headgate_core::message::{Decision, Proof};
        let memory = state.replicas.get(replica).map(|replica| &replica.memory);
        for answer in &mut answer.answers {
            if let (Some(lease), true, Some(memory)) = (
                &mut answer.lease,
                self.model.is_broken(Broken::OldGrants),
                memory,
            ) {
                let cells = memory.cells(&self.values);
                let cell = cells.iter().find(|cell| cell.key == answer.id.key);
                lease.0 = cell.map_or(lease.0, |cell| cell.amounts.generation);
            }
            if answer.lease.is_some() && self.model.is_broken(Broken::InventedProofs) {
                answer.total = Some(Proof {
                    left: headgate_core::units::Tokens::ZERO,
                    time_to_live: headgate_core::units::Span::from_secs(60),
                });
            }
            if self.model.is_broken(Broken::AdmitsRefused)
                && self.keys.first() == Some(&answer.id.key)
            {
                let refused = answer
                    .decisions
                    .iter_mut()
                    .filter(|it| **it == Decision::Refuse);
                refused.for_each(|decision| *decision = Decision::Admit);
            }
        }
        answer
    }

    /// A process dies with its memory. What it sent is still on its way. The memory is kept for the
    /// truth of what was used.
    fn kill_replica(&mut self, state: &mut State, replica: usize) -> Result<(), Wrong> {
        state.left.replicas_killed = state.left.replicas_killed.saturating_sub(1);
        if let Some(place) = state.replicas.get_mut(replica) {
            place.is_dead = true;
        }
        for (instance, place) in state.instances.iter_mut().enumerate() {
            if self.model.replica_of(instance) == replica {
                place.under_way = None;
            }
        }
        let pools = &self.pools;
        let model = &self.model;
        let of_it = |instance: usize| model.replica_of(instance) == replica;
        state.open.retain(|part| {
            let call = pools.calls.get(*part);
            call.is_some_and(|call| !of_it(call.instance))
        });
        state.network.retain(|part| {
            let message = pools.messages.get(*part);
            let answered = match message.as_deref() {
                Some(Message::Answer { call, .. }) => Some(call.instance),
                _ => None,
            };
            !answered.is_some_and(of_it)
        });
        for request in 0..self.visits.len() {
            let visit = self.visits.get(request);
            let its = visit.is_some_and(|it| self.model.replica_of(it.instance) == replica);
            let book = self.pools.books.get(state.book);
            let status = book.and_then(|book| book.status(request));
            if its && matches!(status, Some(Status::Waiting(_))) {
                let window = self.window(state);
                self.change_book(state, |book| {
                    book.answered(request, Answered::Undecided, window)
                })?;
            }
        }
        Ok(())
    }
}
