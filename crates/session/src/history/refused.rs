//! Omissions from a refused conversation, tried one after the other: the last calls, which become
//! text; the last thoughts; the last results; and then all calls and thoughts. The user's prompts
//! are left out last, and only if none of these helps.

use std::sync::Arc;

use holdpoint_common::{
    AssistantMessage, Block, BlockKind, HeadAndTail, ItemId, Omitted, ToolCall, ToolResult,
};

use crate::model::Message;
use crate::model::inserted::{RESULTS, is_results};

/// The text in place of a result that was refused.
const RESULT_LEFT_OUT: &str =
    "its result is left out: the provider refused the request that contained it";

/// The parts that can be left out of a conversation, the least harmful first.
pub(super) fn omissible(messages: &[Message]) -> Vec<Omitted> {
    let (before, last) = messages.split_at(last_answer(messages));
    let mut omissible = Vec::new();
    for omitted in [Omitted::Calls, Omitted::Thoughts, Omitted::Results] {
        if last.iter().any(|message| has_part(message, omitted)) {
            omissible.push(omitted);
        }
    }
    // Only if this leaves out more than the calls or the thoughts of the last answer alone.
    if before.iter().any(has_call_or_thought)
        || last.iter().any(|message| has_part(message, Omitted::Calls))
            && last.iter().any(|message| has_part(message, Omitted::Thoughts))
    {
        omissible.push(Omitted::History);
    }
    omissible
}

/// The position of the last answer.
fn last_answer(messages: &[Message]) -> usize {
    messages
        .iter()
        .rposition(|message| matches!(message, Message::Assistant(_)))
        .unwrap_or(messages.len())
}

fn has_part(message: &Message, omitted: Omitted) -> bool {
    match (message, omitted) {
        (Message::Assistant(answer), Omitted::Calls) => !answer.calls.is_empty(),
        (Message::Assistant(answer), Omitted::Thoughts) => answer.blocks.iter().any(is_thought),
        (Message::Tool(result), Omitted::Results) => result.result != RESULT_LEFT_OUT,
        _ => false,
    }
}

fn has_call_or_thought(message: &Message) -> bool {
    has_part(message, Omitted::Calls) || has_part(message, Omitted::Thoughts)
}

/// The position of the first message that an omission can change. Results follow their calls.
pub(super) fn first_changed(messages: &[Message], omitted: Omitted) -> usize {
    match omitted {
        Omitted::History => messages.iter().position(has_call_or_thought).unwrap_or(messages.len()),
        Omitted::Calls | Omitted::Thoughts | Omitted::Results => last_answer(messages),
    }
}

/// Leaves a part out of the conversation.
pub(super) fn omit(messages: &mut Vec<Message>, omitted: Omitted) {
    for message in messages.split_off(first_changed(messages, omitted)) {
        match (message, omitted) {
            (Message::Assistant(answer), Omitted::Calls | Omitted::Thoughts | Omitted::History) => {
                let mut answer = Arc::unwrap_or_clone(answer);
                if omitted != Omitted::Calls {
                    answer.blocks.retain(|block| !is_thought(block));
                }
                if omitted != Omitted::Thoughts {
                    answer = with_calls_as_text(answer);
                }
                messages.push(Message::Assistant(answer.into()));
            }
            (Message::Tool(result), Omitted::Calls | Omitted::History) => {
                let text = format!("\n\n{}", result.to_text());
                match messages.last_mut() {
                    Some(Message::User(results)) if is_results(results) => results.push_str(&text),
                    _ => messages.push(Message::User(format!("{RESULTS}{text}"))),
                }
            }
            (Message::Tool(result), Omitted::Results) => {
                let left_out = ToolResult {
                    output: HeadAndTail::default(),
                    result: RESULT_LEFT_OUT.to_owned(),
                    images: vec![],
                    ..Arc::unwrap_or_clone(result)
                };
                messages.push(Message::Tool(left_out.into()));
            }
            (message, _) => messages.push(message),
        }
    }
}

fn with_calls_as_text(answer: AssistantMessage) -> AssistantMessage {
    let AssistantMessage { mut blocks, calls, .. } = answer;
    let line = |call: &ToolCall| format!("\n[I call the tool {}: {}]", call.name, call.input);
    let text: String = calls.iter().map(line).collect();
    if let Some(call) = calls.first() {
        let text = if blocks.is_empty() { text.trim_start() } else { &text };
        blocks.iter_mut().for_each(|block| block.calls_before = 0);
        blocks.push(Block {
            item: ItemId(call.id.0),
            kind: BlockKind::Text,
            text: text.to_owned(),
            signature: None,
            calls_before: 0,
        });
    }
    AssistantMessage { blocks, calls: Vec::new(), ..answer }
}

fn is_thought(block: &Block) -> bool {
    block.kind == BlockKind::Thought
}
