//! The terminals of an agent: background jobs of the session that the agent started with requests.

use std::collections::BTreeMap;

use holdpoint_common::{CallId, JobEnd};
use holdpoint_tools::{BackgroundJobs, Exit};
use serde_json::Value;

use super::known_calls::GAP;
use super::protocol::ExitStatus;

/// The most terminals that an agent has at once. Of ended ones, too, if it does not release them.
const MAX_TERMINALS: usize = 64;

/// The most requests that wait for the end of a command.
const MAX_WAITING: usize = 64;

/// The most bytes of output that a request returns. At least as many are kept of a job.
const MAX_OUTPUT: usize = 256 * 1024;

/// The most bytes of output that are shown at once.
const MAX_SHOWN: usize = 32 * 1024;

/// The beginning of the id of a terminal. The number of the job follows.
const PREFIX: &str = "terminal-";

/// The terminals of an agent that runs.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    all: BTreeMap<CallId, Terminal>,
    /// The requests that wait for the end of a command.
    waiting: Vec<(Value, CallId)>,
}

#[derive(Debug)]
struct Terminal {
    max_output: usize,
    /// Whether the agent has released it. Its output can still be shown.
    is_released: bool,
    /// The offset after the output that was shown.
    shown: u64,
}

/// The output of a terminal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TerminalOutput {
    pub(super) text: String,
    pub(super) is_cut: bool,
    pub(super) exit: Option<ExitStatus>,
}

impl Terminals {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Whether the agent has to release a terminal before it requests another one, if it already waits
    /// for this many.
    pub(super) fn is_full(&self, requested: usize) -> bool {
        let all = self.all.values();
        all.filter(|terminal| !terminal.is_released).count() + requested >= MAX_TERMINALS
    }

    /// Whether the agent waits for the end of a command.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Adds the terminal of a job, and returns its id. The oldest released one may be forgotten.
    pub(super) fn add(&mut self, job: CallId, output_limit: Option<u64>) -> String {
        if self.all.len() >= MAX_TERMINALS {
            let released = self.all.iter().find(|(_, terminal)| terminal.is_released);
            if let Some(oldest) = released.map(|(id, _)| *id) {
                self.all.remove(&oldest);
            }
        }
        let limit = output_limit.and_then(|limit| usize::try_from(limit).ok());
        let max_output = limit.unwrap_or(MAX_OUTPUT).min(MAX_OUTPUT);
        self.all.insert(job, Terminal { max_output, is_released: false, shown: 0 });
        format!("{PREFIX}{job}")
    }

    /// The job of the terminal with this id, unless the agent has released it.
    pub(super) fn job(&self, id: &str) -> Option<CallId> {
        let job = job(id)?;
        self.all.get(&job).filter(|terminal| !terminal.is_released).map(|_| job)
    }

    /// The newest output of a terminal. If too many later jobs have ended, its output is gone.
    pub(super) fn output(&self, job: CallId, jobs: &BackgroundJobs) -> TerminalOutput {
        let max = self.all.get(&job).map_or(0, |terminal| terminal.max_output);
        match jobs.output(job, None, max) {
            Some(output) => TerminalOutput {
                text: output.text,
                is_cut: output.from > 0,
                exit: output.end.map(exit_status),
            },
            None => TerminalOutput {
                text: String::new(),
                is_cut: true,
                exit: Some(ExitStatus::default()),
            },
        }
    }

    /// Notes that the agent has released a terminal.
    pub(super) fn release(&mut self, job: CallId) {
        self.all.get_mut(&job).into_iter().for_each(|terminal| terminal.is_released = true);
    }

    /// Adds a request that waits for the end of a command, or returns it if there are too many.
    pub(super) fn wait(&mut self, request: Value, job: CallId) -> Option<Value> {
        if self.waiting.len() >= MAX_WAITING {
            return Some(request);
        }
        self.waiting.push((request, job));
        None
    }

    /// Takes the requests whose command has ended.
    pub(super) fn take_ended(&mut self, jobs: &BackgroundJobs) -> Vec<(Value, ExitStatus)> {
        let mut ended = Vec::new();
        self.waiting.retain_mut(|(request, job)| {
            let exit = match jobs.output(*job, None, 0) {
                Some(output) => output.end.map(exit_status),
                None => Some(ExitStatus::default()),
            };
            let is_waiting = exit.is_none();
            ended.extend(exit.map(|exit| (request.take(), exit)));
            is_waiting
        });
        ended
    }

    /// Takes the requests that wait.
    pub(super) fn take_waiting(&mut self) -> Vec<Value> {
        self.waiting.drain(..).map(|(request, _)| request).collect()
    }

    /// Forgets all terminals, and returns their jobs.
    pub(super) fn take_all(&mut self) -> Vec<CallId> {
        self.waiting.clear();
        std::mem::take(&mut self.all).into_keys().collect()
    }

    /// The next output of the terminal with this id that was not shown.
    pub(super) fn take_new_output(&mut self, id: &str, jobs: &BackgroundJobs) -> Option<String> {
        let job = job(id)?;
        let terminal = self.all.get_mut(&job)?;
        let output = jobs.output(job, Some(terminal.shown), MAX_SHOWN)?;
        let is_cut = output.from > terminal.shown;
        terminal.shown = output.next;
        let gap = if is_cut { GAP } else { "" };
        Some(format!("{gap}{}", output.text)).filter(|text| !text.is_empty())
    }
}

fn job(id: &str) -> Option<CallId> {
    id.strip_prefix(PREFIX)?.parse().ok().map(CallId)
}

fn exit_status(end: JobEnd) -> ExitStatus {
    let signalled = |signal: i32| {
        let name = Exit::Signal(signal).signal_name().map(str::to_owned);
        ExitStatus { code: None, signal: Some(name.unwrap_or_else(|| signal.to_string())) }
    };
    match end {
        JobEnd::Exited { code } => ExitStatus { code: u32::try_from(code).ok(), signal: None },
        JobEnd::Signalled { signal } => signalled(signal),
        JobEnd::Lost => ExitStatus::default(),
        // Holdpoint has ended it.
        _ => ExitStatus { code: None, signal: Some("SIGTERM".to_owned()) },
    }
}
