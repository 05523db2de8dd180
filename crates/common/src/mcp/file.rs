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
    /// Only `sse` decides something: other types follow from `command` or `url`.
    #[serde(rename = "type", skip_serializing_if = "is_not_sse")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    args: Vec<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing)]
    pub(super) disabled: bool,
}

/// The types of a server with an address in the files of other programs. All but `sse` are streamable
/// HTTP.
const HTTP: [&str; 4] = ["http", "streamable-http", "streamableHttp", SSE];
const SSE: &str = "sse";

fn is_not_sse(kind: &Option<String>) -> bool {
    kind.as_deref() != Some(SSE)
}

impl FileServer {
    pub(super) fn url(&self) -> Option<&str> {
        self.url.as_deref()
    }

    /// The settings of the server. A program runs in the sandbox, without the network.
    ///
    /// # Errors
    /// The server has neither a program nor an address, or both, or is of an unknown type.
    pub(super) fn settings(self) -> Result<McpServer, String> {
        let Self { kind, command, args, env, cwd, url, headers, .. } = self;
        let server = match (command, url) {
            (Some(command), None) => McpServer { env, cwd, ..McpServer::program(command, args) },
            (None, Some(url)) => {
                let sse = !is_not_sse(&kind);
                McpServer { headers, sse, ..McpServer::address(url) }
            }
            (Some(_), Some(_)) => {
                return Err("it has a `command` and a `url`; only one of them can be used".into());
            }
            (None, None) => return Err("`command` or `url` is missing".to_owned()),
        };
        let wanted = if server.url.is_some() { &HTTP[..] } else { &["stdio"] };
        match kind {
            Some(kind) if !wanted.contains(&kind.as_str()) => Err(format!(
                "its `type` is {kind:?}; a server with {} can have: {}",
                if server.url.is_some() { "a `url`" } else { "a `command`" },
                wanted.join(", ")
            )),
            _ => Ok(server),
        }
    }
}

/// Parses a file such as `.mcp.json`: `{"mcpServers": {NAME: {"command", "args", "env", "cwd"}}}`,
/// or `{NAME: {"url", "headers"}}` for a server over HTTP. Programs run in the sandbox, without the
/// network. A server with `"disabled": true` is left out.
///
/// # Errors
/// [`McpFileError`] if the text has another format, or a server can't be used.
pub fn parse_mcp_file(text: &str) -> Result<McpServers, McpFileError> {
    let File { mcp_servers } = serde_json::from_str(text)?;
    let mut servers = McpServers::new();
    for (name, server) in mcp_servers.into_iter().filter(|(_, server)| !server.disabled) {
        match server.settings() {
            Ok(server) => servers.insert(name, server),
            Err(problem) => return Err(McpServerError { name, problem }.into()),
        };
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
                "web": {"type": "http", "url": "https://example.com/mcp", "headers": {"A": "b"}},
                "sse": {"type": "sse", "url": "https://example.com/sse"},
                "old": {"command": "old", "disabled": true}
            }, "other": 1}"#,
        )
        .unwrap();
        assert_eq!(servers["files"], McpServer::program("npx", ["-y", "x"]));
        assert_eq!(servers["db"].env["KEY"], "v");
        assert_eq!(servers["db"].cwd.as_deref(), Some("sub"));
        assert!(servers["db"].sandbox && !servers["db"].network);
        assert!(!servers.contains_key("old"));
        assert_eq!(servers["web"].url.as_deref(), Some("https://example.com/mcp"));
        assert_eq!(servers["web"].headers["A"], "b");
        assert!(servers["sse"].sse && !servers["web"].sse);
    }

    #[test]
    fn m_h2_a_file_that_cannot_be_used_is_refused() {
        for (text, why) in [
            ("{", "mcpServers"),
            ("{}", "missing field `mcpServers`"),
            (r#"{"mcpServers": {"a": {}}}"#, "MCP server `a`: `command` or `url` is missing"),
            (r#"{"mcpServers": {"a": {"url": "ftp://x"}}}"#, "must begin with http://"),
            (r#"{"mcpServers": {"a": {"url": "http://x", "command": "x"}}}"#, "only one of them"),
            (r#"{"mcpServers": {"a": {"url": "http://x", "type": "ws"}}}"#, "`type` is \"ws\""),
            (r#"{"mcpServers": {"a": {"command": "x", "type": "http"}}}"#, "can have: stdio"),
            (r#"{"mcpServers": {"A b": {"command": "x"}}}"#, "MCP server `A b`: the name must"),
        ] {
            let error = parse_mcp_file(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
