//! The commands `holdpoint mcp login` and `holdpoint mcp logout`.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::ValueHint;
use holdpoint_common::{
    Config, FOLDER_MCP_FILE, McpServer, McpServers, check_mcp_servers, with_mcp_variables,
};
use holdpoint_session::folders::{Folders, FoldersError};
use holdpoint_session::model::Catalog;
use holdpoint_tools::mcp::{Authorizing, LoginRequest, Redirect, revoke};
use holdpoint_tools::shown::prose_line;
use holdpoint_tools::{McpLogin, McpLogins, environment};

use super::redirect::{Given, Redirects};
use crate::error::CliError;
use crate::mcp;
use crate::runtime::block_on;
use crate::signals::{self, ExitRequest, SignalAction};
use crate::tone::Tone;
use crate::ui::Ui;

/// How long the command waits for the user.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Log in to a server over HTTP, with a browser
///
/// Prints the address of a page on which you agree, waits until the browser returns, and saves the
/// tokens for this server and address. Sessions use them with their next turn. If the browser is on
/// another machine, paste the address of the page that it could not open at the end.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    logged in
  1    the login failed
  2    the configuration is wrong, or has no such server
  130  interrupted (Ctrl+C)")]
pub(super) struct LoginArgs {
    /// The name of the server
    name: String,

    /// The file that names the server, such as .mcp.json, instead of the configuration
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with = "url")]
    mcp: Option<PathBuf>,

    /// The address of the server, if no file names it, such as the one of an editor
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url)]
    url: Option<String>,

    /// The scopes to ask for, in addition to those of an earlier login; by default, the server
    /// chooses them
    #[arg(long = "scope", value_name = "SCOPES", value_delimiter = ' ')]
    scopes: Vec<String>,

    /// The port of this machine that the browser returns to; by default, any free one. Set it if
    /// the server only permits a known one for your `client_id`
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// Log out of a server: revoke and remove the tokens
#[derive(Debug, clap::Args)]
pub(super) struct LogoutArgs {
    /// The name of the server
    name: String,
}

/// A login that the user has to agree to.
struct Waiting<'a> {
    authorizing: Authorizing,
    redirects: Redirects,
    leaving: &'a ExitRequest,
}

pub(super) fn log_in(args: &LoginArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = folders.config()?;
    let server = args.server(&config)?;
    // Also refuses a process that a tool call has started.
    folders.make()?;
    let store = folders.logins();
    let url = server.url.as_deref().unwrap_or_default();
    let before = store.get(&args.name, url).map_err(CliError::failed)?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let leaving = signals::watch(SignalAction::Detaches, None).map_err(|error| {
        CliError::failed(format!("signal handlers can't be installed: {error}"))
    })?;
    let name = &args.name;
    let failed = |why: String| CliError::failed(format!("can't log in to {name}: {why}"));
    block_on(async {
        let no_port = |error| failed(format!("the port can't be used: {error}"));
        let redirects = Redirects::listen(args.port).await.map_err(no_port)?;
        let redirect = redirects.address().map_err(no_port)?;
        let scopes = args.all_scopes(before.as_ref());
        let clients = catalog.http_clients();
        let request =
            LoginRequest { name, settings: &server, redirect: &redirect, scopes, clients };
        let beginning = Authorizing::begin(request);
        let authorizing = tokio::select! {
            authorizing = beginning => authorizing.map_err(failed)?,
            () = leaving.requested() => return Ok(leaving.code().unwrap_or_default()),
        };
        ui.line(Tone::Strong, &format!("To log in to {name}, open this page in a browser:"))?;
        ui.flush()?;
        ui.print(&format!("{}\n", prose_line(authorizing.page())))?;
        let hint = "If the browser is on another machine, paste the address of the page that it \
                    can't open at the end.";
        ui.line(Tone::Dim, hint)?;
        ui.flush()?;
        let waiting = Waiting { authorizing, redirects, leaving: &leaving };
        let Some((login, given)) = waiting.finish(ui, failed).await? else {
            return Ok(leaving.code().unwrap_or_default());
        };
        let saved = store.lock(name, &login.url).and_then(|_lock| store.save(&login));
        let text = match &saved {
            Ok(()) => "You are logged in. You can close this page.",
            Err(_) => "The login could not be saved. The terminal shows the reason.",
        };
        given.show(saved.is_ok(), text).await;
        saved.map_err(failed)?;
        let state = state(&login);
        let until = state.strip_prefix(LOGGED_IN).unwrap_or_default();
        ui.print(&format!("{LOGGED_IN} to {name}{until}\n"))?;
        Ok(0)
    })
}

impl LoginArgs {
    /// The server, with its variables replaced.
    fn server(&self, config: &Config) -> Result<McpServer, CliError> {
        let name = &self.name;
        let mut servers = match (&self.url, &self.mcp) {
            (Some(url), _) => McpServers::from([(name.clone(), McpServer::address(url))]),
            (None, Some(file)) => mcp::add_file(Config::default(), file)?.mcp,
            (None, None) => config.mcp.clone(),
        };
        let Some(server) = servers.remove(name) else {
            return Err(CliError::usage(format!("there is no MCP server `{}`", prose_line(name)))
                .hint(
                    "`holdpoint mcp list` shows the configured servers; `--mcp FILE` logs in to a \
                     server of a file such as .mcp.json",
                ));
        };
        let servers = McpServers::from([(name.clone(), server)]);
        check_mcp_servers(&servers).map_err(CliError::usage)?;
        // The file of a folder gets the same variables as in a session: no keys of the user.
        let file = self.mcp.as_ref().and_then(|file| file.file_name());
        let is_of_folder = self.url.is_none() && file.is_some_and(|name| name == FOLDER_MCP_FILE);
        let variable = |name: &str| {
            let value = std::env::var(name).ok()?;
            if !is_of_folder {
                return Some(value);
            }
            let mut allowed = environment::allowed([(name.to_owned(), value)]).into_iter();
            allowed.find(|(known, _)| known == name).map(|(_, value)| value)
        };
        let mut servers = with_mcp_variables(servers, variable);
        let server = servers.remove(name).filter(|server| server.url.is_some());
        let server = server.ok_or_else(|| {
            CliError::usage(format!("the MCP server `{name}` is a program, which needs no login"))
        })?;
        if let Some(problem) = &server.problem {
            return Err(CliError::usage(format!("MCP server `{name}`: {problem}")));
        }
        Ok(server)
    }

    /// The scopes to ask for: if some are named, also those of an earlier login.
    fn all_scopes(&self, before: Option<&McpLogin>) -> Vec<String> {
        let mut scopes: Vec<String> = Vec::new();
        let named = self.scopes.iter().filter(|scope| !scope.is_empty());
        let earlier =
            before.iter().flat_map(|login| &login.scopes).filter(|_| !self.scopes.is_empty());
        for scope in earlier.chain(named) {
            if !scopes.contains(scope) {
                scopes.push(scope.clone());
            }
        }
        scopes
    }
}

impl Waiting<'_> {
    /// Waits until the user has agreed. `None` if the user leaves.
    async fn finish(
        mut self,
        ui: &mut Ui,
        failed: impl Fn(String) -> CliError,
    ) -> Result<Option<(McpLogin, Given)>, CliError> {
        let deadline = tokio::time::Instant::now() + PATIENCE;
        loop {
            let given = tokio::select! {
                given = self.redirects.next() => given,
                () = self.leaving.requested() => return Ok(None),
                () = tokio::time::sleep_until(deadline) => {
                    let minutes = PATIENCE.as_secs() / 60;
                    return Err(failed(format!("nobody has agreed within {minutes} minutes")));
                }
            };
            match self.authorizing.read(&given.address) {
                Redirect::Foreign(why) => {
                    // Others on this machine can connect, too: they must not end the login.
                    ui.line(Tone::Warning, &format!("an address was ignored: {why}"))?;
                    ui.flush()?;
                    given.show(false, "This is not the login that the terminal waits for.").await;
                }
                Redirect::Refused(why) => {
                    given.show(false, "The login was refused.").await;
                    return Err(failed(format!("it was refused: {why}")));
                }
                Redirect::Code(code) => {
                    let login = tokio::select! {
                        login = self.authorizing.finish(code) => login,
                        () = self.leaving.requested() => return Ok(None),
                    };
                    match login {
                        Ok(login) => return Ok(Some((login, given))),
                        Err(why) => {
                            let text = "The login failed. The terminal shows the reason.";
                            given.show(false, text).await;
                            return Err(failed(why));
                        }
                    }
                }
            }
        }
    }
}

pub(super) fn log_out(args: &LogoutArgs, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    folders.make()?;
    let (store, name) = (folders.logins(), &args.name);
    let config = folders.config().unwrap_or_default();
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let (mut has_ended, mut code) = (false, 0);
    for key in store.of_server(name)? {
        let login = match store.take(&key) {
            Ok(Some(login)) => login,
            // Another process has removed it, or there was only a draft.
            Ok(None) => continue,
            Err(error) => {
                let error = kept(name, error);
                error.show(ui);
                code = error.code();
                continue;
            }
        };
        has_ended = true;
        let clients = catalog.http_clients();
        let address = mcp::masked_address(&login.url);
        let address = prose_line(&address);
        match block_on(async { Ok(revoke(&login, &clients).await) })? {
            Ok(true) => ui.print(&format!("logged out of {name} at {address}\n"))?,
            Ok(false) => ui.print(&format!(
                "logged out of {name} at {address}; the server can't revoke tokens, so they are \
                 valid until they expire\n"
            ))?,
            Err(why) => {
                ui.print(&format!("logged out of {name} at {address}\n"))?;
                let text = format!("the tokens are removed, but not all were revoked: {why}");
                ui.line(Tone::Warning, &text)?;
            }
        }
    }
    match has_ended || code != 0 {
        true => Ok(code),
        false => Err(CliError::failed(format!("there is no login at {}", prose_line(name)))),
    }
}

/// The error for a login that can't be removed.
fn kept(name: &str, error: FoldersError) -> CliError {
    let kept = CliError::failed(format!("a login at {name} is kept: {error}"));
    match &error {
        FoldersError::Io { error: cause, .. }
            if matches!(cause.kind(), ErrorKind::InvalidData | ErrorKind::UnexpectedEof) =>
        {
            kept.hint("remove the file; its tokens are not revoked then")
        }
        _ => match CliError::from(error).hint_text() {
            Some(hint) => kept.hint(hint),
            None => kept,
        },
    }
}

/// The state of a login, for a list.
pub(super) fn state(login: &McpLogin) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    match login.expires_at() {
        _ if !login.is_usable(now) => "needs a login".to_owned(),
        Some(end) if login.refresh_token.is_none() => {
            let end = UNIX_EPOCH + Duration::from_secs(end.min(MAX_TIME));
            format!("{LOGGED_IN} until {}", humantime::format_rfc3339_seconds(end))
        }
        _ => LOGGED_IN.to_owned(),
    }
}

/// The state of a login that can be used.
const LOGGED_IN: &str = "logged in";

/// The last second of the year 9999, in seconds since 1970.
const MAX_TIME: u64 = 253_402_300_799;
