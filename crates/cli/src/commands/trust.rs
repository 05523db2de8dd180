//! The command `holdpoint trust`.

use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::ValueHint;
use holdpoint_common::FOLDER_MCP_FILE;
use holdpoint_session::folder_servers;
use holdpoint_session::folders::{Folders, TrustStore, TrustedFolder};
use holdpoint_tools::shown;
use holdpoint_tools::web::guard::is_near;
use serde_json::json;

use crate::error::CliError;
use crate::tone::Tone;
use crate::ui::Ui;

/// Trust the MCP servers that a folder names
///
/// Shows everything that the file `.mcp.json` of the folder would run or connect to, and asks. Until you trust
/// it, sessions in the folder do not start these servers. When the file changes, it is not trusted
/// any more: the command then shows the difference, and asks again. Programs run in the sandbox,
/// without the network. To servers with an address, Holdpoint itself connects.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder; by default, the current folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: Option<PathBuf>,

    /// List the folders that you trust
    #[arg(long, conflicts_with_all = ["folder", "remove"])]
    list: bool,

    /// No longer trust the folder; servers that run already end with the next turn of their session
    #[arg(long)]
    remove: bool,

    /// Print the list as JSON
    #[arg(long, requires = "list")]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let store = folders.trust();
    if args.list {
        return list(&store, args.json, ui);
    }
    // Also refuses a process that a tool call has started.
    folders.make()?;
    let given = args.folder.as_deref().unwrap_or(Path::new("."));
    if args.remove {
        return remove(&store, given, ui);
    }
    let folder = given.canonicalize().map_err(|error| {
        CliError::usage(format!("the folder {} can't be used: {error}", given.display()))
    })?;
    trust(&store, &folder, ui)
}

/// Shows the servers of a folder, and trusts them if the user confirms it.
fn trust(store: &TrustStore, folder: &Path, ui: &mut Ui) -> Result<i32, CliError> {
    let file = folder.join(FOLDER_MCP_FILE);
    let shown_file = shown::prose_line(&file.to_string_lossy()).into_owned();
    let servers = folder_servers(folder)
        .map_err(|error| CliError::usage(format!("{shown_file} can't be used: {error}")))?;
    let Some(servers) = servers else {
        ui.print(&format!("nothing to trust: {shown_file} names no MCP servers\n"))?;
        return Ok(0);
    };
    let content = servers.content();
    let before = store.get(folder).map_err(|error| {
        CliError::from(error).hint(format!("`{} --remove` removes the record", command(folder)))
    })?;
    match &before {
        Some(before) if before.content == content => {
            ui.print(&format!("already trusted: {shown_file}\n"))?;
            return Ok(0);
        }
        Some(before) => {
            ui.line(Tone::Strong, &format!("{shown_file} has changed since you trusted it:"))?;
            let diff = shown::diff(FOLDER_MCP_FILE, Some(&before.content), &content);
            show(&diff.unwrap_or_else(|error| error.to_string()), ui)?;
            ui.line(Tone::Strong, "Sessions in this folder would now start:")?;
        }
        None => ui.line(
            Tone::Strong,
            &format!("Sessions in this folder would start the servers of {shown_file}:"),
        )?,
    }
    show(&content, ui)?;
    ui.line(
        Tone::Dim,
        "Programs run in the sandbox, without the network. Their tools ask as any other.",
    )?;
    for address in servers.addresses() {
        let near = if is_near(address) { ", on this machine or in a network near it" } else { "" };
        let address = shown::prose_line(address);
        ui.line(Tone::Warning, &format!("Holdpoint itself connects to {address}{near}"))?;
    }
    if !io::stdin().is_terminal() || !ui.err_is_terminal() {
        return Err(CliError::usage("a folder can only be trusted at a terminal")
            .hint(format!("run `{}` in a terminal", command(folder))));
    }
    ui.line(Tone::Strong, "Trust them? [y/N]")?;
    ui.flush()?;
    let mut answer = Vec::new();
    io::stdin()
        .lock()
        .read_until(b'\n', &mut answer)
        .map_err(|error| CliError::failed(format!("the answer can't be read: {error}")))?;
    if !matches!(answer.trim_ascii(), b"y" | b"Y" | b"yes") {
        ui.line(Tone::Dim, "not trusted")?;
        ui.flush()?;
        return Ok(1);
    }
    let since = SystemTime::now().into();
    store.trust(&TrustedFolder { folder: folder.to_owned(), content, since })?;
    ui.print(&format!(
        "trusted: sessions in {} start them with their next turn\n",
        shown::prose_line(&folder.to_string_lossy())
    ))?;
    Ok(0)
}

/// The command that trusts a folder.
fn command(folder: &Path) -> String {
    format!("holdpoint trust {}", shown::shell_word(&folder.to_string_lossy()))
}

/// Shows a text whole, with its secrets: they are the folder's. Invisible characters are made
/// visible.
fn show(text: &str, ui: &mut Ui) -> Result<(), CliError> {
    for line in text.lines() {
        ui.line(Tone::Plain, &format!("  {}", shown::json(line)))?;
    }
    Ok(())
}

fn remove(store: &TrustStore, given: &Path, ui: &mut Ui) -> Result<i32, CliError> {
    // The folder may be gone.
    let folder = given.canonicalize().or_else(|_| std::path::absolute(given)).map_err(|error| {
        CliError::usage(format!("the folder {} can't be used: {error}", given.display()))
    })?;
    let was_trusted = store.remove(&folder)?;
    let shown = shown::prose_line(&folder.to_string_lossy()).into_owned();
    match was_trusted {
        true => ui.print(&format!("no longer trusted: {shown}\n"))?,
        false => {
            return Err(CliError::failed(format!("{shown} is not trusted"))
                .hint("`holdpoint trust --list` lists the folders that you trust"));
        }
    }
    Ok(0)
}

/// Lists the trusted folders, and whether their content is still the one that was trusted. Damaged
/// records are reported after the others.
fn list(store: &TrustStore, as_json: bool, ui: &mut Ui) -> Result<i32, CliError> {
    let (folders, damaged) = store.list()?;
    let state = |trusted: &TrustedFolder| match folder_servers(&trusted.folder) {
        Ok(Some(servers)) if servers.content() == trusted.content => "trusted",
        Ok(Some(_)) => "changed",
        Ok(None) => "no servers",
        Err(_) => "unreadable",
    };
    if as_json {
        let list: Vec<_> = folders
            .iter()
            .map(|trusted| {
                json!({
                    "folder": trusted.folder, "state": state(trusted), "since": trusted.since,
                })
            })
            .collect();
        ui.json(&list)?;
    } else {
        if folders.is_empty() {
            ui.line(Tone::Dim, "no folder is trusted")?;
        }
        for trusted in &folders {
            let folder = trusted.folder.to_string_lossy();
            ui.print(&format!("{:<10}  {}\n", state(trusted), shown::prose_line(&folder)))?;
        }
    }
    if damaged.is_empty() {
        return Ok(0);
    }
    let errors: Vec<_> = damaged.iter().map(ToString::to_string).collect();
    Err(CliError::failed(format!("not trusted, because of the record: {}", errors.join("; ")))
        .hint("remove the file, and trust the folder again"))
}
