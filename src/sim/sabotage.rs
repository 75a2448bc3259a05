//! What must be convicted: the world broken on purpose, so that the judge can be judged. A judge
//! that cannot convict proves nothing. Core is broken by turning one of its rules off, the world
//! around it in ways of its own.

use std::collections::BTreeMap;

use headgate_core::key::KeyHash;
use headgate_core::message::Decision;
use headgate_core::owner::effect::Reply;
use headgate_core::replica::worker::Verdict;
use headgate_core::trap::Trap;
use headgate_core::units::{Generation, Span, Tokens};
use headgate_core::window::Window;

use crate::random::Random;
use crate::world::Plan;

/// One way to break it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// A rule of the protocol is turned off in core.
    Rule(Trap),
    /// One request in a hundred is admitted without a token.
    SpendsWithoutLease,
    /// One request in a hundred is refused without a look.
    RefusesWithoutProof,
    /// The network tells a replica its largest lease again after a recall has fenced it, under the
    /// new generation.
    ReplaysLeases,
    /// The network turns the owner's refusals into admissions.
    AdmitsRefused,
    /// The network turns the owner's admissions into refusals.
    RefusesAdmitted,
    /// The network states that nothing is left wherever it carries a lease.
    InventsProofs,
    /// Shared memory writes whatever was there: no race is ever lost.
    BlindWrites,
    /// The store reports writes as durable that a crash takes back.
    ForgetsWrites,
    /// Clocks drift far beyond the bound.
    WildClocks,
}

/// Those that break the world around core.
const AROUND_CORE: [Sabotage; 9] = [
    Sabotage::SpendsWithoutLease,
    Sabotage::RefusesWithoutProof,
    Sabotage::ReplaysLeases,
    Sabotage::AdmitsRefused,
    Sabotage::RefusesAdmitted,
    Sabotage::InventsProofs,
    Sabotage::BlindWrites,
    Sabotage::ForgetsWrites,
    Sabotage::WildClocks,
];

/// Clocks that drift far beyond the bound, in millionths.
const WILD_DRIFT: u64 = 30_000;

impl Sabotage {
    /// Every one: the traps by their numbers, then the others.
    pub fn all() -> impl Iterator<Item = Self> {
        let rules = Trap::ALL.into_iter().map(Self::Rule);
        rules.chain(AROUND_CORE)
    }

    /// The one with this name; a trap may be named by its number too.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let number = name.parse().ok();
        let is_it = |one: &Self| {
            let (trap, own, _) = one.about();
            own == name || number.is_some() && trap == number
        };
        Self::all().find(is_it)
    }

    /// The rule of core that is off.
    #[must_use]
    pub const fn rule(self) -> Option<Trap> {
        match self {
            Self::Rule(trap) => Some(trap),
            _ => None,
        }
    }

    /// The trap's number in the protocol's list, the name, and what goes wrong.
    #[must_use]
    pub const fn about(self) -> (Option<u8>, &'static str, &'static str) {
        let (name, wrong) = match self {
            Self::Rule(trap) => {
                return (Some(trap.number()), trap.name(), trap.wrong());
            }
            Self::SpendsWithoutLease => ("spends-without-lease", "admits without a token"),
            Self::RefusesWithoutProof => ("refuses-without-proof", "refuses without a look"),
            Self::ReplaysLeases => ("replays-leases", "old leases come under a new generation"),
            Self::AdmitsRefused => ("admits-refused", "refusals become admissions on their way"),
            Self::RefusesAdmitted => ("refuses-admitted", "admissions become refusals"),
            Self::InventsProofs => ("invents-proofs", "leases come with a proof of nothing"),
            Self::BlindWrites => ("blind-writes", "shared memory never reports a lost race"),
            Self::ForgetsWrites => ("forgets-writes", "a crash takes durable writes back"),
            Self::WildClocks => ("wild-clocks", "clocks drift far beyond their bound"),
        };
        (None, name, wrong)
    }

    /// Makes a plan one in which it happens.
    #[must_use]
    pub fn applied_to(self, mut plan: Plan) -> Plan {
        plan.sabotage = Some(self);
        if self == Self::WildClocks {
            plan.drift = WILD_DRIFT;
        }
        plan
    }
}

/// How many requests in a thousand are decided without core.
const STOLEN: u64 = 10;

/// A lease at one replica.
type Place = (usize, KeyHash, Window);

/// Carries a sabotage out.
#[derive(Debug)]
pub(crate) struct Saboteur {
    how: Option<Sabotage>,
    leases: BTreeMap<Place, (Generation, Tokens)>,
}

impl Saboteur {
    pub(crate) const fn new(how: Option<Sabotage>) -> Self {
        let leases = BTreeMap::new();
        Self { how, leases }
    }

    /// Decides a request in core's place.
    pub(crate) fn steals(&self, random: &mut Random) -> Option<Verdict> {
        let verdict = match self.how? {
            Sabotage::SpendsWithoutLease => Verdict::Admit,
            Sabotage::RefusesWithoutProof => Verdict::Refuse {
                rule: 0,
                retry_after: Span::ZERO,
            },
            _ => return None,
        };
        random.chance(STOLEN).then_some(verdict)
    }

    /// Changes an answer on its way.
    pub(crate) fn alter(&mut self, replica: usize, reply: &mut Reply) {
        let (Some(how), Reply::Ask(answer)) = (self.how, reply) else {
            return;
        };
        for answer in &mut answer.answers {
            match how {
                Sabotage::AdmitsRefused => {
                    exchange(&mut answer.decisions, Decision::Refuse, Decision::Admit);
                }
                Sabotage::RefusesAdmitted => {
                    exchange(&mut answer.decisions, Decision::Admit, Decision::Refuse);
                }
                Sabotage::InventsProofs if answer.lease.is_some() => {
                    answer.total = Some(headgate_core::message::Proof {
                        left: Tokens::ZERO,
                        time_to_live: Span::from_secs(1),
                    });
                }
                Sabotage::ReplaysLeases => {
                    let key = answer.id.key;
                    if let (Some(window), Some(lease)) = (answer.window, &mut answer.lease) {
                        self.replay((replica, key, window), lease);
                    }
                }
                _ => {}
            }
        }
    }

    fn replay(&mut self, place: Place, lease: &mut (Generation, Tokens)) {
        let (generation, granted) = *lease;
        let largest = self.leases.entry(place).or_insert(*lease);
        if largest.1 <= granted {
            *largest = *lease;
        } else if largest.0 < generation {
            lease.1 = largest.1;
        }
    }
}

fn exchange(decisions: &mut [Decision], from: Decision, to: Decision) {
    for decision in decisions.iter_mut().filter(|decision| **decision == from) {
        *decision = to;
    }
}

#[cfg(test)]
mod tests;
