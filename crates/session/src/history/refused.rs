//! What is left out of a conversation that a provider refused, in the order in which it may help: the last calls as such,
//! then thoughts, then the results of calls. The user's words come last, and only where nothing else is left.

use holdpoint_common::{AssistantMessage, Block, BlockKind, ItemId, Kept, Omitted, ToolCall, ToolResult};

use crate::model::Message;

/// What a message begins with that has the results of calls which are sent as text.
pub const RESULTS: &str = "[What the tools that were called above have brought]";

/// In the place of a result that was refused.
const LEFT_OUT: &str = "its result is left out: the provider refused the request with it";

/// What can be left out of these messages, which their provider has never taken.
pub(super) fn omissible(messages: &[Message]) -> Vec<Omitted> {
    let is_there = |omitted: &Omitted| messages.iter().any(|message| has(message, *omitted));
    [Omitted::Calls, Omitted::Thoughts, Omitted::Results].into_iter().filter(is_there).collect()
}

fn has(message: &Message, omitted: Omitted) -> bool {
    match (message, omitted) {
        (Message::Assistant(answer), Omitted::Calls) => !answer.calls.is_empty(),
        (Message::Assistant(answer), Omitted::Thoughts) => answer.blocks.iter().any(is_thought),
        (Message::Tool(result), Omitted::Results) => result.result != LEFT_OUT,
        (Message::User(text), Omitted::Results) => is_results(text) && !text.ends_with(LEFT_OUT),
        _ => false,
    }
}

/// Leaves it out of the messages from `from` on.
pub(super) fn omit(messages: &mut Vec<Message>, from: usize, omitted: Omitted) {
    let refused = messages.split_off(from.min(messages.len()));
    for message in refused {
        match (message, omitted) {
            (Message::Assistant(answer), Omitted::Calls) => messages.push(Message::Assistant(as_text(answer))),
            (Message::Tool(result), Omitted::Calls) => {
                let text = format!("\n\n{}", result.to_text());
                match messages.last_mut() {
                    Some(Message::User(results)) if is_results(results) => results.push_str(&text),
                    _ => messages.push(Message::User(format!("{RESULTS}{text}"))),
                }
            }
            (Message::Assistant(mut answer), Omitted::Thoughts) => {
                answer.blocks.retain(|block| !is_thought(block));
                messages.push(Message::Assistant(answer));
            }
            (Message::Tool(result), Omitted::Results) => {
                let (output, words) = (Kept::default(), LEFT_OUT.to_owned());
                messages.push(Message::Tool(ToolResult { output, result: words, ..result }));
            }
            (Message::User(text), Omitted::Results) if is_results(&text) => {
                messages.push(Message::User(format!("{RESULTS}\n\n{LEFT_OUT}")));
            }
            (message, _) => messages.push(message),
        }
    }
}

/// An answer of which the calls are text.
fn as_text(answer: AssistantMessage) -> AssistantMessage {
    let AssistantMessage { mut blocks, calls, .. } = answer;
    let line = |call: &ToolCall| format!("\n[I call the tool {}: {}]", call.name, call.input);
    let text: String = calls.iter().map(line).collect();
    if let Some(call) = calls.first() {
        let text = if blocks.is_empty() { text.trim_start() } else { &text };
        let (item, kind, calls_before) = (ItemId(call.id.0), BlockKind::Text, 0);
        blocks.iter_mut().for_each(|block| block.calls_before = 0);
        blocks.push(Block { item, kind, text: text.to_owned(), signature: None, calls_before });
    }
    AssistantMessage { blocks, calls: Vec::new(), ..answer }
}

fn is_thought(block: &Block) -> bool {
    block.kind == BlockKind::Thought
}

/// Whether a user's message has results of calls, and not the user's words.
pub(crate) fn is_results(text: &str) -> bool {
    text.starts_with(RESULTS)
}
