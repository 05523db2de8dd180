//! The MCP servers that a session has used, and that it no longer has.
//!
//! Servers are in the supplies of a client, and never saved, because their variables can be keys. A
//! saved session gets those of the client that opens it again.

use std::collections::{BTreeSet, HashMap};

use holdpoint_common::{CallId, Fact, McpServers, ToolCall, ToolFact, ToolStatus, TurnFact};

use crate::state::Conversation;

/// The most servers that one notice names.
const MAX_NAMED: usize = 8;

/// A notice about servers whose tools were called in the conversation, and that are not in
/// `servers`; `None` if there are none.
pub(crate) fn notice<'a>(conversation: &'a Conversation, servers: &McpServers) -> Option<String> {
    let mut calls: HashMap<CallId, &str> = HashMap::new();
    let mut gone = BTreeSet::new();
    for event in conversation.events() {
        match event.fact() {
            Some(Fact::Turn(TurnFact::AssistantMessage(message))) => {
                let of_server = |call: &'a ToolCall| Some((call.id, server_of(&call.name)?));
                calls.extend(message.calls.iter().filter_map(of_server));
            }
            // The tool existed: a model can also call one that does not.
            Some(Fact::Tool(ToolFact::Finished(result))) if result.status == ToolStatus::Ok => {
                gone.extend(calls.remove(&result.call));
            }
            _ => {}
        }
    }
    gone.retain(|name| !servers.contains_key(*name));
    let names: Vec<_> = gone.iter().take(MAX_NAMED).map(|name| format!("`{name}`")).collect();
    let more = if gone.len() > MAX_NAMED { " and others" } else { "" };
    (!names.is_empty()).then(|| {
        format!(
            "this session has used MCP servers that it no longer has: {}{more}. Servers of `--mcp` \
             are not saved. Add them with `holdpoint mcp add`, or begin a session with `--mcp`",
            names.join(", ")
        )
    })
}

/// The server in the name by which a model calls a tool of it.
fn server_of(tool: &str) -> Option<&str> {
    tool.strip_prefix("mcp__")?.split_once("__").map(|(server, _)| server)
}
