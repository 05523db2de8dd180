//! The asks that the editor is asked, and the end of each.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    CancelRequestNotification, Error, PROTOCOL_LEVEL_METHOD_NAMES, RequestId,
};
use holdpoint_common::{Ask, AskFact, AskId, Event, Fact, QuestionReply};
use serde_json::Value;

use super::SessionTask;
use crate::acp::asks::{self, Next};
use crate::acp::updates::message;

/// The open requests for asks, by the id of the request.
#[derive(Debug, Default)]
pub(super) struct OpenAsks {
    open: BTreeMap<String, Asked>,
    /// The number of the last request.
    last: u64,
}

#[derive(Debug)]
struct Asked {
    ask: Ask,
    /// The replies to its first questions.
    replies: Vec<QuestionReply>,
}

impl OpenAsks {
    fn has(&self, ask: &AskId) -> bool {
        self.open.values().any(|asked| asked.ask.id == *ask)
    }

    /// Adds a request of this opening of the session.
    fn add(&mut self, opening: u64, ask: Ask, replies: Vec<QuestionReply>) -> String {
        self.last += 1;
        // The connection finds the session of a reply by the part before the slash.
        let id = format!("{}/{opening}.{}", ask.id.session, self.last);
        self.open.insert(id.clone(), Asked { ask, replies });
        id
    }

    fn remove(&mut self, ask: &AskId) -> Option<String> {
        let id = self.open.iter().find(|(_, asked)| asked.ask.id == *ask)?.0.clone();
        self.open.remove(&id);
        Some(id)
    }
}

impl SessionTask {
    /// Asks the editor, unless it is asked already.
    pub(super) async fn raise(&mut self, ask: &Ask) {
        if self.asks.has(&ask.id) {
            return;
        }
        if let Some(call) = self.updates.announce(ask) {
            self.update(call, self.after).await;
        }
        self.ask(ask.clone(), Vec::new()).await;
    }

    async fn ask(&mut self, ask: Ask, replies: Vec<QuestionReply>) {
        let content = self.updates.content(ask.call);
        let request = asks::request(&ask, &replies, content, self.around.features.forms);
        let id = RequestId::Str(self.asks.add(self.around.number, ask, replies));
        self.around.lines.request(&id, request.method, &request.params).await;
    }

    /// Keeps the open asks: raises those of new events, and withdraws those that have ended.
    pub(super) async fn follow_asks(&mut self, event: &Event) {
        match event.fact() {
            // One from before the attach is raised from the snapshot, if it is still open.
            Some(Fact::Ask(AskFact::Raised { ask }))
                if self.attachment.as_ref().is_some_and(|a| event.seq > a.snapshot().seq) =>
            {
                self.raise(ask).await;
            }
            Some(Fact::Ask(AskFact::Answered { ask, .. } | AskFact::Closed { ask, .. })) => {
                if let Some(id) = self.asks.remove(ask) {
                    self.withdraw(id).await;
                }
            }
            _ => {}
        }
    }

    /// Withdraws all requests for asks, which stay open.
    pub(super) async fn withdraw_asks(&mut self) {
        for id in std::mem::take(&mut self.asks.open).into_keys() {
            self.withdraw(id).await;
        }
    }

    async fn withdraw(&self, id: String) {
        let cancel = CancelRequestNotification::new(RequestId::Str(id));
        self.around.lines.notify(PROTOCOL_LEVEL_METHOD_NAMES.cancel_request, &cancel).await;
    }

    /// Handles the editor's reply to a request. One that comes too late changes nothing.
    pub(super) async fn take_reply(&mut self, id: &str, result: Result<Value, Error>) {
        let Some(Asked { ask, replies }) = self.asks.open.remove(id) else {
            return tracing::debug!(id, "a reply came too late");
        };
        match asks::read(&ask, replies, self.around.features.forms, result) {
            Next::Answer(answer) => self.operations.answer(&self.handle, ask.id, answer),
            Next::Ask(replies) => self.ask(ask, replies).await,
            Next::Interrupt => self.operations.interrupt(&self.handle, self.prompts.turn()),
            // An editor that cancels the prompt also closes its questions.
            Next::StaysOpen(_) if self.prompts.has_cancelled() => {}
            Next::StaysOpen(reason) => {
                let text = format!(
                    "{reason}. The ask {} stays open: answer it with `holdpoint attach {}`",
                    ask.id, ask.id.session
                );
                self.update(message(&text, self.after), self.after).await;
            }
        }
    }
}
