//! The Confirms of permission requests. A thread of its own waits for each answer, so that the call
//! that raises them continues to follow the agent.

use std::thread::{Builder, Scope};

use holdpoint_common::PauseResponse;
use holdpoint_tools::{Intent, Judgement, Subject, ToolContext};
use tokio::sync::mpsc;

use super::event::Permission;

/// The most Confirms that one call has open. Further ones are raised later.
pub(super) const MAX_OPEN: usize = 16;

/// The size of a thread's stack in bytes.
const STACK: usize = 256 * 1024;

/// The open Confirms of a call.
pub(super) struct Asks<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    context: &'env ToolContext,
    /// Ends when the call no longer waits.
    subject: Subject,
    sender: mpsc::Sender<Answered>,
    answers: mpsc::Receiver<Answered>,
    open: usize,
}

/// A permission request with its answer; `None` if the call no longer waits for it.
pub(super) struct Answered {
    pub(super) request: Permission,
    pub(super) response: Option<PauseResponse>,
}

impl<'scope, 'env> Asks<'scope, 'env> {
    pub(super) fn new(
        scope: &'scope Scope<'scope, 'env>,
        context: &'env ToolContext,
        subject: Subject,
    ) -> Self {
        let (sender, answers) = mpsc::channel(MAX_OPEN);
        Self { scope, context, subject, sender, answers, open: 0 }
    }

    pub(super) fn has_room(&self) -> bool {
        self.open < MAX_OPEN
    }

    pub(super) fn is_empty(&self) -> bool {
        self.open == 0
    }

    /// Asks the user. If that is not possible, the request is denied.
    pub(super) fn raise(&mut self, request: Permission, judgement: &Judgement, intent: Intent) {
        let Intent { message, details, .. } = intent;
        let raised = self.context.raise_confirm(judgement, message, details);
        let (sender, subject, asked) = (self.sender.clone(), self.subject.clone(), request.clone());
        let wait = move || {
            let response = raised.wait(&subject);
            // There is room for each open Confirm.
            let _ = sender.try_send(Answered { request: asked, response });
        };
        self.open += 1;
        let thread = Builder::new().name("agent ask".to_owned()).stack_size(STACK);
        if let Err(error) = thread.spawn_scoped(self.scope, wait) {
            tracing::error!(%error, "no thread for the ask of an agent");
            let reason = Some("the user could not be asked".to_owned());
            let response = Some(PauseResponse::Denied { reason });
            let _ = self.sender.try_send(Answered { request, response });
        }
    }

    /// Waits for the next answer; forever if no Confirm is open.
    pub(super) async fn next(&mut self) -> Answered {
        match self.answers.recv().await {
            Some(answered) => {
                self.open -= 1;
                answered
            }
            // Never happens: this has a sender.
            None => std::future::pending().await,
        }
    }
}
