//! Calls that are out: what each was for, when it is overdue, and how the last ones ended.

use std::num::NonZeroU32;

use headgate_core::message::wire::WireError;
use headgate_core::replica::leader::Ticket;
use headgate_core::replica::worker::CallId;
use headgate_core::units::{LocalTime, Span};

use super::link::{Cause, Link};
use crate::decide::Env;
use crate::host_api::{Call, CallFailure, CallToken, Method};
use crate::metrics::Count;

/// Time beyond its timeout after which a call whose end Envoy did not report counts as failed.
/// Envoy reports every end; were one lost, its key or the watch would wait for it for ever.
const OVERDUE: Span = Span::from_millis(1_000);

/// What a call was for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose {
    Ask(CallId),
    Join(Ticket),
    Watch(Ticket),
    Leave,
}

#[derive(Debug)]
struct Out {
    token: CallToken,
    purpose: Purpose,
    overdue: LocalTime,
}

/// Calls that are out: at most the worker's and the leader's one, whose bounds are core's.
#[derive(Debug)]
pub(super) struct Calls {
    env: Env,
    out: Vec<Out>,
    link: Link,
}

impl Calls {
    pub(super) fn new(env: Env) -> Self {
        Self {
            env,
            out: Vec::new(),
            link: Link::default(),
        }
    }

    /// Sends one. If that fails, it has ended: false, and the failure is counted.
    pub(super) fn send(
        &mut self,
        now: LocalTime,
        method: Method,
        message: &[u8],
        timeout: Span,
        purpose: Purpose,
    ) -> bool {
        let millis = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        let call = Call {
            upstream: self.env.upstream.as_str(),
            method,
            message,
            timeout_ms: NonZeroU32::new(millis).unwrap_or(NonZeroU32::MIN),
        };
        match self.env.host.call(&call) {
            Ok(token) => {
                let overdue = now.plus(timeout).plus(OVERDUE);
                self.out.push(Out {
                    token,
                    purpose,
                    overdue,
                });
                true
            }
            Err(error) => {
                self.failed(Count::ErrorsCall, Cause::NotSent(error));
                false
            }
        }
    }

    /// A call has ended: what it was for; none if it is not known any more.
    pub(super) fn take(&mut self, token: CallToken) -> Option<Purpose> {
        let place = self.out.iter().position(|out| out.token == token)?;
        Some(self.out.swap_remove(place).purpose)
    }

    /// Gives up the calls that are overdue.
    pub(super) fn take_overdue(&mut self, now: LocalTime) -> Vec<Purpose> {
        let overdue = self.out.extract_if(.., |out| out.overdue <= now);
        overdue.map(|out| out.purpose).collect()
    }

    /// Reads an answer; none, and counted, if there is none or it makes no sense.
    pub(super) fn read<M, T>(&mut self, answer: Result<&[u8], CallFailure>) -> Option<T>
    where
        M: prost::Message + Default,
        T: TryFrom<M, Error = WireError>,
    {
        let bytes = match answer {
            Ok(bytes) => bytes,
            Err(failure) => {
                let count = match failure {
                    CallFailure::Status(_) | CallFailure::Overdue => Count::ErrorsCall,
                    CallFailure::Unreadable => Count::ErrorsAnswer,
                };
                self.failed(count, Cause::Failed(failure));
                return None;
            }
        };
        let Ok(message) = M::decode(bytes) else {
            self.failed(Count::ErrorsAnswer, Cause::NoMessage);
            return None;
        };
        match T::try_from(message) {
            Ok(answer) => {
                self.link.answered();
                Some(answer)
            }
            Err(error) => {
                self.failed(Count::ErrorsAnswer, Cause::Nonsense(error.field));
                None
            }
        }
    }

    fn failed(&mut self, count: Count, cause: Cause) {
        self.env.metrics.failed(count, &cause);
        self.link.failed(cause);
    }

    /// Says so if the service has gone or come back.
    pub(super) fn tick(&mut self, now: LocalTime) {
        if let Some(news) = self.link.news(now) {
            news.log(self.env.config.counter().cluster());
        }
    }
}
