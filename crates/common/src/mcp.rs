//! MCP servers: programs and addresses that provide tools over the Model Context Protocol.

mod address;
mod file;
mod folder;
mod variables;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Component, Path};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use file::{McpFileError, parse_mcp_file};
pub use folder::{FOLDER_MCP_FILE, FolderServers, MAX_FOLDER_MCP_FILE};
pub use variables::{session_mcp_servers, with_mcp_variables};

/// Maximum number of MCP servers of one session.
pub const MAX_MCP_SERVERS: usize = 32;

/// Maximum length of the name of an MCP server in bytes.
pub const MAX_MCP_NAME: usize = 32;

/// Maximum size of the settings of one MCP server in bytes: all texts together.
pub const MAX_MCP_SETTINGS: usize = 64 * 1024;

/// The MCP servers of a session, by name.
pub type McpServers = BTreeMap<String, McpServer>;

/// An MCP server: a program that a session starts and talks to over its standard input and output,
/// or an address that it connects to over HTTP. It has either a `command` or a `url`.
///
/// In the user's configuration and in a file of the client, `${NAME}` in a text is replaced by that
/// variable of the client that opens the session, and `${NAME:-TEXT}` by the text if the variable is
/// missing or empty. A server that an editor or a client of the API names is taken as it is.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct McpServer {
    /// Program of the server: a path, or a name to look up in the `PATH` of the session.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// Arguments of the program. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Variables that are added to the environment of the session's processes, such as the key of
    /// a service. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Working folder of the program: an absolute path, or one below the workspace. A program
    /// outside of the sandbox needs an absolute path, because programs such as `npx` run files of
    /// the folder that they are started in. Default: the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Address of a server that is reached over streamable HTTP, for example
    /// `https://example.com/mcp`. Holdpoint itself connects to it, outside of the sandbox.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers of all requests to `url`, such as `Authorization`. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Id of this program at the authorization server of `url`, for a server that does not register
    /// programs by itself. `holdpoint mcp login` uses it. Variables are replaced as in `url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Secret that belongs to `client_id`, if the authorization server has issued one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// Whether `url` speaks HTTP with SSE, which streamable HTTP replaced in the revision
    /// 2025-03-26. Default: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sse: bool,
    /// Names of the tools that the model gets. Default: all tools of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Seconds that one call may take without progress, from 1 to 600. A call never takes longer
    /// than 10 minutes, not counting the time that it waits for the user. Default: 60.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 600))]
    pub timeout_s: u32,
    /// Seconds that the server may take to start, from 1 to 600. Default: 30.
    #[serde(default = "default_startup")]
    #[schemars(range(min = 1, max = 600))]
    pub startup_s: u32,
    /// Whether the program may use the whole network. Default: `false`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub network: bool,
    /// Domains that the program may reach through a proxy, each `example.com` or, for all names
    /// below it, `*.example.com`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<String>,
    /// Whether the program runs in the sandbox of the session. Outside of it, the program has the
    /// permissions of its user. Default: `true`.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub sandbox: bool,
    /// Why the server can't be used, if the client that opens the session knows a reason: see
    /// [`with_mcp_variables`]. The session reports it, and does not start the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Where the settings are. The client that opens the session sets it.
    #[serde(default, skip_serializing_if = "McpOrigin::is_client")]
    #[schemars(skip)]
    pub origin: McpOrigin,
}

/// Where the settings of an MCP server are, for the command that logs in to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum McpOrigin {
    /// In the user's configuration.
    Configuration,
    /// In the file at this absolute path.
    File(String),
    /// At a client, such as an editor.
    #[default]
    Client,
}

impl McpOrigin {
    fn is_client(&self) -> bool {
        *self == Self::Client
    }

    /// The file, if the settings are in one.
    fn file(&self) -> Option<&String> {
        match self {
            Self::File(path) => Some(path),
            Self::Configuration | Self::Client => None,
        }
    }
}

fn default_timeout() -> u32 {
    60
}

fn default_startup() -> u32 {
    30
}

fn yes() -> bool {
    true
}

impl McpServer {
    /// Creates a server that is a program with these arguments, in the sandbox and without the
    /// network.
    #[must_use]
    pub fn program(
        command: impl Into<String>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        Self {
            command: command.into(),
            args: args.into_iter().map(Into::into).collect(),
            env: BTreeMap::new(),
            cwd: None,
            url: None,
            headers: BTreeMap::new(),
            client_id: None,
            client_secret: None,
            sse: false,
            tools: None,
            timeout_s: default_timeout(),
            startup_s: default_startup(),
            network: false,
            domains: Vec::new(),
            sandbox: true,
            problem: None,
            origin: McpOrigin::Client,
        }
    }

    /// Creates a server that is reached at this address.
    #[must_use]
    pub fn address(url: impl Into<String>) -> Self {
        Self { url: Some(url.into()), ..Self::program("", [""; 0]) }
    }

    fn check(&self) -> Result<(), String> {
        match &self.url {
            Some(url) => {
                self.check_has_no_program()?;
                address::check_url(url)?;
            }
            None if self.command.is_empty() => {
                return Err("`command` or `url` is missing".to_owned());
            }
            None if self.command.trim().is_empty() => {
                return Err("`command` is empty".to_owned());
            }
            None if !self.headers.is_empty() || self.sse => {
                return Err("`headers` and `sse` are for a server with a `url`".to_owned());
            }
            None => {}
        }
        self.check_client()?;
        address::check_headers(&self.headers)?;
        if !self.sandbox && !self.cwd.as_ref().is_some_and(|cwd| Path::new(cwd).is_absolute()) {
            return Err(
                "with `sandbox = false` it needs `cwd`, an absolute path, because programs \
                        such as npx run files of the folder that they are started in"
                    .to_owned(),
            );
        }
        let leaves = |cwd: &&String| {
            let is_parent = |part| matches!(part, Component::ParentDir);
            let path = Path::new(cwd);
            cwd.is_empty() || path.is_relative() && path.components().any(is_parent)
        };
        if let Some(cwd) = self.cwd.as_ref().filter(leaves) {
            return Err(format!(
                "`cwd` is {cwd:?}; it must be below the workspace, or an absolute path"
            ));
        }
        if self.tools.as_ref().is_some_and(|tools| tools.is_empty() || tools.contains(&"".into())) {
            return Err("`tools` must have the names of tools; leave it out for all of them".into());
        }
        for (key, value) in [("timeout_s", self.timeout_s), ("startup_s", self.startup_s)] {
            if !(1..=600).contains(&value) {
                return Err(format!("{key} is {value}; it must be from 1 to 600"));
            }
        }
        let is_variable = |name: &&String| !name.is_empty() && !name.contains(['=', '\0']);
        if let Some(name) = self.env.keys().find(|name| !is_variable(name)) {
            return Err(format!("`{name}` in `env` is not the name of a variable"));
        }
        let tools = self.tools.iter().flatten();
        let texts = self.args.iter().chain(tools).chain(&self.domains).chain(&self.cwd);
        let pairs = self.env.iter().chain(&self.headers).flat_map(|(name, value)| [name, value]);
        let texts = texts.chain(pairs).chain(&self.url).chain([&self.command]);
        let texts = texts.chain(&self.client_id).chain(&self.client_secret);
        let texts = texts.chain(self.origin.file());
        let (bytes, has_zero) = texts.fold((0, false), |(bytes, has_zero), text| {
            (bytes + text.len(), has_zero || text.contains('\0'))
        });
        if has_zero {
            return Err("a text has a zero byte".to_owned());
        }
        if bytes > MAX_MCP_SETTINGS {
            return Err(format!(
                "its settings have {bytes} bytes; the limit is {MAX_MCP_SETTINGS}"
            ));
        }
        Ok(())
    }

    /// Checks the settings for logins.
    fn check_client(&self) -> Result<(), String> {
        match (&self.url, &self.client_id, &self.client_secret) {
            (_, None, None) | (Some(_), Some(_), _) => Ok(()),
            (None, ..) => {
                Err("`client_id` and `client_secret` are for a server with a `url`".to_owned())
            }
            (Some(_), None, Some(_)) => {
                Err("`client_secret` belongs to a `client_id`, which is missing".to_owned())
            }
        }
    }

    /// Checks that settings of a program are not set.
    fn check_has_no_program(&self) -> Result<(), String> {
        let set = [
            ("command", !self.command.is_empty()),
            ("args", !self.args.is_empty()),
            ("env", !self.env.is_empty()),
            ("cwd", self.cwd.is_some()),
            ("network", self.network),
            ("domains", !self.domains.is_empty()),
            ("sandbox", !self.sandbox),
        ];
        match set.iter().find(|(_, is_set)| *is_set) {
            Some((key, _)) => Err(format!("`{key}` is for a program, but the server has a `url`")),
            None => Ok(()),
        }
    }
}

/// Shows only the names of variables and headers, because their values may be secrets. An address
/// may have one, too.
impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("command", &self.command)
            .field("env", &self.env.keys().collect::<Vec<_>>())
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

/// The error for an MCP server that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("MCP server `{name}`: {problem}")]
pub struct McpServerError {
    /// Name of the server.
    pub name: String,
    /// Description of the mistake.
    pub problem: String,
}

/// Checks the names and the settings of servers. A name has `a-z`, `0-9`, `-` and `_`, begins and
/// ends with a letter or a digit, and has no `__`.
///
/// # Errors
/// [`McpServerError`] for the first server that can't be used, or for the first one beyond
/// [`MAX_MCP_SERVERS`].
pub fn check_mcp_servers(servers: &McpServers) -> Result<(), McpServerError> {
    for (index, (name, server)) in servers.iter().enumerate() {
        let error = |problem| McpServerError { name: name.clone(), problem };
        if index >= MAX_MCP_SERVERS {
            return Err(error(format!("there are more than {MAX_MCP_SERVERS} servers")));
        }
        if !is_server_name(name) {
            return Err(error(format!(
                "the name must have at most {MAX_MCP_NAME} of the characters a-z, 0-9, - and _, \
                 begin and end with a letter or a digit, and have no `__`"
            )));
        }
        server.check().map_err(error)?;
    }
    Ok(())
}

fn is_server_name(name: &str) -> bool {
    let is_alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [name.bytes().next(), name.bytes().last()];
    name.len() <= MAX_MCP_NAME
        && name.bytes().all(|byte| is_alphanumeric(byte) || matches!(byte, b'-' | b'_'))
        && ends.iter().all(|byte| byte.is_some_and(is_alphanumeric))
        && !name.contains("__")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, server: McpServer) -> Result<(), String> {
        let servers = McpServers::from([(name.to_owned(), server)]);
        check_mcp_servers(&servers).map_err(|error| error.to_string())
    }

    #[test]
    fn m_h2_names_of_servers_are_plain() {
        let server = || McpServer::program("x", ["y"]);
        for name in ["a", "7", "every-thing", "a_b-c", &"x".repeat(MAX_MCP_NAME)] {
            assert_eq!(check(name, server()), Ok(()), "{name}");
        }
        for name in
            ["", "A", "a__b", "_a", "a-", "a b", "ä", "a.b", "a\n", &"x".repeat(MAX_MCP_NAME + 1)]
        {
            assert!(check(name, server()).unwrap_err().contains("the name must have"), "{name}");
        }
    }

    #[test]
    fn m_h2_settings_of_servers_are_bounded() {
        let server = McpServer::program("x", ["y"]);
        let web = McpServer::address("https://example.com/mcp");
        let long = "x".repeat(70_000);
        let variable = |name: &str| BTreeMap::from([(name.to_owned(), "v".to_owned())]);
        for (wrong, why) in [
            (McpServer { command: " ".into(), ..server.clone() }, "`command` is empty"),
            (McpServer { timeout_s: 0, ..server.clone() }, "timeout_s is 0"),
            (McpServer { sandbox: false, ..server.clone() }, "it needs `cwd`"),
            (
                McpServer { sandbox: false, cwd: Some("sub".into()), ..server.clone() },
                "it needs `cwd`",
            ),
            (
                McpServer { cwd: Some("../..".into()), ..server.clone() },
                "must be below the workspace",
            ),
            (
                McpServer { cwd: Some("a/../../b".into()), ..server.clone() },
                "`cwd` is \"a/../../b\"",
            ),
            (McpServer { cwd: Some("".into()), ..server.clone() }, "or an absolute path"),
            (McpServer { tools: Some(vec![]), ..server.clone() }, "the names of tools"),
            (McpServer { tools: Some(vec!["".into()]), ..server.clone() }, "the names of tools"),
            (McpServer { startup_s: 601, ..server.clone() }, "startup_s is 601"),
            (McpServer { env: variable("A=B"), ..server.clone() }, "not the name of a variable"),
            (McpServer { args: vec!["\0".into()], ..server.clone() }, "a zero byte"),
            (McpServer { args: vec![long.clone()], ..server.clone() }, "the limit is 65536"),
            (McpServer { command: "".into(), ..server.clone() }, "`command` or `url` is missing"),
            (McpServer { headers: variable("A"), ..server.clone() }, "a server with a `url`"),
            (McpServer { sse: true, ..server.clone() }, "a server with a `url`"),
            (McpServer { command: "x".into(), ..web.clone() }, "`command` is for a program"),
            (McpServer { network: true, ..web.clone() }, "`network` is for a program"),
            (McpServer { sandbox: false, ..web.clone() }, "`sandbox` is for a program"),
            (McpServer { headers: variable("Host"), ..web.clone() }, "set by the connection"),
            (
                McpServer { client_id: Some("x".into()), ..server.clone() },
                "are for a server with a `url`",
            ),
            (
                McpServer { client_secret: Some("x".into()), ..web.clone() },
                "belongs to a `client_id`",
            ),
            (McpServer::address("example.com"), "must begin with http://"),
            (McpServer::address(format!("https://x/{long}")), "the limit is 65536"),
        ] {
            assert!(check("a", wrong.clone()).unwrap_err().contains(why), "{why}");
        }
        assert_eq!(check("a", McpServer { headers: variable("Authorization"), ..web }), Ok(()));
        let many = (0..=MAX_MCP_SERVERS).map(|n| (format!("s{n}"), server.clone())).collect();
        assert!(check_mcp_servers(&many).unwrap_err().problem.contains("more than 32"));
    }

    #[test]
    fn m_h2_t_h3_values_of_variables_are_not_printed() {
        let env = BTreeMap::from([("KEY".to_owned(), "sk-secret".to_owned())]);
        let server = McpServer { env, ..McpServer::program("x", ["--token=hidden"]) };
        let printed = format!("{server:?}");
        assert!(printed.contains("KEY"), "{printed}");
        assert!(!printed.contains("secret") && !printed.contains("hidden"), "{printed}");
        let headers = BTreeMap::from([("Authorization".to_owned(), "sk-secret".to_owned())]);
        let server = McpServer { headers, ..McpServer::address("https://x/?key=hidden") };
        let printed = format!("{server:?}");
        assert!(printed.contains("Authorization"), "{printed}");
        assert!(!printed.contains("secret") && !printed.contains("hidden"), "{printed}");
    }
}
