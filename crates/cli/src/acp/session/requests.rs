//! The requests of the editor to the session, and the replies to them.

use agent_client_protocol_schema::v1::{
    CloseSessionResponse, Error, ErrorCode, PromptResponse, RequestId,
    SetSessionConfigOptionResponse, SetSessionModeResponse, StopReason,
};
use holdpoint_common::api::PromptRequest;
use holdpoint_common::{Refused, SessionError};
use holdpoint_session::Prompted;

use super::operations::Done;
use super::orders::{MAX_ORDERS, Ordered, Work};
use super::prompts::MAX_PROMPTS;
use super::{SessionTask, SetReply, ToSession};
use crate::acp::rpc::{self, failure};
use crate::acp::updates::message;
use crate::acp::{commands, modes};
use crate::prompt_input::check_prompt;

impl SessionTask {
    /// Handles a message of the connection.
    pub(super) async fn take(&mut self, message: ToSession) {
        match message {
            ToSession::Prompt { request, prompt } => self.prompt(request, prompt).await,
            ToSession::Cancel => self.cancel_all().await,
            ToSession::CancelRequest(request) => self.cancel_one(&request).await,
            ToSession::Reply { id, result } => self.take_reply(&id, result).await,
            ToSession::Set { request, change, reply } => {
                self.order(request, Work::Set(change, reply)).await;
            }
            ToSession::Close { request, created } => {
                if !self.operations.close(&self.handle, request.clone(), created) {
                    let message = "the session is being closed";
                    self.fail(&request, failure(ErrorCode::InvalidRequest, message)).await;
                }
            }
        }
    }

    async fn prompt(&mut self, request: RequestId, prompt: PromptRequest) {
        if self.prompts.is_full() {
            let message = format!("{MAX_PROMPTS} prompts of this session are open, the limit");
            return self.fail(&request, failure(ErrorCode::InvalidRequest, message)).await;
        }
        if self.prompts.has(&request) {
            let message = "a prompt with this request id is open";
            return self.fail(&request, failure(ErrorCode::InvalidRequest, message)).await;
        }
        if let Err(error) = self.ensure_attached().await {
            return self.fail(&request, error).await;
        }
        if let Some(command) = commands::parse(&prompt.text) {
            return self.order(request, Work::Command(command)).await;
        }
        if let Err(error) = check_prompt(&self.handle.snapshot().settings.model, &prompt.text) {
            return self.fail(&request, rpc::from_cli_error(&error)).await;
        }
        self.prompts.sending(request.clone(), prompt.typed_bytes);
        self.order(request, Work::Prompt(prompt)).await;
    }

    /// Carries out an order after those that came before it.
    async fn order(&mut self, request: RequestId, work: Work) {
        if let Err(request) = self.orders.push(request, work) {
            self.prompts.refused(&request);
            let message = format!("{MAX_ORDERS} requests to this session wait, the limit");
            return self.fail(&request, failure(ErrorCode::InvalidRequest, message)).await;
        }
        self.next_order();
    }

    /// Begins the next order, unless one is being carried out, or prompts may be handed back that
    /// come before it.
    pub(super) fn next_order(&mut self) {
        if !self.operations.is_ordering()
            && !self.prompts.is_cut_for_one()
            && let Some(order) = self.orders.pop()
        {
            self.operations.order(&self.handle, order);
        }
    }

    /// Handles the result of an operation.
    pub(super) async fn done(&mut self, done: Done) {
        match done {
            Done::Ordered { request, ordered } => {
                self.operations.ordered();
                self.ordered(request, ordered).await;
                self.pursue_cancels();
                self.next_order();
            }
            Done::Interrupted(result) => self.interrupted(result).await,
            Done::Unqueued { prompt, result } => self.unqueued(prompt, result).await,
            // The event of the first answer shows who gave it.
            Done::Answered {
                result: Ok(()) | Err(SessionError::Refused(Refused::Answer(_))),
                ..
            } => {}
            Done::Answered { ask, result: Err(error) } => {
                let why = rpc::in_the_editor(error).in_a_line();
                let text = format!("the answer to the ask {ask} was not accepted: {why}");
                self.update(message(&text, self.after), self.after).await;
            }
            Done::Closed { request, result } => self.closed(&request, result).await,
        }
    }

    async fn ordered(&mut self, request: RequestId, ordered: Ordered) {
        match ordered {
            Ordered::Prompted(result) => self.prompted(request, result).await,
            Ordered::Set(reply, result) => {
                let result = result.map_err(rpc::from_session_error);
                self.reply_set(&request, reply, result).await;
            }
            Ordered::Commanded(result) => {
                let reply = result
                    .map_err(rpc::from_session_error)
                    .map(|()| PromptResponse::new(StopReason::EndTurn));
                self.around.lines.reply(&request, reply).await;
            }
        }
    }

    async fn prompted(&mut self, request: RequestId, result: Result<Prompted, SessionError>) {
        match result {
            Ok(prompted) => {
                if let Some(reply) = self.prompts.accepted(&request, prompted.prompt) {
                    self.around.lines.reply(&request, reply).await;
                }
            }
            Err(error) => {
                // It may have got its reply with the end of the stream.
                if self.prompts.refused(&request) {
                    self.fail(&request, rpc::from_session_error(error)).await;
                }
            }
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

    async fn closed(&mut self, request: &RequestId, result: Result<(), SessionError>) {
        // Another client may have closed it first.
        let result = match result {
            Err(SessionError::Refused(Refused::Closed)) => Ok(()),
            // It was not used, and is deleted.
            Err(SessionError::UnknownSession { .. }) => Ok(()),
            result => result,
        };
        self.is_closed = result.is_ok();
        if result.is_ok() {
            self.drain().await;
        } else {
            self.operations.close_failed();
        }
        let reply = result.map(|()| CloseSessionResponse::new());
        self.around.lines.reply(request, reply.map_err(rpc::from_session_error)).await;
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
