//! The MCP servers that an editor brings for a session.

use agent_client_protocol_schema::v1::{self as acp, Error, ErrorCode};
use holdpoint_common::{MAX_MCP_NAME, McpServer, McpServers, check_mcp_servers};

use super::rpc::failure;

/// Our settings of these servers. Programs run in the sandbox of the session, without the network.
///
/// # Errors
/// An error for the editor, if one can't be used.
pub(super) fn servers(brought: Vec<acp::McpServer>) -> Result<McpServers, Error> {
    let mut servers = McpServers::new();
    for server in brought {
        let (name, server) = match server {
            acp::McpServer::Stdio(program) => program_of(program)?,
            acp::McpServer::Http(acp::McpServerHttp { name, url, headers, .. }) => {
                let headers = headers.into_iter().map(|header| (header.name, header.value));
                (name, McpServer { headers: headers.collect(), ..McpServer::address(url) })
            }
            acp::McpServer::Sse(acp::McpServerSse { name, url, headers, .. }) => {
                let headers = headers.into_iter().map(|header| (header.name, header.value));
                let server = McpServer { sse: true, ..McpServer::address(url) };
                (name, McpServer { headers: headers.collect(), ..server })
            }
            _ => {
                let message = "`mcpServers`: only servers of the types `stdio`, `http` and `sse` \
                               are supported";
                return Err(failure(ErrorCode::InvalidParams, message));
            }
        };
        servers.insert(free_name(&servers, &name), server);
    }
    check_mcp_servers(&servers)
        .map_err(|error| failure(ErrorCode::InvalidParams, error.to_string()))?;
    Ok(servers)
}

fn program_of(program: acp::McpServerStdio) -> Result<(String, McpServer), Error> {
    let acp::McpServerStdio { name, command, args, env, .. } = program;
    let Some(command) = command.to_str() else {
        let message = format!("MCP server `{name}`: the path of the program is not UTF-8");
        return Err(failure(ErrorCode::InvalidParams, message));
    };
    let env = env.into_iter().map(|variable| (variable.name, variable.value)).collect();
    let server = McpServer { env, ..McpServer::program(command, args) };
    Ok((name, server))
}

/// The name of a server for us: in lower case, with `-` in place of other characters, and with a
/// number if another server has the name.
fn free_name(taken: &McpServers, name: &str) -> String {
    let words: Vec<_> = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let plain = if words.is_empty() { "server".to_owned() } else { words.join("-") };
    let shortened = |max: usize| plain[..plain.len().min(max)].trim_end_matches('-');
    let name = shortened(MAX_MCP_NAME).to_owned();
    let numbered = (2..).map(|number: u32| {
        let suffix = format!("-{number}");
        format!("{}{suffix}", shortened(MAX_MCP_NAME - suffix.len()))
    });
    let mut names = std::iter::once(name.clone()).chain(numbered);
    names.find(|name| !taken.contains_key(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(name: &str) -> acp::McpServer {
        acp::McpServer::Stdio(acp::McpServerStdio::new(name, "/bin/server"))
    }

    #[test]
    fn m_h2_the_names_of_an_editors_servers_are_made_plain() {
        let long = "x".repeat(100);
        let brought = ["Git Hub", "git.hub", "__", "Ä", &long, &long, "a"].map(program);
        let servers = servers(brought.into()).unwrap();
        let x = |count| "x".repeat(count);
        let expected = ["a", "git-hub", "git-hub-2", "server", "server-2", &x(32), &x(30)];
        for name in &expected[..6] {
            assert!(servers.contains_key(*name), "{name}: {servers:?}");
        }
        assert!(servers.contains_key(&format!("{}-2", expected[6])), "{servers:?}");
        assert_eq!(servers.len(), 7);
    }

    #[test]
    fn m_h2_an_editors_server_over_http_is_taken() {
        let header = acp::HttpHeader::new("Authorization", "Bearer x");
        let http = acp::McpServerHttp::new("Web", "http://localhost/mcp").headers(vec![header]);
        let servers = servers(vec![acp::McpServer::Http(http)]).unwrap();
        assert_eq!(servers["web"].url.as_deref(), Some("http://localhost/mcp"));
        assert_eq!(servers["web"].headers["Authorization"], "Bearer x");
        let sse = acp::McpServer::Sse(acp::McpServerSse::new("Old", "http://localhost/sse"));
        assert!(self::servers(vec![sse]).unwrap()["old"].sse);
    }

    #[test]
    fn m_h2_an_editors_servers_that_cannot_be_used_are_refused() {
        let http = acp::McpServer::Http(acp::McpServerHttp::new("a", "localhost"));
        let error = servers(vec![http]).unwrap_err();
        assert!(error.message.contains("must begin with http://"), "{error:?}");
        let many = (0..100).map(|n| program(&format!("s{n}"))).collect();
        let error = servers(many).unwrap_err();
        assert!(error.message.contains("more than 32 servers"), "{error:?}");
    }
}
