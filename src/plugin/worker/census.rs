//! Counting the cells in use.

use headgate_core::replica::table::{BUCKETS_DEFAULT, Table};
use headgate_core::replica::walk::Walk;
use headgate_core::units::LocalTime;

use super::ending::Ending;
use super::{Worker, shared_failed};

/// A count that begins anew when the walk over the table has ended.
#[derive(Debug, Default)]
pub(super) struct Census {
    walk: Walk,
    found: u64,
    /// What this worker has added to the shared gauge.
    published: i64,
}

impl Census {
    /// The buckets of the next step hold so many cells in use; by how much the gauge changes.
    pub(super) fn counted(&mut self, cells: u64, buckets: u32) -> i64 {
        self.found = self.found.saturating_add(cells);
        if !self.walk.advance(buckets) {
            return 0;
        }
        let found = i64::try_from(std::mem::take(&mut self.found)).unwrap_or(i64::MAX);
        self.publish(found)
    }

    /// Another worker counts now: by how much the gauge changes.
    pub(super) fn end(&mut self) -> i64 {
        self.walk.restart();
        self.found = 0;
        self.publish(0)
    }

    fn publish(&mut self, found: i64) -> i64 {
        found.saturating_sub(std::mem::replace(&mut self.published, found))
    }
}

impl Worker {
    /// One step of counting the cells, if this worker holds the watch.
    pub(super) fn take_census(&mut self, now: LocalTime) {
        let Some(part) = &self.part else { return };
        if self.ending != Ending::NotYet || !self.census.walk.take_turn(now) {
            return;
        }
        let seated = part.worker.seat().and_then(|seat| seat.seated);
        let holds = part.leader.holds_watch(&self.shared, now, false);
        let counted = match (seated, holds) {
            (Some(seated), Ok(true)) => {
                let buckets = self.census.walk.next_buckets(BUCKETS_DEFAULT);
                let table = Table::new(&self.shared, BUCKETS_DEFAULT);
                table.cells_in_use(buckets, seated.moment(now)).map(Some)
            }
            (_, holds) => holds.map(|_| None),
        };
        let difference = match counted {
            Ok(Some(cells)) => self.census.counted(cells, BUCKETS_DEFAULT),
            Ok(None) => self.census.end(),
            Err(error) => return shared_failed(&self.env.metrics, error),
        };
        self.env.metrics.cells_in_use(difference);
    }
}

#[cfg(test)]
mod tests {
    use headgate_core::replica::walk::STEP;

    use super::*;

    fn walk(census: &mut Census, now: &mut LocalTime, each: u64) -> (u32, i64) {
        let mut seen = 0;
        loop {
            *now = now.plus(STEP);
            assert!(census.walk.take_turn(*now));
            assert!(!census.walk.take_turn(*now));
            let slice = census.walk.next_buckets(150);
            assert_eq!(slice.start, seen, "no bucket twice, none left out");
            seen = slice.end;
            let cells = each * u64::from(slice.end - slice.start);
            let difference = census.counted(cells, 150);
            if seen == 150 {
                return (seen, difference);
            }
            assert_eq!(difference, 0, "half a walk says nothing");
        }
    }

    #[test]
    fn the_gauge_follows_whole_walks_and_ends_at_zero() {
        let (mut census, mut now) = (Census::default(), LocalTime::ZERO);
        assert_eq!(walk(&mut census, &mut now, 2), (150, 300));
        assert_eq!(walk(&mut census, &mut now, 1), (150, -150));
        let _first = census.counted(5, 150);
        assert_eq!(census.end(), -150);
        assert_eq!(walk(&mut census, &mut now, 1), (150, 150));
    }
}
