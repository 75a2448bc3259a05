//! What the folder survives, and what it refuses.

mod compaction;
mod damage;
mod life;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

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
    let change = |(key, value): (u32, Option<u32>)| Change {
        key: key.to_be_bytes().to_vec(),
        value: value.map(|value| value.to_be_bytes().repeat(5)),
    };
    let mut batch = Batch::default();
    for change in changes.into_iter().map(change) {
        batch.add(change).unwrap();
    }
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

fn files(folder: &Path, suffix: &str) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.to_str().unwrap().ends_with(suffix))
        .collect()
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
            matches!(refused, Err(StoreError::Damaged(_))),
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
    let key = |number: u32| number.to_be_bytes().repeat(4);
    let put = |number: u32| Change {
        key: key(number),
        value: Some(vec![7; 100]),
    };
    for first in (0..1_000_000).step_by(2000) {
        let mut batch = Batch::default();
        for change in (first..first + 2000).map(put) {
            batch.add(change).unwrap();
        }
        rt.block_on(store.append(epoch, batch)).unwrap();
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
