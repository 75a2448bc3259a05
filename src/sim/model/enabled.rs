//! What can happen next.

use super::judge::Status;
use super::machine::Machine;
use super::state::{Message, State, Step};

impl Step {
    /// Whether it happens by itself: no client, no fault and no time is needed for it.
    pub(super) const fn comes_by_itself(&self) -> bool {
        matches!(
            self,
            Self::Send(_)
                | Self::GoOn(_)
                | Self::Deliver(_)
                | Self::BreakOff(_)
                | Self::Wake
                | Self::Write
                | Self::StartService
        )
    }
}

fn small(index: usize) -> u8 {
    u8::try_from(index).unwrap_or(u8::MAX)
}

impl Machine {
    /// Every step that can be taken in a state.
    pub(super) fn enabled(&self, state: &State) -> Vec<Step> {
        let mut steps = Vec::new();
        self.of_instances(state, &mut steps);
        self.of_network(state, &mut steps);
        self.of_owner(state, &mut steps);
        // At rest no client and no fault begins anything any more.
        let ends = self
            .model
            .passes
            .len()
            .saturating_add(self.model.rests.len());
        if !self.model.rests.is_empty() && usize::from(state.passed) >= ends {
            steps.retain(|step| step.comes_by_itself() || matches!(step, Step::Tick(_)));
            return steps;
        }
        self.of_clients(state, &mut steps);
        if self.may_pass(state, &steps) {
            steps.push(Step::Pass);
        }
        if state.left.replicas_killed > 0 {
            let alive = |replica: &usize| self.is_alive(state, *replica);
            let replicas = (0..state.replicas.len()).filter(alive);
            steps.extend(replicas.map(|replica| Step::KillReplica(small(replica))));
        }
        steps
    }

    fn may_pass(&self, state: &State, steps: &[Step]) -> bool {
        let (passed, passes) = (usize::from(state.passed), self.model.passes.len());
        let ends = passes.saturating_add(self.model.rests.len());
        let rests = passed < ends && !steps.iter().any(Step::comes_by_itself);
        self.is_searching() && (passed < passes || rests)
    }

    fn is_alive(&self, state: &State, replica: usize) -> bool {
        state
            .replicas
            .get(replica)
            .is_some_and(|replica| !replica.is_dead)
    }

    /// Whether an instance can be given something to do.
    pub(super) fn is_idle(&self, state: &State, instance: usize) -> bool {
        let place = state.instances.get(instance);
        place.is_some_and(|place| place.under_way.is_none())
            && self.is_alive(state, self.model.replica_of(instance))
    }

    fn of_instances(&self, state: &State, steps: &mut Vec<Step>) {
        for (index, place) in state.instances.iter().enumerate() {
            if place.under_way.is_some() {
                if self.is_alive(state, self.model.replica_of(index)) {
                    steps.push(Step::GoOn(small(index)));
                }
                continue;
            }
            if !self.is_idle(state, index) {
                continue;
            }
            let instance = self.pools.instances.get(place.part);
            if instance.is_some_and(|instance| instance.has_something_to_send()) {
                steps.push(Step::Send(small(index)));
            }
            // While time stands still, or nobody waits, there is nothing new to see.
            if state.passed > 0
                && self
                    .pools
                    .instances
                    .get(place.part)
                    .is_some_and(|it| it.looks_at_time())
            {
                steps.push(Step::Tick(small(index)));
            }
        }
    }

    fn of_network(&self, state: &State, steps: &mut Vec<Step>) {
        let mut last = None;
        for part in &state.network {
            if last.replace(*part) == Some(*part) {
                continue;
            }
            match self.pools.messages.get(*part).as_deref() {
                Some(Message::Request { call, copy, .. })
                    if state.owner.is_some() && call.epoch == state.epoch =>
                {
                    steps.push(Step::Deliver(*part));
                    if state.left.duplicated > 0 && *copy == 0 {
                        steps.push(Step::Duplicate(*part));
                    }
                }
                Some(Message::Answer { call, .. }) if self.is_idle(state, call.instance) => {
                    steps.push(Step::Deliver(*part));
                }
                _ => {}
            }
        }
        for part in &state.open {
            let Some(call) = self.pools.calls.get(*part) else {
                continue;
            };
            if !self.is_idle(state, call.instance) {
                continue;
            }
            if state.owner.is_none() || call.epoch != state.epoch {
                steps.push(Step::BreakOff(*part));
            } else if state.left.given_up > 0 {
                steps.push(Step::GiveUp(*part));
            }
        }
    }

    fn of_owner(&self, state: &State, steps: &mut Vec<Step>) {
        let owner = state.owner.and_then(|owner| self.pools.owners.get(owner));
        let Some(owner) = owner else {
            steps.push(Step::StartService);
            return;
        };
        let now = self.readings(state).local;
        if owner.next_wake().is_some_and(|due| due <= now) {
            steps.push(Step::Wake);
        }
        if !state.unwritten.is_empty() {
            steps.push(Step::Write);
        }
        if state.left.service_killed > 0 {
            steps.push(Step::KillService);
        }
    }

    /// Requests of one instance come in their order.
    fn of_clients(&self, state: &State, steps: &mut Vec<Step>) {
        let Some(book) = self.pools.books.get(state.book) else {
            return;
        };
        let mut begun = vec![false; state.instances.len()];
        for (request, visit) in self.visits.iter().enumerate().skip(self.first_visit) {
            match book.status(request) {
                Some(Status::Coming) => {
                    let Some(begun) = begun.get_mut(visit.instance) else {
                        continue;
                    };
                    if !std::mem::replace(begun, true) && self.is_idle(state, visit.instance) {
                        steps.push(Step::Visit(small(request)));
                    }
                }
                Some(Status::Waiting(_))
                    if state.left.clients_gone > 0 && self.is_idle(state, visit.instance) =>
                {
                    steps.push(Step::Leave(small(request)));
                }
                _ => {}
            }
        }
    }
}
