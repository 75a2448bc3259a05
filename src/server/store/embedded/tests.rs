//! What the folder survives, and what it refuses.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use proptest::prelude::*;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use super::*;
use crate::store::Change;

const SMALL: u64 = 2_000;

fn options(compact_at_bytes: u64) -> Options {
    Options {
        compact_at_bytes,
        ..Options::default()
    }
}

fn open(folder: &Path) -> Result<EmbeddedStore, OpenError> {
    EmbeddedStore::open(folder, options(Options::COMPACT_AT_BYTES))
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
}

fn batch(changes: impl IntoIterator<Item = (u32, Option<u32>)>) -> Batch {
    let change = |(key, value): (u32, Option<u32>)| {
        let key = key.to_be_bytes().to_vec();
        match value {
            Some(value) => Change::Put {
                key,
                value: value.to_be_bytes().repeat(5),
            },
            None => Change::Delete { key },
        }
    };
    let mut batch = Batch::default();
    batch
        .add(changes.into_iter().map(change).collect())
        .unwrap();
    batch
}

async fn lead(store: &EmbeddedStore) -> Epoch {
    let candidate = Candidate {
        id: 1,
        address: "here".into(),
    };
    match store.lead(&candidate).await.unwrap() {
        Election::Won(leadership) => leadership.epoch,
        Election::Lost { leader, .. } => panic!("{leader} leads"),
    }
}

async fn load(store: &EmbeddedStore) -> Vec<(u32, u32)> {
    let epoch = lead(store).await;
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let records = store.load(epoch).await.unwrap();
    let mut pairs: Vec<_> = records
        .iter()
        .map(|r| (number(&r.key), number(&r.value)))
        .collect();
    pairs.sort_unstable();
    pairs
}

/// A closed store whose log holds an epoch and the batches {i: i} for i in 0..count.
fn filled(count: u32) -> (TempDir, PathBuf, Vec<u64>) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join(format!("{:020}.log", 1));
    let mut ends = Vec::new();
    runtime().block_on(async {
        let store = open(folder.path()).unwrap();
        let epoch = lead(&store).await;
        for i in 0..count {
            ends.push(fs::metadata(&log).unwrap().len());
            store.append(epoch, batch([(i, Some(i))])).await.unwrap();
        }
        ends.push(fs::metadata(&log).unwrap().len());
    });
    (folder, log, ends)
}

fn sentence(result: Result<EmbeddedStore, OpenError>) -> String {
    result.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    // Nobody may make a file there, root included.
    let error = open(Path::new("/sys/kernel")).map(|_| ()).unwrap_err();
    assert!(matches!(error, OpenError::NotWritable { .. }), "{error}");
    let sentence = error.to_string();
    assert!(
        sentence.contains("/sys/kernel") && sentence.contains("--data-dir"),
        "{sentence}"
    );
}

#[test]
fn a_file_is_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "x").unwrap();
    for path in [file.clone(), file.join("below")] {
        let error = sentence(open(&path));
        assert!(
            error.contains("is not a folder") && error.contains("file"),
            "{error}"
        );
    }
    assert_eq!(fs::read(&file).unwrap(), b"x");
}

#[test]
fn a_folder_is_made_with_those_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b");
    let store = open(&path).unwrap();
    assert_eq!(runtime().block_on(load(&store)), []);
}

#[test]
fn a_folder_in_use_is_refused_until_it_is_let_go() {
    let (folder, ..) = filled(1);
    let first = open(folder.path()).unwrap();
    let error = sentence(open(folder.path()));
    assert!(error.contains("in use by another process"), "{error}");
    drop(first);
    open(folder.path()).unwrap();
}

#[test]
fn a_newer_format_is_refused_and_left_alone() {
    let (folder, log, _) = filled(1);
    let before = fs::read(&log).unwrap();
    fs::write(folder.path().join("format"), "headgate store 2\nand more").unwrap();
    let error = sentence(open(folder.path()));
    assert!(
        !error.contains("format 2, "),
        "a format with more words is not a number: {error}"
    );
    fs::write(folder.path().join("format"), "headgate store 2\n").unwrap();
    let error = sentence(open(folder.path()));
    assert!(
        error.contains("has format 2, ") && error.contains("only format 1"),
        "{error}"
    );
    assert_eq!(fs::read(&log).unwrap(), before);
}

#[test]
fn a_format_that_is_lost_or_garbage_is_damage() {
    let (folder, ..) = filled(1);
    fs::write(folder.path().join("format"), "\u{fffd}\0 something").unwrap();
    assert!(sentence(open(folder.path())).contains("is not the format of a headgate store"));
    fs::remove_file(folder.path().join("format")).unwrap();
    assert!(sentence(open(folder.path())).contains("it is missing"));
}

#[test]
fn a_truncated_last_frame_is_dropped_and_reported() {
    let (folder, log, ends) = filled(3);
    let whole = fs::read(&log).unwrap();
    let (start, end) = (ends[2] as usize, ends[3] as usize);
    for cut in start..end {
        fs::write(&log, &whole[..cut]).unwrap();
        let options = options(Options::COMPACT_AT_BYTES);
        let dropped = options.metrics.dropped_bytes.clone();
        let store = EmbeddedStore::open(folder.path(), options).unwrap();
        assert_eq!(dropped.get(), (cut - start) as u64);
        runtime().block_on(async {
            assert_eq!(load(&store).await, [(0, 0), (1, 1)], "cut at {cut}");
            let epoch = lead(&store).await;
            store.append(epoch, batch([(9, Some(9))])).await.unwrap();
            assert_eq!(load(&store).await, [(0, 0), (1, 1), (9, 9)]);
        });
    }
}

#[test]
fn a_last_frame_whose_pages_were_not_written_is_dropped() {
    let (folder, log, ends) = filled(3);
    let whole = fs::read(&log).unwrap();
    let (start, end) = (ends[2] as usize, ends[3] as usize);
    for hole in [
        start..end,
        start..start + 8,
        end - 8..end,
        start + 24..start + 25,
    ] {
        let mut torn = whole.clone();
        torn[hole.clone()].fill(0);
        fs::write(&log, torn).unwrap();
        let store = open(folder.path()).unwrap();
        assert_eq!(
            runtime().block_on(load(&store)),
            [(0, 0), (1, 1)],
            "hole {hole:?}"
        );
    }
}

#[test]
fn any_damage_before_the_last_frame_is_refused() {
    let (folder, log, ends) = filled(3);
    let whole = fs::read(&log).unwrap();
    for at in 0..ends[2] as usize {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x10;
        fs::write(&log, &damaged).unwrap();
        let error = sentence(open(folder.path()));
        assert!(
            error.contains("is damaged") && error.contains("00001.log"),
            "byte {at}: {error}"
        );
        assert_eq!(
            fs::read(&log).unwrap(),
            damaged,
            "a refused file is left as it is"
        );
    }
}

#[test]
fn a_frame_that_is_gone_from_the_middle_is_refused() {
    let (folder, log, ends) = filled(3);
    let mut bytes = fs::read(&log).unwrap();
    bytes.drain(ends[1] as usize..ends[2] as usize);
    fs::write(&log, bytes).unwrap();
    let error = sentence(open(folder.path()));
    assert!(error.contains("frame 4 instead of 3"), "{error}");
}

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_str().unwrap().ends_with(suffix))
        .collect()
}

fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < deadline, "not in time: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A closed store with a snapshot and a log after it, and what is in it.
fn compacted() -> (TempDir, Vec<(u32, u32)>) {
    let folder = tempfile::tempdir().unwrap();
    let records = runtime().block_on(async {
        let store = EmbeddedStore::open(folder.path(), options(SMALL)).unwrap();
        let epoch = lead(&store).await;
        let mut next = 0;
        while files(folder.path(), ".snapshot").is_empty() {
            store
                .append(epoch, batch([(next, Some(next))]))
                .await
                .unwrap();
            next += 1;
        }
        load(&store).await
    });
    (folder, records)
}

#[test]
fn a_snapshot_and_the_log_after_it_are_the_whole() {
    let (folder, records) = compacted();
    assert!(records.len() > 30);
    let store = open(folder.path()).unwrap();
    assert_eq!(runtime().block_on(load(&store)), records);
}

#[test]
fn a_damaged_or_cut_snapshot_is_refused() {
    let (folder, _) = compacted();
    let snapshot = files(folder.path(), ".snapshot").pop().unwrap();
    let whole = fs::read(&snapshot).unwrap();
    for at in (0..whole.len()).step_by(13) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        fs::write(&snapshot, damaged).unwrap();
        assert!(
            sentence(open(folder.path())).contains("is damaged"),
            "byte {at}"
        );
        fs::write(&snapshot, &whole[..at]).unwrap();
        assert!(
            sentence(open(folder.path())).contains("is damaged"),
            "cut at {at}"
        );
    }
}

#[test]
fn a_file_that_is_gone_is_refused() {
    for suffix in [".snapshot", ".log"] {
        let (folder, _) = compacted();
        files(folder.path(), suffix)
            .iter()
            .for_each(|path| fs::remove_file(path).unwrap());
        let error = sentence(open(folder.path()));
        assert!(error.contains("it is missing"), "{suffix}: {error}");
    }
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

#[test]
fn waiting_batches_share_a_write() {
    const WRITERS: u32 = 200;
    let folder = tempfile::tempdir().unwrap();
    let options = options(Options::COMPACT_AT_BYTES);
    let writes = options.metrics.write_seconds.clone();
    runtime().block_on(async {
        let store = std::sync::Arc::new(EmbeddedStore::open(folder.path(), options).unwrap());
        let epoch = lead(&store).await;
        let mut writers = tokio::task::JoinSet::new();
        for i in 0..WRITERS {
            let store = std::sync::Arc::clone(&store);
            writers.spawn(async move { store.append(epoch, batch([(i, Some(i))])).await });
        }
        while let Some(ended) = writers.join_next().await {
            ended.unwrap().unwrap();
        }
        assert_eq!(load(&store).await.len(), WRITERS as usize);
    });
    assert!(
        writes.count() < u64::from(WRITERS) / 2,
        "{} writes",
        writes.count()
    );
}

#[test]
fn after_a_failed_sync_nothing_more_is_written() {
    let (folder, ..) = filled(1);
    runtime().block_on(async {
        let store = open(folder.path()).unwrap();
        let epoch = lead(&store).await;
        store.fail_next(DiskFault::AfterWrite);
        let unknown = store.append(epoch, batch([(1, Some(1))])).await;
        assert!(
            matches!(unknown, Err(StoreError::Unknown(_))),
            "{unknown:?}"
        );
        let refused = store.append(epoch, batch([(2, Some(2))])).await;
        assert!(
            matches!(refused, Err(StoreError::NotWritten(_))),
            "{refused:?}"
        );
    });
}

#[test]
#[ignore = "measures: run with --release"]
fn a_million_keys_load_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let rt = runtime();
    let store = open(folder.path()).unwrap();
    let epoch = rt.block_on(lead(&store));
    for first in (0..1_000_000).step_by(2000) {
        let changes = (first..first + 2000).map(|key| (key, Some(key)));
        rt.block_on(store.append(epoch, batch(changes))).unwrap();
    }
    drop(store);
    let started = Instant::now();
    let store = open(folder.path()).unwrap();
    let checked = started.elapsed();
    let epoch = rt.block_on(lead(&store));
    let records = rt.block_on(store.load(epoch)).unwrap();
    let loaded = started.elapsed();
    println!("checked in {checked:?}, loaded in {loaded:?}");
    assert_eq!(records.len(), 1_000_000);
    assert!(loaded < Duration::from_secs(1), "{loaded:?}");
}

/// One step of a store's life.
#[derive(Clone, Debug)]
enum Step {
    Append(Vec<(u32, Option<u32>)>),
    Restart,
    /// The machine crashes while one more batch is written, of which this much arrives.
    Crash(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let change = (0..40_u32, proptest::option::of(0..1000_u32));
    let step = prop_oneof![
        12 => proptest::collection::vec(change, 1..12).prop_map(Step::Append),
        1 => Just(Step::Restart),
        1 => (0..90_u8).prop_map(Step::Crash),
    ];
    proptest::collection::vec(step, 1..120)
}

fn crash(folder: &Path, arrives: u8) {
    let log = files(folder, ".log").into_iter().max().unwrap();
    let mut bytes = fs::read(&log).unwrap();
    let opened = super::folder::Folder::open(folder).unwrap();
    let (chain, _) = super::replay::Chain::of(&opened, opened.files().unwrap()).unwrap();
    let number = chain.replay(|_, _| {}).unwrap().next;
    let mut frame = super::frame::Builder::new(Epoch::new(0));
    frame.push(super::frame::Entry::Change(b"lost", Some(&[7; 80])));
    let frame = frame.finish(number);
    bytes.extend(&frame[..usize::from(arrives)]);
    fs::write(log, bytes).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Whatever happens in between, a start finds exactly what was acknowledged.
    #[test]
    fn every_life_keeps_what_was_acknowledged(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        let rt = runtime();
        let start = || EmbeddedStore::open(folder.path(), options(SMALL)).unwrap();
        let mut model = std::collections::BTreeMap::new();
        let mut store = start();
        let mut epoch = rt.block_on(lead(&store));
        for step in steps.into_iter().chain([Step::Restart]) {
            match step {
                Step::Append(changes) => {
                    rt.block_on(store.append(epoch, batch(changes.clone()))).unwrap();
                    for (key, value) in changes {
                        match value {
                            Some(value) => model.insert(key, value),
                            None => model.remove(&key),
                        };
                    }
                }
                Step::Restart | Step::Crash(_) => {
                    drop(store);
                    if let Step::Crash(arrives) = step {
                        crash(folder.path(), arrives);
                    }
                    store = start();
                    let found: std::collections::BTreeMap<_, _> =
                        rt.block_on(load(&store)).into_iter().collect();
                    prop_assert_eq!(&found, &model);
                    epoch = rt.block_on(lead(&store));
                }
            }
        }
    }
}
