//! The contexts that Envoy calls, each a thin shell around the root's [`Filter`].
//!
//! One VM holds several roots: after an update of the configuration, the old one and its requests
//! live on beside the new. So nothing here is global; a request keeps the filter it began with.

use std::cell::RefCell;
use std::rc::Rc;

use log::LevelFilter;
use proxy_wasm::traits::{Context, HttpContext, RootContext};
use proxy_wasm::types::{Action, ContextType, LogLevel};

use super::{EnvoyHost, abi, answer, configuration};
use crate::filter::{Filter, Next};
use crate::host_api::{CallToken, Host, QueueId, StreamId};
use crate::worker::Worker;
use crate::{reply, root};

proxy_wasm::main! {{
    proxy_wasm::set_log_level(LogLevel::Info);
    proxy_wasm::set_root_context(|_| Box::new(Root::default()));
}}

/// A root's filter; none before it is configured.
type Slot = Rc<RefCell<Option<Filter<Worker>>>>;

/// Runs `act` on the filter; none if there is none. No host call comes back into the filter, so it
/// is never borrowed already; if it were, the callback would be lost rather than the worker.
fn with<T>(slot: &Slot, act: impl FnOnce(&mut Filter<Worker>) -> T) -> Option<T> {
    slot.try_borrow_mut().ok()?.as_mut().map(act)
}

/// What the log facade lets through follows Envoy's own level, so that hidden lines cost nothing.
fn follow_log_level() {
    let mut level = 2;
    // SAFETY: the place is valid for a write during the call.
    let status = unsafe { abi::proxy_get_log_level(&raw mut level) };
    if status == abi::OK {
        log::set_max_level(match level {
            0 => LevelFilter::Trace,
            1 => LevelFilter::Debug,
            2 => LevelFilter::Info,
            3 => LevelFilter::Warn,
            _ => LevelFilter::Error,
        });
    }
}

#[derive(Debug, Default)]
struct Root {
    slot: Slot,
}

impl Root {
    /// Lets Envoy delete a root that it was asked to keep.
    fn end_if_over(&self) {
        if with(&self.slot, Filter::is_over) == Some(true)
            && let Err(status) = proxy_wasm::hostcalls::done()
        {
            log::error!("headgate: the root could not be ended: {status:?}");
        }
    }
}

impl Context for Root {
    fn on_grpc_call_response(&mut self, token: u32, status: u32, size: usize) {
        let answer = answer(status, size);
        let answer = answer.as_deref().map_err(|failure| *failure);
        with(&self.slot, |filter| {
            filter.answered(CallToken(token), answer)
        });
        self.end_if_over();
    }

    fn on_done(&mut self) -> bool {
        // Envoy keeps the timer of a deleted root running, as a no-op, unless it is stopped.
        with(&self.slot, Filter::close).unwrap_or(true)
    }
}

impl RootContext for Root {
    fn on_configure(&mut self, _size: usize) -> bool {
        follow_log_level();
        let text = match configuration() {
            Ok(text) => text,
            Err(error) => {
                log::error!("headgate: configuration refused: it could not be read: {error}");
                return false;
            }
        };
        let filter = root::configure(Rc::new(EnvoyHost), &text);
        let configured = filter.is_some();
        if let (Some(filter), Ok(mut slot)) = (filter, self.slot.try_borrow_mut()) {
            *slot = Some(filter);
        }
        configured
    }

    fn on_tick(&mut self) {
        with(&self.slot, Filter::tick);
        self.end_if_over();
    }

    fn on_queue_ready(&mut self, queue: u32) {
        with(&self.slot, |filter| filter.queue_ready(QueueId(queue)));
    }

    fn create_http_context(&self, id: u32) -> Option<Box<dyn HttpContext>> {
        Some(Box::new(Request {
            slot: Rc::clone(&self.slot),
            stream: StreamId(id),
            seen: false,
        }))
    }

    fn get_type(&self) -> Option<ContextType> {
        Some(ContextType::HttpContext)
    }
}

#[derive(Debug)]
struct Request {
    slot: Slot,
    stream: StreamId,
    seen: bool,
}

impl Context for Request {
    fn on_done(&mut self) -> bool {
        with(&self.slot, |filter| filter.gone(self.stream));
        true
    }
}

impl HttpContext for Request {
    fn on_http_request_headers(&mut self, _count: usize, _end_of_stream: bool) -> Action {
        if std::mem::replace(&mut self.seen, true) {
            return Action::Continue;
        }
        match with(&self.slot, |filter| filter.request(self.stream)) {
            Some(Next::Continue) => Action::Continue,
            Some(Next::Stop) => Action::Pause,
            None => {
                let reply = reply::unconfigured();
                if let Err(error) = EnvoyHost.reply(self.stream, &reply) {
                    log::error!("headgate: {error}");
                }
                Action::Pause
            }
        }
    }
}
