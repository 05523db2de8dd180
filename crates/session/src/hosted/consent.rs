//! The user's approval of the start of an agent that gets more than the sandbox of its session
//! allows, or has none.
//!
//! The approval is asked for with a call of the session's tool, so that it is an ask as any other: the
//! answer of the model is that call in place of the agent's own, and the agent starts before the next
//! step.

use serde_json::Value;

use super::needs::Needs;
use crate::agent_start;
use crate::model::Message;

/// The approval in one session.
#[derive(Debug, Default)]
pub(super) struct Consent {
    /// The id of the needs that the user has approved.
    approved: Option<String>,
    /// The id of the needs without whose approval the agent does not start.
    required: Option<String>,
    /// Whether the user was asked in this turn.
    asked: bool,
}

impl Consent {
    /// Whether the agent may start with these needs. If not, the user is asked.
    pub(super) fn covers(&mut self, needs: &Needs) -> bool {
        let covered = self.approved.as_ref() == Some(&needs.id);
        self.required = (!covered).then(|| needs.id.clone());
        covered
    }

    /// Notes that the agent can start without an approval.
    pub(super) fn not_required(&mut self) {
        self.required = None;
    }

    /// The arguments of the call that asks the user; `None` if no approval is missing.
    ///
    /// # Errors
    /// The reason why the agent does not start: the user was asked in this turn.
    pub(super) fn request(&mut self, agent: &str) -> Result<Option<Value>, String> {
        let Some(id) = &self.required else { return Ok(None) };
        if std::mem::replace(&mut self.asked, true) {
            return Err(format!(
                "its start was not approved (hint: approve it, or allow it with the rule \
                 `agent({agent})`)"
            ));
        }
        Ok(Some(agent_start::request(agent, id)))
    }

    /// Notes that the user has approved the needs with this id.
    pub(super) fn approve(&mut self, id: String) {
        self.approved = Some(id);
    }

    /// Notes that the session's turn has ended.
    pub(super) fn end_turn(&mut self) {
        self.asked = false;
    }
}

/// The messages without the calls that asked for the approval, and without their results.
pub(super) fn without_requests(messages: &[Message]) -> Vec<&Message> {
    let mut requests = Vec::new();
    let mut kept = Vec::new();
    for message in messages {
        match message {
            Message::Assistant(answer) if answer.blocks.is_empty() => match &answer.calls[..] {
                [call] if agent_start::requested(&call.input).is_some() => requests.push(call.id),
                _ => kept.push(message),
            },
            Message::Tool(result) if requests.contains(&result.call) => {}
            _ => kept.push(message),
        }
    }
    kept
}
