use super::*;

fn put(key: &[u8], value: Vec<u8>) -> Change {
    Change {
        key: key.to_vec(),
        value: Some(value),
    }
}

fn delete(key: &[u8]) -> Change {
    Change {
        key: key.to_vec(),
        value: None,
    }
}

#[test]
fn a_later_change_of_a_key_replaces_the_earlier_one_and_its_bytes() {
    let mut batch = Batch::default();
    for change in [
        put(b"a", vec![1; 1000]),
        put(b"b", vec![2]),
        put(b"a", vec![3]),
        delete(b"b"),
    ] {
        batch.add(change).unwrap();
    }
    let changes: Vec<_> = batch.changes().collect();
    assert_eq!(
        changes,
        [(b"a".as_slice(), Some([3].as_slice())), (b"b", None)]
    );
    assert_eq!(batch.bytes, 2 * (1 + CHANGE_OVERHEAD) + 1);
}

#[test]
fn a_change_that_does_not_fit_leaves_the_batch_as_it_was() {
    let mut batch = Batch::default();
    batch.add(put(b"a", vec![0; MAX_VALUE_BYTES])).unwrap();
    let before = batch.clone();
    let large = put(b"b", vec![0; MAX_VALUE_BYTES]);
    assert!(!batch.has_room_for(std::slice::from_ref(&large)));
    assert_eq!(batch.add(large), Err(Full::NextBatch));
    assert_eq!(batch, before);

    let mut batch = Batch::default();
    for i in 0..MAX_BATCH_CHANGES {
        batch.add(delete(&i.to_le_bytes())).unwrap();
    }
    assert_eq!(batch.add(delete(b"one more")), Err(Full::NextBatch));
}

#[test]
fn a_record_beyond_the_bounds_fits_nowhere() {
    for large in [
        put(&[0; MAX_KEY_BYTES + 1], vec![]),
        put(b"k", vec![0; MAX_VALUE_BYTES + 1]),
    ] {
        let full = Batch::default().add(large).unwrap_err();
        assert!(matches!(full, Full::Never { .. }), "{full}");
    }
    Batch::default()
        .add(put(&[0; MAX_KEY_BYTES], vec![0; MAX_VALUE_BYTES]))
        .unwrap();
}
