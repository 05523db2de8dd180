//! The end of an agent: its turn is cancelled, and then its program is ended.

use std::time::Duration;

use holdpoint_common::EndedProcesses;
use tokio::task::JoinHandle;

use super::serving::Heard;
use super::{Link, Running};
use crate::hosted::connection::Incoming;
use crate::hosted::protocol::{self, CANCELLED, method};

/// An agent that is being ended. Without a reason, it has ended by itself.
pub(super) struct Ending {
    why: String,
    finishing: JoinHandle<(String, EndedProcesses)>,
}

impl Link {
    /// Cancels the open turn, and waits at most this long for its end.
    pub(in super::super) async fn cancel(&mut self, wait: Duration) {
        self.cancel_permissions();
        self.refuse_requests("the turn is cancelled");
        for id in self.terminals.take_waiting() {
            self.refuse(&id, CANCELLED, "the turn is cancelled".to_owned());
        }
        let (Some(Running { connection, .. }), Some(session)) =
            (&mut self.running, &self.own_session)
        else {
            return;
        };
        connection.notify(method::CANCEL, protocol::cancel(session));
        let Some(prompt) = self.prompt.take() else { return };
        let _ = tokio::time::timeout(wait, self.until_reply(prompt)).await;
    }

    /// Waits for the reply to a cancelled prompt. Before it, the agent may end its terminals.
    async fn until_reply(&mut self, prompt: u64) {
        loop {
            match self.hear().await {
                Ok(Heard::Message(Incoming::Reply { id, .. })) if id == prompt => return,
                Ok(Heard::Message(Incoming::Request { id, method, params })) => {
                    self.take_outside_turn(&id, &method, &params);
                }
                Ok(Heard::Message(_) | Heard::Jobs) => {}
                Ok(Heard::End) | Err(_) => return,
            }
        }
    }

    /// Begins to end the agent, because its session has ended. It can end by itself at the end of its
    /// input. Returns at once.
    pub(in super::super) fn close(&mut self) {
        self.running = None;
    }

    /// Ends the agent and everything it started, and waits for that. Without a reason in `why`, the
    /// agent has ended by itself. Returns the reason, with the error output.
    pub(in super::super) async fn end(&mut self, why: String) -> (String, EndedProcesses) {
        self.begin_end(why);
        self.ended().await
    }

    /// Begins to end the agent, for this reason. Without one, it has ended by itself.
    pub(super) fn begin_end(&mut self, why: String) {
        if let Some(Running { connection, .. }) = self.running.take() {
            if !why.is_empty() {
                connection.end();
            }
            let terminals = connection.background().begin_stop_all(&self.terminals.take_all());
            let finishing = tokio::task::spawn_blocking(move || {
                let (text, mut ended) = connection.finish();
                ended.add(terminals.finish());
                (text, ended)
            });
            self.ending = Some(Ending { why, finishing });
        }
    }

    /// Waits until an agent that is being ended has ended. Can be dropped and called again without a
    /// loss.
    pub(super) async fn ended(&mut self) -> (String, EndedProcesses) {
        let Some(ending) = &mut self.ending else { return Default::default() };
        let (text, ended) = (&mut ending.finishing).await.unwrap_or_default();
        let why = std::mem::take(&mut ending.why);
        self.ending = None;
        self.forget_turn();
        let why = match why.is_empty() {
            true => format!("{}: {text}", self.name),
            false => {
                let wrote = text.split_once("; it wrote: ").map(|(_, wrote)| wrote);
                let wrote = wrote.map(|wrote| format!("; it wrote: {wrote}")).unwrap_or_default();
                format!("{}: {why}{wrote}", self.name)
            }
        };
        (why, ended)
    }
}
