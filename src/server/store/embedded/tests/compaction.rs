//! Snapshots, and the space they give back.

use super::*;

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        // Pacing: between two looks, until the deadline.
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_snapshot_and_the_log_after_it_are_the_whole() {
    let (folder, records) = compacted();
    assert!(records.len() > 30);
    let store = open(folder.path()).unwrap();
    assert_eq!(runtime().block_on(load(&store)), records);
}

#[test]
fn a_crash_around_the_end_of_a_compaction_loses_nothing() {
    let (folder, records) = compacted();
    // As if the old log had not been removed yet, and the next snapshot had been begun.
    let old = folder.path().join(format!("{:020}.log", 1));
    let unfinished = folder.path().join(format!("{:020}.snapshot.tmp", 99_999));
    fs::write(&old, "old").unwrap();
    fs::write(&unfinished, "half").unwrap();
    fs::create_dir(folder.path().join("lost+found")).unwrap();
    let store = open(folder.path()).unwrap();
    assert_eq!(runtime().block_on(load(&store)), records);
    assert!(!old.exists() && !unfinished.exists());
}

#[test]
fn deleted_records_give_their_space_back() {
    let folder = tempfile::tempdir().unwrap();
    let size = || -> u64 {
        let sizes = fs::read_dir(folder.path()).unwrap();
        sizes
            .filter_map(|entry| entry.ok()?.metadata().ok())
            .map(|found| found.len())
            .sum()
    };
    let rt = runtime();
    let store = EmbeddedStore::open(folder.path(), options(20_000)).unwrap();
    let epoch = rt.block_on(lead(&store));
    let mut largest = 0;
    for round in 0..40_u32 {
        let keys = (round * 1000)..(round * 1000 + 1000);
        rt.block_on(async {
            let puts = batch(keys.clone().map(|key| (key, Some(key))));
            store.append(epoch, puts).await.unwrap();
            store
                .append(epoch, batch(keys.map(|key| (key, None))))
                .await
                .unwrap();
        });
        largest = largest.max(size());
    }
    // 40 rounds wrote 40 x 42,000 bytes; what stays is less than the threshold and one round.
    wait_for("a small folder", || {
        rt.block_on(store.append(epoch, batch([(0, Some(0))])))
            .unwrap();
        size() < 65_000
    });
    assert!(largest > 65_000);
    assert_eq!(rt.block_on(load(&store)), [(0, 0)]);
}

#[test]
fn a_snapshot_that_cannot_be_written_stops_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(SMALL);
    let failures = options.metrics.compaction_failures.clone();
    let rt = runtime();
    let store = EmbeddedStore::open(folder.path(), options).unwrap();
    let epoch = rt.block_on(lead(&store));
    // A folder stands where each snapshot would be written.
    for number in 0..500 {
        let target = folder.path().join(format!("{number:020}.snapshot.tmp"));
        fs::create_dir(target).unwrap();
    }
    let mut next = 0;
    wait_for("two failures", || {
        rt.block_on(store.append(epoch, batch([(next, Some(next))])))
            .unwrap();
        next += 1;
        failures.get() >= 2
    });
    for number in 0..500 {
        fs::remove_dir(folder.path().join(format!("{number:020}.snapshot.tmp"))).unwrap();
    }
    let all: Vec<_> = (0..next).map(|i| (i, i)).collect();
    assert_eq!(rt.block_on(load(&store)), all);
    drop(store);
    assert_eq!(rt.block_on(load(&open(folder.path()).unwrap())), all);
}
