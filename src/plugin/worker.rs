//! Decides the requests of one worker. It has no leases yet, so nobody can know, and every
//! request is undecided: the rules' policies act.

use crate::decide::{Applied, Decider, Env, RuleIndex, Settled, Step, Verdict};
use crate::host_api::{CallFailure, CallToken, StreamId};

/// The decisions of one root in one worker.
#[derive(Debug)]
pub struct Worker {
    env: Env,
}

impl Worker {
    /// A worker that knows nothing yet.
    #[must_use]
    pub fn new(env: Env) -> Self {
        Self { env }
    }
}

impl Decider for Worker {
    fn request(&mut self, _stream: StreamId, applied: Vec<Applied>) -> Step {
        log::trace!("undecided under {} rules", self.env.config.rules().len());
        let first = applied.first().map(|applied| applied.rule);
        Step::Done(
            first.map_or(Verdict::Admit, |rule: RuleIndex| Verdict::Undecided {
                rule,
            }),
        )
    }

    fn wake(&mut self) -> Vec<Settled> {
        Vec::new()
    }

    fn tick(&mut self) -> Vec<Settled> {
        Vec::new()
    }

    fn answered(&mut self, _: CallToken, _: Result<&[u8], CallFailure>) -> Vec<Settled> {
        Vec::new()
    }

    fn gone(&mut self, _stream: StreamId) {}
}
