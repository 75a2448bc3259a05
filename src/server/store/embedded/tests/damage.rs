//! Files that were cut, overwritten, lost or made by another version.

use super::*;

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
