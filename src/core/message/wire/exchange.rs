//! Asks, answers, recalls and returns.

use super::{Checked, WireError, amounts, bad, key, key_bytes, required, window};
use crate::message::{
    Answer, AnswerKind, Ask, AskId, COSTS_PER_ASK_MAX, Cost, Decision, Exhausted, Proof, Recall,
    Resolution, Return, SeatState,
};
use crate::units::{Asker, Generation, Rate, Sequence, ServiceTime, Span, Tokens};
use crate::wire as pb;

impl From<AskId> for pb::AskId {
    fn from(id: AskId) -> Self {
        Self {
            asker: id.asker.get(),
            sequence: id.sequence.get(),
            key: key_bytes(id.key),
        }
    }
}

impl TryFrom<pb::AskId> for AskId {
    type Error = WireError;

    fn try_from(id: pb::AskId) -> Checked<Self> {
        Ok(Self {
            asker: Asker::new(id.asker),
            sequence: Sequence::new(id.sequence),
            key: key(&id.key)?,
        })
    }
}

impl From<Cost> for pb::Cost {
    fn from(cost: Cost) -> Self {
        Self {
            amount: cost.amount.get(),
            provisional: cost.provisional,
            decide_by_service_ns: cost.decide_by.get(),
        }
    }
}

impl From<pb::Cost> for Cost {
    fn from(cost: pb::Cost) -> Self {
        Self {
            amount: Tokens::new(cost.amount),
            provisional: cost.provisional,
            decide_by: ServiceTime::new(cost.decide_by_service_ns),
        }
    }
}

impl From<Ask> for pb::KeyAsk {
    fn from(ask: Ask) -> Self {
        let amounts = ask.lease.unwrap_or_default();
        Self {
            asker: ask.id.asker.get(),
            sequence: ask.id.sequence.get(),
            key: key_bytes(ask.id.key),
            window: ask.window.map(Into::into),
            generation: amounts.generation.get(),
            granted: amounts.granted.get(),
            used: amounts.used.get(),
            reserved: amounts.reserved.get(),
            costs: ask.costs.into_iter().map(Into::into).collect(),
            demand_per_kilosecond: ask.demand.get(),
            has_cell: ask.lease.is_some(),
            descriptor: ask.descriptor.map(Into::into),
            spends: Vec::new(),
        }
    }
}

impl TryFrom<pb::KeyAsk> for Ask {
    type Error = WireError;

    fn try_from(ask: pb::KeyAsk) -> Checked<Self> {
        if ask.costs.len() > COSTS_PER_ASK_MAX {
            return bad("ask.costs", "longer than an ask may be");
        }
        let lease = amounts(ask.generation, ask.granted, ask.used, ask.reserved)?;
        Ok(Self {
            id: AskId {
                asker: Asker::new(ask.asker),
                sequence: Sequence::new(ask.sequence),
                key: key(&ask.key)?,
            },
            window: ask.window.map(window).transpose()?,
            lease: ask.has_cell.then_some(lease),
            costs: ask.costs.into_iter().map(Into::into).collect(),
            demand: Rate::new(ask.demand_per_kilosecond),
            descriptor: ask.descriptor.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<Return> for pb::Return {
    fn from(returned: Return) -> Self {
        Self {
            lease: Some(returned.lease.into()),
            demand_per_kilosecond: returned.demand.get(),
            has_cell: returned.has_cell,
        }
    }
}

impl TryFrom<pb::Return> for Return {
    type Error = WireError;

    fn try_from(returned: pb::Return) -> Checked<Self> {
        let lease = required(returned.lease, "return.lease")?.try_into()?;
        Ok(Self {
            lease,
            demand: Rate::new(returned.demand_per_kilosecond),
            has_cell: returned.has_cell,
        })
    }
}

impl From<Resolution> for pb::Resolution {
    fn from(resolution: Resolution) -> Self {
        Self {
            ask: Some(resolution.ask.into()),
            cost: resolution.cost,
            commit: resolution.commit,
        }
    }
}

impl TryFrom<pb::Resolution> for Resolution {
    type Error = WireError;

    fn try_from(resolution: pb::Resolution) -> Checked<Self> {
        let ask = required(resolution.ask, "resolution.ask")?.try_into()?;
        Ok(Self {
            ask,
            cost: resolution.cost,
            commit: resolution.commit,
        })
    }
}

impl From<Proof> for pb::Proof {
    fn from(proof: Proof) -> Self {
        Self {
            left: proof.left.get(),
            time_to_live_ns: proof.time_to_live.get(),
        }
    }
}

impl From<pb::Proof> for Proof {
    fn from(proof: pb::Proof) -> Self {
        Self {
            left: Tokens::new(proof.left),
            time_to_live: Span::new(proof.time_to_live_ns),
        }
    }
}

impl From<Answer> for pb::KeyAnswer {
    fn from(answer: Answer) -> Self {
        let key = answer.id.key;
        let lease = answer.lease.map(|(generation, granted)| pb::Lease {
            key: key_bytes(key),
            window: answer.window.map(Into::into),
            generation: generation.get(),
            granted: granted.get(),
            used: 0,
            reserved: 0,
        });
        Self {
            ask: Some(answer.id.into()),
            window: answer.window.map(Into::into),
            decisions: answer.decisions.into_iter().map(decision_to_wire).collect(),
            lease,
            total: answer.total.map(Into::into),
            excess: None,
            parked: answer.parked,
            wrong_window: answer.kind == AnswerKind::WrongWindow,
            unknown_key: answer.kind == AnswerKind::UnknownKey,
            stale: answer.kind == AnswerKind::Stale,
        }
    }
}

fn decision_to_wire(decision: Decision) -> i32 {
    let decision = match decision {
        Decision::Admit => pb::Decision::Admit,
        Decision::Refuse => pb::Decision::Refuse,
        Decision::Undecided => pb::Decision::Undecided,
    };
    decision.into()
}

fn decision_from_wire(decision: i32) -> Checked<Decision> {
    match pb::Decision::try_from(decision) {
        Ok(pb::Decision::Admit) => Ok(Decision::Admit),
        Ok(pb::Decision::Refuse) => Ok(Decision::Refuse),
        Ok(pb::Decision::Undecided) => Ok(Decision::Undecided),
        Ok(pb::Decision::Unspecified) | Err(_) => bad("decisions", "an unknown decision"),
    }
}

impl TryFrom<pb::KeyAnswer> for Answer {
    type Error = WireError;

    fn try_from(answer: pb::KeyAnswer) -> Checked<Self> {
        let kind = match (answer.wrong_window, answer.unknown_key, answer.stale) {
            (false, false, false) => AnswerKind::Judged,
            (true, false, false) => AnswerKind::WrongWindow,
            (false, true, false) => AnswerKind::UnknownKey,
            (false, false, true) => AnswerKind::Stale,
            _ => return bad("answer", "of several kinds at once"),
        };
        let decisions = answer.decisions.into_iter().map(decision_from_wire);
        let lease = answer.lease.map(|lease| {
            (
                Generation::new(lease.generation),
                Tokens::new(lease.granted),
            )
        });
        Ok(Self {
            id: required(answer.ask, "answer.ask")?.try_into()?,
            kind,
            window: answer.window.map(window).transpose()?,
            decisions: decisions.collect::<Checked<_>>()?,
            lease,
            total: answer.total.map(Into::into),
            parked: answer.parked,
        })
    }
}

impl From<Recall> for pb::Recall {
    fn from(recall: Recall) -> Self {
        Self {
            key: key_bytes(recall.key),
            window: Some(recall.window.into()),
            generation: recall.generation.get(),
            keep: recall.keep.get(),
        }
    }
}

impl TryFrom<pb::Recall> for Recall {
    type Error = WireError;

    fn try_from(recall: pb::Recall) -> Checked<Self> {
        Ok(Self {
            key: key(&recall.key)?,
            window: window(required(recall.window, "recall.window")?)?,
            generation: Generation::new(recall.generation),
            keep: Tokens::new(recall.keep),
        })
    }
}

impl From<Exhausted> for pb::Exhausted {
    fn from(exhausted: Exhausted) -> Self {
        Self {
            key: key_bytes(exhausted.key),
            window: Some(exhausted.window.into()),
            total: Some(exhausted.total.into()),
        }
    }
}

impl TryFrom<pb::Exhausted> for Exhausted {
    type Error = WireError;

    fn try_from(exhausted: pb::Exhausted) -> Checked<Self> {
        Ok(Self {
            key: key(&exhausted.key)?,
            window: window(required(exhausted.window, "exhausted.window")?)?,
            total: required(exhausted.total, "exhausted.total")?.into(),
        })
    }
}

impl From<SeatState> for pb::SeatState {
    fn from(state: SeatState) -> Self {
        match state {
            SeatState::Ok => Self::Ok,
            SeatState::Register => Self::Register,
            SeatState::Unknown => Self::Unknown,
        }
    }
}

impl From<pb::SeatState> for SeatState {
    fn from(state: pb::SeatState) -> Self {
        match state {
            pb::SeatState::Ok => Self::Ok,
            pb::SeatState::Register => Self::Register,
            pb::SeatState::Unknown => Self::Unknown,
        }
    }
}
