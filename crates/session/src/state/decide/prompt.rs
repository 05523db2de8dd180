//! The decisions for a prompt and for its removal from the queue, and the starts of turns.

use std::sync::Arc;

use holdpoint_common::api::{PromptRequest, Prompted, UnqueueRequest, Unqueued};
use holdpoint_common::{Hold, PromptFact, PromptId, Refused, TurnFact, Who};

use super::DecisionBuilder;
use crate::state::decision::Effect;
use crate::state::input::Decide;
use crate::state::{Cut, Phase, queued};

impl Decide for PromptRequest {
    fn decide(&self, by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Prompted, Refused> {
        if let Some(known) = builder.known_prompt(self) {
            return Ok(known);
        }
        let limits = builder.moment.limits;
        if self.text.trim().is_empty() {
            return Err(Refused::EmptyPrompt);
        }
        if self.text.len() > limits.max_prompt_bytes {
            return Err(Refused::PromptTooLong {
                bytes: self.text.len(),
                limit: limits.max_prompt_bytes,
            });
        }
        let prompt = builder.state.next_prompt();
        let waiting = builder.state.queue.len();
        let starts = match &builder.state.phase {
            Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => {
                return Err(Refused::Closed);
            }
            // The next iteration of a run delivers the prompt.
            Phase::Idle => {
                !matches!(builder.state.hold, Hold::Standing { .. }) && builder.state.run.is_none()
            }
            Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => false,
        };
        if !starts && waiting >= limits.max_queued_prompts {
            return Err(Refused::QueueFull { waiting });
        }
        builder.record(PromptFact::Accepted {
            prompt,
            text: self.text.as_str().into(),
            by: by.clone(),
            typed_bytes: self.typed_bytes,
            idempotency_key: self.idempotency_key.clone(),
        });
        if starts {
            builder.start(prompt);
        }
        let position = if starts { 0 } else { waiting + 1 };
        Ok(Prompted { prompt, position, saved: false })
    }
}

impl Decide for UnqueueRequest {
    fn decide(&self, _by: &Who, builder: &mut DecisionBuilder<'_>) -> Result<Unqueued, Refused> {
        let prompt = self.prompt;
        builder.check_open()?;
        let mut waiting = builder.state.queue.iter().filter_map(|event| queued(event));
        let found = waiting.find(|(waiting, _)| *waiting == prompt);
        let (_, text) = found.ok_or(Refused::NotQueued { prompt })?;
        builder.record(PromptFact::Returned { prompt, text: Arc::clone(text) });
        Ok(Unqueued { prompt, text: text.to_string(), saved: false })
    }
}

impl DecisionBuilder<'_> {
    /// The prompt that an earlier request with the same key has added.
    fn known_prompt(&self, request: &PromptRequest) -> Option<Prompted> {
        let key = request.idempotency_key.as_ref()?;
        let (_, prompt) = self.state.keyed_prompts.iter().rev().find(|(known, _)| known == key)?;
        let mut queue = self.state.queue.iter().filter_map(|event| queued(event));
        let position = queue.position(|(queued, _)| queued == *prompt).map_or(0, |at| at + 1);
        Some(Prompted { prompt: *prompt, position, saved: false })
    }

    fn start(&mut self, prompt: PromptId) {
        let turn = self.state.next_turn();
        self.record(TurnFact::Started { turn, prompt });
        self.effects.push(Effect::Start { turn });
    }

    /// Starts the first queued prompt, if any.
    pub(super) fn start_next(&mut self) {
        if let Some((first, _)) = self.state.queue.front().and_then(|event| queued(event)) {
            self.start(first);
        }
    }
}
