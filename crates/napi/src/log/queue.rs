//! The bounded queue of log records, which JavaScript takes in batches.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use napi::Status;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use super::record;

/// Bytes of waiting records at which further records are dropped.
const MAX_QUEUED_BYTES: usize = 1024 * 1024;

/// Approximate bytes of a batch.
const BATCH_BYTES: usize = 64 * 1024;

/// The function that makes JavaScript take records. It does not keep Node alive.
pub(crate) type Wake = ThreadsafeFunction<(), (), (), Status, false, true>;

/// The queue of records.
pub(crate) struct Queue {
    wake: Wake,
    state: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// Records as JSON.
    records: VecDeque<String>,
    bytes: usize,
    /// Number of records that were dropped after the newest waiting one.
    dropped: u64,
    /// Whether JavaScript was woken, and has not emptied the queue since.
    woken: bool,
}

impl Queue {
    pub(super) fn new(wake: Wake) -> Self {
        Self { wake, state: Mutex::default() }
    }

    /// Takes the next records as a JSON array, or returns `None` if the queue is empty. In that
    /// case the next record wakes JavaScript.
    pub(crate) fn take(&self) -> Option<String> {
        self.state().take()
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record if there is room, and wakes JavaScript.
    pub(super) fn push(&self, record: String) {
        let mut state = self.state();
        if !state.push(record) || std::mem::replace(&mut state.woken, true) {
            return;
        }
        drop(state);
        // If the JavaScript thread has ended, the records stay in the queue.
        self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl QueueState {
    /// Adds a record if there is room, and counts it as dropped otherwise. Returns whether it was
    /// added.
    fn push(&mut self, record: String) -> bool {
        if self.bytes >= MAX_QUEUED_BYTES {
            self.dropped += 1;
            return false;
        }
        self.report_dropped();
        self.add(record);
        true
    }

    fn add(&mut self, record: String) {
        self.bytes += record.len();
        self.records.push_back(record);
    }

    /// Takes the next records as a JSON array.
    fn take(&mut self) -> Option<String> {
        let mut text = String::new();
        while text.len() < BATCH_BYTES {
            if self.records.is_empty() {
                self.report_dropped();
            }
            let Some(record) = self.records.pop_front() else { break };
            self.bytes -= record.len();
            text.push(if text.is_empty() { '[' } else { ',' });
            text.push_str(&record);
        }
        if text.is_empty() {
            self.woken = false;
            return None;
        }
        text.push(']');
        Some(text)
    }

    /// Adds a record with the number of dropped records, unless there are none.
    fn report_dropped(&mut self) {
        if let Some(record) = record::dropped_record(std::mem::take(&mut self.dropped)) {
            self.add(record);
        }
    }
}
