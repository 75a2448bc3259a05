//! The models there are. With the limits that the protocol's own search had, 2 and 3, the owner
//! leases nothing (a lease is a part of an even share), so those models show its decisions; where
//! leases and recalls are to be seen, a larger limit is mostly used up before the search begins.

use headgate_core::units::Span;

use super::memory::Grain;
use super::plan::{Before, Broken, Budget, Limit, Model, Seen, Visit, Want};

const FIRST: &[Want] = &[Want { rule: 0, cost: 1 }];
const BOTH: &[Want] = &[Want { rule: 0, cost: 1 }, Want { rule: 1, cost: 1 }];
/// Judged as 1, spends nothing: it brings a lease and leaves all tokens where they are.
const NOTHING: &[Want] = &[Want { rule: 0, cost: 0 }];
const FIVE: &[Want] = &[Want { rule: 0, cost: 5 }];

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
        convicts: vec![Broken::RepeatsCharged, Broken::AdmitsRefused],
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
        budget: Budget {
            duplicated: 1,
            ..Budget::default()
        },
        must_see: vec![Seen::AdmittedByOwner, Seen::RefusedByOwner],
        convicts: vec![Broken::AdmitsRefused],
        ..base("rules", "limits 2 and 3, requests over both; duplicate")
    }
}

/// Both replicas hold leases and the pool is nearly empty: a recall is needed.
fn leases() -> Vec<Before> {
    vec![
        Before::Visit(visit(0, NOTHING)),
        Before::Visit(visit(2, NOTHING)),
        Before::Visit(visit(2, FIVE)),
    ]
}

/// One replica has a lease that the other one's requests need.
fn recall() -> Model {
    Model {
        limits: vec![limit("a", 7)],
        before: leases(),
        visits: vec![visit(0, FIRST), visit(1, FIRST), visit(2, FIRST)],
        must_see: vec![Seen::AdmittedHere, Seen::AdmittedByOwner, Seen::Returned],
        convicts: vec![Broken::UnrecordedReturns],
        ..base("recall", "leases, recalls, two workers")
    }
}

/// The same, and a message that arrives twice.
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

/// The same, with every access to memory apart.
fn races() -> Model {
    Model {
        limits: vec![limit("a", 7)],
        before: leases(),
        visits: vec![visit(0, FIRST), visit(1, FIRST), visit(2, FIRST)],
        grain: Grain::Access,
        must_see: vec![Seen::AdmittedHere, Seen::RaceLost],
        convicts: vec![Broken::BlindWrites],
        ..base("races", "two workers, every access to memory apart")
    }
}

/// A replica dies while it holds a lease, and its time-to-live ends.
fn crash() -> Model {
    Model {
        limits: vec![limit("a", 7)],
        before: leases(),
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
        limits: vec![limit("a", 7)],
        before: leases(),
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
        recall(),
        races(),
        crash(),
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
    all.extend([
        recall_twice(),
        at_any_moment(silence(), "silence at any moment", Span::from_millis(40)),
        at_any_moment(restart(), "restart at any moment", Span::from_millis(60)),
        at_any_moment(crash(), "crash at any moment", Span::from_secs(6)),
    ]);
    all
}
