//! Service time: never runs backwards, not even from one leader to the next.
//!
//! A leader stores a ceiling ahead of the time it uses. The next one continues from what a live
//! replica can say about service time; where there is none, it waits until every lease of the old
//! leader has ended and goes on from beyond all that replicas may have taken the time for.

use crate::clock::TimeBounds;
use crate::units::{LocalTime, ServiceTime, Span};

/// How far ahead of use the ceiling is stored: one write a second at most, and one second at most
/// is skipped where nobody remembers the time.
pub const CEILING_AHEAD: Span = Span::from_millis(1_000);

/// What the leader's machine says of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readings {
    /// Its monotonic clock.
    pub local: LocalTime,
    /// Its wall clock, as service time would have it.
    pub wall: ServiceTime,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Service time is not known; every lease of the old leader has ended at `until`, and no bound
    /// that rests on its word lies beyond `credible`.
    Recovering {
        until: LocalTime,
        credible: ServiceTime,
    },
    /// It was `service` at `local`.
    Running {
        local: LocalTime,
        service: ServiceTime,
        /// What replicas say may still put it forward.
        settling: Option<Settling>,
    },
}

/// The first time of a leader that follows another one: what a replica said in its Join is behind
/// by as much as the Join was late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Settling {
    until: LocalTime,
    credible: ServiceTime,
}

/// Service time at its leader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ServiceClock {
    state: State,
    ceiling: ServiceTime,
}

impl ServiceClock {
    /// For a store in which nothing was ever promised: the wall clock's time.
    #[must_use]
    pub const fn fresh(at: Readings) -> Self {
        let state = State::Running {
            local: at.local,
            service: at.wall,
            settling: None,
        };
        Self {
            state,
            ceiling: ServiceTime::ZERO,
        }
    }

    /// For a leader that follows another one, which used no time beyond `ceiling` and promised no
    /// lease for longer than `time_to_live`.
    #[must_use]
    pub const fn following(ceiling: ServiceTime, at: Readings, time_to_live: Span) -> Self {
        // A live seat heard the old leader within its time-to-live, and no time beyond the ceiling.
        // Its bound may be wider by the drift of that time: far less than another ceiling's lead.
        let credible = ceiling.plus(time_to_live).plus(CEILING_AHEAD);
        let state = State::Recovering {
            until: at.local.plus(time_to_live),
            credible,
        };
        Self { state, ceiling }
    }

    /// Service time, once it is known.
    #[must_use]
    pub const fn now(&self, local: LocalTime) -> Option<ServiceTime> {
        match self.state {
            State::Recovering { .. } => None,
            State::Running {
                local: then,
                service,
                ..
            } => Some(service.plus(local.since(then))),
        }
    }

    /// Service time at an instant, as it may be told: never beyond what is stored as the ceiling.
    #[must_use]
    pub fn stamp(&self, local: LocalTime) -> Option<ServiceTime> {
        self.now(local).map(|now| now.min(self.ceiling))
    }

    /// The instant of this machine's clock at which service time will be `at`.
    #[must_use]
    pub const fn local_at(&self, at: ServiceTime) -> LocalTime {
        match self.state {
            State::Recovering { until, .. } => until,
            State::Running { local, service, .. } => local.plus(at.since(service)),
        }
    }

    /// When time alone ends the recovery.
    #[must_use]
    pub const fn recovers_at(&self) -> Option<LocalTime> {
        match self.state {
            State::Recovering { until, .. } => Some(until),
            State::Running { .. } => None,
        }
    }

    /// A live replica says what service time was when it sent a message. Its upper bound is not
    /// before any time the old leader used, nor before any that replicas have counted on since,
    /// which after a long outage is beyond the ceiling; but for the time that the message took. So
    /// whatever is certainly over for one that speaks later is over. A bound that no live seat can
    /// have, and that lies beyond the wall clock too, is a clock gone wrong.
    pub fn hear(&mut self, at: Readings, said: TimeBounds) {
        let (known, settling, said) = match self.state {
            State::Recovering { until, credible } => {
                (None, Settling { until, credible }, said.latest)
            }
            State::Running {
                settling: Some(settling),
                ..
            } if at.local < settling.until => (self.now(at.local), settling, said.earliest),
            State::Running { .. } => return,
        };
        let service = said.min(settling.credible.max(at.wall));
        if known.is_none_or(|known| known < service) {
            self.state = State::Running {
                local: at.local,
                service,
                settling: Some(settling),
            };
        }
    }

    /// With no live replica left, nobody can be misled by a jump: on from the latest time at which
    /// a replica may have been alive, or from the wall clock where that is later. Not from the
    /// ceiling, beyond which replicas have spent their standing shares of windows that began then.
    pub fn give_up_waiting(&mut self, at: Readings) {
        if let State::Recovering { until, credible } = self.state
            && until <= at.local
        {
            let service = credible.max(at.wall);
            self.state = State::Running {
                local: at.local,
                service,
                settling: None,
            };
        }
    }

    /// No replica had a seat, so nobody can be misled: as if all waiting were over.
    pub fn skip_waiting(&mut self, at: Readings) {
        if let State::Recovering { until, credible } = &mut self.state {
            *until = at.local;
            *credible = self.ceiling;
        }
        self.give_up_waiting(at);
    }

    /// The ceiling to store before time at `now` is told to anybody, if the stored one is near.
    pub fn raise_ceiling(&mut self, now: ServiceTime) -> Option<ServiceTime> {
        let near = now.plus(Span::new(CEILING_AHEAD.get() / 2));
        if near < self.ceiling {
            return None;
        }
        self.ceiling = now.plus(CEILING_AHEAD);
        Some(self.ceiling)
    }
}

#[cfg(test)]
mod tests;
