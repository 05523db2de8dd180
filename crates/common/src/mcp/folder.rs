//! The MCP servers that a folder names in its file `.mcp.json`. They do nothing until the user
//! trusts them.

use std::collections::BTreeMap;

use super::file::{File, FileServer};
use super::{McpFileError, McpServerError, McpServers, check_mcp_servers};

/// Name of the file with the MCP servers of a folder.
pub const FOLDER_MCP_FILE: &str = ".mcp.json";

/// Maximum size of the file with the MCP servers of a folder in bytes.
pub const MAX_FOLDER_MCP_FILE: u64 = 256 * 1024;

/// The MCP servers of a folder, as they are written in its file. Servers with `"disabled": true`
/// are left out.
#[derive(Debug)]
pub struct FolderServers(BTreeMap<String, FileServer>);

impl FolderServers {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// [`McpFileError::Format`] if the text has another format.
    pub fn parse(text: &str) -> Result<Self, McpFileError> {
        let File { mut mcp_servers } = serde_json::from_str(text)?;
        mcp_servers.retain(|_, server| !server.disabled);
        Ok(Self(mcp_servers))
    }

    /// Whether the folder names no server.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names of the servers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The addresses of the servers that are reached over HTTP, as written.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.0.values().filter_map(FileServer::url)
    }

    /// All settings that decide which programs run and how, and which addresses are connected to,
    /// as JSON on several lines. This is the content that the user trusts: two files with the same
    /// content do the same.
    #[must_use]
    pub fn content(&self) -> String {
        // These values can always be written.
        serde_json::to_string_pretty(&self.0).unwrap_or_default()
    }

    /// The settings of the servers. Programs run in the sandbox, without the network. `${NAME}` becomes
    /// the value of the variable, and `${NAME:-TEXT}` the text if the variable is missing or empty.
    /// A server that can't be used is in the second list instead, with the reason.
    pub fn expand(
        self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> (McpServers, Vec<McpServerError>) {
        let (mut usable, mut unusable) = (McpServers::new(), Vec::new());
        for (name, server) in self.0 {
            let expanded =
                server.settings().and_then(|server| server.expand(&variable, "for tool processes"));
            let checked = expanded.and_then(|server| {
                let alone = McpServers::from([(name.clone(), server)]);
                check_mcp_servers(&alone).map_err(|error| error.problem)?;
                Ok(alone)
            });
            match checked {
                Ok(mut alone) => usable.append(&mut alone),
                Err(problem) => unusable.push(McpServerError { name, problem }),
            }
        }
        (usable, unusable)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::McpServer;
    use super::*;

    fn expanded(server: Value) -> Result<McpServer, String> {
        let file = json!({ "mcpServers": { "a": server } }).to_string();
        let (mut usable, unusable) =
            FolderServers::parse(&file).unwrap().expand(|name| match name {
                "HOME" => Some("/home/ann".to_owned()),
                "EMPTY" => Some(String::new()),
                "LONG" => Some("x".repeat(10_000)),
                _ => None,
            });
        match unusable.into_iter().next() {
            Some(error) => Err(error.problem),
            None => Ok(usable.remove("a").unwrap()),
        }
    }

    #[test]
    fn m_g5_variables_of_a_folders_servers_are_replaced() {
        let server = expanded(json!({
            "command": "${HOME}/bin/x",
            "args": ["${NO:-d}", "${EMPTY:-e}", "a${EMPTY}b", "$HOME", "${"],
            "env": { "${HOME}": "${HOME:-x}:${HOME}" }, "cwd": "${NO:-sub}",
        }))
        .unwrap();
        assert_eq!(server.command, "/home/ann/bin/x");
        assert_eq!(server.args, ["d", "e", "ab", "$HOME", "${"]);
        assert_eq!(server.env["${HOME}"], "/home/ann:/home/ann");
        assert_eq!(server.cwd.as_deref(), Some("sub"));
        assert!(server.sandbox && !server.network && server.domains.is_empty());
    }

    #[test]
    fn m_h2_variables_in_the_address_and_headers_of_a_folders_server_are_replaced() {
        let server = expanded(json!({
            "url": "https://example.com${HOME}", "headers": { "X-Home": "at ${HOME}" },
        }))
        .unwrap();
        assert_eq!(server.url.as_deref(), Some("https://example.com/home/ann"));
        assert_eq!(server.headers["X-Home"], "at /home/ann");
    }

    #[test]
    fn m_g5_a_server_that_cannot_be_used_leaves_the_others() {
        for (server, why) in [
            (json!({ "command": "${KEY}" }), "the variable KEY is not set"),
            (json!({ "command": "${A B}" }), "`${A B}` names no variable"),
            (json!({ "command": "x", "args": vec!["${LONG}"; 10] }), "65536 bytes"),
            (json!({ "command": "x", "args": ["${LONG}".repeat(20_000)] }), "65536 bytes"),
            (json!({ "url": "https://${KEY}/" }), "the variable KEY is not set"),
            (
                json!({ "url": "https://x", "headers": { "A": "${KEY}" } }),
                "the variable KEY is not set",
            ),
            (json!({ "url": "https://me:pw@x/" }), "a user or password"),
            (json!({ "args": [] }), "`command` or `url` is missing"),
        ] {
            let error = expanded(server).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
        let file = r#"{"mcpServers": {"b": {"command": "b"}, "C": {"command": "c"}}}"#;
        let (usable, unusable) = FolderServers::parse(file).unwrap().expand(|_| None);
        assert_eq!(usable.into_keys().collect::<Vec<_>>(), ["b"]);
        assert_eq!(unusable[0].name, "C");
    }

    /// No setting of the sandbox or the network can come from a folder.
    #[test]
    fn m_g5_a_folder_can_not_widen_the_settings_of_its_servers() {
        let server = expanded(json!({
            "command": "x", "sandbox": false, "network": true, "domains": ["example.com"],
            "timeout_s": 600, "policy": "all",
        }))
        .unwrap();
        assert_eq!(server, McpServer::program("x", [""; 0]));
    }

    #[test]
    fn m_g5_the_content_has_everything_that_runs() {
        let file = r#"{"x": 1, "mcpServers": {
            "b": {"command": "b", "args": ["1"], "env": {"K": "v"}, "cwd": "c", "disabled": false},
            "s": {"type": "sse", "url": "https://example.com/s"},
            "u": {"type": "http", "url": "https://example.com", "headers": {"A": "b"}}, "off": {"command": "never", "disabled": true}}}"#;
        let servers = FolderServers::parse(file).unwrap();
        let content: Value = serde_json::from_str(&servers.content()).unwrap();
        assert_eq!(
            content,
            json!({
                "b": { "command": "b", "args": ["1"], "env": { "K": "v" }, "cwd": "c" },
                "s": { "type": "sse", "url": "https://example.com/s" },
                "u": { "url": "https://example.com", "headers": { "A": "b" } },
            })
        );
        assert_eq!(
            servers.addresses().collect::<Vec<_>>(),
            ["https://example.com/s", "https://example.com"]
        );
        assert_eq!(servers.names().collect::<Vec<_>>(), ["b", "s", "u"]);
    }
}
