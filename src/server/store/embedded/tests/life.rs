//! Random lives of a store, with restarts and crashes.

use proptest::prelude::*;

use super::*;

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
    let number = chain.replay(|_, _, _| {}).unwrap().next;
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
