//! The functions of proxy-wasm ABI 0.2.1 and of WASI that the filter imports, and their numbers.
//!
//! Statuses are plain numbers here: the SDK declares them as an enum, and a number that it does not
//! know would be undefined behaviour.

use std::ptr;

/// Status: done.
pub(super) const OK: u32 = 0;
/// Status: no such key, header or queue.
pub(super) const NOT_FOUND: u32 = 1;
/// Status: the queue is empty.
pub(super) const EMPTY: u32 = 7;
/// Status: the value is not the expected one.
pub(super) const CAS_MISMATCH: u32 = 8;

/// Stream type.
pub(super) const HTTP_REQUEST: u32 = 0;
/// Map type.
pub(super) const HTTP_REQUEST_HEADERS: u32 = 0;
/// Buffer type.
pub(super) const GRPC_RECEIVE_BUFFER: u32 = 5;
/// Buffer type.
pub(super) const PLUGIN_CONFIGURATION: u32 = 7;
/// Metric type.
pub(super) const COUNTER: u32 = 0;
/// Metric type.
pub(super) const GAUGE: u32 = 1;
/// Metric type.
pub(super) const HISTOGRAM: u32 = 2;
/// WASI clock.
pub(super) const CLOCK_MONOTONIC: u32 = 1;

#[link(wasm_import_module = "env")]
unsafe extern "C" {
    pub(super) fn proxy_get_log_level(level: *mut u32) -> u32;
    pub(super) fn proxy_set_tick_period_milliseconds(period: u32) -> u32;
    pub(super) fn proxy_get_buffer_bytes(
        kind: u32,
        start: usize,
        max_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    pub(super) fn proxy_get_header_map_value(
        map: u32,
        name: *const u8,
        name_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
    ) -> u32;
    pub(super) fn proxy_get_shared_data(
        key: *const u8,
        key_size: usize,
        data: *mut *mut u8,
        size: *mut usize,
        cas: *mut u32,
    ) -> u32;
    pub(super) fn proxy_set_shared_data(
        key: *const u8,
        key_size: usize,
        value: *const u8,
        value_size: usize,
        cas: u32,
    ) -> u32;
    pub(super) fn proxy_register_shared_queue(
        name: *const u8,
        name_size: usize,
        id: *mut u32,
    ) -> u32;
    pub(super) fn proxy_resolve_shared_queue(
        vm_id: *const u8,
        vm_id_size: usize,
        name: *const u8,
        name_size: usize,
        id: *mut u32,
    ) -> u32;
    pub(super) fn proxy_enqueue_shared_queue(id: u32, value: *const u8, value_size: usize) -> u32;
    pub(super) fn proxy_dequeue_shared_queue(id: u32, data: *mut *mut u8, size: *mut usize) -> u32;
    pub(super) fn proxy_set_effective_context(id: u32) -> u32;
    pub(super) fn proxy_continue_stream(kind: u32) -> u32;
    pub(super) fn proxy_close_stream(kind: u32) -> u32;
    pub(super) fn proxy_send_local_response(
        status: u32,
        details: *const u8,
        details_size: usize,
        body: *const u8,
        body_size: usize,
        headers: *const u8,
        headers_size: usize,
        grpc_status: i32,
    ) -> u32;
    pub(super) fn proxy_define_metric(
        kind: u32,
        name: *const u8,
        name_size: usize,
        id: *mut u32,
    ) -> u32;
    pub(super) fn proxy_increment_metric(id: u32, offset: i64) -> u32;
    pub(super) fn proxy_record_metric(id: u32, value: u64) -> u32;
}

#[link(wasm_import_module = "wasi_snapshot_preview1")]
unsafe extern "C" {
    pub(super) fn clock_time_get(id: u32, precision: u64, time: *mut u64) -> u32;
    pub(super) fn random_get(buffer: *mut u8, size: usize) -> u32;
}

/// Bytes that a host call returns: Envoy allocates them through the guest's exported allocator and
/// writes where they are.
#[derive(Debug)]
pub(super) struct Returned {
    data: *mut u8,
    size: usize,
}

impl Default for Returned {
    fn default() -> Self {
        Self {
            data: ptr::null_mut(),
            size: 0,
        }
    }
}

impl Returned {
    /// Where the host is to write address and size.
    pub(super) fn places(&mut self) -> (*mut *mut u8, *mut usize) {
        (&raw mut self.data, &raw mut self.size)
    }

    /// The bytes; empty if the host returned none.
    pub(super) fn take(self) -> Vec<u8> {
        if self.data.is_null() {
            return Vec::new();
        }
        // SAFETY: the host returns what `proxy_on_memory_allocate` of the SDK gave it: a boxed
        // slice of `size` bytes of the global allocator, initialised by the host, owned by no one.
        unsafe { Vec::from_raw_parts(self.data, self.size, self.size) }
    }
}
