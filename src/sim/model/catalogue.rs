//! The models there are. With the limits that the protocol's own search had, 2 and 3, the owner
//! leases nothing (a lease is a part of an even share), so those models show its decisions. Where
//! tokens are to be held by replicas, the search begins in a window with standing shares, one token
//! for each of two seats, or a larger limit is mostly used up in leases before it begins.

use headgate_core::trap::Trap;
use headgate_core::units::Span;

use super::memory::Grain;
use super::plan::{Before, Broken, Budget, Limit, Model, Seen, Visit, Want};

const FIRST: &[Want] = &[Want { rule: 0, cost: 1 }];
const BOTH: &[Want] = &[Want { rule: 0, cost: 1 }, Want { rule: 1, cost: 1 }];
/// Judged as 1, spends nothing: it brings a lease and leaves all tokens where they are.
const NOTHING: &[Want] = &[Want { rule: 0, cost: 0 }];
const TWO: &[Want] = &[Want { rule: 0, cost: 2 }];
const TEN: &[Want] = &[Want { rule: 0, cost: 10 }];

const fn visit(instance: usize, wants: &'static [Want]) -> Visit {
    Visit { instance, wants }
}

const fn limit(name: &'static str, amount: u64) -> Limit {
    Limit { name, amount }
}

/// Two workers in the first replica, one in the second.
fn base(name: &'static str, what: &'static str) -> Model {
    Model {
        name,
        what,
        limits: vec![limit("a", 2)],
        workers: vec![2, 1],
        before: Vec::new(),
        visits: Vec::new(),
        passes: Vec::new(),
        rests: Vec::new(),
        budget: Budget::default(),
        grain: Grain::Change,
        deadline: Span::from_millis(100),
        period: Span::from_secs(60),
        states_max: 400_000,
        must_see: Vec::new(),
        convicts: Vec::new(),
        broken: None,
    }
}

/// Two tokens, three requests, and an ask that arrives twice.
fn duplicate() -> Model {
    Model {
        visits: vec![visit(0, FIRST), visit(1, FIRST), visit(2, FIRST)],
        budget: Budget {
            duplicated: 1,
            ..Budget::default()
        },
        must_see: vec![Seen::AdmittedByOwner, Seen::RefusedByOwner, Seen::Repeated],
        convicts: vec![Broken::Rule(Trap::RepeatJudgedAnew), Broken::AdmitsRefused],
        ..base("duplicate", "limit 2, the owner decides; one duplicate")
    }
}

/// Two tokens, one of them spent, and a call that is lost with its answer.
fn loss() -> Model {
    Model {
        before: vec![Before::Visit(visit(0, FIRST))],
        visits: vec![visit(0, FIRST), visit(2, FIRST)],
        passes: vec![Span::from_millis(20)],
        rests: vec![Span::from_secs(1)],
        budget: Budget {
            given_up: 1,
            ..Budget::default()
        },
        grain: Grain::Whole,
        must_see: vec![Seen::AdmittedByOwner, Seen::RefusedByOwner, Seen::Repeated],
        convicts: vec![Broken::AdmitsRefused],
        ..base(
            "loss",
            "limit 2, one spent; one call or answer lost, and asked again",
        )
    }
}

/// Limits 2 and 3, requests over both.
fn rules() -> Model {
    Model {
        limits: vec![limit("a", 2), limit("b", 3)],
        visits: vec![visit(0, BOTH), visit(1, BOTH), visit(2, BOTH)],
        must_see: vec![Seen::AdmittedByOwner, Seen::RefusedByOwner],
        convicts: vec![Broken::AdmitsRefused],
        ..base("rules", "limits 2 and 3, requests over both")
    }
}

/// One of each is spent, and a message arrives twice.
fn rules_twice() -> Model {
    let twice = Budget {
        duplicated: 1,
        ..Budget::default()
    };
    Model {
        before: vec![Before::Visit(visit(1, BOTH))],
        visits: vec![visit(0, BOTH), visit(2, BOTH)],
        budget: twice,
        name: "rules twice",
        what: "limits 2 and 3, one of each spent; one duplicate",
        ..rules()
    }
}

/// Of limit 4, each replica holds a standing share of one token, and the pool is empty: a recall is
/// needed.
fn shares() -> Vec<Before> {
    vec![Before::NextWindow, Before::Visit(visit(2, TWO))]
}

/// Of limit 14, the second replica holds a lease of two tokens, and nothing else is left.
fn leases() -> Vec<Before> {
    vec![
        Before::Visit(visit(0, NOTHING)),
        Before::Visit(visit(2, NOTHING)),
        Before::Visit(visit(2, TEN)),
        Before::Visit(visit(0, TWO)),
    ]
}

/// One replica has a standing share of one token, of which the owner has heard nothing yet.
fn standing() -> Model {
    Model {
        limits: vec![limit("a", 2)],
        before: vec![Before::NextWindow],
        visits: vec![visit(0, TWO), visit(2, FIRST), visit(2, FIRST)],
        must_see: vec![
            Seen::AdmittedHere,
            Seen::AdmittedByOwner,
            Seen::RefusedByOwner,
            Seen::Returned,
        ],
        convicts: vec![Broken::Rule(Trap::RecallUnrecorded)],
        ..base("standing", "limit 2, a standing share not heard of yet")
    }
}

/// One replica has a lease that the other one's requests need.
fn recall() -> Model {
    Model {
        limits: vec![limit("a", 4)],
        before: shares(),
        visits: vec![visit(0, FIRST), visit(1, FIRST), visit(2, FIRST)],
        must_see: vec![Seen::AdmittedHere, Seen::AdmittedByOwner, Seen::Returned],
        convicts: vec![
            Broken::UnrecordedReturns,
            Broken::Rule(Trap::ChargedToLease),
        ],
        ..base("recall", "leases, recalls, two workers")
    }
}

/// One replica was granted a lease that the other one's requests need.
fn grants() -> Model {
    Model {
        limits: vec![limit("a", 14)],
        before: leases(),
        visits: vec![visit(0, FIRST), visit(1, FIRST), visit(2, FIRST)],
        must_see: vec![Seen::AdmittedHere, Seen::AdmittedByOwner, Seen::Returned],
        convicts: vec![Broken::UnrecordedReturns],
        ..base("grants", "leases, recalls, two workers")
    }
}

/// As in [`recall`], and a message that arrives twice.
fn recall_twice() -> Model {
    Model {
        budget: Budget {
            duplicated: 1,
            ..Budget::default()
        },
        name: "recall twice",
        what: "leases, recalls, two workers; one duplicate",
        ..recall()
    }
}

/// Two workers of one replica, with every access to memory apart.
fn races() -> Model {
    Model {
        limits: vec![limit("a", 4)],
        before: shares(),
        visits: vec![visit(0, FIRST), visit(1, FIRST)],
        grain: Grain::Access,
        must_see: vec![Seen::AdmittedHere, Seen::RaceLost],
        convicts: vec![Broken::BlindWrites],
        ..base("races", "two workers, every access to memory apart")
    }
}

/// A replica dies while it holds a lease, and its time-to-live ends.
fn crash() -> Model {
    Model {
        limits: vec![limit("a", 4)],
        before: shares(),
        visits: vec![visit(2, FIRST)],
        budget: Budget {
            replicas_killed: 1,
            ..Budget::default()
        },
        rests: vec![Span::from_secs(6), Span::from_secs(1)],
        grain: Grain::Whole,
        must_see: vec![Seen::Died, Seen::Returned],
        convicts: vec![Broken::EndlessSeats],
        ..base("crash", "a replica dies, its time-to-live ends")
    }
}

/// A replica dies while the owner calls its tokens back.
fn silence() -> Model {
    Model {
        limits: vec![limit("a", 4)],
        before: shares(),
        visits: vec![visit(0, FIRST), visit(2, FIRST), visit(2, FIRST)],
        budget: Budget {
            replicas_killed: 1,
            ..Budget::default()
        },
        rests: vec![Span::from_millis(40), Span::from_secs(1)],
        grain: Grain::Whole,
        must_see: vec![Seen::Undecided, Seen::AdmittedHere, Seen::Returned],
        convicts: vec![Broken::UnrecordedReturns],
        ..base("silence", "a replica dies, a recall fails")
    }
}

/// The service dies with what was not durable.
fn restart() -> Model {
    Model {
        before: vec![Before::Visit(visit(0, FIRST))],
        visits: vec![visit(2, FIRST), visit(2, FIRST)],
        rests: vec![Span::from_millis(60), Span::from_secs(1)],
        budget: Budget {
            service_killed: 1,
            ..Budget::default()
        },
        grain: Grain::Whole,
        must_see: vec![Seen::AdmittedByOwner, Seen::RefusedByOwner, Seen::Repeated],
        convicts: vec![Broken::EarlyReplies],
        ..base(
            "restart",
            "limit 2, one spent; the service dies with what was not durable",
        )
    }
}

/// Small enough for a test each.
#[must_use]
pub fn small() -> Vec<Model> {
    vec![
        duplicate(),
        loss(),
        rules(),
        rules_twice(),
        standing(),
        recall(),
        grants(),
        races(),
        crash(),
        silence(),
        restart(),
    ]
}

/// All of the small ones, and larger ones.
#[must_use]
pub fn large() -> Vec<Model> {
    let mut all = small();
    let at_any_moment = |model: Model, name, pass| Model {
        name,
        passes: vec![pass],
        rests: vec![Span::from_secs(1)],
        states_max: 4_000_000,
        ..model
    };
    let of_three = |model: Model, name, wants| Model {
        name,
        before: model
            .before
            .into_iter()
            .filter(|before| !matches!(before, Before::Visit(it) if it.instance == 1))
            .collect(),
        visits: vec![visit(0, wants), visit(1, wants), visit(2, wants)],
        states_max: 4_000_000,
        ..model
    };
    all.extend([
        of_three(standing(), "standing of three", FIRST),
        of_three(rules_twice(), "rules of three", BOTH),
        of_three(races(), "races of three", FIRST),
        recall_twice(),
        at_any_moment(silence(), "silence at any moment", Span::from_millis(40)),
        at_any_moment(restart(), "restart at any moment", Span::from_millis(60)),
        at_any_moment(crash(), "crash at any moment", Span::from_secs(6)),
    ]);
    all
}
