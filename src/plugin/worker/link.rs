//! Whether the counter service answers, as news for the log: one line when it stops, one when it
//! answers again, however many calls there are.

use headgate_core::units::{LocalTime, Span};

use crate::host_api::{CallFailure, HostError};

/// Calls that fail in a row before the service counts as gone: one may be lost, and an ask that
/// the service cannot decide in time ends like one that it does not answer.
const FAILURES_MIN: u32 = 3;

/// Shortest time between two lines of one worker, for a service that comes and goes.
const QUIET: Span = Span::from_secs(5);

/// Why a call brought no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Cause {
    #[error("the call was not sent: {0}")]
    NotSent(HostError),
    #[error(transparent)]
    Failed(CallFailure),
    #[error("the answer is not the message it should be")]
    NoMessage,
    #[error("{0} of the answer makes no sense")]
    Nonsense(&'static str),
}

/// What to tell the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum News {
    Gone(Cause),
    Back,
}

/// What is known of the service.
#[derive(Debug, Default)]
pub(super) struct Link {
    /// Calls that have failed since the last answer.
    failures: u32,
    cause: Option<Cause>,
    /// The log says that it is gone.
    said_gone: bool,
    quiet_until: LocalTime,
}

impl Link {
    pub(super) fn answered(&mut self) {
        self.failures = 0;
        self.cause = None;
    }

    pub(super) fn failed(&mut self, cause: Cause) {
        self.failures = self.failures.saturating_add(1);
        self.cause = Some(cause);
    }

    /// What has changed since it was last said.
    pub(super) fn news(&mut self, now: LocalTime) -> Option<News> {
        let gone = self.cause.filter(|_| self.failures >= FAILURES_MIN);
        let news = match (gone, self.said_gone) {
            (Some(cause), false) => News::Gone(cause),
            (None, true) if self.failures == 0 => News::Back,
            _ => return None,
        };
        if now < self.quiet_until {
            return None;
        }
        self.said_gone = gone.is_some();
        self.quiet_until = now.plus(QUIET);
        Some(news)
    }
}

impl News {
    pub(super) fn log(self, cluster: &str) {
        match self {
            Self::Gone(cause) => log::warn!(
                "headgate: the counter service (cluster {cluster}) does not answer: {cause}. \
                 Requests that it would have to decide are undecided until it does"
            ),
            Self::Back => {
                log::info!("headgate: the counter service (cluster {cluster}) answers again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAUSE: Cause = Cause::NoMessage;

    fn at(millis: u64) -> LocalTime {
        LocalTime::new(1).plus(Span::from_millis(millis))
    }

    #[test]
    fn one_line_for_each_change_and_not_for_each_call() {
        let mut link = Link::default();
        link.failed(CAUSE);
        link.failed(CAUSE);
        assert_eq!(link.news(at(0)), None, "may be chance");
        link.answered();
        link.failed(CAUSE);
        link.failed(CAUSE);
        assert_eq!(link.news(at(0)), None, "not in a row");
        link.failed(CAUSE);
        assert_eq!(link.news(at(1)), Some(News::Gone(CAUSE)));
        for number in 2..1_000 {
            link.failed(CAUSE);
            assert_eq!(link.news(at(number)), None);
        }
        link.answered();
        assert_eq!(link.news(at(6_000)), Some(News::Back));
        assert_eq!(link.news(at(60_000)), None);
    }

    #[test]
    fn a_service_that_comes_and_goes_does_not_fill_the_log() {
        let mut link = Link::default();
        let mut lines = 0;
        for number in 0..1_000 {
            for _ in 0..FAILURES_MIN {
                link.failed(CAUSE);
            }
            lines += u32::from(link.news(at(20 * number)).is_some());
            link.answered();
            lines += u32::from(link.news(at(20 * number + 10)).is_some());
        }
        assert_eq!(lines, 4, "in 20 seconds");
    }
}
