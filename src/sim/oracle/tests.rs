//! The judge, on cases whose verdict is plain.

use super::*;

const SECOND: u64 = 1_000_000_000;

struct Court {
    oracle: Oracle,
    next: u32,
}

impl Court {
    fn new(amount: u64) -> Self {
        let limit = Limit {
            amount: Tokens::new(amount),
            period: Period::new(Span::from_secs(1)).unwrap(),
        };
        let oracle = Oracle::new(vec![limit, limit], None);
        Self { oracle, next: 0 }
    }

    /// A request on rule 0 that lives between two instants, in thousandths of a second.
    fn request(&mut self, life: (u64, u64), cost: u64, verdict: Verdict) {
        self.over_rules(life, cost, verdict, vec![(0, 0)]);
    }

    fn over_rules(&mut self, (from, to): (u64, u64), cost: u64, is: Verdict, on: Vec<Counter>) {
        self.next += 1;
        let id = RequestId::new(self.next);
        let at = |millis| {
            let nanos = millis * (SECOND / 1_000);
            (Truth::new(nanos), ServiceTime::new(nanos))
        };
        self.oracle.arrives(id, on, Tokens::new(cost), at(from));
        assert!(self.oracle.answered(id, is, at(to)).is_some());
    }

    fn verdicts(&self) -> (u64, u64) {
        let verdicts = self.oracle.judge(|_, _| 0);
        (verdicts.over(), verdicts.false_refusals())
    }
}

const ADMIT: Verdict = Verdict::Admit;
const REFUSE: Verdict = Verdict::Refuse {
    rule: 0,
    retry_after: Span::ZERO,
};
const UNDECIDED: Verdict = Verdict::Undecided {
    rule: 0,
    passes: true,
};

#[test]
fn the_limit_and_one_more() {
    let mut court = Court::new(3);
    for _ in 0..3 {
        court.request((100, 100), 1, ADMIT);
    }
    court.request((101, 101), 1, REFUSE);
    assert_eq!(court.verdicts(), (0, 0));
    court.request((102, 102), 1, ADMIT);
    assert_eq!(court.verdicts(), (1, 0));
    // The next window is another matter.
    court.request((1_000, 1_000), 1, ADMIT);
    assert_eq!(court.verdicts(), (1, 0));
}

#[test]
fn a_refusal_with_one_token_left() {
    let mut court = Court::new(3);
    court.request((100, 100), 2, ADMIT);
    court.request((101, 101), 1, REFUSE);
    assert_eq!(court.verdicts(), (0, 1));
    // For two there was too little.
    let mut court = Court::new(3);
    court.request((100, 100), 2, ADMIT);
    court.request((101, 101), 2, REFUSE);
    assert_eq!(court.verdicts(), (0, 0));
    // Nothing is judged as one.
    court.request((101, 101), 0, REFUSE);
    assert_eq!(court.verdicts(), (0, 1));
}

#[test]
fn a_later_admission_does_not_excuse_a_refusal() {
    let mut court = Court::new(1);
    court.request((100, 101), 1, REFUSE);
    court.request((102, 102), 1, ADMIT);
    assert_eq!(court.verdicts(), (0, 1));
}

#[test]
fn one_in_flight_does() {
    let mut court = Court::new(1);
    court.request((100, 103), 1, REFUSE);
    court.request((102, 110), 1, ADMIT);
    assert_eq!(court.verdicts(), (0, 0));
}

#[test]
fn a_refusal_across_a_boundary_may_belong_to_either_window() {
    let mut court = Court::new(1);
    court.request((500, 500), 1, ADMIT);
    court.request((990, 1_010), 1, REFUSE);
    assert_eq!(court.verdicts(), (0, 0));
    court.request((1_011, 1_012), 1, REFUSE);
    assert_eq!(court.verdicts(), (0, 1));
}

#[test]
fn undecided_requests_excuse_refusals_and_are_never_over() {
    let mut court = Court::new(2);
    court.request((100, 200), 1, UNDECIDED);
    court.request((150, 250), 1, UNDECIDED);
    court.request((260, 260), 1, REFUSE);
    assert_eq!(court.verdicts(), (0, 0));
    let mut court = Court::new(2);
    court.request((100, 200), 1, UNDECIDED);
    court.request((300, 300), 2, ADMIT);
    assert_eq!(court.verdicts(), (0, 0));
}

#[test]
fn nothing_excuses_a_refusal_before_an_admission() {
    // Neither those whom nobody decided nor tokens that died: they were there afterwards.
    let mut court = Court::new(2);
    court.request((100, 200), 2, UNDECIDED);
    court.request((260, 260), 1, REFUSE);
    court.request((300, 300), 1, ADMIT);
    assert_eq!(court.verdicts(), (0, 1));
    assert_eq!(court.oracle.judge(|_, _| 2).false_refusals(), 1);
    // Less was left than the refused one needed; or the later one came before the answer.
    for (cost, answered) in [(2, 260), (1, 310)] {
        let mut court = Court::new(2);
        court.request((100, 200), 2, UNDECIDED);
        court.request((260, answered), cost, REFUSE);
        court.request((300, 320), 1, ADMIT);
        assert_eq!(court.verdicts(), (0, 0));
    }
}

#[test]
fn a_request_across_a_boundary_is_charged_once() {
    // It excuses a refusal before the boundary, or one after it, but not both.
    for (refused, wrong) in [
        (&[950][..], 0),
        (&[1_500], 0),
        (&[950, 1_500], 1),
        // The one at 920 came before it, and needs another excuse.
        (&[920], 1),
    ] {
        let mut court = Court::new(5);
        court.request((100, 100), 3, ADMIT);
        court.request((940, 1_040), 2, ADMIT);
        court.request((1_200, 1_200), 3, ADMIT);
        for at in refused {
            court.request((*at, *at), 1, REFUSE);
        }
        assert_eq!(court.verdicts(), (0, wrong), "{refused:?}");
    }
    // One that was refused across the boundary too may appeal to either window.
    let mut court = Court::new(5);
    court.request((100, 100), 3, ADMIT);
    court.request((940, 1_040), 2, ADMIT);
    court.request((990, 1_010), 1, REFUSE);
    court.request((1_200, 1_200), 3, ADMIT);
    court.request((1_500, 1_500), 1, REFUSE);
    assert_eq!(court.verdicts(), (0, 0));
}

#[test]
fn undecided_without_an_excuse() {
    let mut court = Court::new(1);
    let at = |millis| Truth::new(millis * (SECOND / 1_000));
    court.oracle.decided = Some((at(200), at(400)));
    court.request((100, 300), 1, UNDECIDED);
    court.request((300, 500), 1, UNDECIDED);
    assert_eq!(court.oracle.judge(|_, _| 0).undecided(), 0);
    court.request((200, 400), 1, UNDECIDED);
    assert_eq!(court.oracle.judge(|_, _| 0).undecided(), 1);
}

#[test]
fn a_refusal_by_one_rule_says_nothing_of_the_other() {
    let mut court = Court::new(1);
    let both = || vec![(0, 0), (1, 0)];
    court.over_rules((1, 1), 1, ADMIT, vec![(0, 0)]);
    court.over_rules((2, 2), 1, REFUSE, both());
    assert_eq!(court.verdicts(), (0, 0));
    let by_second = Verdict::Refuse {
        rule: 1,
        retry_after: Span::ZERO,
    };
    court.over_rules((3, 3), 1, by_second, both());
    assert_eq!(court.verdicts(), (0, 1));
}

#[test]
fn tokens_of_the_dead_excuse_up_to_their_number() {
    let mut court = Court::new(10);
    court.request((100, 100), 4, ADMIT);
    court.request((101, 101), 1, REFUSE);
    let with = |dead| {
        let verdicts = court.oracle.judge(|_, _| dead);
        (verdicts.false_refusals(), verdicts.crash_lost)
    };
    assert_eq!(with(5), (1, 0));
    assert_eq!(with(6), (0, 6));
    assert_eq!(with(100), (0, 6));
}

#[test]
fn requests_across_a_boundary_are_placed_where_there_is_room() {
    let mut court = Court::new(3);
    court.request((100, 100), 2, ADMIT);
    court.request((1_900, 1_900), 2, ADMIT);
    court.request((990, 1_010), 1, ADMIT);
    court.request((991, 1_011), 1, ADMIT);
    assert_eq!(court.verdicts(), (0, 0));
    court.request((992, 1_012), 1, ADMIT);
    assert_eq!(court.verdicts(), (1, 0));
}

#[test]
fn weighted_requests_are_packed_as_well_as_can_be() {
    // Room for 5 before and 7 after: only {5} and {3, 4} fit.
    let mut court = Court::new(10);
    court.request((100, 100), 5, ADMIT);
    court.request((1_900, 1_900), 3, ADMIT);
    for cost in [4, 5, 3] {
        court.request((990, 1_010), cost, ADMIT);
    }
    assert_eq!(court.verdicts(), (0, 0));
    // The same sum, but nothing fits the room exactly.
    let mut court = Court::new(10);
    court.request((100, 100), 5, ADMIT);
    court.request((1_900, 1_900), 3, ADMIT);
    for cost in [4, 8] {
        court.request((990, 1_010), cost, ADMIT);
    }
    assert_eq!(court.verdicts(), (1, 0));
}

#[test]
fn nobody_answers_twice() {
    let mut court = Court::new(1);
    court.request((1, 1), 1, ADMIT);
    let at = (Truth::new(2), ServiceTime::new(2));
    let again = court.oracle.answered(RequestId::new(1), ADMIT, at);
    assert_eq!(again, None);
}

#[test]
fn delays_are_ranked_over_all_requests() {
    let mut court = Court::new(1_000);
    for _ in 0..99 {
        court.request((1, 1), 1, ADMIT);
    }
    court.request((1, 3), 1, ADMIT);
    assert_eq!(court.oracle.delays.percentile(990), 0);
    assert_eq!(court.oracle.delays.percentile(999), 2_000);
    assert_eq!(court.oracle.counts.asked, 1);
}
