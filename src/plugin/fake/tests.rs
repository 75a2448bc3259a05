//! The fake is as the host is, where that is surprising.

use std::num::NonZeroU32;

use super::*;

fn bytes(host: &FakeHost, key: &str) -> Option<Vec<u8>> {
    let stored = host.shared(key).expect("readable");
    (stored.version != Expected::Absent).then_some(stored.value)
}

fn version(host: &FakeHost, key: &str) -> Expected {
    host.shared(key).expect("readable").version
}

#[test]
fn of_two_workers_that_write_one_loses_and_sees_it() {
    let envoy = FakeEnvoy::new();
    let (one, two) = (envoy.worker(1), envoy.worker(2));
    assert_eq!(one.set_shared("k", b"1", Expected::Absent), Ok(true));
    assert_eq!(two.set_shared("k", b"2", Expected::Absent), Ok(false));
    let read = version(&two, "k");
    assert_eq!(one.set_shared("k", b"3", version(&one, "k")), Ok(true));
    assert_eq!(two.set_shared("k", b"4", read), Ok(false));
    assert_eq!(bytes(&two, "k").as_deref(), Some(b"3".as_slice()));
}

#[test]
fn a_write_that_expects_a_version_also_makes_a_missing_value() {
    let host = FakeEnvoy::new().worker(0);
    assert_eq!(host.set_shared("a", b"", Expected::Absent), Ok(true));
    let other = version(&host, "a");
    assert_eq!(host.set_shared("b", b"x", other), Ok(true));
    let own = version(&host, "b");
    assert_ne!(own, other, "versions are never shared by two values");
    assert_eq!(
        bytes(&host, "a").as_deref(),
        Some(b"".as_slice()),
        "empty is not missing"
    );
    assert_eq!(bytes(&host, "c"), None);
    let blind = Expected::Version(0);
    assert_eq!(host.set_shared("a", b"y", blind), Ok(true), "overwrites");
}

#[test]
fn the_last_to_register_a_queue_is_told() {
    let envoy = FakeEnvoy::new();
    let (one, two) = (envoy.worker(1), envoy.worker(2));
    let queue = one.register_queue("q").expect("registered");
    assert_eq!(two.register_queue("q"), Ok(queue));
    assert_eq!(one.resolve_queue("q"), Ok(Some(queue)));
    assert_eq!(one.resolve_queue("p"), Ok(None));
    one.enqueue(queue, b"x").expect("queued");
    assert_eq!(envoy.next_ready(), Some((2, queue)));
    assert_eq!(one.dequeue(queue), Ok(Some(b"x".to_vec())));
    assert_eq!(two.dequeue(queue), Ok(None));
}

#[test]
fn calls_are_kept_for_the_test_to_answer() {
    let envoy = FakeEnvoy::new();
    let timeout_ms = NonZeroU32::new(7).expect("not zero");
    let call = Call {
        upstream: "u",
        method: Method::Ask,
        message: b"m",
        timeout_ms,
    };
    let token = envoy.worker(3).call(&call).expect("sent");
    let sent = SentCall {
        worker: 3,
        token,
        upstream: "u".into(),
        method: Method::Ask,
        message: b"m".to_vec(),
        timeout_ms: 7,
    };
    assert_eq!((envoy.next_call(), envoy.next_call()), (Some(sent), None));
}
