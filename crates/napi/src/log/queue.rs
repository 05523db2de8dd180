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
    waiting: Mutex<QueueState>,
}

#[derive(Default)]
struct QueueState {
    /// Records as JSON.
    records: VecDeque<String>,
    bytes: usize,
    /// Number of dropped records since the newest waiting one.
    dropped: u64,
    /// Whether JavaScript was woken, and has not emptied the queue since.
    woken: bool,
}

impl Queue {
    pub(super) fn new(wake: Wake) -> Self {
        Self { wake, waiting: Mutex::default() }
    }

    /// Takes the next records as a JSON array, or returns `None` if the queue is empty. In that
    /// case the next record wakes JavaScript.
    pub(crate) fn take(&self) -> Option<String> {
        self.waiting().take()
    }

    fn waiting(&self) -> MutexGuard<'_, QueueState> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record if there is room, and wakes JavaScript.
    pub(super) fn push(&self, record: String) {
        let mut waiting = self.waiting();
        if !waiting.push(record) || std::mem::replace(&mut waiting.woken, true) {
            return;
        }
        drop(waiting);
        // If the JavaScript thread has ended, the records stay in the queue.
        self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl QueueState {
    fn push(&mut self, record: String) -> bool {
        if self.bytes >= MAX_QUEUED_BYTES {
            self.dropped += 1;
            return false;
        }
        self.push_dropped_record();
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
                self.push_dropped_record();
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

    fn push_dropped_record(&mut self) {
        if let Some(record) = record::dropped_record(std::mem::take(&mut self.dropped)) {
            self.add(record);
        }
    }
}
