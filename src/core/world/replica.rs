//! The replicas' side of the world: requests, ticks, calls and their answers.

use std::rc::Rc;

use super::{Event, Message, TICK, World};
use crate::owner::effect::Reply;
use crate::replica::leader::LeaderCall;
use crate::replica::worker::{Charge, Request, RequestId, Settled};
use crate::units::{LocalTime, ServiceTime, Span, Tokens};

/// One charge for each rule, in order.
pub(super) fn charges(values: &[String]) -> Vec<Charge> {
    let charge = |(rule, value): (usize, &String)| Charge {
        rule,
        values: vec![Some(Rc::from(value.as_bytes()))],
        cost: Tokens::new(1),
    };
    values.iter().enumerate().map(charge).collect()
}

impl World {
    pub(super) fn local(&self, replica: usize) -> LocalTime {
        LocalTime::new(self.now + self.replicas[replica].offset)
    }

    pub(super) fn true_time(&self) -> ServiceTime {
        let local = LocalTime::new(self.now);
        let known = self
            .shard
            .as_ref()
            .and_then(|shard| shard.service_time(local));
        known.unwrap_or_else(|| self.readings().wall)
    }

    pub(super) fn arrive(&mut self, index: usize, worker: usize, values: &[String]) {
        if self.replicas[index].dead {
            return;
        }
        self.next_request += 1;
        let id = RequestId::new(self.next_request);
        self.judge.arrived(id, values, self.true_time());
        self.requests.insert(id, index);
        let now = self.local(index);
        let deadline = now.plus(Span::from_millis(100));
        let request = Request {
            id,
            charges: charges(values),
            deadline,
        };
        let replica = &mut self.replicas[index];
        let settled = replica.workers[worker].arrive(&replica.memory, now, request);
        self.settle(settled.into_iter().collect());
        self.send_asks(index);
    }

    pub(super) fn settle(&mut self, settled: Vec<Settled>) {
        for settled in settled {
            assert!(
                self.requests.remove(&settled.request).is_some(),
                "settled twice"
            );
            self.judge
                .settled(settled.request, settled.verdict, self.true_time());
        }
    }

    pub(super) fn send_asks(&mut self, index: usize) {
        let now = self.local(index);
        for worker in 0..self.replicas[index].workers.len() {
            loop {
                let replica = &mut self.replicas[index];
                let call = replica.workers[worker].next_call(&replica.memory, now);
                let Some(call) = call else { break };
                let message = Message::Ask {
                    replica: index,
                    worker,
                    call: call.id,
                    body: call.body,
                };
                self.send(message);
            }
        }
    }

    pub(super) fn tick(&mut self, index: usize) {
        if self.replicas[index].dead {
            return;
        }
        let now = self.local(index);
        let mut settled = Vec::new();
        let replica = &mut self.replicas[index];
        for worker in &mut replica.workers {
            settled.extend(worker.tick(&replica.memory, now));
        }
        self.settle(settled);
        self.lead(index);
        self.send_asks(index);
        self.schedule(TICK, Event::Tick { replica: index });
    }

    pub(super) fn lead(&mut self, index: usize) {
        let now = self.local(index);
        let replica = &mut self.replicas[index];
        let call = replica
            .leader
            .next_call(&replica.memory, now, replica.id)
            .unwrap();
        match call {
            None => {}
            Some(LeaderCall::Join(ticket, body)) => self.send(Message::Join {
                replica: index,
                ticket,
                body,
            }),
            Some(LeaderCall::Watch(ticket, sender)) => self.send(Message::Watch {
                replica: index,
                ticket,
                sender,
            }),
        }
    }

    pub(super) fn at_replica(&mut self, message: Message, reply: Option<Reply>) {
        let (Message::Ask { replica, .. }
        | Message::Join { replica, .. }
        | Message::Watch { replica, .. }) = message;
        if self.replicas[replica].dead {
            return;
        }
        let now = self.local(replica);
        let state = &mut self.replicas[replica];
        match message {
            Message::Ask { worker, call, .. } => {
                let answer = match reply {
                    Some(Reply::Ask(answer)) => Some(answer),
                    _ => None,
                };
                let settled = state.workers[worker].answered(&state.memory, now, call, answer);
                self.settle(settled);
            }
            Message::Join { ticket, .. } => {
                let welcome = match reply {
                    Some(Reply::Welcome(welcome)) => Some(welcome),
                    _ => None,
                };
                state
                    .leader
                    .joined(&state.memory, now, ticket, welcome)
                    .unwrap();
            }
            Message::Watch { ticket, .. } => {
                let answer = match reply {
                    Some(Reply::Watch(answer)) => Some(answer),
                    _ => None,
                };
                let returns = state
                    .leader
                    .watched(&state.memory, now, ticket, answer)
                    .unwrap();
                for returned in returns {
                    state.workers[0].send_return(returned);
                }
                self.lead(replica);
            }
        }
        self.send_asks(replica);
    }
}
