//! Refusals of a conversation by its provider, and their consequences.

use holdpoint_common::{Omission, Omitted};

use super::{End, Runner};
use crate::model::{Message, ModelError, ModelRequest};

/// The consequence of a refusal.
pub(super) enum Refusal {
    /// The conversation is sent again without this part.
    Omit(Omission),
    /// The turn fails with this error, and the user's words since the last answer are left out of
    /// later requests.
    DropPrompts(String),
    /// The turn fails with this error, and no further part is left out of later requests.
    KeepPrompts(String),
}

impl Refusal {
    /// The end of the turn; `None` if it continues.
    pub(super) fn end(self) -> Option<End> {
        match self {
            Self::Omit(_) => None,
            Self::DropPrompts(error) | Self::KeepPrompts(error) => Some(End::failed(error)),
        }
    }
}

impl Runner {
    /// Decides the consequence of a refusal of this request.
    pub(super) fn after_refusal(&mut self, error: &ModelError, request: &ModelRequest) -> Refusal {
        let model = self.env.model.name();
        if let Some(what) = self.omission_for(error) {
            tracing::warn!(%error, "request refused; resending the conversation {what}");
            self.results_omitted |= what == Omitted::Results;
            return Refusal::Omit(Omission { what, reason: error.to_string() });
        }
        if error.is_overflow() {
            let error = format!(
                "{error} (hint: set `window` under [models.\"{model}\"] in the configuration)"
            );
            return if is_mostly_prompt(request) {
                Refusal::DropPrompts(error)
            } else {
                Refusal::KeepPrompts(error)
            };
        }
        Refusal::DropPrompts(match self.refusals {
            0 => format!("{error} (hint: your prompt is left out of later requests; rephrase it)"),
            refusals => format!(
                "{error}; the provider has refused this conversation {} times, even with parts left out, so it \
                 can't be sent to {model} (hint: switch to another model with /model NAME, or open a new session; \
                 `holdpoint export` saves this one)",
                refusals + 1
            ),
        })
    }

    /// The omission that may help. If the conversation is too large, its last results are left out,
    /// but only once in a turn, because the model would request them again and again.
    fn omission_for(&self, error: &ModelError) -> Option<Omitted> {
        let can_omit = |omitted: Omitted| self.omissible.contains(&omitted);
        if error.is_too_large() {
            return Some(Omitted::Results)
                .filter(|results| can_omit(*results) && !self.results_omitted);
        }
        if error.blames_thoughts() && can_omit(Omitted::Thoughts) {
            return Some(Omitted::Thoughts);
        }
        self.omissible.first().copied()
    }
}

/// Whether the newest words of the user are more than half of a request.
fn is_mostly_prompt(request: &ModelRequest) -> bool {
    let prompt_bytes =
        request.messages.last().filter(|message| message.is_prompt()).map_or(0, Message::bytes);
    2 * prompt_bytes > request.bytes()
}
