//! The calls that run on one server, and the messages that belong to them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ProgressNotificationParam, ProgressToken,
};
use tokio::sync::{mpsc, oneshot};

use super::clock::Clock;
use super::content::cut;
use crate::ask::{Subject, SubjectGuard};

/// How many messages of one call may wait. Further progress is dropped.
const CAPACITY: usize = 64;

/// The most bytes of a line of progress.
const MAX_PROGRESS: usize = 1024;

/// A message from a server for a running call.
pub(super) enum CallMessage {
    /// A line of progress.
    Progress(String),
    /// The server asks the user. The subject ends when the server withdraws the question, or ends.
    Elicit(Box<ElicitRequestParams>, Subject, oneshot::Sender<ElicitResult>),
}

/// The calls that run on one server. Clones share them.
#[derive(Clone, Default)]
pub(super) struct Calls {
    running: Arc<Mutex<Running>>,
    /// The clock of their time limits.
    pub(super) clock: Clock,
}

#[derive(Default)]
struct Running {
    /// Oldest first.
    calls: Vec<Entry>,
    /// Progress that has arrived while a request was being sent, whose token is not known yet: at
    /// most [`CAPACITY`] lines.
    early: Vec<(ProgressToken, String)>,
    /// Present while the program of the server runs.
    program: Option<(SubjectGuard, Subject)>,
}

struct Entry {
    id: u64,
    /// The token of the call's request; `None` while it is being sent.
    token: Option<ProgressToken>,
    call: mpsc::Sender<CallMessage>,
}

/// A running call. It is removed when this is dropped.
pub(super) struct RunningCall {
    calls: Calls,
    id: u64,
    messages: mpsc::Receiver<CallMessage>,
}

impl Running {
    fn progress(&mut self, token: ProgressToken, line: String) {
        let is_of_token = |entry: &&Entry| entry.token.as_ref() == Some(&token);
        if let Some(entry) = self.calls.iter().find(is_of_token) {
            // A call that does not keep up loses progress.
            let _ = entry.call.try_send(CallMessage::Progress(line));
        } else if self.is_sending() && self.early.len() < CAPACITY {
            self.early.push((token, line));
        }
    }

    fn is_sending(&self) -> bool {
        self.calls.iter().any(|entry| entry.token.is_none())
    }
}

impl Calls {
    fn lock(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call, whose request is about to be sent: the server may ask before
    /// [`sent`](RunningCall::sent) is called.
    pub(super) fn add(&self) -> RunningCall {
        let (call, messages) = mpsc::channel(CAPACITY);
        let mut running = self.lock();
        let id = running.calls.last().map_or(0, |last| last.id + 1);
        running.calls.push(Entry { id, token: None, call });
        drop(running);
        RunningCall { calls: self.clone(), id, messages }
    }

    /// A subject that ends when the server's program does.
    pub(super) fn program(&self) -> Subject {
        let ended = || Subject::new().1;
        self.lock().program.as_ref().map_or_else(ended, |(_, program)| program.clone())
    }

    /// Notes that the program of the server starts.
    pub(super) fn program_starts(&self) {
        self.lock().program = Some(Subject::new());
    }

    /// Notes that the program of the server has ended.
    pub(super) fn program_ended(&self) {
        self.lock().program = None;
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
        self.lock().progress(progress_token, line);
    }

    /// Passes a question to the oldest call, and returns the answer. Which call the server works on
    /// when it asks is unknown. Without a call there is no one to ask, and the question is declined.
    pub(super) async fn elicit(&self, request: ElicitRequestParams) -> ElicitResult {
        let call = self.lock().calls.first().map(|oldest| oldest.call.clone());
        let Some(call) = call else { return ElicitResult::new(ElicitationAction::Decline) };
        let (sender, answer) = oneshot::channel();
        // Dropped with this future.
        let (_asking, subject) = Subject::new();
        // Fails if the call has ended.
        let _ = call.send(CallMessage::Elicit(Box::new(request), subject, sender)).await;
        answer.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel))
    }
}

impl RunningCall {
    /// Waits for the next message.
    pub(super) async fn next(&mut self) -> Option<CallMessage> {
        self.messages.recv().await
    }

    /// The messages that have arrived, at most as many as can wait.
    pub(super) fn rest(&mut self) -> impl Iterator<Item = CallMessage> {
        std::iter::from_fn(|| self.messages.try_recv().ok()).take(CAPACITY)
    }

    /// Notes that another request of the call is about to be sent.
    pub(super) fn sending(&self) {
        self.set_token(None);
    }

    /// Notes that the request was sent, with this token.
    pub(super) fn sent(&self, token: ProgressToken) {
        self.set_token(Some(token));
    }

    fn set_token(&self, token: Option<ProgressToken>) {
        let mut running = self.calls.lock();
        let entry = running.calls.iter_mut().find(|entry| entry.id == self.id);
        entry.into_iter().for_each(|entry| entry.token = token.clone());
        for (token, line) in std::mem::take(&mut running.early) {
            running.progress(token, line);
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        self.calls.lock().calls.retain(|entry| entry.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    fn progress(calls: &Calls, token: &ProgressToken) {
        calls.progress(ProgressNotificationParam::new(token.clone(), 1.0));
    }

    #[tokio::test]
    async fn m_h2_progress_that_comes_before_the_token_is_known_is_not_lost() {
        let tokens = [1, 2].map(|number| ProgressToken(NumberOrString::Number(number)));
        let calls = Calls::default();
        let mut running = calls.add();
        progress(&calls, &tokens[0]);
        running.sent(tokens[0].clone());
        progress(&calls, &tokens[0]);
        for _ in 0..2 {
            assert!(matches!(running.next().await, Some(CallMessage::Progress(_))));
        }
        running.sending();
        progress(&calls, &tokens[1]);
        running.sent(tokens[1].clone());
        assert!(matches!(running.next().await, Some(CallMessage::Progress(_))));
        // That of an unknown call is dropped.
        progress(&calls, &tokens[0]);
        assert!(running.messages.try_recv().is_err() && calls.lock().early.is_empty());
        drop(running);
        assert!(calls.lock().calls.is_empty());
    }
}
