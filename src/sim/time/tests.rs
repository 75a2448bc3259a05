//! Clocks against true time.

use super::*;

#[test]
fn a_clock_gains_what_it_drifts() {
    let clock = Clock {
        offset: Span::from_secs(5),
        drift: 250,
    };
    let at = clock.local(Truth::ZERO.plus(Span::from_secs(100)));
    assert_eq!(at, LocalTime::new(105_025_000_000));
}

#[test]
fn an_instant_of_a_clock_is_found_again() {
    for drift in [-5_000, -250, 0, 3, 500] {
        let offset = Span::new(123_456_789);
        let clock = Clock { offset, drift };
        for at in [123_456_789, 123_456_790, 9_876_543_210] {
            let truth = clock.truth(LocalTime::new(at));
            assert!(clock.local(truth) >= LocalTime::new(at), "{drift} {at}");
            let before = truth.get().checked_sub(1).map(Truth::new);
            let earlier = before.map(|before| clock.local(before));
            assert!(earlier.is_none_or(|shown| shown < LocalTime::new(at)));
        }
    }
}
