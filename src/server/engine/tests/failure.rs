//! An end at the first doubt, and nothing answered after it.

use super::*;

/// The first write ends with `outcome`, while another command waits behind it. Returns the
/// engine's last sentence.
async fn fails(mut world: World, outcome: Outcome) -> String {
    let hold = world.hold(outcome);
    let first = world.add(1, 1);
    settle().await;
    let second = world.add(1, 1);
    for _ in 0..100 {
        world.store.inject(Fault {
            hold: None,
            outcome,
        });
    }
    hold.notify_one();
    assert!(
        first.await.is_err() && second.await.is_err(),
        "an answer in spite of the failure"
    );
    let (reply, _) = oneshot::channel();
    let refused = world.queue.submit(Command::Add(1, 1, reply));
    assert!(matches!(refused, Err(Refused::Stopped(_))));
    assert_eq!(world.metrics.epoch.get(), 0);
    (&mut world.engine).await.unwrap().unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn an_unknown_outcome_ends_everything_unanswered() {
    for outcome in [Outcome::WrittenUnknown, Outcome::LostUnknown] {
        let sentence = fails(plain_world().await, outcome).await;
        assert!(
            sentence.contains("cannot tell") && sentence.contains("stopping"),
            "{sentence}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_that_stays_unwritable_ends_everything_unanswered() {
    let started = Instant::now();
    let sentence = fails(plain_world().await, Outcome::NotWritten).await;
    assert!(sentence.contains("wrote nothing"), "{sentence}");
    assert!(started.elapsed() >= WRITE_PATIENCE);
}

#[tokio::test(start_paused = true)]
async fn a_deposed_leader_answers_nothing() {
    let world = plain_world().await;
    let store = world.store.clone();
    elect(&store, &candidate(1)).await.unwrap();
    let sentence = fails(world, Outcome::Normal).await;
    assert!(
        sentence.contains("epoch 1 no longer leads (epoch 2 does)"),
        "{sentence}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_record_that_fits_no_batch_ends_everything() {
    let mut world = plain_world().await;
    let answer = world.ask(|reply| Command::Grow(MAX_VALUE_BYTES + 1, reply));
    assert!(answer.await.is_err());
    let error = (&mut world.engine).await.unwrap().unwrap_err();
    assert!(
        matches!(error, EngineError::TooLarge(Full::Never { .. })),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_renewed_and_the_leadership_lost_only_with_it() {
    const LEASE: Duration = Duration::from_secs(3);
    let mut world = world(MemoryStore::new(Some(LEASE)), 8).await;
    // Pacing: the clock is paused, and this drives it.
    sleep(LEASE * 10).await;
    assert_eq!(world.add(1, 1).await, Ok(1));
    // Another service leads: known at the next renewal, without any write.
    world.store.forget_leader();
    elect(&world.store, &candidate(2)).await.unwrap();
    // Pacing: the clock is paused, and this drives it.
    sleep(LEASE).await;
    let error = (&mut world.engine).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no longer leads"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn nothing_is_answered_after_the_lease_not_even_a_read() {
    let store = MemoryStore::new(Some(Duration::from_secs(3)));
    let asked = Instant::now();
    let Ok(crate::store::Election::Won(won)) = store.lead(&candidate(1)).await else {
        panic!()
    };
    let tenure = Tenure::new(won, asked);
    let metrics = EngineMetrics::default();
    let (queue, commands) = queue(8, metrics.clone());
    let (reply, answer) = oneshot::channel();
    assert!(queue.submit(Command::Read(1, reply)).is_ok());
    // The process was held up before it came to the command.
    tokio::time::advance(Duration::from_secs(3)).await;
    let engine = Engine::new(
        Sums::default(),
        Arc::new(store),
        tenure,
        commands,
        Monotonic::start(),
        metrics,
    );
    let (_stop, stopped) = oneshot::channel();
    let error = engine.run(stopped).await.unwrap_err();
    assert!(matches!(error, EngineError::LeaseOver { .. }), "{error}");
    assert!(answer.await.is_err());
}
