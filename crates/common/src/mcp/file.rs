//! Files with MCP servers in the format that many programs share.

use std::collections::BTreeMap;

use serde::Deserialize;
use thiserror::Error;

use super::{McpServer, McpServerError, McpServers, check_mcp_servers};

/// The error for a file with MCP servers.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum McpFileError {
    /// The text is not JSON, or not of this format.
    #[error("this is not `{{\"mcpServers\": {{…}}}}`: {0}")]
    Format(#[from] serde_json::Error),
    /// A server can't be used.
    #[error(transparent)]
    Server(#[from] McpServerError),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    mcp_servers: BTreeMap<String, FileServer>,
}

/// A server in a file. Other programs have further keys, which are ignored.
#[derive(Deserialize)]
struct FileServer {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    url: Option<String>,
    #[serde(default)]
    disabled: bool,
}

/// Parses a file such as `.mcp.json`: `{"mcpServers": {NAME: {"command", "args", "env", "cwd"}}}`.
/// The servers run in the sandbox, without the network. One with `"disabled": true` is left out.
///
/// # Errors
/// [`McpFileError`] if the text has another format, or a server can't be used.
pub fn parse_mcp_file(text: &str) -> Result<McpServers, McpFileError> {
    let File { mcp_servers } = serde_json::from_str(text)?;
    let mut servers = McpServers::new();
    for (name, FileServer { command, args, env, cwd, url, disabled }) in mcp_servers {
        if disabled {
            continue;
        }
        let Some(command) = command else {
            let problem = match url {
                Some(_) => "it has a `url`: only servers with a `command` are supported",
                None => "`command` is missing",
            };
            return Err(McpServerError { name, problem: problem.to_owned() }.into());
        };
        servers.insert(name, McpServer { env, cwd, ..McpServer::program(command, args) });
    }
    check_mcp_servers(&servers)?;
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_a_file_of_other_programs_is_read() {
        let servers = parse_mcp_file(
            r#"{"mcpServers": {
                "files": {"type": "stdio", "command": "npx", "args": ["-y", "x"], "disabled": false},
                "db": {"command": "db", "env": {"KEY": "v"}, "cwd": "sub"},
                "old": {"command": "old", "disabled": true}
            }, "other": 1}"#,
        )
        .unwrap();
        assert_eq!(servers["files"], McpServer::program("npx", ["-y", "x"]));
        assert_eq!(servers["db"].env["KEY"], "v");
        assert_eq!(servers["db"].cwd.as_deref(), Some("sub"));
        assert!(servers["db"].sandbox && !servers["db"].network);
        assert!(!servers.contains_key("old"));
    }

    #[test]
    fn m_h2_a_file_that_cannot_be_used_is_refused() {
        for (text, why) in [
            ("{", "mcpServers"),
            ("{}", "missing field `mcpServers`"),
            (r#"{"mcpServers": {"a": {}}}"#, "MCP server `a`: `command` is missing"),
            (r#"{"mcpServers": {"a": {"url": "http://x"}}}"#, "it has a `url`"),
            (r#"{"mcpServers": {"A b": {"command": "x"}}}"#, "MCP server `A b`: the name must"),
        ] {
            let error = parse_mcp_file(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
