//! The requests of the editor to a session: carried out beside the stream of events.

use agent_client_protocol_schema::v1::{
    CloseSessionResponse, Error, ErrorCode, PromptResponse, RequestId,
    SetSessionConfigOptionResponse, SetSessionModeResponse, StopReason,
};
use holdpoint_common::{Answer, AskId, Refused, SessionError};
use holdpoint_session::{Interruption, Prompted, SessionHandle};
use tokio::task::JoinSet;

use super::{SessionTask, SetReply, ToSession};
use crate::acp::commands::{self, Command};
use crate::acp::modes::{self, Change};
use crate::acp::rpc::{self, failure};
use crate::acp::updates::message;
use crate::error::CliError;
use crate::prompt_input::check_prompt;

/// The result of an operation.
pub(super) enum Done {
    Prompted {
        request: RequestId,
        result: Result<Prompted, SessionError>,
    },
    /// A command of the user, which takes the place of a prompt.
    Commanded {
        request: RequestId,
        result: Result<(), SessionError>,
    },
    Interrupted(Result<(), SessionError>),
    Answered {
        ask: AskId,
        result: Result<(), SessionError>,
    },
    Set {
        request: RequestId,
        reply: SetReply,
        result: Result<(), SessionError>,
    },
    Closed {
        request: RequestId,
        result: Result<(), SessionError>,
    },
}

/// The operations in progress.
#[derive(Default)]
pub(super) struct Operations {
    running: JoinSet<Done>,
    /// Whether a prompt is being sent.
    is_prompting: bool,
}

impl Operations {
    /// Waits for the next result; forever if no operation is in progress.
    pub(super) async fn next(&mut self) -> Done {
        loop {
            match self.running.join_next().await {
                Some(Ok(done)) => return done,
                // It panicked, and its request is answered when the connection ends.
                Some(Err(error)) => tracing::error!(%error, "an operation failed"),
                None => std::future::pending().await,
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    fn start(&mut self, operation: impl Future<Output = Done> + Send + 'static) {
        self.running.spawn(operation);
    }

    /// Answers an ask.
    pub(super) fn answer(&mut self, session: &SessionHandle, ask: AskId, answer: Answer) {
        let session = session.clone();
        self.start(async move {
            let result = session.answer(&ask, answer).await.map(drop);
            Done::Answered { ask, result }
        });
    }

    /// Interrupts the open turn, and waits until everything of it has ended.
    pub(super) fn interrupt(&mut self, session: &SessionHandle) {
        let session = session.clone();
        self.start(async move {
            let interrupted = async {
                if let Interruption::Interrupting(turn) = session.interrupt(None).await? {
                    turn.end().await?;
                }
                // Shows which prompts are still queued.
                session.refresh().await
            };
            Done::Interrupted(interrupted.await)
        });
    }
}

impl SessionTask {
    /// Handles a message of the connection.
    pub(super) async fn take(&mut self, message: ToSession) {
        match message {
            ToSession::Prompt { request, text } => self.prompt(request, text).await,
            ToSession::Cancel => self.cancel().await,
            ToSession::CancelRequest(request) if self.prompts.has(&request) => self.cancel().await,
            ToSession::CancelRequest(_) => {}
            ToSession::Reply { id, result } => self.take_reply(&id, result).await,
            ToSession::Set { request, change, reply } => {
                let session = self.handle.clone();
                self.operations.start(async move {
                    let changed = async {
                        match change {
                            Change::Policy(policy) => session.change_policy(policy).await?,
                            Change::Model(model) => session.change_model(model).await?,
                        }
                        // The reply has the new values.
                        session.refresh().await
                    };
                    Done::Set { request, reply, result: changed.await }
                });
            }
            ToSession::Close { request } => {
                let session = self.handle.clone();
                self.operations.start(async move {
                    let result = session.close().await;
                    Done::Closed { request, result }
                });
            }
        }
    }

    async fn prompt(&mut self, request: RequestId, text: String) {
        if self.prompts.is_full() {
            return self.fail(&request, Self::too_many_prompts()).await;
        }
        if self.prompts.has(&request) {
            let message = "a prompt with this request id is open";
            return self.fail(&request, failure(ErrorCode::InvalidRequest, message)).await;
        }
        if let Err(error) = self.ensure_attached().await {
            return self.fail(&request, error).await;
        }
        let session = self.handle.clone();
        if let Some(command) = commands::parse(&text) {
            return self.operations.start(async move {
                let result = match command {
                    Command::Hold => session.hold().await.map(drop),
                    Command::Release => session.release().await.map(drop),
                    Command::Rename(name) => session.rename(name).await,
                };
                Done::Commanded { request, result }
            });
        }
        if let Err(error) = check_prompt(&session.snapshot().settings.model, &text) {
            return self.fail(&request, rpc::from_cli_error(&error)).await;
        }
        self.prompts.sending(request.clone());
        self.unsent.push_back((request, text));
        self.send_prompt();
    }

    /// Sends the next prompt. One is sent at a time, so that they keep their order.
    fn send_prompt(&mut self) {
        if self.operations.is_prompting {
            return;
        }
        let Some((request, text)) = self.unsent.pop_front() else { return };
        let session = self.handle.clone();
        self.operations.is_prompting = true;
        self.operations.start(async move {
            let result = session.prompt(text).await;
            Done::Prompted { request, result }
        });
    }

    /// Cancels the open prompts. A prompt that is being sent is cut when it has been accepted.
    async fn cancel(&mut self) {
        self.prompts.cancel();
        for (request, _) in std::mem::take(&mut self.unsent) {
            self.prompts.refused(&request);
            let reply = PromptResponse::new(StopReason::Cancelled);
            self.around.lines.reply(&request, Ok(reply)).await;
        }
        if !self.prompts.is_sending() {
            self.operations.interrupt(&self.handle);
        }
    }

    /// Handles the result of an operation.
    pub(super) async fn done(&mut self, done: Done) {
        match done {
            Done::Prompted { request, result } => self.prompted(request, result).await,
            Done::Commanded { request, result } => {
                let reply = result
                    .map_err(rpc::from_session_error)
                    .map(|()| PromptResponse::new(StopReason::EndTurn));
                self.around.lines.reply(&request, reply).await;
            }
            Done::Interrupted(result) => self.interrupted(result).await,
            // The event of the first answer shows who gave it.
            Done::Answered {
                result: Ok(()) | Err(SessionError::Refused(Refused::Answer(_))),
                ..
            } => {}
            Done::Answered { ask, result: Err(error) } => {
                let why = CliError::from(error).in_a_line();
                let text = format!("the answer to the ask {ask} was not accepted: {why}");
                self.update(message(&text, self.after), self.after).await;
            }
            Done::Set { request, reply, result } => {
                let error = result.map_err(rpc::from_session_error);
                self.reply_set(&request, reply, error).await;
            }
            Done::Closed { request, result } => {
                // Another client may have closed it first.
                let result = match result {
                    Err(SessionError::Refused(Refused::Closed)) => Ok(()),
                    result => result,
                };
                self.is_closed = result.is_ok();
                if result.is_ok() {
                    self.drain().await;
                }
                let reply = result.map(|()| CloseSessionResponse::new());
                self.around.lines.reply(&request, reply.map_err(rpc::from_session_error)).await;
            }
        }
    }

    async fn prompted(&mut self, request: RequestId, result: Result<Prompted, SessionError>) {
        self.operations.is_prompting = false;
        self.send_prompt();
        match result {
            Ok(prompted) => {
                if let Some(reply) = self.prompts.accepted(&request, prompted.prompt) {
                    self.around.lines.reply(&request, reply).await;
                }
            }
            Err(error) => {
                self.prompts.refused(&request);
                self.fail(&request, rpc::from_session_error(error)).await;
            }
        }
        if self.prompts.has_cancelled() && !self.prompts.is_sending() {
            self.operations.interrupt(&self.handle);
        }
    }

    /// After an interrupt, the prompts of the cut turn are replied to when its end arrives. Those
    /// that a hold keeps in the queue are replied to here.
    async fn interrupted(&mut self, result: Result<(), SessionError>) {
        if let Err(error) = result {
            let text = format!("the interrupt failed: {}", CliError::from(error).in_a_line());
            self.update(message(&text, self.after), self.after).await;
        }
        let snapshot = self.handle.snapshot();
        let is_queued = |prompt| snapshot.queue.iter().any(|queued| queued.prompt == prompt);
        for (request, reply) in self.prompts.cancelled_in_queue(is_queued) {
            self.around.lines.reply(&request, reply).await;
        }
    }

    async fn reply_set(&self, request: &RequestId, reply: SetReply, result: Result<(), Error>) {
        let lines = &self.around.lines;
        match reply {
            SetReply::Mode => {
                lines.reply(request, result.map(|()| SetSessionModeResponse::new())).await;
            }
            SetReply::Options => {
                let options = modes::options(&self.handle.snapshot().settings, &self.models);
                let reply = result.map(|()| SetSessionConfigOptionResponse::new(options));
                lines.reply(request, reply).await;
            }
        }
    }

    /// Shows the remaining events of a session that is closed.
    async fn drain(&mut self) {
        let mut batch = Vec::new();
        while let Some(attachment) = &mut self.attachment
            && attachment.next_batch(&mut batch, super::BATCH).await > 0
        {
            self.show(&batch).await;
            batch.clear();
        }
    }
}
