//! What a model is sent: derived from the facts by one pure function.

use std::sync::Arc;

use holdpoint_common::{Event, Fact};

use crate::model::Message;

/// The conversation that these facts make. Every call in it has its result, in the order of the calls.
#[must_use]
pub fn messages(facts: &[Arc<Event>]) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::with_capacity(facts.len());
    // Results come in the order the tools ended; they are sent in the order of the calls.
    let mut pending = Vec::new();
    let mut results = Vec::new();
    for fact in facts.iter().filter_map(|event| event.fact()) {
        match fact {
            Fact::PromptAccepted { text, .. } => match messages.last_mut() {
                // A turn that was cut before its answer leaves two prompts in a row: strict providers want one.
                Some(Message::User(before)) => {
                    before.push_str("\n\n");
                    before.push_str(text);
                }
                _ => messages.push(Message::User(text.clone())),
            },
            // Thoughts alone are no answer (a turn cut while it thought): no provider takes them, and left out only
            // later they would leave two prompts in a row.
            Fact::AssistantMessage(message) if message.calls.is_empty() && message.text().trim().is_empty() => {}
            Fact::AssistantMessage(message) => {
                pending.extend(message.calls.iter().map(|call| call.id));
                messages.push(Message::Assistant(message.clone()));
            }
            Fact::ToolFinished(result) => {
                results.push(result.clone());
                if results.len() == pending.len() {
                    results.sort_by_key(|result| pending.iter().position(|call| *call == result.call));
                    messages.extend(results.drain(..).map(Message::Tool));
                    pending.clear();
                }
            }
            _ => {}
        }
    }
    messages
}
