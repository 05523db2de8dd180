//! The operations of a session: requests to the daemon that run beside the stream of events.

use std::panic::AssertUnwindSafe;

use agent_client_protocol_schema::v1::RequestId;
use futures_util::FutureExt;
use holdpoint_common::{Answer, AskId, PromptId, SessionError, TurnId};
use holdpoint_session::{Interruption, SessionHandle, Sessions};
use tokio::task::JoinSet;

use super::orders::{Order, Ordered};
use crate::sessions::discard_unused;

/// The result of an operation.
pub(super) enum Done {
    Ordered { request: RequestId, ordered: Ordered },
    Interrupted(Result<(), SessionError>),
    Unqueued { prompt: PromptId, result: Result<(), SessionError> },
    Answered { ask: AskId, result: Result<(), SessionError> },
    Closed { request: RequestId, result: Result<(), SessionError> },
}

/// The operations in progress. Their number is bounded: one order, one interrupt, one close, one
/// removal for each open prompt, and one answer for each open ask.
#[derive(Default)]
pub(super) struct Operations {
    running: JoinSet<Done>,
    is_ordering: bool,
    /// The interrupt in progress: of this turn, or of the open one.
    interrupting: Option<Option<TurnId>>,
    is_closing: bool,
    /// The interrupt that follows the one in progress.
    next_interrupt: Option<Option<TurnId>>,
}

impl Operations {
    /// Waits for the next result; forever if no operation is in progress.
    pub(super) async fn next(&mut self) -> Done {
        loop {
            match self.running.join_next().await {
                Some(Ok(done)) => return done,
                // Only a task that was cancelled has no result.
                Some(Err(error)) => tracing::error!(%error, "an operation failed"),
                None => std::future::pending().await,
            }
        }
    }

    /// Starts an operation. After a panic it has the result of `failed`.
    fn start(
        &mut self,
        operation: impl Future<Output = Done> + Send + 'static,
        failed: impl FnOnce(SessionError) -> Done + Send + 'static,
    ) {
        let operation = AssertUnwindSafe(operation).catch_unwind();
        self.running.spawn(async move {
            operation.await.unwrap_or_else(|_| {
                let message = "an internal error; the log of this program has more".to_owned();
                failed(SessionError::Other { code: "internal".to_owned(), message, hint: None })
            })
        });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether an order is being carried out.
    pub(super) fn is_ordering(&self) -> bool {
        self.is_ordering
    }

    /// Carries out an order.
    pub(super) fn order(&mut self, session: &SessionHandle, order: Order) {
        let session = session.clone();
        self.is_ordering = true;
        let Order { request, work, .. } = order;
        let (failed, on_panic) = (request.clone(), work.on_panic());
        self.start(
            async move { Done::Ordered { request, ordered: work.carry_out(&session).await } },
            move |error| Done::Ordered { request: failed, ordered: on_panic(error) },
        );
    }

    /// Notes that the order has ended, so that the next one can begin.
    pub(super) fn ordered(&mut self) {
        self.is_ordering = false;
    }

    /// Answers an ask.
    pub(super) fn answer(&mut self, session: &SessionHandle, ask: AskId, answer: Answer) {
        let (session, failed) = (session.clone(), ask.clone());
        self.start(
            async move {
                let result = session.answer(&ask, answer).await.map(drop);
                Done::Answered { ask, result }
            },
            |error| Done::Answered { ask: failed, result: Err(error) },
        );
    }

    /// Takes a prompt out of the queue.
    pub(super) fn unqueue(&mut self, session: &SessionHandle, prompt: PromptId) {
        let session = session.clone();
        self.start(
            async move {
                let result = session.unqueue(prompt).await.map(drop);
                Done::Unqueued { prompt, result }
            },
            move |error| Done::Unqueued { prompt, result: Err(error) },
        );
    }

    /// Interrupts this turn, or else the open one, and waits until everything of it has ended.
    /// While an interrupt is in progress, the same one has no effect, and later ones are merged.
    pub(super) fn interrupt(&mut self, session: &SessionHandle, turn: Option<TurnId>) {
        match self.interrupting {
            None => self.interrupting = Some(turn),
            Some(same) if same == turn => return,
            Some(_) => {
                let both = self.next_interrupt.map_or(turn, |next| next.filter(|_| next == turn));
                self.next_interrupt = Some(both);
                return;
            }
        }
        let session = session.clone();
        let interrupted = async move {
            if let Interruption::Interrupting(turn) = session.interrupt(turn).await? {
                turn.end().await?;
            }
            Ok(())
        };
        self.start(interrupted.map(Done::Interrupted), |error| Done::Interrupted(Err(error)));
    }

    /// Notes that the interrupt has ended, and begins the one that waits.
    pub(super) fn interrupted(&mut self, session: &SessionHandle) {
        self.interrupting = None;
        if let Some(turn) = self.next_interrupt.take() {
            self.interrupt(session, turn);
        }
    }

    /// Closes the session. One that the connection has created among `created`, and that was not
    /// used, is deleted. Returns `false` if it is being closed already.
    pub(super) fn close(
        &mut self,
        session: &SessionHandle,
        request: RequestId,
        created: Option<Sessions>,
    ) -> bool {
        if std::mem::replace(&mut self.is_closing, true) {
            return false;
        }
        let (session, failed) = (session.clone(), request.clone());
        self.start(
            async move {
                if let Some(sessions) = created {
                    discard_unused(&sessions, session.id()).await;
                }
                let result = session.close().await;
                Done::Closed { request, result }
            },
            |error| Done::Closed { request: failed, result: Err(error) },
        );
        true
    }

    /// Notes that a close has failed, so that the next one is carried out.
    pub(super) fn close_failed(&mut self) {
        self.is_closing = false;
    }
}
