//! Boundaries belong to the later window, whatever the period.

use super::*;
#[cfg(target_arch = "wasm32")]
use wasm_bindgen_test::wasm_bindgen_test as test;

#[test]
fn a_window_holds_its_start_and_not_its_end() {
    let minute = Period::new(Span::from_secs(60)).unwrap();
    for (at_secs, start_secs) in [(0, 0), (59, 0), (60, 60), (61, 60), (119, 60), (120, 120)] {
        let at = ServiceTime::ZERO.plus(Span::from_secs(at_secs));
        let window = minute.window_at(at);
        assert_eq!(
            window.start(),
            ServiceTime::ZERO.plus(Span::from_secs(start_secs))
        );
        assert_eq!(window.end().since(window.start()), Span::from_secs(60));
        assert!(window.contains(at));
        assert!(!window.contains(window.end()));
    }
}

#[test]
fn no_window_is_empty() {
    assert_eq!(Period::new(Span::ZERO), None);
    assert_eq!(Window::new(ServiceTime::new(5), ServiceTime::new(5)), None);
    let last = Period::new(Span::from_secs(60))
        .unwrap()
        .window_at(ServiceTime::MAX);
    assert!(last.start() < last.end());
}
