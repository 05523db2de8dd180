//! Files with MCP servers in the format that many programs share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
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
pub(super) struct File {
    pub(super) mcp_servers: BTreeMap<String, FileServer>,
}

/// A server in a file. Other programs have further keys, which are ignored.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct FileServer {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing)]
    pub(super) disabled: bool,
}

impl FileServer {
    /// The program of the server, or the problem if it has none.
    pub(super) fn command(&self) -> Result<&str, String> {
        match (&self.command, &self.url) {
            (Some(command), _) => Ok(command),
            (None, Some(_)) => {
                Err("it has a `url`: only servers with a `command` are supported".to_owned())
            }
            (None, None) => Err("`command` is missing".to_owned()),
        }
    }
}

/// Parses a file such as `.mcp.json`: `{"mcpServers": {NAME: {"command", "args", "env", "cwd"}}}`.
/// The servers run in the sandbox, without the network. One with `"disabled": true` is left out.
///
/// # Errors
/// [`McpFileError`] if the text has another format, or a server can't be used.
pub fn parse_mcp_file(text: &str) -> Result<McpServers, McpFileError> {
    let File { mcp_servers } = serde_json::from_str(text)?;
    let mut servers = McpServers::new();
    for (name, server) in mcp_servers.into_iter().filter(|(_, server)| !server.disabled) {
        let program = match server.command() {
            Ok(command) => McpServer::program(command, &server.args),
            Err(problem) => return Err(McpServerError { name, problem }.into()),
        };
        servers.insert(name, McpServer { env: server.env, cwd: server.cwd, ..program });
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
