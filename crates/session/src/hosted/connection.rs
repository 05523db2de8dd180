//! The connection to a running agent: its process, and JSON-RPC messages, one per line.

use std::borrow::Cow;
use std::io;
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_tools::shown::{last_lines_without, without_values};
use holdpoint_tools::{BackgroundJobs, Duplex, DuplexProcess, Exit, Lines, Processes};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::protocol::{INTERNAL_ERROR, error_text};

/// The most bytes of one message. A larger one ends the connection. A diff has the whole text of a
/// file, twice.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The most bytes of lines that are not messages, since the last message. Programs print greetings
/// and logs there, although the protocol forbids it.
const MAX_GARBAGE: usize = 1024 * 1024;

/// The most bytes that wait to be written to an agent that does not read.
const MAX_UNREAD: usize = 32 * 1024 * 1024;

/// The most bytes that wait with a reply that may be large. The rest is for small messages.
const MAX_LARGE: usize = MAX_UNREAD - 4 * 1024 * 1024;

/// The most bytes of the id of a request. A line with a longer one is not a message.
const MAX_ID: usize = 1024;

/// A running agent. Dropping it ends the program.
pub(super) struct Connection {
    lines: Lines,
    processes: Processes,
    /// The values of the agent's variables, which may be keys. Its errors are shown without them.
    values: Vec<String>,
    /// Taken when the program is ended.
    process: Option<DuplexProcess>,
    /// Keeps the session from ending before the program.
    background: BackgroundJobs,
    last_id: u64,
    garbage: usize,
}

/// A message of the agent.
#[derive(Debug)]
pub(super) enum Incoming {
    /// The reply to one of our requests.
    Reply { id: u64, result: Result<Box<RawValue>, RpcError> },
    /// A request of the agent.
    Request { id: Value, method: String, params: Box<RawValue> },
    /// A notification.
    Notification { method: String, params: Box<RawValue> },
}

/// The error of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RpcError {
    #[serde(default)]
    pub(super) code: i64,
    #[serde(default)]
    pub(super) message: String,
}

/// A line of the agent.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default, borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<RpcError>,
}

/// A request or notification of ours.
#[derive(Serialize)]
struct Outgoing<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: P,
}

/// A reply of ours.
#[derive(Serialize)]
struct Reply<'a, R> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<RpcError>,
}

impl Message<'_> {
    /// The kind of the message; `None` if the line is not a message. Errors are without `values`.
    fn incoming(self, values: &[String]) -> Option<Incoming> {
        let nothing = || RawValue::from_string("null".to_owned());
        match (self.method, self.id) {
            (Some(method), Some(id)) if is_id(&id) => {
                let params = self.params.or_else(|| nothing().ok())?;
                Some(Incoming::Request { id, method: method.into_owned(), params })
            }
            (Some(method), None) => {
                let params = self.params.or_else(|| nothing().ok())?;
                Some(Incoming::Notification { method: method.into_owned(), params })
            }
            (None, Some(id)) => {
                let result = match (self.error, self.result) {
                    (Some(mut error), _) => {
                        error.message = error_text(&without_values(&error.message, values));
                        Err(error)
                    }
                    (None, result) => Ok(result.or_else(|| nothing().ok())?),
                };
                // Some agents send the id back as a text.
                let number = id.as_u64().or_else(|| id.as_str()?.parse().ok());
                Some(Incoming::Reply { id: number?, result })
            }
            _ => None,
        }
    }
}

/// Whether this can be the id of a request.
fn is_id(id: &Value) -> bool {
    match id {
        Value::String(id) => id.len() <= MAX_ID,
        id => id.is_u64() || id.is_i64(),
    }
}

impl Connection {
    /// Uses the streams of a started program. `values` are those of its variables that may be keys.
    pub(super) fn new(
        program: Duplex,
        processes: Processes,
        background: BackgroundJobs,
        values: Vec<String>,
    ) -> io::Result<Self> {
        let Duplex { process, input, output } = program;
        let lines = Lines::new(output, input, MAX_MESSAGE)?;
        let process = Some(process);
        Ok(Self { lines, processes, values, process, background, last_id: 0, garbage: 0 })
    }

    /// Queues a request, which is sent with the next read. Returns its id.
    pub(super) fn request(&mut self, method: &str, params: impl Serialize) -> u64 {
        self.last_id += 1;
        let id = Some(self.last_id);
        self.queue(&Outgoing { jsonrpc: "2.0", id, method, params });
        self.last_id
    }

    /// Queues a notification.
    pub(super) fn notify(&mut self, method: &str, params: impl Serialize) {
        self.queue(&Outgoing { jsonrpc: "2.0", id: None, method, params });
    }

    /// Queues the reply to a request of the agent.
    pub(super) fn reply(&mut self, id: &Value, result: Result<impl Serialize, RpcError>) {
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        self.queue(&Reply { jsonrpc: "2.0", id, result, error });
    }

    /// Queues the reply to a request, or an error in its place if the agent has not read earlier
    /// replies and this one is too large to wait.
    pub(super) fn reply_if_room(&mut self, id: &Value, result: impl Serialize) {
        let reply = Reply { jsonrpc: "2.0", id, result: Some(result), error: None };
        match serde_json::to_vec(&reply) {
            Ok(line) if self.lines.unwritten() + line.len() <= MAX_LARGE => {
                self.lines.queue(&line);
            }
            Ok(_) => {
                let message = "too many replies are not read yet: request it again".to_owned();
                self.reply(id, Err::<(), _>(RpcError { code: INTERNAL_ERROR, message }));
            }
            Err(error) => tracing::error!(%error, "a message for an agent can't be written"),
        }
    }

    fn queue(&mut self, message: &impl Serialize) {
        match serde_json::to_vec(message) {
            Ok(line) => {
                if self.lines.queue(&line) > MAX_UNREAD {
                    tracing::warn!("an agent does not read its input, and is ended");
                    self.processes.end();
                }
            }
            Err(error) => tracing::error!(%error, "a message for an agent can't be written"),
        }
    }

    /// The background jobs of the session.
    pub(super) fn background(&self) -> &BackgroundJobs {
        &self.background
    }

    /// Writes everything that is queued.
    pub(super) async fn flush(&mut self) {
        // An agent that can't be written to has ended, which the next read reports.
        let _ = self.lines.flush().await;
    }

    /// The next message; `None` at the end of the output. Can be dropped and called again without a
    /// loss.
    ///
    /// # Errors
    /// The reason why the agent has to be ended.
    pub(super) async fn next(&mut self) -> Result<Option<Incoming>, String> {
        loop {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
                    return Err(format!("it sent a message of more than {MAX_MESSAGE} bytes"));
                }
                Err(error) => return Err(format!("its output can't be read: {error}")),
            };
            let message = serde_json::from_slice::<Message<'_>>(line).ok();
            if let Some(incoming) = message.and_then(|message| message.incoming(&self.values)) {
                self.garbage = 0;
                return Ok(Some(incoming));
            }
            self.garbage += line.len() + 1;
            if self.garbage > MAX_GARBAGE {
                return Err(format!(
                    "it wrote more than {MAX_GARBAGE} bytes to its standard output that are not \
                     messages"
                ));
            }
        }
    }

    /// Ends the program and everything it started, and waits for that: at most half of the grace for
    /// a program that ends by itself at the end of its input, and the grace and one second for one
    /// that does not. Returns how it ended, with the end of its error output. Blocks.
    pub(super) fn finish(mut self) -> (String, EndedProcesses) {
        let Some(process) = self.process.take() else { return Default::default() };
        let (processes, background) = (self.processes.clone(), self.background.clone());
        let values = std::mem::take(&mut self.values);
        // Closes its input.
        drop(self);
        let finished = finish(process, &processes, &values);
        drop(background);
        finished
    }

    /// Whether the program has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.process.as_ref().is_none_or(|process| process.wait_by(Some(Instant::now())).is_some())
    }

    /// Begins to end the program. Returns at once.
    pub(super) fn end(&self) {
        self.processes.end();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let Some(process) = self.process.take() else { return };
        let (processes, background) = (self.processes.clone(), self.background.clone());
        let thread = std::thread::Builder::new().name("agent end".to_owned());
        let finishing = thread.spawn(move || {
            let _ = finish(process, &processes, &[]);
            drop(background);
        });
        if let Err(error) = finishing {
            tracing::error!(%error, "no thread to wait for the end of an agent; it is ended at once");
            self.processes.end();
        }
    }
}

fn finish(
    process: DuplexProcess,
    processes: &Processes,
    values: &[String],
) -> (String, EndedProcesses) {
    let by_itself = process.wait_by(Some(Instant::now() + settle(processes)));
    let (_, _, errors) = process.finish();
    // Includes the processes that the program left behind.
    let ended = processes.finish();
    let mut text = match by_itself {
        None => "it did not end by itself".to_owned(),
        Some(Exit::Code(code)) => format!("it exited with code {code}"),
        Some(exit) => format!("it was {exit}"),
    };
    if let Some(errors) = last_lines_without(&errors, values) {
        text.push_str(&format!("; it wrote: {errors}"));
    }
    (text, ended)
}

/// How long a program may take to end by itself at the end of its input. The processes have half of
/// the session's grace.
fn settle(processes: &Processes) -> Duration {
    processes.grace()
}
