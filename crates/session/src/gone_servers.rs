//! The MCP servers that a session has used, and that it no longer has.
//!
//! Servers are in the supplies of a client, and never saved, because their variables can be keys. A
//! saved session gets those of the client that opens it again.

use std::collections::BTreeSet;

use holdpoint_common::McpServers;

/// The most servers that one notice names.
const MAX_NAMED: usize = 8;

/// A notice about those of the used servers that are not in `servers`; `None` if there are none.
pub(crate) fn notice(used: &BTreeSet<String>, servers: &McpServers) -> Option<String> {
    let gone: Vec<_> = used.iter().filter(|name| !servers.contains_key(*name)).collect();
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
pub(crate) fn server_of(tool: &str) -> Option<&str> {
    tool.strip_prefix("mcp__")?.split_once("__").map(|(server, _)| server)
}
