//! Refusals of a conversation by its provider, and their consequences.

use holdpoint_common::{Omission, Omitted};

use super::{End, Runner};
use crate::model::{Message, ModelError, ModelRequest};

/// The consequence of a refusal.
pub(super) enum Refusal {
    /// The conversation is sent again without this.
    Omit(Omission),
    /// The turn fails with this error, and the user's words since the last answer are left out of later requests.
    DropWords(String),
    /// The turn fails with this error, and nothing is left out.
    Keep(String),
}

impl Refusal {
    /// How the turn ends; nothing if it goes on.
    pub(super) fn end(self) -> Option<End> {
        match self {
            Self::Omit(_) => None,
            Self::DropWords(error) | Self::Keep(error) => Some(End::failed(error)),
        }
    }
}

impl Runner {
    /// Decides the consequence of a refusal of this request.
    pub(super) fn after_refusal(&mut self, error: &ModelError, request: &ModelRequest) -> Refusal {
        let model = self.outfit.model.name();
        if let Some(what) = self.helps(error) {
            tracing::warn!(%error, "the request was refused, the conversation is sent again {what}");
            self.results_omitted |= what == Omitted::Results;
            return Refusal::Omit(Omission { what, reason: error.to_string() });
        }
        if error.is_overflow() {
            let error = format!("{error} (hint: set `window` under [models.\"{model}\"] in the configuration)");
            return if is_mostly_words(request) { Refusal::DropWords(error) } else { Refusal::Keep(error) };
        }
        Refusal::DropWords(match self.refusals {
            0 => format!("{error} (hint: your words are left out of later requests; put them another way)"),
            refusals => format!(
                "{error}. The provider has refused this conversation {} times, whatever was left out: it can't be sent \
                 to {model} (hint: use another model, /model NAME, or a new session; `holdpoint export` saves this one)",
                refusals + 1
            ),
        })
    }

    /// The omission that may help. If the conversation is too large, that is its last results, and only once in a turn: the
    /// model would call for them again and again.
    fn helps(&self, error: &ModelError) -> Option<Omitted> {
        let may = |omitted: Omitted| self.omissible.contains(&omitted);
        if error.is_too_large() {
            return Some(Omitted::Results).filter(|results| may(*results) && !self.results_omitted);
        }
        if error.blames_thoughts() && may(Omitted::Thoughts) {
            return Some(Omitted::Thoughts);
        }
        self.omissible.first().copied()
    }
}

/// Whether the newest words of the user are more than half of a request.
fn is_mostly_words(request: &ModelRequest) -> bool {
    let words = request.messages.last().filter(|message| message.is_prompt()).map_or(0, Message::bytes);
    2 * words > request.bytes()
}
