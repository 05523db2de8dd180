//! The MCP servers of this program's sessions.

use std::path::Path;

use holdpoint_common::{Config, McpServer, McpServers, check_mcp_servers, parse_mcp_file};
use holdpoint_tools::ToolSource;
use holdpoint_tools::mcp::McpSource;
use holdpoint_tools::secrets::mask_in_list;

use crate::error::CliError;

/// The most bytes of a file with servers.
const MAX_FILE: u64 = 1024 * 1024;

/// Returns the source of the tools of a session's servers.
pub(crate) fn source(servers: McpServers) -> Box<dyn ToolSource> {
    Box::new(McpSource::new(servers))
}

/// Adds the servers of a file to those of a configuration. A server in the file replaces one of the
/// same name.
///
/// # Errors
/// Fails if the file can't be read, or a server in it can't be used.
pub(crate) fn add_file(config: Config, file: &Path) -> Result<Config, CliError> {
    let shown = file.display();
    let failed = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("the MCP servers in {shown} can't be used: {error}"))
            .hint("the format is {\"mcpServers\": {\"NAME\": {\"command\": \"…\", \"args\": […]}}}")
    };
    let size = std::fs::metadata(file).map_err(|error| failed(&error))?.len();
    if size > MAX_FILE {
        return Err(failed(&format!("it has {size} bytes; the limit is {MAX_FILE}")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    let servers = parse_mcp_file(&text).map_err(|error| failed(&error))?;
    let mut mcp = config.mcp.clone();
    mcp.extend(servers);
    check_mcp_servers(&mcp).map_err(|error| failed(&error))?;
    Ok(Config { mcp, ..config })
}

/// The servers without their secrets: the values of variables, and arguments that look like one.
pub(crate) fn masked(servers: McpServers) -> McpServers {
    let mask = |(name, server): (String, McpServer)| {
        let McpServer { args, env, .. } = &server;
        let env = env.keys().map(|variable| (variable.clone(), "***".to_owned())).collect();
        let args = masked_args(args);
        (name, McpServer { env, args, ..server })
    };
    servers.into_iter().map(mask).collect()
}

/// Arguments without secrets. The name of an option can be the argument before its value.
fn masked_args(args: &[String]) -> Vec<String> {
    let mut before = "";
    let mut masked = Vec::new();
    for arg in args {
        let pair = format!("{before} {arg}");
        let shown = mask_in_list(&pair);
        let shown = shown.strip_prefix(before).and_then(|shown| shown.strip_prefix(' '));
        masked.push(shown.unwrap_or("***").to_owned());
        before = arg;
    }
    masked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_t_h3_secrets_of_servers_are_masked() {
        let text = "[mcp.a]\ncommand = 'x'\nargs = ['-y', '--token=ghp-12345678', '--api-key', \
                    'sk-12345678', 'plain']\nenv = {KEY = 'v'}";
        let shown = masked(Config::parse(text).unwrap().mcp);
        let server = &shown["a"];
        assert_eq!(server.env["KEY"], "***");
        let args = server.args.join(" ");
        assert!(!args.contains("12345678"), "{args}");
        assert!(args.starts_with("-y --token=") && args.ends_with(" plain"), "{args}");
    }
}
