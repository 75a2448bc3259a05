//! Numbers from seeds.

use super::*;

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let numbers = |seed| {
        let mut random = Random::new(seed);
        [random.next(), random.next(), random.below(10)]
    };
    assert_eq!(numbers(7), numbers(7));
    assert_ne!(numbers(7), numbers(8));
}

#[test]
fn bounds_hold() {
    let mut random = Random::new(1);
    for _ in 0..1_000 {
        assert!(random.below(3) < 3);
        assert!((5..=7).contains(&random.between(5, 7)));
        assert!(random.place(2).unwrap() < 2);
    }
    assert_eq!(random.below(0), 0);
    assert_eq!(random.place(0), None);
    assert!(!random.chance(0));
    assert!(random.chance(PER_MILLE));
}

#[test]
fn gaps_have_their_mean() {
    let mut random = Random::new(2);
    let mean = Span::from_millis(10);
    let total: u64 = (0..100_000).map(|_| random.exponential(mean).get()).sum();
    let average = total / 100_000;
    assert!((9_900_000..10_100_000).contains(&average), "{average}");
}
