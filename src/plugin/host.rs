//! Envoy, through the proxy-wasm ABI: the only file that names the host's API.
//!
//! The SDK brings the callbacks' exports and routes answers to contexts. Its host calls panic on
//! any status they do not expect, and a panic takes down all requests of a worker; so the ABI is
//! called directly here, and every status is a value. The one exception is the gRPC call, whose
//! token only the SDK's own function makes known to its router.
#![allow(unsafe_code, reason = "the ABI is a set of foreign functions")]

mod abi;
mod contexts;

use std::time::Duration;

use headgate_core::units::LocalTime;
use proxy_wasm::hostcalls;

use crate::host_api::{
    Call, CallFailure, CallToken, Expected, Host, HostError, MAX_ANSWER_BYTES, MetricId,
    MetricKind, Operation, QueueId, Reply, Stored, StreamId,
};
use crate::reply;

use abi::Returned;

/// What a write expects of a value that nobody has written. The host ignores it where there is no
/// value, and refuses where there is one; only the value whose version happens to be this number,
/// one in 2^32, would be overwritten.
const NOTHING: u32 = u32::MAX;

/// Envoy, in the context whose callback is running.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EnvoyHost;

fn check(operation: Operation, status: u32) -> Result<(), HostError> {
    if status == abi::OK {
        Ok(())
    } else {
        Err(HostError { operation, status })
    }
}

/// As [`check`], but that there is nothing is an answer too.
fn found(operation: Operation, status: u32) -> Result<bool, HostError> {
    match status {
        abi::NOT_FOUND | abi::EMPTY => Ok(false),
        status => check(operation, status).map(|()| true),
    }
}

/// Makes `stream` the one that the next call acts on; an error if it is gone.
fn select(operation: Operation, stream: StreamId) -> Result<(), HostError> {
    // SAFETY: takes no pointers.
    check(operation, unsafe {
        abi::proxy_set_effective_context(stream.0)
    })
}

/// A request that can be neither resumed nor answered is reset: its client must not wait for ever.
fn or_reset(result: Result<(), HostError>) -> Result<(), HostError> {
    if result.is_err() {
        // SAFETY: takes no pointers.
        let _status = unsafe { abi::proxy_close_stream(abi::HTTP_REQUEST) };
    }
    result
}

/// The bytes of the callback that is running: a configuration or an answer.
fn buffer(kind: u32, longest: usize) -> Result<Vec<u8>, HostError> {
    let mut returned = Returned::default();
    let (data, size) = returned.places();
    // SAFETY: both places are valid for writes during the call.
    let status = unsafe { abi::proxy_get_buffer_bytes(kind, 0, longest, data, size) };
    let present = found(Operation::Buffer, status)?;
    Ok(if present { returned.take() } else { Vec::new() })
}

/// The configuration that the root is being configured with.
fn configuration() -> Result<Vec<u8>, HostError> {
    buffer(abi::PLUGIN_CONFIGURATION, usize::MAX)
}

/// The answer whose callback is running.
fn answer(status: u32, size: usize) -> Result<Vec<u8>, CallFailure> {
    if status != 0 {
        return Err(CallFailure::Status(status));
    }
    if size > MAX_ANSWER_BYTES {
        return Err(CallFailure::Unreadable);
    }
    buffer(abi::GRPC_RECEIVE_BUFFER, size).map_err(|_| CallFailure::Unreadable)
}

impl Host for EnvoyHost {
    /// From WASI, since std's `Instant` has no number, and the number is what workers share.
    fn now(&self) -> Result<LocalTime, HostError> {
        let mut now = 0;
        // SAFETY: the place is valid for a write during the call.
        let status = unsafe { abi::clock_time_get(abi::CLOCK_MONOTONIC, 1, &raw mut now) };
        check(Operation::Clock, status)?;
        Ok(LocalTime::new(now))
    }

    fn random(&self) -> Result<[u8; 16], HostError> {
        let mut bytes = [0; 16];
        // SAFETY: pointer and length are those of the array.
        let status = unsafe { abi::random_get(bytes.as_mut_ptr(), bytes.len()) };
        check(Operation::Random, status)?;
        Ok(bytes)
    }

    fn request_header(&self, name: &str) -> Result<Option<Vec<u8>>, HostError> {
        let mut returned = Returned::default();
        let (data, size) = returned.places();
        let map = abi::HTTP_REQUEST_HEADERS;
        // SAFETY: pointer and length are those of the name; the places are valid for writes.
        let status =
            unsafe { abi::proxy_get_header_map_value(map, name.as_ptr(), name.len(), data, size) };
        let present = found(Operation::Header, status)?;
        Ok(present.then(|| returned.take()))
    }

    fn shared(&self, key: &str) -> Result<Stored, HostError> {
        let mut returned = Returned::default();
        let (data, size) = returned.places();
        let mut version = 0;
        // SAFETY: pointer and length are those of the key; the places are valid for writes.
        let status = unsafe {
            abi::proxy_get_shared_data(key.as_ptr(), key.len(), data, size, &raw mut version)
        };
        let version = if found(Operation::SharedData, status)? {
            Expected::Version(version)
        } else {
            Expected::Absent
        };
        let value = returned.take();
        Ok(Stored { value, version })
    }

    fn set_shared(&self, key: &str, value: &[u8], expected: Expected) -> Result<bool, HostError> {
        let expected = match expected {
            Expected::Absent => NOTHING,
            // The host skips 0; were it to come, writing with it would overwrite blindly.
            Expected::Version(0) => {
                return Err(HostError {
                    operation: Operation::SharedData,
                    status: abi::OK,
                });
            }
            Expected::Version(version) => version,
        };
        let (at, length) = (value.as_ptr(), value.len());
        // SAFETY: pointers and lengths are those of the key and the value.
        let status =
            unsafe { abi::proxy_set_shared_data(key.as_ptr(), key.len(), at, length, expected) };
        match status {
            abi::CAS_MISMATCH => Ok(false),
            status => check(Operation::SharedData, status).map(|()| true),
        }
    }

    fn register_queue(&self, name: &str) -> Result<QueueId, HostError> {
        let mut id = 0;
        // SAFETY: pointer and length are those of the name; the place is valid for a write.
        let status =
            unsafe { abi::proxy_register_shared_queue(name.as_ptr(), name.len(), &raw mut id) };
        check(Operation::Queue, status)?;
        Ok(QueueId(id))
    }

    fn resolve_queue(&self, name: &str) -> Result<Option<QueueId>, HostError> {
        let mut id = 0;
        // An empty VM id stands for the own one.
        let vm = "";
        // SAFETY: pointers and lengths are those of the names; the place is valid for a write.
        let status = unsafe {
            let (name, length) = (name.as_ptr(), name.len());
            abi::proxy_resolve_shared_queue(vm.as_ptr(), vm.len(), name, length, &raw mut id)
        };
        let present = found(Operation::Queue, status)?;
        Ok(present.then_some(QueueId(id)))
    }

    fn enqueue(&self, queue: QueueId, item: &[u8]) -> Result<(), HostError> {
        // SAFETY: pointer and length are those of the item.
        let status = unsafe { abi::proxy_enqueue_shared_queue(queue.0, item.as_ptr(), item.len()) };
        check(Operation::Queue, status)
    }

    fn dequeue(&self, queue: QueueId) -> Result<Option<Vec<u8>>, HostError> {
        let mut returned = Returned::default();
        let (data, size) = returned.places();
        // SAFETY: the places are valid for writes.
        let status = unsafe { abi::proxy_dequeue_shared_queue(queue.0, data, size) };
        let present = found(Operation::Queue, status)?;
        Ok(present.then(|| returned.take()))
    }

    fn call(&self, call: &Call<'_>) -> Result<CallToken, HostError> {
        let timeout = Duration::from_millis(call.timeout_ms.get().into());
        let (service, method) = (crate::host_api::Method::SERVICE, call.method.name());
        let message = Some(call.message);
        hostcalls::dispatch_grpc_call(call.upstream, service, method, vec![], message, timeout)
            .map(CallToken)
            .map_err(|status| HostError {
                operation: Operation::Call,
                status: status as u32,
            })
    }

    fn resume(&self, stream: StreamId) -> Result<(), HostError> {
        select(Operation::Resume, stream)?;
        // SAFETY: takes no pointers.
        let status = unsafe { abi::proxy_continue_stream(abi::HTTP_REQUEST) };
        or_reset(check(Operation::Resume, status))
    }

    fn reply(&self, stream: StreamId, reply: &Reply) -> Result<(), HostError> {
        select(Operation::Reply, stream)?;
        let headers = reply::header_pairs(&reply.headers);
        // SAFETY: each pointer and length are those of one value, which lives through the call.
        let status = unsafe {
            abi::proxy_send_local_response(
                reply.status.into(),
                reply.details.as_ptr(),
                reply.details.len(),
                reply.body.as_ptr(),
                reply.body.len(),
                headers.as_ptr(),
                headers.len(),
                reply.grpc_status.into(),
            )
        };
        or_reset(check(Operation::Reply, status))
    }

    fn define_metric(&self, kind: MetricKind, name: &str) -> Result<MetricId, HostError> {
        let kind = match kind {
            MetricKind::Counter => abi::COUNTER,
            MetricKind::Gauge => abi::GAUGE,
            MetricKind::Histogram => abi::HISTOGRAM,
        };
        let mut id = 0;
        // SAFETY: pointer and length are those of the name; the place is valid for a write.
        let status =
            unsafe { abi::proxy_define_metric(kind, name.as_ptr(), name.len(), &raw mut id) };
        check(Operation::Metric, status)?;
        Ok(MetricId(id))
    }

    fn add_metric(&self, metric: MetricId, difference: i64) -> Result<(), HostError> {
        // SAFETY: takes no pointers.
        check(Operation::Metric, unsafe {
            abi::proxy_increment_metric(metric.0, difference)
        })
    }

    fn record_metric(&self, metric: MetricId, value: u64) -> Result<(), HostError> {
        // SAFETY: takes no pointers.
        check(Operation::Metric, unsafe {
            abi::proxy_record_metric(metric.0, value)
        })
    }

    fn set_tick_ms(&self, period_ms: u32) -> Result<(), HostError> {
        // SAFETY: takes no pointers.
        check(Operation::Tick, unsafe {
            abi::proxy_set_tick_period_milliseconds(period_ms)
        })
    }
}
