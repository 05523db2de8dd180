//! What is logged, on its way to a callback: records wait until JavaScript takes them, as many as there is room for.
//!
//! Whoever logs waits for nothing. What there is no room for is counted, and a record in its place says how much it was.

mod record;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdpoint_common::Config;
use holdpoint_session::levels::{Levels, VARIABLE};
use napi::Status;
use napi::bindgen_prelude::Function;
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi_derive::napi;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use self::record::Records;
use crate::engine;
use crate::failure::Failure;

/// Bytes of records that wait, about. One more is left out.
const WAITING: usize = 1024 * 1024;

/// Bytes of what crosses at once, about.
const BATCH: usize = 64 * 1024;

/// The function that has JavaScript look for records. Node does not stay for it.
pub(crate) type Wake = ThreadsafeFunction<(), (), (), Status, false, true>;

/// The log of this process.
pub(crate) struct Log {
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

/// The function, to be called from other threads.
pub(crate) fn wake(function: &Function<'_, (), ()>) -> napi::Result<Wake> {
    function.build_threadsafe_function::<()>().weak::<true>().build()
}

/// What is logged: what `HOLDPOINT_LOG` says, else what the configuration does.
pub(crate) fn levels(config: &Config) -> Result<Levels, Failure> {
    let said = std::env::var_os(VARIABLE).filter(|levels| !levels.is_empty());
    let (what, levels) = match (said, &config.log) {
        (Some(levels), _) => (VARIABLE, levels.to_string_lossy().into_owned()),
        (None, Some(levels)) => ("log", levels.clone()),
        (None, None) => return Ok(Levels::default()),
    };
    Levels::parse(&levels).map_err(|error| {
        Failure::new("config", format!("{what} = \"{levels}\": {error}"))
            .hint("for example log = \"warn,holdpoint_session=debug\"")
    })
}

impl Log {
    /// Begins to log, panics included. Once in a process.
    pub(crate) fn start(levels: Levels, wake: Wake) -> Result<Arc<Self>, Failure> {
        let log = Arc::new(Self { wake, waiting: Mutex::default() });
        let records = levels.around(Records(Arc::clone(&log)));
        tracing_subscriber::registry().with(records).try_init().map_err(|error| Failure::new("failed", error))?;
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            tracing::error!(%panic, "a panic");
            before(panic);
        }));
        Ok(log)
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a record wait, if there is room for it.
    fn push(&self, record: String) {
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

/// The records that wait next; nothing if none does, and then it is told when there are some.
#[napi(catch_unwind, skip_typescript)]
#[must_use]
pub fn take_log() -> Option<String> {
    engine::log()?.waiting().take()
}
