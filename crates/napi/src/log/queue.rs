//! Records that wait until JavaScript takes them: as many as there is room for, and how many were left out.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use napi::Status;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};

use super::record;

/// Bytes of records that wait, about. One more is left out.
const WAITING: usize = 1024 * 1024;

/// Bytes of what crosses at once, about.
const BATCH: usize = 64 * 1024;

/// The function that has JavaScript look for records. Node does not stay for it.
pub(crate) type Wake = ThreadsafeFunction<(), (), (), Status, false, true>;

/// Records that wait.
pub(crate) struct Queue {
    wake: Wake,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    /// Records as JSON.
    records: VecDeque<String>,
    bytes: usize,
    /// How many were left out since the last that waits.
    left_out: u64,
    /// JavaScript has been told that there are some.
    woken: bool,
}

impl Queue {
    pub(super) fn new(wake: Wake) -> Self {
        Self { wake, waiting: Mutex::default() }
    }

    /// The records that wait next, as JSON; nothing if none does, and then JavaScript is told when there are some.
    pub(crate) fn take(&self) -> Option<String> {
        self.waiting().take()
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a record wait, if there is room for it.
    pub(super) fn push(&self, record: String) {
        let mut waiting = self.waiting();
        if !waiting.push(record) || std::mem::replace(&mut waiting.woken, true) {
            return;
        }
        drop(waiting);
        // If the thread of JavaScript has ended, nobody takes what waits.
        self.wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
}

impl Waiting {
    fn push(&mut self, record: String) -> bool {
        if self.bytes >= WAITING {
            self.left_out += 1;
            return false;
        }
        self.tell_left_out();
        self.add(record);
        true
    }

    fn add(&mut self, record: String) {
        self.bytes += record.len();
        self.records.push_back(record);
    }

    /// The next ones, as a list of JSON.
    fn take(&mut self) -> Option<String> {
        let mut text = String::new();
        while text.len() < BATCH {
            if self.records.is_empty() {
                self.tell_left_out();
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

    fn tell_left_out(&mut self) {
        if let Some(record) = record::left_out(std::mem::take(&mut self.left_out)) {
            self.add(record);
        }
    }
}
