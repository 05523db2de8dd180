//! The names by which a model calls the tools of servers.

/// The most bytes of a name that all providers of models accept.
const MAX_NAME: usize = 64;

/// The name of a tool for the model: `mcp__SERVER__TOOL`.
///
/// If the name would be longer than 64 bytes, or the tool's own name has characters other than
/// letters, digits, `_` and `-`, these characters become `_`, and the name ends with `_` and eight
/// digits of a hash of the tool's own name. Names of servers have no `__`, so two tools never have
/// the same name by accident.
pub(super) fn for_model(server: &str, tool: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let name = format!("mcp__{server}__{tool}");
    if name.len() <= MAX_NAME && !tool.is_empty() && tool.chars().all(is_plain) {
        return name;
    }
    let hash = blake3::hash(tool.as_bytes()).to_hex();
    let mut name: String = name.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    name.truncate(MAX_NAME - 9);
    format!("{name}_{}", &hash[..8])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn m_h2_names_of_tools_fit_every_provider_and_differ() {
        assert_eq!(for_model("every-thing", "get-sum"), "mcp__every-thing__get-sum");
        let long = "x".repeat(100);
        let server = "s".repeat(holdpoint_common::MAX_MCP_NAME);
        let mut seen = HashSet::new();
        for tool in [
            "echo",
            "e.cho",
            "e/cho",
            "e_cho",
            "",
            " ",
            "ä",
            "ö",
            &long,
            &format!("{long}y"),
            "a\n",
        ] {
            for server in ["a", "a-b", &server] {
                let name = for_model(server, tool);
                assert!(name.len() <= MAX_NAME, "{name}");
                assert!(
                    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')),
                    "{name}"
                );
                assert!(seen.insert(name.clone()), "{name}");
            }
        }
    }
}
