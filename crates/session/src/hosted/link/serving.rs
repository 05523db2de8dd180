//! The requests of the agent for files and terminals.

use holdpoint_common::CallId;
use holdpoint_tools::BackgroundJobs;
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Link, Running};
use crate::hosted::connection::{Incoming, RpcError};
use crate::hosted::event::AgentEvent;
use crate::hosted::protocol::{
    self, CANCELLED, ClientRequest, INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND,
    TerminalAction, method,
};
use crate::hosted::served::NotServed;

/// The result of a call for a request.
pub(in super::super) enum Done {
    /// The text of a file.
    Text(String),
    /// A file was written.
    Written,
    /// A command runs in this job.
    Terminal(CallId),
}

/// The next thing that happens to an agent.
pub(super) enum Heard {
    Message(Incoming),
    /// Its output has ended.
    End,
    /// A job of the session has new output, or has ended.
    Jobs,
}

impl Link {
    /// The background jobs of the session, if the agent runs.
    pub(in super::super) fn jobs(&self) -> Option<BackgroundJobs> {
        self.running.as_ref().map(|running| running.connection.background().clone())
    }

    /// Waits for the next message of the agent, or for a change of its terminals. Can be dropped and
    /// called again without a loss.
    pub(super) async fn hear(&mut self) -> Result<Heard, String> {
        let jobs = self.jobs().filter(|_| !self.terminals.is_empty());
        // Before looking at the jobs, so that no change is missed.
        let change = jobs.as_ref().map(BackgroundJobs::next_change);
        if let Some(jobs) = &jobs {
            for (id, exit) in self.terminals.take_ended(jobs) {
                self.connection()?.reply(&id, Ok(protocol::exited(exit)));
            }
        }
        let connection = self.connection()?;
        let changed = async {
            match change {
                Some(change) => change.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            message = connection.next() => Ok(message?.map_or(Heard::End, Heard::Message)),
            () = changed => Ok(Heard::Jobs),
        }
    }

    /// Accepts a request, which was read or is wrong. Returns its event, if it has one.
    pub(super) fn take_client_request(
        &mut self,
        id: &Value,
        request: Result<(String, ClientRequest), String>,
    ) -> Option<AgentEvent> {
        let request = match request {
            Ok((session, request)) if self.is_own(&session) => request,
            Ok(_) => {
                let why = "this is not a session of this client".to_owned();
                self.refuse(id, INVALID_PARAMS, why);
                return None;
            }
            Err(why) => {
                self.refuse(id, INVALID_PARAMS, why);
                return None;
            }
        };
        let root = self.running.as_ref()?.workspace.root().to_owned();
        match request {
            ClientRequest::Terminal { action, terminal } => {
                self.use_terminal(id, action, &terminal);
                Some(AgentEvent::Terminals)
            }
            _ if self.prompt.is_none() => {
                self.refuse(id, CANCELLED, "no turn is open".to_owned());
                None
            }
            ClientRequest::Create(_) if self.terminals.is_full(self.served.terminals()) => {
                let why = "there are too many terminals (hint: release one first)".to_owned();
                self.refuse(id, INTERNAL_ERROR, why);
                None
            }
            request => match self.served.push(id, request, &root) {
                Ok(()) => Some(AgentEvent::Requested),
                Err(NotServed::Invalid(why)) => {
                    self.refuse(id, INVALID_PARAMS, why);
                    None
                }
                Err(NotServed::Full(why)) => {
                    self.refuse(id, INTERNAL_ERROR, why);
                    None
                }
            },
        }
    }

    /// Replies to a request that an agent has made without an open turn. It may not know yet that
    /// its turn is cancelled.
    pub(super) fn take_outside_turn(&mut self, id: &Value, method: &str, params: &RawValue) {
        if method == method::PERMISSION {
            return self.answer(id, None, None);
        }
        match protocol::client_request(method, params) {
            Some(request) => drop(self.take_client_request(id, request)),
            None => self.refuse_method(id),
        }
    }

    fn use_terminal(&mut self, id: &Value, action: TerminalAction, terminal: &str) {
        let (Some(job), Some(jobs)) = (self.terminals.job(terminal), self.jobs()) else {
            let terminal = &terminal[..terminal.floor_char_boundary(64)];
            self.refuse(id, INVALID_PARAMS, format!("there is no terminal `{terminal}`"));
            return;
        };
        match action {
            TerminalAction::Output => {
                let output = self.terminals.output(job, &jobs);
                self.reply(id, protocol::output(output.text, output.is_cut, output.exit));
            }
            TerminalAction::WaitForExit => {
                // The next read replies.
                if let Some(id) = self.terminals.wait(id.clone(), job) {
                    let why = "too many requests wait for the end of a command".to_owned();
                    self.refuse(&id, INTERNAL_ERROR, why);
                }
            }
            TerminalAction::Kill => {
                jobs.begin_stop(job);
                self.reply(id, protocol::unit());
            }
            TerminalAction::Release => {
                jobs.begin_stop(job);
                self.terminals.release(job);
                self.reply(id, protocol::unit());
            }
        }
    }

    /// Whether the agent runs, and the request with this number has no reply.
    pub(in super::super) fn is_waiting_for(&self, number: u64) -> bool {
        let is_running = |running: &Running| !running.connection.has_ended();
        self.served.open(number).is_some() && self.running.as_ref().is_some_and(is_running)
    }

    /// Replies to the request with this number. Returns `false` if the agent no longer waits for it.
    pub(in super::super) fn finish_request(
        &mut self,
        number: u64,
        result: Result<Done, RpcError>,
    ) -> bool {
        let Some(request) = self.served.take(number) else { return false };
        match result {
            Ok(Done::Text(text)) => self.reply(&request.id, protocol::text(text)),
            Ok(Done::Written) => self.reply(&request.id, protocol::unit()),
            Ok(Done::Terminal(job)) => {
                let terminal = self.terminals.add(job, request.output_limit);
                self.reply(&request.id, protocol::created(terminal));
            }
            Err(error) => self.refuse(&request.id, error.code, error.message),
        }
        true
    }

    /// Refuses all requests that have no reply, except those that wait for the end of a command.
    pub(super) fn refuse_requests(&mut self, why: &str) {
        for id in self.served.take_all() {
            self.refuse(&id, CANCELLED, why.to_owned());
        }
    }

    fn reply(&mut self, id: &Value, result: impl serde::Serialize) {
        if let Ok(connection) = self.connection() {
            connection.reply_if_room(id, result);
        }
    }

    /// Replies to a request with a method that is not served.
    pub(super) fn refuse_method(&mut self, id: &Value) {
        self.refuse(id, METHOD_NOT_FOUND, "this client does not serve it".to_owned());
    }

    pub(super) fn refuse(&mut self, id: &Value, code: i64, message: String) {
        if let Ok(connection) = self.connection() {
            connection.reply(id, Err::<(), _>(RpcError { code, message }));
        }
    }
}
