//! Rules for tools of MCP servers: `mcp(SERVER TOOL)`, with `*` for any part of a name.

/// A pattern for a server and its tools.
#[derive(Debug)]
pub(super) struct McpRule {
    server: String,
    tool: String,
}

impl McpRule {
    /// Compiles the pattern of a rule: `SERVER TOOL`, `SERVER` for all its tools, or none for all
    /// servers, which no allow rule may be.
    pub(super) fn new(pattern: Option<&str>, allows: bool) -> Result<Self, String> {
        let (server, tool) = match pattern {
            None => ("*", "*"),
            Some(pattern) => {
                let mut words = pattern.split_whitespace();
                match (words.next(), words.next(), words.next()) {
                    (Some(server), tool, None) => (server, tool.unwrap_or("*")),
                    _ => {
                        return Err(
                            "write `mcp(SERVER TOOL)`, for example `mcp(github get_*)`".to_owned()
                        );
                    }
                }
            }
        };
        if allows && server.bytes().all(|byte| byte == b'*') {
            return Err("it would allow the tools of every MCP server: name the server, as in \
                        `mcp(SERVER *)`, or use `--policy all`"
                .to_owned());
        }
        Ok(Self { server: server.to_owned(), tool: tool.to_owned() })
    }

    pub(super) fn matches(&self, server: &str, tool: &str) -> bool {
        wildcard(&self.server, server) && wildcard(&self.tool, tool)
    }
}

/// Whether a text matches a pattern in which `*` is any text, also an empty one.
pub(super) fn wildcard(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    // The earliest place of each part leaves the most for the others.
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_a_star_stands_for_any_part_of_a_name() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("*", "a"),
            ("a*", "a"),
            ("a*", "abc"),
            ("*c", "abc"),
            ("a*c", "ac"),
            ("a*b*c", "a-b-b-c"),
            ("**", "x"),
            ("a*a", "aba"),
        ] {
            assert!(wildcard(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [
            ("a", "ab"),
            ("a", ""),
            ("a*", "ba"),
            ("*c", "cb"),
            ("a*a", "a"),
            ("a*b*c", "a-c-b"),
            ("get_*", "get"),
            ("*x*", "abc"),
        ] {
            assert!(!wildcard(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn m_h2_a_rule_names_a_server_and_its_tools() {
        let rule = |pattern| McpRule::new(Some(pattern), true).unwrap();
        assert!(rule("files read_*").matches("files", "read_file"));
        assert!(!rule("files read_*").matches("files", "write_file"));
        assert!(!rule("files read_*").matches("other", "read_file"));
        assert!(rule("files").matches("files", "anything at all"));
        assert!(rule("my-* *").matches("my-server", "x"));
        for (pattern, why) in [
            (Some("*"), "every MCP server"),
            (Some("* x"), "every MCP server"),
            (None, "every MCP server"),
            (Some("a b c"), "mcp(SERVER TOOL)"),
        ] {
            assert!(McpRule::new(pattern, true).unwrap_err().contains(why), "{pattern:?}");
        }
        assert!(McpRule::new(None, false).unwrap().matches("a", "b"));
        assert!(McpRule::new(Some("*"), false).unwrap().matches("a", "b"));
    }
}
