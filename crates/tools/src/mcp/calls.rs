//! The calls that run on one server, and the messages that belong to them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam, ProgressToken,
};
use tokio::sync::{mpsc, oneshot};

use super::content::cut;

/// How many messages of one call may wait. Further progress is dropped.
const CAPACITY: usize = 64;

/// The most bytes of a line of progress.
const MAX_PROGRESS: usize = 1024;

/// A message from a server for a running call.
pub(super) enum CallMessage {
    /// A line of progress.
    Progress(String),
    /// The server asks the user.
    Elicit(Box<ElicitRequestParams>, oneshot::Sender<ElicitResult>),
}

/// The id of a call, the token of its request, and the sender of its messages.
type Entry = (u64, ProgressToken, mpsc::Sender<CallMessage>);

/// The calls that run on one server, oldest first. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Calls(Arc<Mutex<Vec<Entry>>>);

/// A running call. It is removed when this is dropped.
pub(super) struct RunningCall {
    calls: Calls,
    id: u64,
    sender: mpsc::Sender<CallMessage>,
    messages: mpsc::Receiver<CallMessage>,
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, whose request has this token.
    pub(super) fn add(&self, token: ProgressToken) -> RunningCall {
        let (sender, messages) = mpsc::channel(CAPACITY);
        let mut calls = self.lock();
        let id = calls.last().map_or(0, |(id, ..)| id + 1);
        calls.push((id, token, sender.clone()));
        drop(calls);
        RunningCall { calls: self.clone(), id, sender, messages }
    }

    /// Passes progress to its call.
    pub(super) fn progress(&self, progress: ProgressNotificationParam) {
        let ProgressNotificationParam { progress_token, progress, total, message, .. } = progress;
        let mut line = match total {
            Some(total) => format!("[{progress}/{total}]"),
            None => format!("[{progress}]"),
        };
        if let Some(message) = message {
            line.push(' ');
            line.push_str(cut(&message, MAX_PROGRESS));
        }
        line.push('\n');
        if let Some((.., call)) = self.lock().iter().find(|(_, token, _)| *token == progress_token)
        {
            let _ = call.try_send(CallMessage::Progress(line));
        }
    }

    /// Passes a question to the oldest call, and returns the answer. Without a call there is no one
    /// to ask, and the question is declined.
    pub(super) async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let call = self.lock().first().map(|(.., call)| call.clone());
        let Some(call) = call else { return ElicitResult::new(ElicitationAction::Decline) };
        let (sender, answer) = oneshot::channel();
        // Fails if the call has ended.
        let _ = call.send(CallMessage::Elicit(Box::new(request), sender)).await;
        answer.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
    }
}

impl RunningCall {
    /// Waits for the next message.
    pub(super) async fn next(&mut self) -> Option<CallMessage> {
        self.messages.recv().await
    }

    /// Continues the call with another request, which has this token.
    pub(super) fn continue_as(&self, token: ProgressToken) {
        if let Some(call) = self.calls.lock().iter_mut().find(|(id, ..)| *id == self.id) {
            *call = (self.id, token, self.sender.clone());
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.calls.lock().retain(|(id, ..)| *id != self.id);
    }
}
