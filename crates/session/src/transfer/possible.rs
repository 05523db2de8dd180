//! What can't have happened: facts that no session ever had where a text has them.

use holdpoint_common::{Fact, TaskId, ToolCall, limits};

use super::import::MAX_NUMBER;
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
    let (prompts, turns, items) = state.after_known();
    let after_tasks = state.tasks().tasks.last().map_or(TaskId(0), |task| task.id.next());
    match fact {
        Fact::PromptAccepted { prompt, .. } => taken("prompt", prompt.0, prompts.0),
        Fact::TurnStarted { turn, .. } | Fact::IterationStarted { turn, .. } => taken("turn", turn.0, turns.0),
        Fact::TaskAdded { task, .. } => taken("task", task.0, after_tasks.0),
        Fact::AssistantMessage(message) => {
            let blocks = message.blocks.iter().map(|block| block.item);
            let mut named: Vec<_> = blocks.chain(message.calls.iter().map(|call| call.id.item())).collect();
            named.sort_unstable();
            let twice = named.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| taken("item", pair[0].0, u64::MAX));
            let ends = named.first().into_iter().chain(named.last());
            if let Some(why) = twice.or_else(|| ends.map(|item| taken("item", item.0, items.0)).find(Option::is_some)) {
                return why;
            }
            let bad = |call: &&ToolCall| !call.input.is_object();
            message.calls.iter().find(bad).map(|call| format!("the input of call {} is no object", call.id))
        }
        _ => None,
    }
}

/// Why something can't be called so, if it can't: names are given once, each above the one before.
fn taken(what: &str, name: u64, after_known: u64) -> Option<String> {
    if name > MAX_NUMBER {
        return Some(format!("{what} {name} is above {MAX_NUMBER}"));
    }
    (name < after_known).then(|| format!("{what} {name} comes twice"))
}
