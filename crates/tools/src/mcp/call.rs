//! One call of a tool: its request, the messages that belong to it, its time limits and its end.

use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ElicitRequestParams,
    ElicitResult, InputRequest, InputRequiredResult, InputResponses, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use super::calls::{CallMessage, RunningCall};
use super::listing::ToolInfo;
use super::server::{Connection, Server};
use super::{client, content, elicitation, http_error};
use crate::ask::Subject;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::shown::without_values;
use crate::tool::ToolOutcome;

/// How often a server may require more input for one call.
const MAX_ROUNDS: usize = 10;

/// How many questions of a server one call may ask the user.
const MAX_QUESTIONS: usize = 16;

/// The reasons of a cancel, for the server.
const INTERRUPTED: &str = "the user has interrupted the turn";
const TIMED_OUT: &str = "the time limit is reached";

/// The output of a call of a server over HTTP that was cancelled.
const CANCELLED: &str = "[the request was cancelled; the server, which is not a program of this \
                         session, may still work on it]\n";

/// A call of a tool, on a thread of its own.
pub(super) struct Call<'a> {
    server: &'a Server,
    tool: &'a ToolInfo,
    context: &'a ToolContext,
    /// The runtime on which the call waits.
    runtime: Runtime,
}

/// The time limits of a call, by the [clock](super::clock) of its server.
struct Deadlines {
    /// When the server must have answered or reported progress.
    silence: Duration,
    /// When the server must have answered.
    hard: Duration,
    /// How many questions the server has asked.
    questions: usize,
}

/// The next thing that happens to a request.
enum Next {
    Answered(Box<Result<ServerResult, ServiceError>>),
    Message(CallMessage),
    Cut,
    TimedOut,
}

impl<'a> Call<'a> {
    pub(super) fn new(
        server: &'a Server,
        tool: &'a ToolInfo,
        context: &'a ToolContext,
    ) -> Result<Self, ToolError> {
        let runtime = Builder::new_current_thread().enable_time().build();
        let runtime = runtime
            .map_err(|error| ToolError::failed(format!("can't create a runtime: {error}")))?;
        Ok(Self { server, tool, context, runtime })
    }

    pub(super) fn run(&self, input: Value) -> Result<ToolOutcome, ToolError> {
        let connection = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.context.cancelled() => Err(ToolError::Interrupted),
                connection = self.server.connection() => {
                    connection.map_err(|why| self.failed(&why))
                }
            }
        })?;
        let mut params = CallToolRequestParams::new(self.tool.own_name.clone());
        if let Value::Object(arguments) = input {
            params.arguments = Some(arguments);
        }
        let (silence, hard) = (self.silence(), self.hard());
        let mut deadlines = Deadlines { silence, hard, questions: 0 };
        let mut running = self.server.calls.add();
        for _ in 0..MAX_ROUNDS {
            match self.request(&connection, params.clone(), &mut running, &mut deadlines)? {
                ServerResult::CallToolResult(result) => return Ok(self.outcome(&result)),
                ServerResult::InputRequiredResult(required) => {
                    let (responses, state) = self.respond(required, &mut deadlines)?;
                    params.input_responses = (!responses.is_empty()).then_some(responses);
                    params.request_state = state;
                }
                ServerResult::EmptyResult(_) => return Ok(ToolOutcome::default()),
                _ => return Err(self.failed("its answer is not the result of a tool")),
            }
        }
        Err(self.failed(&format!("it required input more than {MAX_ROUNDS} times")))
    }

    /// When the server must have answered, unless it reports progress.
    fn silence(&self) -> Duration {
        self.server.calls.clock.time() + self.server.timeout
    }

    /// When the server must have answered.
    fn hard(&self) -> Duration {
        self.server.calls.clock.time() + self.server.hard_limit
    }

    fn failed(&self, why: &str) -> ToolError {
        let why = without_values(why, &self.server.values);
        ToolError::failed(format!("MCP server `{}`: {}", self.server.name, content::reason(&why)))
    }

    /// The outcome of a call: its content is output, which is bounded as that of every tool.
    fn outcome(&self, result: &CallToolResult) -> ToolOutcome {
        let (text, images) = content::text_and_images(result);
        self.context.output(&text);
        ToolOutcome { failed: result.is_error == Some(true), images, ..ToolOutcome::default() }
    }

    /// Sends a request, and returns its result. A call has several if its server requires input.
    fn request(
        &self,
        connection: &Connection,
        params: CallToolRequestParams,
        running: &mut RunningCall,
        deadlines: &mut Deadlines,
    ) -> Result<ServerResult, ToolError> {
        deadlines.silence = self.silence();
        running.sending();
        let mut handle = self.send(&connection.peer, params)?;
        running.sent(handle.progress_token.clone());
        loop {
            match self.runtime.block_on(self.next(&mut handle, running, deadlines)) {
                Next::Answered(answer) => {
                    // Progress that was sent before the answer is shown before it.
                    for message in running.rest() {
                        if let CallMessage::Progress(line) = message {
                            self.context.output(&line);
                        }
                    }
                    return match *answer {
                        Ok(result) => Ok(result),
                        Err(ServiceError::McpError(error)) => Err(self.failed(&error.message)),
                        Err(error) => Err(self.ended(&error)),
                    };
                }
                Next::Message(CallMessage::Progress(line)) => {
                    deadlines.silence = self.silence();
                    self.context.output(&line);
                }
                // The question was withdrawn before it was shown.
                Next::Message(CallMessage::Elicit(_, _, answer)) if answer.is_closed() => {}
                Next::Message(CallMessage::Elicit(request, subject, answer)) => {
                    match self.elicit(*request, &subject, deadlines) {
                        Ok(Some(result)) => drop(answer.send(result)),
                        Ok(None) => {}
                        Err(error) => {
                            drop(answer);
                            self.stop(connection, handle, running, INTERRUPTED);
                            return Err(error);
                        }
                    }
                }
                Next::Cut => {
                    self.stop(connection, handle, running, INTERRUPTED);
                    return Err(ToolError::Interrupted);
                }
                Next::TimedOut => {
                    let is_hard = self.server.calls.clock.time() >= deadlines.hard;
                    let ended = self.stop(connection, handle, running, TIMED_OUT);
                    let Server { hard_limit, timeout, .. } = self.server;
                    let limit = if is_hard { hard_limit } else { timeout }.as_secs();
                    let without = if is_hard { "" } else { " without progress" };
                    return Err(self.failed(&format!("no answer in {limit} s{without}{ended}")));
                }
            }
        }
    }

    /// The error for a server that has ended, or can't be reached, during the call.
    fn ended(&self, error: &ServiceError) -> ToolError {
        match error {
            ServiceError::TransportSend(error) if self.server.is_remote => {
                // Other calls may still reach it.
                return self.failed(&http_error::words(&*error.error));
            }
            ServiceError::TransportSend(_) => self.server.end_unreachable(),
            _ => {}
        }
        let ended = async {
            let ended = self.server.ended();
            match self.server.is_remote {
                // The stream of this request can end while the connection to the server remains.
                true => tokio::time::timeout(self.server.grace / 2, ended).await.ok(),
                false => Some(ended.await),
            }
        };
        match self.runtime.block_on(self.context.cancel.run_until_cancelled(ended)) {
            Some(Some(why)) => self.failed(&format!("it ended during the call: {why}")),
            Some(None) => self.failed("it closed the connection before the result came"),
            None => ToolError::Interrupted,
        }
    }

    fn send(
        &self,
        peer: &Peer<RoleClient>,
        params: CallToolRequestParams,
    ) -> Result<RequestHandle<RoleClient>, ToolError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sending = peer.send_cancellable_request(request, PeerRequestOptions::no_options());
        let sent = self.runtime.block_on(async {
            tokio::select! {
                biased;
                () = self.context.cancelled() => Err(ToolError::Interrupted),
                sent = sending => Ok(sent),
            }
        })?;
        sent.map_err(|_| self.failed("it has ended"))
    }

    async fn next(
        &self,
        handle: &mut RequestHandle<RoleClient>,
        running: &mut RunningCall,
        deadlines: &Deadlines,
    ) -> Next {
        let clock = &self.server.calls.clock;
        tokio::select! {
            biased;
            () = self.context.cancelled() => Next::Cut,
            answer = &mut handle.rx => {
                Next::Answered(Box::new(answer.unwrap_or(Err(ServiceError::TransportClosed))))
            }
            // Before messages: a server may send them without end.
            () = clock.wait_until(deadlines.hard) => Next::TimedOut,
            Some(message) = running.next() => Next::Message(message),
            () = clock.wait_until(deadlines.silence) => Next::TimedOut,
        }
    }

    /// Asks the user for the server; `None` if the subject ends before. The time limits do not run
    /// meanwhile. A question beyond the bound is declined, and does not extend them.
    fn elicit(
        &self,
        request: ElicitRequestParams,
        subject: &Subject,
        deadlines: &mut Deadlines,
    ) -> Result<Option<ElicitResult>, ToolError> {
        if deadlines.questions >= MAX_QUESTIONS {
            if deadlines.questions == MAX_QUESTIONS {
                deadlines.questions += 1;
                self.context.output(&format!(
                    "[further questions of the server are declined: a call may ask \
                     {MAX_QUESTIONS} times]\n"
                ));
            }
            return Ok(Some(elicitation::declined()));
        }
        deadlines.questions += 1;
        let question = self.server.calls.clock.ask();
        let result = elicitation::ask(&self.server.name, request, subject, self.context)?;
        drop(question);
        deadlines.silence = self.silence();
        Ok(result)
    }

    /// Answers the requests of a server that requires input for a call.
    fn respond(
        &self,
        required: InputRequiredResult,
        deadlines: &mut Deadlines,
    ) -> Result<(InputResponses, Option<String>), ToolError> {
        let mut responses = InputResponses::new();
        for (key, request) in required.input_requests.unwrap_or_default() {
            let response = match request {
                InputRequest::Elicitation(request) => {
                    // No request is open: only the end of the program withdraws the question.
                    match self.elicit(request.params, &self.server.calls.program(), deadlines)? {
                        Some(result) => serde_json::to_value(result),
                        None => return Err(self.ended(&ServiceError::TransportClosed)),
                    }
                }
                InputRequest::ListRoots(_) => {
                    serde_json::to_value(client::roots(self.context.root()))
                }
                _ => return Err(self.failed("it asked for an answer of the model")),
            };
            responses.insert(key, response.map_err(|error| self.failed(&error.to_string()))?);
        }
        Ok((responses, required.request_state))
    }

    /// Cancels a request. Of a program, only the end of this request shows that the server no longer
    /// works on it: if it does not end within half of the grace, the server is ended. A server over
    /// HTTP can't be ended. Returns the consequence, for the model.
    fn stop(
        &self,
        connection: &Connection,
        mut handle: RequestHandle<RoleClient>,
        running: &mut RunningCall,
        why: &str,
    ) -> &'static str {
        let half = self.server.grace / 2;
        if self.server.is_remote {
            // Sends the cancel of the protocol, and closes the connection of the request.
            let cancelling = handle.cancel(Some(why.to_owned()));
            let _ = self.runtime.block_on(async { tokio::time::timeout(half, cancelling).await });
            self.context.output(CANCELLED);
            return "";
        }
        let ending = async {
            client::cancel(&connection.peer, &handle.id, why).await.ok()?;
            loop {
                tokio::select! {
                    biased;
                    answer = &mut handle.rx => return answer.ok(),
                    // Its questions are dropped, which answers them.
                    Some(_) = running.next() => {}
                }
            }
        };
        let answer = self.runtime.block_on(async { tokio::time::timeout(half, ending).await });
        if matches!(answer, Ok(Some(Ok(_) | Err(ServiceError::McpError(_))))) {
            return "";
        }
        self.context.count_ended(self.server.end_program());
        // The next call must not get this connection, but start the program again.
        let gone = async { tokio::time::timeout(half, self.server.gone(connection)).await };
        let _ = self.runtime.block_on(gone);
        "; it did not react to the cancel either, and was ended"
    }
}
