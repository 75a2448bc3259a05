//! Whole calls.

use super::{Checked, WireError, bad, checked_list, required};
use crate::key::HashKey;
use crate::message::SeatState;
use crate::message::call::{AskAnswer, AskCall, Join, Leave, WatchAnswer, Welcome};
use crate::units::{Epoch, Seat, ServiceTime, Span};
use crate::wire as pb;

/// Most rules one replica may state: a configuration of more is a mistake, and each costs the
/// service some hundred bytes for as long as the replica lives.
pub const RULES_PER_REPLICA_MAX: usize = 1_024;

/// Most leases one Join may register: the cells of the largest table. At 60 bytes each that is
/// below the 4 MiB a message may have.
pub const LEASES_PER_JOIN_MAX: usize = 65_536;

impl From<Join> for pb::JoinRequest {
    fn from(join: Join) -> Self {
        Self {
            protocol_version: join.protocol_version,
            sender: Some(join.sender.into()),
            rules: join.rules.into_iter().map(Into::into).collect(),
            leases: join.leases.into_iter().map(Into::into).collect(),
            fenced_for_epoch: join.fenced_for.map_or(0, Epoch::get),
        }
    }
}

impl TryFrom<pb::JoinRequest> for Join {
    type Error = WireError;

    fn try_from(join: pb::JoinRequest) -> Checked<Self> {
        if join.rules.len() > RULES_PER_REPLICA_MAX {
            return bad("rules", "longer than a replica may have");
        }
        if join.leases.len() > LEASES_PER_JOIN_MAX {
            return bad("leases", "longer than a replica may hold");
        }
        Ok(Self {
            protocol_version: join.protocol_version,
            sender: join.sender.try_into()?,
            rules: join
                .rules
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Checked<_>>()?,
            leases: join
                .leases
                .into_iter()
                .map(TryInto::try_into)
                .collect::<Checked<_>>()?,
            fenced_for: (join.fenced_for_epoch != 0).then_some(Epoch::new(join.fenced_for_epoch)),
        })
    }
}

impl From<Welcome> for pb::JoinResponse {
    fn from(welcome: Welcome) -> Self {
        Self {
            epoch: welcome.epoch.get(),
            seat: welcome.seat.get(),
            time_to_live_ns: welcome.time_to_live.get(),
            stamps: Some(welcome.stamps.into()),
            hash_key: welcome.hash_key.bytes().to_vec(),
            seat_state: pb::SeatState::from(welcome.seat_state).into(),
            joined_service_ns: welcome.joined.get(),
            directory: welcome.directory.map(Into::into),
        }
    }
}

impl TryFrom<pb::JoinResponse> for Welcome {
    type Error = WireError;

    fn try_from(welcome: pb::JoinResponse) -> Checked<Self> {
        let Ok(hash_key) = <[u8; 16]>::try_from(welcome.hash_key.as_slice()) else {
            return bad("hash_key", "not 16 bytes long");
        };
        if welcome.time_to_live_ns == 0 {
            return bad("time_to_live_ns", "zero");
        }
        Ok(Self {
            epoch: Epoch::new(welcome.epoch),
            seat: Seat::new(welcome.seat),
            time_to_live: Span::new(welcome.time_to_live_ns),
            stamps: required(welcome.stamps, "stamps")?.into(),
            hash_key: HashKey::new(hash_key),
            seat_state: seat_state(welcome.seat_state)?,
            joined: ServiceTime::new(welcome.joined_service_ns),
            directory: welcome.directory.map(TryInto::try_into).transpose()?,
        })
    }
}

impl From<Leave> for pb::LeaveRequest {
    fn from(leave: Leave) -> Self {
        Self {
            sender: Some(leave.sender.into()),
            leases: leave.leases.into_iter().map(Into::into).collect(),
            complete: leave.complete,
        }
    }
}

impl TryFrom<pb::LeaveRequest> for Leave {
    type Error = WireError;

    fn try_from(leave: pb::LeaveRequest) -> Checked<Self> {
        if leave.leases.len() > LEASES_PER_JOIN_MAX {
            return bad("leases", "longer than a replica may hold");
        }
        let leases = leave.leases.into_iter().map(TryInto::try_into);
        Ok(Self {
            sender: leave.sender.try_into()?,
            leases: leases.collect::<Checked<_>>()?,
            complete: leave.complete,
        })
    }
}

impl From<AskCall> for pb::AskRequest {
    fn from(call: AskCall) -> Self {
        Self {
            sender: Some(call.sender.into()),
            asks: call.asks.into_iter().map(Into::into).collect(),
            returns: call.returns.into_iter().map(Into::into).collect(),
            resolutions: call.resolutions.into_iter().map(Into::into).collect(),
            settlements: Vec::new(),
        }
    }
}

impl TryFrom<pb::AskRequest> for AskCall {
    type Error = WireError;

    fn try_from(call: pb::AskRequest) -> Checked<Self> {
        if !call.settlements.is_empty() {
            return bad("settlements", "not understood by this version");
        }
        Ok(Self {
            sender: call.sender.try_into()?,
            asks: checked_list(call.asks, "asks")?,
            returns: checked_list(call.returns, "returns")?,
            resolutions: checked_list(call.resolutions, "resolutions")?,
        })
    }
}

fn seat_state(state: i32) -> Checked<SeatState> {
    let known = pb::SeatState::try_from(state).ok();
    required(known, "seat_state").map(Into::into)
}

impl From<AskAnswer> for pb::AskResponse {
    fn from(answer: AskAnswer) -> Self {
        Self {
            epoch: answer.epoch.get(),
            stamps: Some(answer.stamps.into()),
            seat_state: pb::SeatState::from(answer.seat_state).into(),
            answers: answer.answers.into_iter().map(Into::into).collect(),
            recalls: answer.recalls.into_iter().map(Into::into).collect(),
            resolved: Vec::new(),
        }
    }
}

impl TryFrom<pb::AskResponse> for AskAnswer {
    type Error = WireError;

    fn try_from(answer: pb::AskResponse) -> Checked<Self> {
        Ok(Self {
            epoch: Epoch::new(answer.epoch),
            stamps: required(answer.stamps, "stamps")?.into(),
            seat_state: seat_state(answer.seat_state)?,
            answers: checked_list(answer.answers, "answers")?,
            recalls: checked_list(answer.recalls, "recalls")?,
        })
    }
}

impl From<WatchAnswer> for pb::WatchResponse {
    fn from(answer: WatchAnswer) -> Self {
        Self {
            epoch: answer.epoch.get(),
            stamps: Some(answer.stamps.into()),
            seat_state: pb::SeatState::from(answer.seat_state).into(),
            recalls: answer.recalls.into_iter().map(Into::into).collect(),
            exhausted: answer.exhausted.into_iter().map(Into::into).collect(),
            leases: answer.leases.into_iter().map(Into::into).collect(),
            directory: answer.directory.map(Into::into),
        }
    }
}

impl TryFrom<pb::WatchResponse> for WatchAnswer {
    type Error = WireError;

    fn try_from(answer: pb::WatchResponse) -> Checked<Self> {
        Ok(Self {
            epoch: Epoch::new(answer.epoch),
            stamps: required(answer.stamps, "stamps")?.into(),
            seat_state: seat_state(answer.seat_state)?,
            recalls: checked_list(answer.recalls, "recalls")?,
            exhausted: checked_list(answer.exhausted, "exhausted")?,
            leases: checked_list(answer.leases, "leases")?,
            directory: answer.directory.map(TryInto::try_into).transpose()?,
        })
    }
}
