//! The MCP servers of this program's sessions.

use std::path::Path;
use std::sync::Arc;

use holdpoint_common::{
    Config, McpOrigin, McpServer, McpServers, check_mcp_servers, parse_mcp_file,
};
use holdpoint_session::folders::LoginStore;
use holdpoint_tools::mcp::McpSource;
use holdpoint_tools::secrets::mask_in_list;
use holdpoint_tools::{HttpClients, McpLoginStore, McpTools};

use crate::error::CliError;

/// The most bytes of a file with servers.
const MAX_FILE: u64 = 1024 * 1024;

/// Returns the function that creates the source of the tools of a session's servers, which uses the
/// user's logins.
pub(crate) fn source(
    logins: LoginStore,
) -> impl Fn(McpServers, HttpClients) -> Box<dyn McpTools> + Send + Sync + 'static {
    let logins: McpLoginStore = Arc::new(logins);
    move |servers, http| Box::new(McpSource::new(servers, http).with_logins(Arc::clone(&logins)))
}

/// Adds the servers of a file to those of a configuration. A server in the file replaces one of the
/// same name.
///
/// # Errors
/// Fails if the file can't be read, or a server in it can't be used.
pub(crate) fn add_file(config: Config, file: &Path) -> Result<Config, CliError> {
    let shown = file.display();
    let failed = |error: &dyn std::fmt::Display| {
        CliError::usage(format!("the MCP servers in {shown} can't be used: {error}")).hint(
            "the format is {\"mcpServers\": {\"NAME\": {\"command\": \"…\", \"args\": […]}}}, or \
                 {\"url\": \"…\", \"headers\": {…}} for a server over HTTP",
        )
    };
    let size = std::fs::metadata(file).map_err(|error| failed(&error))?.len();
    if size > MAX_FILE {
        return Err(failed(&format!("it has {size} bytes; the limit is {MAX_FILE}")));
    }
    let text = std::fs::read_to_string(file).map_err(|error| failed(&error))?;
    let mut servers = parse_mcp_file(&text).map_err(|error| failed(&error))?;
    let path = std::path::absolute(file).map_err(|error| failed(&error))?;
    for server in servers.values_mut() {
        server.origin = McpOrigin::File(path.to_string_lossy().into_owned());
    }
    let mut mcp = config.mcp.clone();
    mcp.extend(servers);
    check_mcp_servers(&mcp).map_err(|error| failed(&error))?;
    Ok(Config { mcp, ..config })
}

/// The servers without their secrets: the values of variables and headers, the secrets of clients, and
/// parts of arguments and addresses that look like one.
pub(crate) fn masked(servers: McpServers) -> McpServers {
    let mask = |(name, server): (String, McpServer)| {
        let McpServer { args, env, url, headers, client_secret, .. } = &server;
        let hide = |(name, _): (&String, &String)| (name.clone(), "***".to_owned());
        let (env, headers) = (env.iter().map(hide).collect(), headers.iter().map(hide).collect());
        let (args, url) = (masked_args(args), url.as_deref().map(masked_address));
        let client_secret = client_secret.as_ref().map(|_| "***".to_owned());
        (name, McpServer { env, args, url, headers, client_secret, ..server })
    };
    servers.into_iter().map(mask).collect()
}

/// Arguments without secrets. The name of an option can be the argument before its value.
fn masked_args(args: &[String]) -> Vec<String> {
    let mut before = String::new();
    let mut masked = Vec::new();
    for arg in args {
        let arg = masked_address(arg);
        let pair = format!("{before} {arg}");
        let shown = mask_in_list(&pair);
        let shown = shown.strip_prefix(&before).and_then(|shown| shown.strip_prefix(' '));
        masked.push(shown.unwrap_or("***").to_owned());
        before = arg;
    }
    masked
}

/// The least bytes of a part of a path that can be a key.
const MIN_KEY: usize = 16;

/// The least letters in a row that can be a key. Few words are longer.
const MIN_KEY_LETTERS: usize = 20;

/// An argument without the keys in its address, if it has one: the user, the values of the query,
/// the fragment, and parts of the path that are not words.
pub(crate) fn masked_address(arg: &str) -> String {
    let Some((scheme, rest)) = arg.split_once("://") else { return arg.to_owned() };
    let end = rest.find(['?', '#']).unwrap_or(rest.len());
    let (place, query) = rest.split_at(end);
    let is_key = |part: &str| {
        let has_both = part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_ascii_alphabetic());
        let words = part.split(|c: char| !c.is_ascii_alphanumeric());
        part.len() >= MIN_KEY && (has_both || words.map(str::len).max() >= Some(MIN_KEY_LETTERS))
    };
    let mut parts = place.split('/');
    let host = parts.next().unwrap_or_default();
    let host = match host.rsplit_once('@') {
        Some((_, host)) => format!("***@{host}"),
        None => host.to_owned(),
    };
    let path: String = parts
        .map(|part| if is_key(part) { "/***".to_owned() } else { format!("/{part}") })
        .collect();
    let mut masked = format!("{scheme}://{host}{path}");
    for part in query.split_inclusive(['?', '#', '&']) {
        let (value, end) = match part.chars().next_back() {
            Some(end @ ('?' | '#' | '&')) => (&part[..part.len() - 1], end.to_string()),
            _ => (part, String::new()),
        };
        match value.split_once('=') {
            Some((name, _)) => masked.push_str(&format!("{name}=***{end}")),
            None if value.is_empty() => masked.push_str(&end),
            None => masked.push_str(&format!("***{end}")),
        }
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
        let text = "[mcp.a]\nurl = 'https://x.example/mcp?key=sk-12345678'\n\
                    headers = {Authorization = 'Bearer sk-12345678'}\nclient_id = 'me'\n\
                    client_secret = 'sk-12345678'";
        let server = masked(Config::parse(text).unwrap().mcp).remove("a").unwrap();
        assert_eq!(server.url.as_deref(), Some("https://x.example/mcp?key=***"));
        assert_eq!(server.headers["Authorization"], "***");
        assert_eq!(server.client_secret.as_deref(), Some("***"));
    }

    #[test]
    fn m_h2_t_h3_keys_in_addresses_and_headers_are_masked() {
        for arg in [
            "https://example.com/mcp?api_key=aB3dEf6hIj9l",
            "https://example.com/mcp?x=1&apiKey=aB3dEf6hIj9l&y=2",
            "https://example.com/mcp?token=aB3dEf6hIj9l",
            "https://example.com/mcp?access_token=aB3dEf6hIj9l",
            "https://example.com/mcp?key=aB3dEf6hIj9l",
            "https://example.com/mcp#access_token=aB3dEf6hIj9l",
            "https://me:aB3dEf6hIj9l@example.com/mcp",
            "--url=https://example.com/mcp?k=aB3dEf6hIj9l",
            "https://example.com/s/aB3dEf6hIj9lMnPq7stUvW2yZ/mcp",
            "https://example.com/s/1:aB3dEf6hIj9lMnPq7stUvW2yZ",
            "https://example.com/s/aB3dEf6hIj9l.MnPq7stUvW2yZ",
            "https://example.com/s/k=aB3dEf6hIj9lMnPq7==",
            "https://example.com/s/~aB3dEf6hIj9lMnPq7%3D",
            "Authorization: Bearer aB3dEf6hIj9l",
            "X-Api-Key: aB3dEf6hIj9l",
            "API_KEY=aB3dEf6hIj9l",
            "postgresql://me:aB3dEf6hIj9l@localhost/db",
        ] {
            for args in [vec![arg], vec!["--url", arg], vec!["--header", arg]] {
                let args: Vec<_> = args.into_iter().map(str::to_owned).collect();
                let shown = masked_args(&args).join(" ");
                assert!(!shown.contains("Ef6hIj9l"), "{arg}: {shown}");
            }
        }
        for arg in ["https://example.com:8080/mcp/v1/", "@modelcontextprotocol/server-x", "-y"] {
            assert_eq!(masked_args(&[arg.to_owned()]), [arg]);
        }
        let letters = ["https://example.com/s/aBcDeFgHiJkLmNoPqRsT/x".to_owned()];
        assert_eq!(masked_args(&letters), ["https://example.com/s/***/x"]);
        let args = ["https://example.com/mcp?a=b&c=d#e".to_owned()];
        assert_eq!(masked_args(&args), ["https://example.com/mcp?a=***&c=***#***"]);
    }
}
