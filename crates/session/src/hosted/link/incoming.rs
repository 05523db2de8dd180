//! The messages of the agent in its turn.

use serde_json::Value;

use super::Link;
use super::serving::Heard;
use crate::hosted::connection::{Incoming, RpcError};
use crate::hosted::event::{AgentEvent, Permission};
use crate::hosted::known_calls::Change;
use crate::hosted::protocol::{self, INVALID_PARAMS, PermissionRequest, Update, method};

/// The most permission requests that wait for a reply. With another one, the agent is ended.
const MAX_REQUESTS: usize = 64;

impl Link {
    /// Waits for the next event of the open turn. Can be dropped and called again without a loss.
    ///
    /// # Errors
    /// The reason why the agent has ended. It has no process then.
    pub(in super::super) async fn receive(&mut self) -> Result<AgentEvent, String> {
        loop {
            if self.ending.is_some() {
                let (why, _) = self.ended().await;
                self.death = Some(why.clone());
                return Err(why);
            }
            let event = match self.hear().await {
                Ok(Heard::Message(incoming)) => self.take(incoming),
                Ok(Heard::Jobs) => Ok(Some(AgentEvent::Terminals)),
                Ok(Heard::End) => Err(String::new()),
                Err(why) => Err(why),
            };
            match event {
                Ok(Some(event)) => return Ok(event),
                Ok(None) => {}
                Err(why) => self.begin_end(why),
            }
        }
    }

    /// Takes a message over; `None` if it has no consequence.
    fn take(&mut self, incoming: Incoming) -> Result<Option<AgentEvent>, String> {
        match incoming {
            Incoming::Notification { method, params } if method == method::UPDATE => {
                match protocol::update(&params) {
                    Ok((session, update)) if self.is_own(&session) => self.take_update(update),
                    // An agent can have sessions that are not ours.
                    Ok(_) => Ok(None),
                    Err(why) => {
                        tracing::debug!(why, "an update of an agent");
                        Ok(None)
                    }
                }
            }
            Incoming::Request { id, method, params } if method == method::PERMISSION => {
                let message = match protocol::permission(&params) {
                    // No turn is open that the call could be part of.
                    Ok(request) if self.is_own(&request.session) && self.prompt.is_none() => {
                        self.answer(&id, None, None);
                        return Ok(None);
                    }
                    Ok(request) if self.is_own(&request.session) => {
                        return self.take_permission(id, request).map(Some);
                    }
                    Ok(_) => "this is not a session of this client".to_owned(),
                    Err(message) => message,
                };
                let error = RpcError { code: INVALID_PARAMS, message };
                self.connection()?.reply(&id, Err::<(), _>(error));
                Ok(None)
            }
            Incoming::Request { id, method, params } => {
                match protocol::client_request(&method, &params) {
                    Some(request) => Ok(self.take_client_request(&id, request)),
                    None => {
                        self.refuse_method(&id);
                        Ok(None)
                    }
                }
            }
            Incoming::Reply { id, result } if self.prompt == Some(id) => {
                self.prompt = None;
                let reply = result.map_err(|error| format!("it reported: {}", error.message))?;
                Ok(Some(AgentEvent::Ended(protocol::turn_reply(&reply)?)))
            }
            Incoming::Reply { .. } | Incoming::Notification { .. } => Ok(None),
        }
    }

    pub(super) fn is_own(&self, session: &str) -> bool {
        self.own_session.as_deref() == Some(session)
    }

    fn take_update(&mut self, update: Update) -> Result<Option<AgentEvent>, String> {
        Ok(match update {
            Update::Text(text) => Some(AgentEvent::Text(text)),
            Update::Thought(text) => Some(AgentEvent::Thought(text)),
            Update::Call(call) => {
                let id = call.id.clone();
                match self.calls.update(*call, false)? {
                    Change::Begins => Some(AgentEvent::Begins(id)),
                    Change::News => Some(AgentEvent::News(id)),
                    Change::Nothing => None,
                }
            }
            // Agents repeat their plan.
            Update::Plan(plan) if self.plan == plan => None,
            Update::Plan(plan) => {
                self.plan.clone_from(&plan);
                Some(AgentEvent::Thought(plan))
            }
            Update::Other => None,
        })
    }

    fn take_permission(
        &mut self,
        id: Value,
        request: PermissionRequest,
    ) -> Result<AgentEvent, String> {
        if self.unanswered.len() >= MAX_REQUESTS {
            return Err(format!("it has more than {MAX_REQUESTS} open permission requests"));
        }
        let PermissionRequest { session: _, call, allow, reject } = request;
        let call_id = call.id.clone();
        let change = self.calls.update(call, true)?;
        self.unanswered.push(id.clone());
        let (call, covers) = (call_id.clone(), None);
        self.requests.push_back(Permission { id, call, allow, reject, covers });
        Ok(match change {
            Change::Begins => AgentEvent::Begins(call_id),
            Change::News | Change::Nothing => AgentEvent::News(call_id),
        })
    }
}
