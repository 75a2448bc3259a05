use super::*;

fn put(key: &[u8], value: Vec<u8>) -> Change {
    Change {
        key: key.to_vec(),
        value: Some(value),
    }
}

#[test]
fn a_later_change_of_a_key_replaces_the_earlier_one_and_its_bytes() {
    let mut batch = Batch::default();
    batch
        .add(vec![put(b"a", vec![1; 1000]), put(b"b", vec![2])])
        .unwrap();
    batch
        .add(vec![
            put(b"a", vec![3]),
            Change {
                key: b"b".to_vec(),
                value: None,
            },
        ])
        .unwrap();
    let changes: Vec<_> = batch.changes().collect();
    assert_eq!(
        changes,
        [(b"a".as_slice(), Some([3].as_slice())), (b"b", None)]
    );
    assert_eq!(batch.bytes, 2 * (1 + CHANGE_OVERHEAD) + 1);
}

#[test]
fn a_step_that_does_not_fit_leaves_the_batch_as_it_was() {
    let mut batch = Batch::default();
    let step = |first: u8| {
        (0..6)
            .map(|i| put(&[first, i], vec![0; MAX_VALUE_BYTES]))
            .collect()
    };
    batch.add(step(0)).unwrap();
    let before = batch.clone();
    assert_eq!(batch.add(step(1)), Err(Full::NextBatch));
    assert_eq!(batch, before);
    Batch::default().add(step(1)).unwrap();
}

#[test]
fn a_step_beyond_any_bound_fits_nowhere() {
    let many = (0..=MAX_BATCH_CHANGES)
        .map(|i| put(&i.to_le_bytes(), vec![]))
        .collect();
    let large = (0..13)
        .map(|i| put(&[i], vec![0; MAX_VALUE_BYTES]))
        .collect();
    let long_key = vec![put(&[0; MAX_KEY_BYTES + 1], vec![])];
    let long_value = vec![put(b"k", vec![0; MAX_VALUE_BYTES + 1])];
    for step in [many, large, long_key, long_value] {
        let full = Batch::default().add(step).unwrap_err();
        assert!(matches!(full, Full::Never { .. }), "{full}");
    }
}
