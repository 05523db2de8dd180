//! The command `holdpoint mcp`.

mod edit;
mod login;
mod redirect;
mod test;

use std::collections::BTreeMap;

use clap::Subcommand;
use holdpoint_common::{McpServer, McpServers, check_mcp_servers, with_mcp_variables};
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;
use holdpoint_tools::{Domains, McpLogins};
use serde::Serialize;

use crate::error::CliError;
use crate::mcp::masked;
use crate::tone::Tone;
use crate::ui::Ui;

/// Show, change or test the MCP servers of the configuration
///
/// An MCP server is a program, or an address that is reached over HTTP, whose tools sessions use. `add`
/// and `remove` change the configuration file, and keep its comments and its order. Sessions that are
/// open keep their servers.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: McpCommand,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    List(ListArgs),
    Add(AddArgs),
    Remove(RemoveArgs),
    Test(test::TestArgs),
    Login(login::LoginArgs),
    Logout(login::LogoutArgs),
}

/// List the configured servers, with secrets masked
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Print the servers as JSON, by name
    #[arg(long)]
    json: bool,
}

/// Add a server to the configuration file
///
/// Examples: `holdpoint mcp add files -- npx -y @modelcontextprotocol/server-filesystem .`, and
/// `holdpoint mcp add wiki https://example.com/mcp --header 'Authorization: Bearer ${WIKI_KEY}'`.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// The name of the server: a-z, 0-9, - and _
    name: String,

    /// The address of a server that is reached over HTTP
    #[arg(required_unless_present = "command", conflicts_with = "command")]
    url: Option<String>,

    /// Send a header with each request; repeat it for more. `${VARIABLE}` in the value is replaced
    /// when a session is opened, so that the file has no key
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = header, requires = "url")]
    headers: Vec<(String, String)>,

    /// The id of Holdpoint at the authorization server, for a login at a server that does not
    /// register programs by itself
    #[arg(long, value_name = "ID", requires = "url")]
    client_id: Option<String>,

    /// The secret that belongs to the id. `${VARIABLE}` in it is replaced at the login, so that the
    /// file has no key
    #[arg(long, value_name = "SECRET", requires = "client_id")]
    client_secret: Option<String>,

    /// Speak HTTP with SSE, which servers used before 2025-03-26
    #[arg(long, requires = "url")]
    sse: bool,

    /// Set a variable for the server; repeat it for more
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    env: Vec<(String, String)>,

    /// The working folder of the server; by default, the workspace
    #[arg(long, value_name = "DIR")]
    cwd: Option<String>,

    /// The only tools that the model gets, separated by commas
    #[arg(long, value_name = "TOOLS", value_delimiter = ',')]
    tools: Option<Vec<String>>,

    /// Let the server use the network
    #[arg(long)]
    network: bool,

    /// Let the server reach a domain; repeat it for more
    #[arg(long = "domain", value_name = "DOMAIN")]
    domains: Vec<String>,

    /// Run the server outside of the sandbox, with your permissions
    #[arg(long)]
    no_sandbox: bool,

    /// The program of the server and its arguments, after `--`
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Remove a server from the configuration file
#[derive(Debug, clap::Args)]
struct RemoveArgs {
    /// The name of the server
    name: String,
}

fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.trim().to_owned())),
        _ => Err("write 'NAME: VALUE'".to_owned()),
    }
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("write NAME=VALUE".to_owned()),
    }
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    match &args.command {
        McpCommand::List(args) => list(args, folders, ui),
        McpCommand::Add(args) => {
            let server = args.server();
            let servers = BTreeMap::from([(args.name.clone(), server.clone())]);
            let refused = |error: String| {
                CliError::usage(error).hint("`holdpoint mcp add --help` describes the options")
            };
            check_mcp_servers(&servers).map_err(|error| refused(error.to_string()))?;
            if !server.domains.is_empty() {
                Domains::parse(&server.domains).map_err(refused)?;
            }
            edit::add(folders, &args.name, &server)?;
            ui.print(&format!("added {} to {}\n", args.name, folders.config_file().display()))?;
            Ok(0)
        }
        McpCommand::Remove(RemoveArgs { name }) => {
            edit::remove(folders, name)?;
            ui.print(&format!("removed {name} from {}\n", folders.config_file().display()))?;
            // Another file can name a server with this name and address, too.
            if folders.logins().of_server(name).is_ok_and(|logins| !logins.is_empty()) {
                ui.line(Tone::Plain, "its login is kept")?;
                let hint = format!("hint: `holdpoint mcp logout {name}` revokes and removes it");
                ui.line(Tone::Plain, &hint)?;
                ui.flush()?;
            }
            Ok(0)
        }
        McpCommand::Test(args) => test::carry_out(args, folders, ui),
        McpCommand::Login(args) => login::log_in(args, folders, ui),
        McpCommand::Logout(args) => login::log_out(args, folders, ui),
    }
}

impl AddArgs {
    fn server(&self) -> McpServer {
        let (command, args) = match self.command.split_first() {
            Some((command, args)) => (command.as_str(), args),
            None => ("", &[][..]),
        };
        McpServer {
            url: self.url.clone(),
            headers: self.headers.iter().cloned().collect(),
            client_id: self.client_id.clone(),
            client_secret: self.client_secret.clone(),
            sse: self.sse,
            env: self.env.iter().cloned().collect(),
            cwd: self.cwd.clone(),
            tools: self.tools.clone(),
            network: self.network,
            domains: self.domains.clone(),
            sandbox: !self.no_sandbox,
            ..McpServer::program(command, args)
        }
    }
}

fn list(args: &ListArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let servers = folders.config()?.mcp;
    let logins = logins(&servers, folders);
    let servers = masked(servers);
    if args.json {
        let listed = |(name, server)| (name, Listed { server, login: logins.get(name) });
        ui.json(&servers.iter().map(listed).collect::<BTreeMap<_, _>>())?;
        return Ok(0);
    }
    if servers.is_empty() {
        ui.print("No MCP server is configured. Add one with `holdpoint mcp add`.\n")?;
    }
    let width = servers.keys().map(String::len).max().unwrap_or_default();
    for (name, server) in &servers {
        let first = server.url.as_ref().unwrap_or(&server.command);
        let words: Vec<_> = std::iter::once(first).chain(&server.args).collect();
        let words = words.iter().map(|word| prose_line(word)).collect::<Vec<_>>().join(" ");
        let login = logins.get(name).map(String::as_str);
        ui.print(&format!("{name:width$}  {words}{}\n", notes(server, login)))?;
    }
    Ok(0)
}

/// A server in the list, as JSON.
#[derive(Serialize)]
struct Listed<'a> {
    #[serde(flatten)]
    server: &'a McpServer,
    #[serde(skip_serializing_if = "Option::is_none")]
    login: Option<&'a String>,
}

/// The states of logins, by the names of the servers. A server without a login only has one if it has
/// settings for it: whether others need a login is not known before they are reached.
fn logins(servers: &McpServers, folders: &Folders) -> BTreeMap<String, String> {
    let store = folders.logins();
    let expanded = with_mcp_variables(servers.clone(), |name| std::env::var(name).ok());
    let state = |(name, server): (String, McpServer)| {
        let state = match store.get(&name, server.url.as_deref()?) {
            Ok(Some(login)) => login::state(&login),
            Ok(None) => server.client_id.map(|_| "needs a login".to_owned())?,
            Err(why) => prose_line(&why).into_owned(),
        };
        Some((name, state))
    };
    expanded.into_iter().filter_map(state).collect()
}

/// The state of a server's login, the permissions that others do not have, and its variables and
/// headers.
fn notes(server: &McpServer, login: Option<&str>) -> String {
    let mut notes = Vec::new();
    notes.extend(login.map(str::to_owned));
    if server.sse {
        notes.push("sse".to_owned());
    }
    if !server.sandbox {
        notes.push("no sandbox".to_owned());
    }
    match (server.network, server.domains.is_empty()) {
        (true, _) => notes.push("network".to_owned()),
        (false, false) => notes.push(format!("domains: {}", server.domains.join(" "))),
        (false, true) => {}
    }
    for (kind, texts) in [("env", &server.env), ("headers", &server.headers)] {
        if !texts.is_empty() {
            let names: Vec<_> = texts.keys().map(String::as_str).collect();
            notes.push(format!("{kind}: {}", names.join(" ")));
        }
    }
    if notes.is_empty() { String::new() } else { format!("  ({})", notes.join(", ")) }
}
