//! Checks an imported text for facts that are impossible in the session's state at that point.

use holdpoint_common::{
    AskFact, Fact, JobFact, MAX_TASKS, PromptFact, TaskFact, TaskId, ToolCall, TurnFact, limits,
};

use crate::state::State;

/// How many prompts, asks, jobs or calls can be open at once. A session can have that many prompts,
/// and has far fewer of the others.
const MAX_OPEN: u64 = limits::MAX_QUEUED_PROMPTS;

/// The maximum number of a fact, and the maximum id. It is far above those of any session, and
/// leaves room to continue counting.
pub(super) const MAX_NUMBER: u64 = 1 << 48;

/// Why a fact is impossible in this state, if it is. If two facts had the same id, later facts
/// would be ambiguous, and no provider accepts a conversation with two such calls.
pub(super) fn impossible_reason(state: &State, fact: &Fact) -> Option<String> {
    let (open, activity) = match fact {
        Fact::Prompt(PromptFact::Accepted { .. }) => (state.waiting() + 1, "prompts wait"),
        Fact::Ask(AskFact::Raised { .. }) => (state.asks().len() + 1, "asks are open"),
        Fact::Job(JobFact::Started { .. }) => (state.jobs().len() + 1, "background jobs run"),
        Fact::Turn(TurnFact::AssistantMessage(message)) => {
            let open = state.turn().map_or(0, |turn| turn.calls.len());
            (open + message.calls.len(), "calls are open")
        }
        _ => (0, ""),
    };
    if open as u64 > MAX_OPEN {
        return Some(format!(
            "{open} {activity} at once, but a session can have at most {MAX_OPEN}"
        ));
    }
    if matches!(fact, Fact::Task(TaskFact::Added { .. })) && state.tasks().tasks.len() >= MAX_TASKS
    {
        return Some(format!("a session can have at most {MAX_TASKS} tasks"));
    }
    let (next_prompt, next_turn, next_item) = state.next_known_ids();
    let next_task = state.tasks().tasks.last().map_or(TaskId(0), |task| task.id.next());
    if let Some(turn) = fact.started_turn() {
        return id_error("turn", turn.0, next_turn.0);
    }
    match fact {
        Fact::Prompt(PromptFact::Accepted { prompt, .. }) => {
            id_error("prompt", prompt.0, next_prompt.0)
        }
        Fact::Task(TaskFact::Added { task, .. }) => id_error("task", task.0, next_task.0),
        Fact::Turn(TurnFact::AssistantMessage(message)) => {
            let blocks = message.blocks.iter().map(|block| block.item);
            let mut items: Vec<_> =
                blocks.chain(message.calls.iter().map(|call| call.id.item())).collect();
            items.sort_unstable();
            let duplicate = items
                .windows(2)
                .find(|pair| pair[0] == pair[1])
                .and_then(|pair| id_error("item", pair[0].0, u64::MAX));
            let mut extremes = items.first().into_iter().chain(items.last());
            let why = duplicate
                .or_else(|| extremes.find_map(|item| id_error("item", item.0, next_item.0)));
            if why.is_some() {
                return why;
            }
            let is_invalid = |call: &&ToolCall| !call.input.is_object();
            message
                .calls
                .iter()
                .find(is_invalid)
                .map(|call| format!("the input of call {} is not an object", call.id))
        }
        _ => None,
    }
}

/// Why an id is impossible, if it is. Ids are given once, each above the one before.
fn id_error(kind: &str, id: u64, next_known: u64) -> Option<String> {
    if id > MAX_NUMBER {
        return Some(format!("{kind} id {id} is above {MAX_NUMBER}"));
    }
    (id < next_known).then(|| format!("duplicate {kind} id {id}"))
}
