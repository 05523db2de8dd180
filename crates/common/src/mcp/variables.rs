//! Variables in the settings of servers: `${NAME}`, and `${NAME:-TEXT}` with a default.

use super::{MAX_MCP_SETTINGS, McpOrigin, McpServer, McpServers};

/// Where a variable is missing.
const UNSET: &str = "in the environment of the client";

/// The servers of a configuration for its sessions: with their variables replaced, and without the
/// settings that only a login uses. Servers that are not from a file have the configuration as their
/// [origin](McpServer::origin).
pub fn session_mcp_servers(
    mut servers: McpServers,
    variable: impl Fn(&str) -> Option<String>,
) -> McpServers {
    for server in servers.values_mut() {
        (server.client_id, server.client_secret) = (None, None);
        if server.origin == McpOrigin::Client {
            server.origin = McpOrigin::Configuration;
        }
    }
    with_mcp_variables(servers, variable)
}

/// Replaces the variables in the texts of servers. A server with a variable that is not set stays as
/// it is, with that as its [problem](McpServer::problem).
pub fn with_mcp_variables(
    servers: McpServers,
    variable: impl Fn(&str) -> Option<String>,
) -> McpServers {
    let expand = |(name, server): (String, McpServer)| match server.clone().expand(&variable, UNSET)
    {
        Ok(expanded) => (name, expanded),
        Err(problem) => (name, McpServer { problem: Some(problem), ..server }),
    };
    servers.into_iter().map(expand).collect()
}

impl McpServer {
    /// Replaces the variables in all texts.
    ///
    /// # Errors
    /// A variable is not set, which is described by `unset`, or the server can't be used with its
    /// value.
    pub(super) fn expand(
        self,
        variable: &impl Fn(&str) -> Option<String>,
        unset: &str,
    ) -> Result<Self, String> {
        let mut room = MAX_MCP_SETTINGS;
        let mut expanded = |text: &str| expand(text, variable, unset, &mut room);
        let command = expanded(&self.command)?;
        let args = self.args.iter().map(|arg| expanded(arg)).collect::<Result<_, _>>()?;
        let cwd = self.cwd.as_deref().map(&mut expanded).transpose()?;
        let url = self.url.as_deref().map(&mut expanded).transpose()?;
        let client_id = self.client_id.as_deref().map(&mut expanded).transpose()?;
        let client_secret = self.client_secret.as_deref().map(&mut expanded).transpose()?;
        let mut values = |(name, value): (&String, &String)| Ok((name.clone(), expanded(value)?));
        let env = self.env.iter().map(&mut values).collect::<Result<_, String>>()?;
        let headers = self.headers.iter().map(&mut values).collect::<Result<_, String>>()?;
        let expanded =
            Self { command, args, cwd, url, client_id, client_secret, env, headers, ..self };
        expanded.check()?;
        Ok(expanded)
    }
}

/// Replaces the variables in a text. `room` is the number of bytes that the texts of the server may
/// still have.
fn expand(
    text: &str,
    variable: &impl Fn(&str) -> Option<String>,
    unset: &str,
    room: &mut usize,
) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("${") {
        let Some(end) = rest[begin..].find('}').map(|end| begin + end) else { break };
        expanded.push_str(&rest[..begin]);
        let (name, default) = match rest[begin + 2..end].split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (&rest[begin + 2..end], None),
        };
        if !is_variable(name) {
            return Err(format!("`{}` names no variable", &rest[begin..=end]));
        }
        if default.is_some_and(|default| default.contains("${")) {
            return Err(format!("the default of the variable {name} has a variable itself"));
        }
        let value = match (variable(name), default) {
            (Some(value), default) if !value.is_empty() || default.is_none() => value,
            (_, Some(default)) => default.to_owned(),
            _ => return Err(format!("the variable {name} is not set {unset}")),
        };
        expanded.push_str(&value);
        if expanded.len() > *room {
            break;
        }
        rest = &rest[end + 1..];
    }
    expanded.push_str(rest);
    *room = room.checked_sub(expanded.len()).ok_or_else(|| {
        format!("its settings have more than {MAX_MCP_SETTINGS} bytes, which is the limit")
    })?;
    Ok(expanded)
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn m_h2_variables_of_the_client_are_put_into_all_texts() {
        let pair = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let address = |url: &str| McpServer::address(url);
        let servers = [
            ("url", address("https://example.com/${KEY}")),
            ("headers", McpServer { headers: pair("A", "Bearer ${KEY}"), ..address("https://x/") }),
            (
                "program",
                McpServer {
                    env: pair("KEY", "${KEY}"),
                    ..McpServer::program("${NO:-x}", ["a=${KEY}", "$KEY"])
                },
            ),
            ("unset", McpServer::program("x", ["${NO} ${KEY}"])),
            ("default", McpServer::program("x", ["${NO:-${KEY}}"])),
            ("unusable", McpServer::address("${KEY}")),
        ];
        let given = McpServers::from(servers.map(|(name, server)| (name.to_owned(), server)));
        let variable = |name: &str| (name == "KEY").then(|| "sk".to_owned());
        let servers = with_mcp_variables(given.clone(), variable);
        assert_eq!(servers["url"].url.as_deref(), Some("https://example.com/sk"));
        assert_eq!(servers["headers"].headers["A"], "Bearer sk");
        let program =
            McpServer { env: pair("KEY", "sk"), ..McpServer::program("x", ["a=sk", "$KEY"]) };
        assert_eq!(servers["program"], program);
        for (name, why) in [
            ("unset", "the variable NO is not set in the environment of the client"),
            ("default", "the default of the variable NO has a variable itself"),
            ("unusable", "must begin with http://"),
        ] {
            let problem = servers[name].problem.clone().unwrap();
            assert!(problem.contains(why), "{problem}");
            assert_eq!(McpServer { problem: None, ..servers[name].clone() }, given[name]);
        }
    }
}
