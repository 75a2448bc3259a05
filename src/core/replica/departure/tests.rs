//! Who is the last one.

use super::*;
use crate::world::Memory;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

fn at(millis: u64) -> LocalTime {
    LocalTime::new(1).plus(Span::from_millis(millis))
}

#[test]
fn only_the_last_instance_is_the_last() {
    let memory = Memory::default();
    let (mut first, mut second) = (Presence::new(1), Presence::new(2));
    first.tick(&memory, at(0)).unwrap();
    second.tick(&memory, at(10)).unwrap();
    assert!(!first.end(&memory, at(20)).unwrap());
    assert!(second.end(&memory, at(30)).unwrap());
}

#[test]
fn one_that_crashed_does_not_keep_the_seat() {
    let memory = Memory::default();
    let (mut crashed, mut other) = (Presence::new(1), Presence::new(2));
    crashed.tick(&memory, at(0)).unwrap();
    for second in 0..5 {
        other.tick(&memory, at(1_000 * second)).unwrap();
    }
    assert!(!other.end(&memory, at(4_999)).unwrap());
    assert!(other.end(&memory, at(5_000)).unwrap());
}
