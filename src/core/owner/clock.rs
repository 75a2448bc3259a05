//! Service time: never runs backwards, not even from one leader to the next.
//!
//! A leader stores with the ceiling how service time goes on by its machine's clock since boot. A
//! service that is started again on the same boot goes on exactly there. For all others a leader
//! stores a ceiling ahead of the time it uses. The next one continues from what a live
//! replica can say about service time; where there is none, it waits until every lease of the old
//! leader has ended and goes on from beyond all that replicas may have taken the time for.

use crate::clock::TimeBounds;
use crate::units::{LocalTime, ServiceTime, Span};

mod line;

use line::Line;

/// How far ahead of use the ceiling is stored: one write a second at most, and one second at most
/// is skipped where nobody remembers the time.
pub const CEILING_AHEAD: Span = Span::from_millis(1_000);

/// How fast service time nears the wall clock, in millionths of the time that passes. Replicas
/// allow for it in their estimates; a second takes an hour and a half.
pub const SLEW_MILLIONTHS: u64 = 200;

/// Nearer than this to the wall clock there is nothing to mend.
const SLEW_FROM: Span = Span::from_millis(1);

/// Clocks that part by more than this between two looks were stepped, or the machine slept: no
/// slewing of a clock comes to it between two polls.
const STEP: Span = Span::from_millis(100);

/// A machine's clock since it was booted, which goes on while the machine sleeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Boot {
    /// Random, another one at each boot.
    pub id: u128,
    /// Time since then.
    pub since: Span,
}

/// Where service time stood, and how it goes on from there on the same boot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Anchor {
    /// On which machine, and when.
    pub boot: Boot,
    /// What service time was.
    pub service: ServiceTime,
    /// Nanoseconds that it was still to gain towards the wall clock; negative if to lose.
    pub slew: i64,
}

/// What a look at the machine's clocks found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ClockCounts {
    /// Times that the wall clock was set.
    pub wall_steps: u64,
    /// Times that the machine slept.
    pub suspensions: u64,
    /// Starts that went on from an anchor of this boot.
    pub continued: u64,
}

/// What the leader's machine says of the time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Readings {
    /// Its monotonic clock.
    pub local: LocalTime,
    /// Its wall clock, as service time would have it.
    pub wall: ServiceTime,
    /// Its clock since boot; `None` where the system has none.
    pub boot: Option<Boot>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    /// Service time is not known; every lease of the old leader has ended at `until`, and no bound
    /// that rests on its word lies beyond `credible`.
    Recovering {
        until: LocalTime,
        credible: ServiceTime,
    },
    /// It is known.
    Running {
        line: Line,
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
    /// The clocks at the last look.
    seen: Readings,
    /// The line is another one than what is stored as the anchor says.
    moved: bool,
    counts: ClockCounts,
}

/// From here on with the monotonic clock alone.
const fn line(local: LocalTime, service: ServiceTime) -> Line {
    Line {
        local,
        service,
        slew: 0,
    }
}

impl ServiceClock {
    /// For a store in which nothing was ever promised: the wall clock's time.
    #[must_use]
    pub const fn fresh(at: Readings) -> Self {
        let state = State::Running {
            line: line(at.local, at.wall),
            settling: None,
        };
        Self {
            state,
            ceiling: ServiceTime::ZERO,
            seen: at,
            moved: true,
            counts: ClockCounts {
                wall_steps: 0,
                suspensions: 0,
                continued: 0,
            },
        }
    }

    /// For a leader that follows another one on this or another machine. On the boot of the anchor
    /// service time goes on as if nothing had happened.
    #[must_use]
    pub fn resuming(
        ceiling: ServiceTime,
        anchor: Option<Anchor>,
        at: Readings,
        time_to_live: Span,
    ) -> Self {
        let mut clock = Self::following(ceiling, at, time_to_live);
        let same = anchor
            .zip(at.boot)
            .filter(|(anchor, boot)| anchor.boot.id == boot.id && anchor.boot.since <= boot.since);
        if let (Some((anchor, boot)), State::Recovering { until, credible }) = (same, clock.state) {
            // The anchor may be from before this process's clock began to count.
            let then = Line {
                local: LocalTime::ZERO,
                service: anchor.service,
                slew: anchor.slew,
            };
            let passed = LocalTime::ZERO.plus(boot.since.minus(anchor.boot.since));
            let line = Line {
                local: at.local,
                service: then.at(passed),
                slew: then.left(passed),
            };
            // A machine that was brought back from a snapshot is behind: replicas may say so.
            let settling = Some(Settling { until, credible });
            clock.state = State::Running { line, settling };
            clock.counts.continued = 1;
        }
        clock
    }

    /// What the looks at the clocks have found.
    #[must_use]
    pub const fn counts(&self) -> ClockCounts {
        self.counts
    }

    /// Looks whether the machine slept, or its wall clock was set. While it slept service time went
    /// on everywhere else, so that it goes on from there; a wall clock that was set is only neared.
    pub fn look(&mut self, at: Readings) {
        let passed = at.local.since(self.seen.local);
        let slept = match (at.boot, self.seen.boot) {
            (Some(now), Some(then)) => now.since.minus(then.since).minus(passed),
            _ => Span::ZERO,
        };
        if slept > STEP {
            self.counts.suspensions = self.counts.suspensions.saturating_add(1);
            if let State::Running { line, .. } = &mut self.state {
                line.service = line.service.plus(slept);
                self.moved = true;
            }
        }
        let expected = self.seen.wall.plus(passed).plus(slept);
        let apart = at.wall.since(expected).max(expected.since(at.wall));
        if apart > STEP {
            self.counts.wall_steps = self.counts.wall_steps.saturating_add(1);
        }
        self.seen = at;
    }

    /// What to store with the ceiling, on a machine that has a clock since boot. From here on
    /// service time nears the wall clock anew: only here, so that what is stored says how.
    pub fn drop_anchor(&mut self, at: Readings) -> Option<Anchor> {
        let State::Running { line, .. } = &mut self.state else {
            return None;
        };
        let service = line.at(at.local);
        let ahead = i64::try_from(at.wall.since(service).get()).unwrap_or(i64::MAX);
        let behind = i64::try_from(service.since(at.wall).get()).unwrap_or(i64::MAX);
        let apart = ahead.saturating_sub(behind);
        let slew = if apart.unsigned_abs() < SLEW_FROM.get() {
            0
        } else {
            apart
        };
        *line = Line {
            local: at.local,
            service,
            slew,
        };
        self.moved = false;
        at.boot.map(|boot| Anchor {
            boot,
            service,
            slew,
        })
    }

    /// Whether time goes on otherwise than is stored: the anchor has to be stored before anybody
    /// is told.
    #[must_use]
    pub const fn has_moved(&self) -> bool {
        self.moved
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
        Self {
            state,
            ceiling,
            ..Self::fresh(at)
        }
    }

    /// Service time, once it is known.
    #[must_use]
    pub const fn now(&self, local: LocalTime) -> Option<ServiceTime> {
        match self.state {
            State::Recovering { .. } => None,
            State::Running { line, .. } => Some(line.at(local)),
        }
    }

    /// Service time at an instant, as it may be told: never beyond what is stored as the ceiling.
    #[must_use]
    pub fn stamp(&self, local: LocalTime) -> Option<ServiceTime> {
        self.now(local).map(|now| now.min(self.ceiling))
    }

    /// The instant of this machine's clock at which service time will be `at`.
    #[must_use]
    pub fn local_at(&self, at: ServiceTime) -> LocalTime {
        match self.state {
            State::Recovering { until, .. } => until,
            State::Running { line, .. } => line.local_at(at),
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
            self.moved = true;
            self.state = State::Running {
                line: line(at.local, service),
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
            self.moved = true;
            self.state = State::Running {
                line: line(at.local, service),
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
