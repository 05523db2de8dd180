//! Cancelling: all work of the session, or one request of the editor.

use agent_client_protocol_schema::v1::{ErrorCode, PromptResponse, RequestId, StopReason};
use holdpoint_common::{PromptId, Refused, SessionError};

use super::SessionTask;
use super::orders::{Order, Work};
use super::prompts::CancelStep;
use crate::acp::rpc::{self, failure};
use crate::acp::updates::message;

impl SessionTask {
    /// Cancels the open turn, and all open prompts of the editor.
    pub(super) async fn cancel_all(&mut self) {
        self.prompts.cancel_all();
        for order in self.orders.take_prompts_and_commands() {
            self.cancelled(order).await;
        }
        self.operations.interrupt(&self.handle, self.prompts.turn());
        self.pursue_cancels();
    }

    /// Cancels one request, and nothing else: an order that waits, or a prompt.
    pub(super) async fn cancel_one(&mut self, request: &RequestId) {
        match self.orders.remove(request) {
            Some(order) => self.cancelled(order).await,
            None => {
                self.prompts.cancel(request);
                self.pursue_cancels();
            }
        }
    }

    /// Replies to an order that was cancelled before it was carried out.
    async fn cancelled(&mut self, Order { request, work, .. }: Order) {
        match work {
            Work::Prompt(_) | Work::Command(_) => {
                self.prompts.refused(&request);
                let reply = PromptResponse::new(StopReason::Cancelled);
                self.around.lines.reply(&request, Ok(reply)).await;
            }
            Work::Set(..) => {
                let error = failure(ErrorCode::RequestCancelled, "the request was cancelled");
                self.fail(&request, error).await;
            }
        }
    }

    /// Continues the cancels of prompts that the session has accepted: takes those out of the queue
    /// that wait there, and interrupts the turn of one that runs.
    pub(super) fn pursue_cancels(&mut self) {
        for step in self.prompts.cancel_steps(self.operations.is_ordering()) {
            match step {
                CancelStep::Unqueue(prompt) => self.operations.unqueue(&self.handle, prompt),
                CancelStep::Interrupt(turn) => {
                    self.operations.interrupt(&self.handle, Some(turn));
                }
            }
        }
    }

    /// A prompt that was taken out of the queue is replied to when the event arrives. If its turn
    /// has started meanwhile, the turn is interrupted.
    pub(super) async fn unqueued(&mut self, prompt: PromptId, result: Result<(), SessionError>) {
        if let Err(error) = &result
            && !matches!(error, SessionError::Refused(Refused::NotQueued { .. } | Refused::Closed))
        {
            self.show_failure("the prompt could not be cancelled", error.clone()).await;
        }
        if result.is_err() {
            self.prompts.not_queued(prompt);
            self.pursue_cancels();
        }
    }

    pub(super) async fn interrupted(&mut self, result: Result<(), SessionError>) {
        self.operations.interrupted(&self.handle);
        if let Err(error) = result {
            self.show_failure("the interrupt failed", error).await;
        }
    }

    async fn show_failure(&self, failed: &str, error: SessionError) {
        let text = format!("{failed}: {}", rpc::in_the_editor(error).in_a_line());
        self.update(message(&text, self.after), self.after).await;
    }
}
