//! Faults that random worlds got later than their first ones.

use headgate_core::units::Span;

use super::millis;
use crate::random::Random;
use crate::time::Truth;
use crate::world::Fault;

/// A replica leaves in an orderly way, and comes back.
pub(super) fn a_leave(
    random: &mut Random,
    replicas: u64,
    (quiet, loaded): (Span, Span),
) -> Vec<(Truth, Fault)> {
    if !random.chance(200) {
        return Vec::new();
    }
    let replica = usize::try_from(random.between(0, replicas.saturating_sub(1))).unwrap_or(0);
    let at = Truth::ZERO.plus(quiet).plus(random.span(loaded));
    let back = at.plus(random.span(Span::from_secs(3)));
    vec![
        (at, Fault::LeaveReplica(replica)),
        (back, Fault::StartReplica(replica)),
    ]
}

/// Faults of their own source of numbers, so that the rest of a seed's world does not depend on
/// them.
pub(super) fn more_faults(
    mut random: Random,
    replicas: u64,
    (from, loaded): (Truth, Span),
) -> Vec<(Truth, Fault)> {
    let mut faults = Vec::new();
    let replica = usize::try_from(random.below(replicas)).unwrap_or(0);
    let mut add = |per_mille, fault: &dyn Fn(&mut Random) -> Fault| {
        if random.chance(per_mille) {
            let at = from.plus(random.span(loaded));
            faults.push((at, fault(&mut random)));
        }
    };
    add(150, &|random| {
        Fault::Depose(millis(random, &[20, 200, 2_000]))
    });
    add(150, &|random| {
        Fault::LoseAnswers(replica, millis(random, &[5, 30, 200]))
    });
    add(150, &|random| {
        let lasts = millis(random, &[2, 20]);
        Fault::SlowAnswers(replica, lasts, millis(random, &[10, 60, 200]))
    });
    add(150, &|random| {
        let lasts = millis(random, &[2, 20]);
        Fault::SlowCalls(replica, lasts, millis(random, &[10, 60, 200]))
    });
    faults
}
