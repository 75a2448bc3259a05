#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

use super::*;

const MINUTE: Span = Span::from_secs(60);

fn table(seats: u32) -> Table {
    Table {
        effective: ServiceTime::new(100),
        seats,
        short_part: SHORT_PART,
        long_part: LONG_PART,
    }
}

fn period(length: Span) -> Period {
    Period::new(length).unwrap()
}

fn shares(seats: u32, limit: u64, length: Span, key: u128) -> Vec<u64> {
    let period = period(length);
    let window = period.window_at(ServiceTime::new(1_800_000_000_000_000_000));
    let of = (KeyHash::new(key), window);
    (0..seats)
        .map(|seat| {
            let share = table(seats).share(Tokens::new(limit), period, Seat::new(seat), of);
            share.get()
        })
        .collect()
}

#[test]
fn the_shares_of_all_seats_sum_up_to_what_stands() {
    for seats in [1, 2, 3, 7, 50] {
        for limit in [0, 1, 2, 3, 5, 99, 100, 1_000_003, u64::MAX] {
            for key in [0, 1, u128::MAX, 0x1234_5678_9abc_def0_1122_3344_5566_7788] {
                let shares = shares(seats, limit, MINUTE, key);
                assert_eq!(shares.iter().sum::<u64>(), limit / 2, "{seats} {limit}");
                let (least, most) = (shares.iter().min(), shares.iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1);
            }
        }
    }
}

#[test]
fn the_rest_takes_turns() {
    let firsts: std::collections::BTreeSet<usize> = (0..1_000)
        .map(|key| {
            let shares = shares(10, 2, MINUTE, key);
            shares.iter().position(|share| *share == 1).unwrap()
        })
        .collect();
    assert_eq!(firsts.len(), 10);
}

#[test]
fn how_much_stands_depends_on_the_length() {
    let hour = Span::from_secs(3_600);
    let longer = Span::from_secs(3_601);
    let sum = |length| shares(4, 1_000, length, 7).iter().sum::<u64>();
    assert_eq!((sum(MINUTE), sum(hour), sum(longer)), (500, 100, 0));
    assert_eq!(sum(Span::from_secs(61)), 100);
}

#[test]
fn a_seat_beyond_the_table_has_none() {
    let period = period(MINUTE);
    let of = (KeyHash::new(1), period.window_at(ServiceTime::new(0)));
    let share = |table: Table, seat| {
        table
            .share(Tokens::new(100), period, Seat::new(seat), of)
            .get()
    };
    assert_eq!(share(table(2), 2), 0);
    assert_eq!(share(table(0), 0), 0);
    assert_eq!(share(table(2), 1), 25);
}

#[test]
fn the_last_that_is_effective_is_in_force() {
    let limit = |effective, amount| Limit {
        effective: ServiceTime::new(effective),
        amount: Tokens::new(amount),
    };
    let published = [limit(10, 1), limit(20, 2), limit(20, 3), limit(30, 4)];
    let at = |at| in_force(&published, ServiceTime::new(at)).map(|limit| limit.amount.get());
    assert_eq!(
        [at(9), at(10), at(19), at(20), at(29), at(30)],
        [None, Some(1), Some(1), Some(3), Some(3), Some(4)]
    );
}

#[test]
fn a_window_is_known_until_what_was_published_after_could_be_in_force() {
    let heard = ServiceTime::new(1_000);
    let start = heard.plus(PUBLISHED_AHEAD);
    let window = |start: ServiceTime| Window::new(start, start.plus(MINUTE)).unwrap();
    assert!(is_known(window(start), heard));
    assert!(!is_known(window(start.plus(Span::new(1))), heard));
}
