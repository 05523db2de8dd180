//! Variables in the settings of servers: `${NAME}`, and `${NAME:-TEXT}` with a default.

use super::{MAX_MCP_SETTINGS, McpServer, McpServers};

/// Replaces variables in the addresses and headers of servers. A text with a variable that is not
/// set stays as it is, so that its server reports it: see [`missing_mcp_variable`].
pub fn with_mcp_variables(
    servers: McpServers,
    variable: impl Fn(&str) -> Option<String>,
) -> McpServers {
    let replaced = |text: String| {
        let mut room = MAX_MCP_SETTINGS;
        expand(&text, &variable, &mut room).unwrap_or(text)
    };
    let replace = |(name, server): (String, McpServer)| {
        let headers = server.headers.into_iter().map(|(name, value)| (name, replaced(value)));
        let (headers, url) = (headers.collect(), server.url.map(replaced));
        (name, McpServer { headers, url, ..server })
    };
    servers.into_iter().map(replace).collect()
}

/// The first variable in a text, if it has one.
#[must_use]
pub fn missing_mcp_variable(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("${")?;
    let (inside, _) = rest.split_once('}')?;
    Some(inside.split_once(":-").map_or(inside, |(name, _)| name))
}

impl McpServer {
    /// Replaces the variables in all texts.
    ///
    /// # Errors
    /// A variable is not set, or the texts become too large.
    pub(super) fn expand(self, variable: &impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let mut room = MAX_MCP_SETTINGS;
        let mut expanded = |text: &str| expand(text, variable, &mut room);
        let command = expanded(&self.command)?;
        let args = self.args.iter().map(|arg| expanded(arg)).collect::<Result<_, _>>()?;
        let cwd = self.cwd.as_deref().map(&mut expanded).transpose()?;
        let url = self.url.as_deref().map(&mut expanded).transpose()?;
        let mut values = |(name, value): (&String, &String)| Ok((name.clone(), expanded(value)?));
        let env = self.env.iter().map(&mut values).collect::<Result<_, String>>()?;
        let headers = self.headers.iter().map(&mut values).collect::<Result<_, String>>()?;
        Ok(Self { command, args, cwd, url, env, headers, ..self })
    }
}

/// Replaces the variables in a text. `room` is the number of bytes that the texts of the server may
/// still have.
fn expand(
    text: &str,
    variable: &impl Fn(&str) -> Option<String>,
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
        let value = match (variable(name), default) {
            (Some(value), default) if !value.is_empty() || default.is_none() => value,
            (_, Some(default)) => default.to_owned(),
            _ => return Err(format!("the variable {name} is not set for tool processes")),
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
    fn m_h2_variables_of_the_client_are_put_into_addresses_and_headers() {
        let headers = [("A", "Bearer ${KEY}"), ("B", "${NO:-d}"), ("C", "${NO} ${KEY}")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let server = McpServer {
            headers: BTreeMap::from(headers),
            ..McpServer::address("https://example.com/${KEY}")
        };
        let program = McpServer::program("${KEY}", ["${KEY}"]);
        let servers = [("s".to_owned(), server), ("p".to_owned(), program.clone())];
        let variable = |name: &str| (name == "KEY").then(|| "sk".to_owned());
        let servers = with_mcp_variables(servers.into(), variable);
        assert_eq!(servers["p"], program, "texts of a program are passed as they are");
        let server = &servers["s"];
        assert_eq!(server.url.as_deref(), Some("https://example.com/sk"));
        assert_eq!(server.headers["A"], "Bearer sk");
        assert_eq!(server.headers["B"], "d");
        assert_eq!(server.headers["C"], "${NO} ${KEY}");
        assert_eq!(missing_mcp_variable(&server.headers["C"]), Some("NO"));
        assert_eq!(missing_mcp_variable("${NO:-x}"), Some("NO"));
        for text in ["", "$NO", "${NO", "a}"] {
            assert_eq!(missing_mcp_variable(text), None, "{text}");
        }
    }
}
