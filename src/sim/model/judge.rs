//! Honesty of the answers, by a limiter that knows only arrivals and answers (H1 and H2).
//!
//! What is left of a fixed window only falls. So a history is honest if it is with every admitted
//! request taken at its arrival and every refused one at its answer: a refusal is right if by its
//! answer enough requests have come that are admitted, then or later. How those that wait will end
//! is not known yet, so the refusal is remembered with what it still needs.

use super::wrong::{Promise, Wrong};

/// Counts windows from the one in which the model begins.
pub(super) type WindowNumber = u8;

/// How far a request is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Status {
    Coming,
    /// Since this window.
    Waiting(WindowNumber),
    /// Counts in one of these windows.
    Admitted(WindowNumber, WindowNumber),
    Refused,
    /// May count as admitted.
    Undecided(WindowNumber, WindowNumber),
}

/// Answers of this kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answered {
    Admitted,
    /// By this rule.
    Refused(usize),
    Undecided,
}

/// What a refusal still needs to be right, in one window.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Need {
    missing: u64,
    /// Requests that had come and had no answer then, one bit each.
    waited: u32,
}

/// A refusal that is not known to be right: one of its needs has to be met.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Owed {
    rule: usize,
    needs: Vec<Need>,
}

/// Arrivals and answers so far.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Book {
    /// What each request wants of each rule; the same in all states.
    costs: Vec<Vec<u64>>,
    limits: Vec<u64>,
    status: Vec<Status>,
    owed: Vec<Owed>,
    /// Tokens that died unused, by rule and window.
    lost: Vec<(usize, WindowNumber, u64)>,
}

impl Book {
    pub(super) fn new(limits: Vec<u64>, costs: Vec<Vec<u64>>) -> Self {
        let status = vec![Status::Coming; costs.len()];
        Self {
            costs,
            limits,
            status,
            owed: Vec::new(),
            lost: Vec::new(),
        }
    }

    pub(super) fn status(&self, request: usize) -> Option<Status> {
        self.status.get(request).copied()
    }

    fn cost(&self, request: usize, rule: usize) -> u64 {
        let costs = self.costs.get(request);
        costs
            .and_then(|costs| costs.get(rule))
            .copied()
            .unwrap_or(0)
    }

    /// Whether some request has come and has no answer.
    pub(super) fn some_wait(&self) -> bool {
        self.status
            .iter()
            .any(|status| matches!(status, Status::Waiting(_)))
    }

    pub(super) fn arrives(&mut self, request: usize, now: WindowNumber) {
        if let Some(status) = self.status.get_mut(request) {
            *status = Status::Waiting(now);
        }
    }

    /// Tokens died unused.
    pub(super) fn loses(&mut self, rule: usize, window: WindowNumber, amount: u64) {
        if amount > 0 {
            self.lost.push((rule, window, amount));
            self.lost.sort_unstable();
        }
    }

    /// A request has its answer.
    pub(super) fn answered(
        &mut self,
        request: usize,
        how: Answered,
        now: WindowNumber,
    ) -> Result<(), Wrong> {
        let Some(Status::Waiting(since)) = self.status(request) else {
            return Err(Wrong::new(
                Promise::OneAnswer,
                format!("request {request} twice"),
            ));
        };
        let status = match how {
            Answered::Admitted => Status::Admitted(since, now),
            Answered::Refused(_) => Status::Refused,
            Answered::Undecided => Status::Undecided(since, now),
        };
        if let Some(place) = self.status.get_mut(request) {
            *place = status;
        }
        self.settle_needs(request, how)?;
        match how {
            Answered::Admitted => self.check_admitted(),
            Answered::Refused(rule) => self.refused(request, rule, (since, now)),
            Answered::Undecided => Ok(()),
        }
    }

    /// The needs of earlier refusals, now that one more request has its answer.
    fn settle_needs(&mut self, request: usize, how: Answered) -> Result<(), Wrong> {
        let counts = !matches!(how, Answered::Refused(_));
        let mut owed = std::mem::take(&mut self.owed);
        for one in &mut owed {
            let cost = self.cost(request, one.rule);
            for need in one
                .needs
                .iter_mut()
                .filter(|need| need.waited & bit(request) != 0)
            {
                need.waited &= !bit(request);
                if counts {
                    need.missing = need.missing.saturating_sub(cost);
                }
            }
        }
        owed.retain(|one| one.needs.iter().all(|need| need.missing > 0));
        self.owed = owed;
        self.owed.iter().try_for_each(|one| self.check_owed(one))
    }

    fn check_owed(&self, owed: &Owed) -> Result<(), Wrong> {
        let may_come = |need: &Need| {
            let waited = (0..self.status.len()).filter(|request| need.waited & bit(*request) != 0);
            let sum: u64 = waited.map(|request| self.cost(request, owed.rule)).sum();
            sum >= need.missing
        };
        if owed.needs.iter().any(may_come) {
            return Ok(());
        }
        let what = format!(
            "of rule {}: {:?}, still needs {:?}",
            owed.rule, self.status, owed.needs
        );
        Err(Wrong::new(Promise::NoFalseRefusal, what))
    }

    fn refused(
        &mut self,
        request: usize,
        rule: usize,
        (first, last): (WindowNumber, WindowNumber),
    ) -> Result<(), Wrong> {
        let limit = self.limits.get(rule).copied().unwrap_or(0);
        let judged = self.cost(request, rule).max(1);
        // So much has to be gone for the refusal to be right.
        let enough = limit.saturating_add(1).saturating_sub(judged);
        let need = |window| Need {
            missing: enough.saturating_sub(self.gone(rule, window)),
            waited: self.waiting_in(rule, window),
        };
        let needs: Vec<Need> = (first..=last).map(need).collect();
        if needs.iter().any(|need| need.missing == 0) {
            return Ok(());
        }
        let owed = Owed { rule, needs };
        self.check_owed(&owed)?;
        self.owed.push(owed);
        self.owed
            .sort_unstable_by_key(|one| (one.rule, format!("{:?}", one.needs)));
        Ok(())
    }

    /// Tokens that may be gone in a window.
    fn gone(&self, rule: usize, window: WindowNumber) -> u64 {
        let may = |request: &usize| match self.status(*request) {
            Some(Status::Admitted(first, last) | Status::Undecided(first, last)) => {
                (first..=last).contains(&window)
            }
            _ => false,
        };
        let requests = (0..self.status.len()).filter(may);
        let charged: u64 = requests.map(|request| self.cost(request, rule)).sum();
        let lost = self
            .lost
            .iter()
            .filter(|(of, at, _)| (*of, *at) == (rule, window));
        lost.fold(charged, |sum, (_, _, amount)| sum.saturating_add(*amount))
    }

    fn waiting_in(&self, rule: usize, window: WindowNumber) -> u32 {
        let waits = |request: &usize| match self.status(*request) {
            Some(Status::Waiting(since)) => since <= window && self.cost(*request, rule) > 0,
            _ => false,
        };
        (0..self.status.len())
            .filter(waits)
            .fold(0, |bits, request| bits | bit(request))
    }

    /// Whether the admitted can be spread over the windows so that none has more than its limit.
    fn check_admitted(&self) -> Result<(), Wrong> {
        let latest = self.status.iter().filter_map(|status| match status {
            Status::Admitted(_, last) => Some(*last),
            _ => None,
        });
        let latest = latest.max().unwrap_or(0);
        for (rule, limit) in self.limits.iter().enumerate() {
            for first in 0..=latest {
                for last in first..=latest {
                    self.check_span(rule, *limit, (first, last))?;
                }
            }
        }
        Ok(())
    }

    /// Those that can only count between two windows fit into them.
    fn check_span(
        &self,
        rule: usize,
        limit: u64,
        (first, last): (WindowNumber, WindowNumber),
    ) -> Result<(), Wrong> {
        let inside = |request: &usize| match self.status(*request) {
            Some(Status::Admitted(from, to)) => first <= from && to <= last,
            _ => false,
        };
        let requests = (0..self.status.len()).filter(inside);
        let sum: u64 = requests.map(|request| self.cost(request, rule)).sum();
        let windows = u64::from(last.saturating_sub(first)).saturating_add(1);
        if sum <= limit.saturating_mul(windows) {
            return Ok(());
        }
        let what = format!("rule {rule}: {sum} of {limit} in windows {first} to {last}");
        Err(Wrong::new(Promise::NeverOver, what))
    }
}

fn bit(request: usize) -> u32 {
    1_u32
        .checked_shl(u32::try_from(request).unwrap_or(u32::MAX))
        .unwrap_or(0)
}
