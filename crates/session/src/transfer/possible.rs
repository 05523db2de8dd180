//! What can't have happened: facts that no session ever had where a text has them.

use holdpoint_common::{Fact, ToolCall, limits};

use crate::state::State;

/// How much of a kind a session can have open at once: as many prompts as it can have, and far more than it has of calls,
/// asks and jobs.
const MOST_OPEN: u64 = limits::MOST_QUEUED_PROMPTS;

/// Why a fact can't come in this state, if it can't: of two facts with one name, nothing that follows could say which is
/// meant, and no provider takes a conversation with two such calls.
pub(super) fn impossible(state: &State, fact: &Fact) -> Option<String> {
    let (open, what) = match fact {
        Fact::PromptAccepted { .. } => (state.waiting() + 1, "prompts wait"),
        Fact::AskRaised { .. } => (state.asks().len() + 1, "asks are open"),
        Fact::JobStarted { .. } => (state.jobs().len() + 1, "background jobs run"),
        Fact::AssistantMessage(message) => (message.calls.len(), "calls are open"),
        _ => (0, ""),
    };
    if open as u64 > MOST_OPEN {
        return Some(format!("{open} {what} at once; a session has {MOST_OPEN} at most"));
    }
    match fact {
        Fact::AssistantMessage(message) => {
            let blocks = message.blocks.iter().map(|block| block.item);
            let items = blocks.chain(message.calls.iter().map(|call| call.id.item()));
            let mut items: Vec<_> = items.collect();
            items.sort_unstable();
            let old = items.first().filter(|item| **item < state.after_known_items());
            let twice = items.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| &pair[0]);
            if let Some(item) = old.or(twice) {
                return Some(format!("item {item} comes twice"));
            }
            let bad = |call: &&ToolCall| !call.input.is_object();
            message.calls.iter().find(bad).map(|call| format!("the input of call {} is no object", call.id))
        }
        _ => None,
    }
}
