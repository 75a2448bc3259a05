//! The cases. Each gets a fresh place and starts the processes it needs on it.

use std::sync::Arc;

use super::super::{
    Election, Epoch, MAX_BATCH_BYTES, MAX_KEY_BYTES, MAX_VALUE_BYTES, Record, Store, StoreError,
};
use super::{Fixture, batch, candidate, delete, lead, load, put, records};

pub(super) async fn empty(mut place: impl Fixture) {
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    assert_eq!(epoch, Epoch::new(1));
    assert_eq!(load(&store, epoch).await, []);
    store.append(epoch, batch([])).await.unwrap();
    assert_eq!(load(&store, epoch).await, []);
}

pub(super) async fn puts_and_deletes_outlive_a_restart(mut place: impl Fixture) {
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    store
        .append(epoch, batch([put("a", "1"), put("b", "2"), put("c", "")]))
        .await
        .unwrap();
    store
        .append(epoch, batch([delete("a"), put("b", "3"), delete("none")]))
        .await
        .unwrap();
    drop(store);

    let store = place.open().await;
    let epoch = lead(&store, 2).await;
    assert_eq!(load(&store, epoch).await, records(&[("b", "3"), ("c", "")]));
}

pub(super) async fn a_batch_is_atomic_and_its_last_change_of_a_key_counts(mut place: impl Fixture) {
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    let changes = [
        put("a", "1"),
        delete("b"),
        put("a", "2"),
        put("b", "3"),
        delete("a"),
    ];
    store.append(epoch, batch(changes)).await.unwrap();
    assert_eq!(load(&store, epoch).await, records(&[("b", "3")]));
}

pub(super) async fn the_same_batch_again_changes_nothing(mut place: impl Fixture) {
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    for _ in 0..3 {
        store
            .append(epoch, batch([put("a", "1"), delete("b")]))
            .await
            .unwrap();
    }
    assert_eq!(load(&store, epoch).await, records(&[("a", "1")]));
}

pub(super) async fn epochs_rise_over_restarts(mut place: impl Fixture) {
    for expected in 1..=4 {
        let store = place.open().await;
        assert_eq!(
            lead(&store, u128::from(expected)).await,
            Epoch::new(expected)
        );
    }
}

pub(super) async fn a_wrong_epoch_is_fenced(mut place: impl Fixture) {
    let store = place.open().await;
    let current = lead(&store, 1).await;
    for epoch in [Epoch::new(0), Epoch::new(current.get() + 1)] {
        let fenced = Err(StoreError::Fenced { epoch, current });
        assert_eq!(store.append(epoch, batch([put("a", "1")])).await, fenced);
        assert_eq!(store.append(epoch, batch([])).await, fenced);
        assert_eq!(store.renew(epoch).await.map(|_| ()), fenced);
        assert_eq!(store.load(epoch).await.map(|_| ()), fenced);
        store.resign(epoch).await.unwrap();
    }
    assert_eq!(store.renew(current).await.unwrap().epoch, current);
    assert_eq!(load(&store, current).await, []);
}

pub(super) async fn of_two_leaders_only_the_later_one_writes(mut place: impl Fixture) {
    let store = place.open().await;
    let old = lead(&store, 1).await;
    store.append(old, batch([put("a", "old")])).await.unwrap();
    let new = lead(&store, 1).await;
    assert!(new > old);
    let refused = store
        .append(old, batch([put("a", "late"), put("b", "late")]))
        .await;
    assert_eq!(
        refused,
        Err(StoreError::Fenced {
            epoch: old,
            current: new
        })
    );
    assert_eq!(load(&store, new).await, records(&[("a", "old")]));
    store.append(new, batch([put("a", "new")])).await.unwrap();
    // The old leader's last word must not end the new leadership.
    store.resign(old).await.unwrap();
    store.append(new, batch([put("b", "new")])).await.unwrap();
    assert_eq!(
        load(&store, new).await,
        records(&[("a", "new"), ("b", "new")])
    );
}

pub(super) async fn another_candidate_waits_until_the_leader_resigns(mut place: impl Fixture) {
    let store = place.open().await;
    let first = lead(&store, 1).await;
    match store.lead(&candidate(2)).await.unwrap() {
        Election::Lost { leader, .. } => assert_eq!(leader, candidate(1).address),
        Election::Won(_) => panic!("two leaders"),
    }
    store.append(first, batch([put("a", "1")])).await.unwrap();
    store.resign(first).await.unwrap();
    store.resign(first).await.unwrap();
    let second = lead(&store, 2).await;
    assert!(second > first);
    let refused = store.append(first, batch([put("a", "2")])).await;
    assert_eq!(
        refused,
        Err(StoreError::Fenced {
            epoch: first,
            current: second
        })
    );
    assert_eq!(load(&store, second).await, records(&[("a", "1")]));
}

pub(super) async fn concurrent_appends_are_all_durable(mut place: impl Fixture) {
    const WRITERS: u32 = 64;
    const EACH: u32 = 10;
    let store = Arc::new(place.open().await);
    let epoch = lead(&*store, 1).await;
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for number in 0..EACH {
                let key = [writer.to_be_bytes(), number.to_be_bytes()].concat();
                let changes = [
                    put(key, "x"),
                    put(writer.to_be_bytes(), number.to_be_bytes()),
                ];
                store.append(epoch, batch(changes)).await.unwrap();
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    drop(store);

    let store = place.open().await;
    let epoch = lead(&store, 2).await;
    let loaded = load(&store, epoch).await;
    assert_eq!(loaded.len() as u32, WRITERS * EACH + WRITERS);
    let last = loaded.iter().filter(|record| record.key.len() == 4);
    assert!(
        last.into_iter()
            .all(|record| record.value == (EACH - 1).to_be_bytes())
    );
}

pub(super) async fn an_append_sent_after_an_ok_is_applied_after_it(mut place: impl Fixture) {
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    for number in 0..50_u32 {
        let change = if number % 3 == 0 {
            delete("a")
        } else {
            put("a", number.to_be_bytes())
        };
        store.append(epoch, batch([change])).await.unwrap();
    }
    let loaded = load(&store, epoch).await;
    assert_eq!(
        loaded.iter().map(|r| r.value.clone()).collect::<Vec<_>>(),
        [49_u32.to_be_bytes()]
    );
}

pub(super) async fn a_failed_append_changes_nothing_and_may_be_retried(mut place: impl Fixture) {
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    store.append(epoch, batch([put("a", "1")])).await.unwrap();
    place.not_written_next(&store);
    let failed = store
        .append(epoch, batch([put("a", "2"), put("b", "2")]))
        .await;
    assert!(
        matches!(failed, Err(StoreError::NotWritten(_))),
        "{failed:?}"
    );
    assert_eq!(load(&store, epoch).await, records(&[("a", "1")]));
    store
        .append(epoch, batch([put("a", "2"), put("b", "2")]))
        .await
        .unwrap();
    drop(store);

    let store = place.open().await;
    let epoch = lead(&store, 2).await;
    assert_eq!(
        load(&store, epoch).await,
        records(&[("a", "2"), ("b", "2")])
    );
}

pub(super) async fn an_unknown_outcome_is_all_or_nothing(mut place: impl Fixture) {
    for (written, round) in [(true, "1"), (false, "2")] {
        let store = place.open().await;
        let epoch = lead(&store, 1).await;
        store
            .append(epoch, batch([put("a", "0"), put("b", "0")]))
            .await
            .unwrap();
        place.unknown_next(&store, written);
        let both = || batch([put("a", round), put("b", round)]);
        let unknown = store.append(epoch, both()).await;
        assert!(
            matches!(unknown, Err(StoreError::Unknown(_))),
            "{unknown:?}"
        );
        drop(store);

        let store = place.open().await;
        let epoch = lead(&store, 2).await;
        let loaded = load(&store, epoch).await;
        let all = records(&[("a", round), ("b", round)]);
        let nothing = records(&[("a", "0"), ("b", "0")]);
        assert!(
            if written {
                loaded == all
            } else {
                loaded == nothing
            },
            "{loaded:?}"
        );
        store.append(epoch, both()).await.unwrap();
        assert_eq!(load(&store, epoch).await, all);
    }
}

pub(super) async fn large_values(mut place: impl Fixture) {
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    let key = |i: u8| vec![i; MAX_KEY_BYTES];
    let value = |i: u8| vec![i; MAX_VALUE_BYTES];
    for i in [1, 2, 1, 3, 2, 1] {
        store
            .append(epoch, batch([put(key(i), value(i))]))
            .await
            .unwrap();
    }
    // About as many bytes as a batch takes.
    let half = vec![9; MAX_BATCH_BYTES / 2 - 2 * MAX_KEY_BYTES];
    store
        .append(epoch, batch([put(key(4), &half), put(key(5), &half)]))
        .await
        .unwrap();
    drop(store);

    let store = place.open().await;
    let epoch = lead(&store, 2).await;
    let loaded = load(&store, epoch).await;
    let expected = [
        (1, value(1)),
        (2, value(2)),
        (3, value(3)),
        (4, half.clone()),
        (5, half),
    ];
    assert!(
        loaded
            .into_iter()
            .eq(expected.map(|(i, value)| Record { key: key(i), value }))
    );
}

pub(super) async fn ten_thousand_keys(mut place: impl Fixture) {
    const KEYS: u32 = 10_000;
    let store = place.open().await;
    let epoch = lead(&store, 1).await;
    let keys: Vec<u32> = (0..KEYS).collect();
    for some in keys.chunks(1000) {
        let changes = some.iter().map(|i| put(i.to_be_bytes(), i.to_le_bytes()));
        store.append(epoch, batch(changes)).await.unwrap();
    }
    for some in keys.chunks(500) {
        let odd = some.iter().filter(|i| *i % 2 == 1);
        store
            .append(epoch, batch(odd.map(|i| delete(i.to_be_bytes()))))
            .await
            .unwrap();
    }
    drop(store);

    let store = place.open().await;
    let epoch = lead(&store, 2).await;
    let loaded = load(&store, epoch).await;
    assert_eq!(loaded.len() as u32, KEYS / 2);
    for (i, record) in (0..KEYS).step_by(2).zip(&loaded) {
        assert!(record.key == i.to_be_bytes() && record.value == i.to_le_bytes());
    }
}
