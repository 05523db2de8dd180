//! The transport of a server that is a program: one JSON message per line.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;

use super::calls::Calls;
use super::requests::OpenRequests;
use crate::process::LineReader;

/// The most bytes of one message. A larger one ends the connection.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The most bytes of lines that are not messages, since the last message. Programs print greetings
/// and logs there, although the protocol forbids it.
const MAX_GARBAGE: usize = 1024 * 1024;

/// The connection to a program.
pub(super) struct Stdio {
    output: LineReader,
    /// How many bytes of lines that are not messages were read since the last message.
    garbage: usize,
    input: Arc<tokio::sync::Mutex<pipe::Sender>>,
    requests: OpenRequests,
    calls: Calls,
    fault: Fault,
}

/// The reason why a connection was ended by this side. Clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Fault(Arc<Mutex<Option<String>>>);

impl Fault {
    pub(super) fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, why: String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Replaces the reason.
    pub(super) fn replace(&self, why: Option<String>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }
}

impl Stdio {
    /// Connects to the streams of a program. Must be called on a runtime.
    pub(super) fn new(
        input: io::PipeWriter,
        output: io::PipeReader,
        calls: Calls,
        fault: Fault,
    ) -> io::Result<Self> {
        let input = pipe::Sender::from_owned_fd(input.into())?;
        Ok(Self {
            output: LineReader::new(output, MAX_MESSAGE)?,
            garbage: 0,
            input: Arc::new(tokio::sync::Mutex::new(input)),
            requests: OpenRequests::default(),
            calls,
            fault,
        })
    }

    /// Reads the next line. Returns `false` at the end of the output. Can be dropped and called again
    /// without a loss.
    async fn read_line(&mut self) -> Result<bool, String> {
        self.output.read().await.map_err(|error| match error.kind() {
            io::ErrorKind::FileTooLarge => {
                format!("it sent a message of more than {MAX_MESSAGE} bytes")
            }
            _ => format!("its output can't be read: {error}"),
        })
    }

    async fn next(&mut self) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
        while self.read_line().await? {
            let line = self.output.line();
            match serde_json::from_slice(line) {
                Ok(message) => {
                    self.garbage = 0;
                    if let Some(message) = self.requests.receive(message, &self.calls)? {
                        return Ok(Some(message));
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "a line of an MCP server is not a message");
                    match rejected(line) {
                        Some(Rejected::Request(id)) => {
                            self.requests.add(&id)?;
                            let error = ErrorData::invalid_request("not a valid request", None);
                            // Reading continues while the program does not read the answer.
                            tokio::spawn(self.send(JsonRpcMessage::error(error, Some(id))));
                        }
                        Some(Rejected::Answer(id)) => {
                            let error = ErrorData::internal_error("its answer is not valid", None);
                            return Ok(Some(JsonRpcMessage::error(error, Some(id))));
                        }
                        None => {}
                    }
                    self.garbage += self.output.line().len() + 1;
                    if self.garbage > MAX_GARBAGE {
                        return Err(format!(
                            "it wrote more than {MAX_GARBAGE} bytes to its standard output that \
                             are not messages"
                        ));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// A line that is meant as a message, but is not a valid one.
enum Rejected {
    /// A request, with its id. It is answered with an error.
    Request(RequestId),
    /// An answer to this request. It is never answered, and its request fails.
    Answer(RequestId),
}

fn rejected(line: &[u8]) -> Option<Rejected> {
    let message: Value = serde_json::from_slice(line).ok()?;
    let message = message.as_object()?;
    let id = RequestId::deserialize(message.get("id")?).ok()?;
    match message.contains_key("result") || message.contains_key("error") {
        true => Some(Rejected::Answer(id)),
        false => message.contains_key("method").then_some(Rejected::Request(id)),
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (sending, input) = (self.requests.sending(&message), Arc::clone(&self.input));
        async move {
            // A program that does not read leaves its requests open.
            let _sending = sending;
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            input.lock().await.write_all(&line).await
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        match self.next().await {
            Ok(message) => message,
            Err(why) => {
                self.fault.set(why);
                None
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}
