//! Changes of the configuration file that keep its comments.

use std::io::Write;

use holdpoint_common::{Config, McpServer};
use holdpoint_session::folders::{Folders, FoldersError};
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, value};

use crate::error::CliError;

/// Adds a server to the configuration file.
///
/// # Errors
/// There is such a server, or the file is invalid or can't be changed.
pub(super) fn add(folders: &Folders, name: &str, server: &McpServer) -> Result<(), CliError> {
    change(folders, |document| {
        if !document.contains_key("mcp") {
            let mut servers = Table::new();
            // Only the tables of the servers are written.
            servers.set_implicit(true);
            document.insert("mcp", Item::Table(servers));
        }
        let servers = document["mcp"].as_table_like_mut().ok_or_else(not_a_table)?;
        if servers.contains_key(name) {
            return Err(CliError::failed(format!("there is an MCP server `{name}` already"))
                .hint(format!("remove it first: holdpoint mcp remove {name}")));
        }
        servers.insert(name, Item::Table(table(server)));
        Ok(())
    })
}

/// Removes a server from the configuration file.
///
/// # Errors
/// There is no such server, or the file is invalid or can't be changed.
pub(super) fn remove(folders: &Folders, name: &str) -> Result<(), CliError> {
    change(folders, |document| {
        let servers = document.get_mut("mcp").and_then(Item::as_table_like_mut);
        match servers.and_then(|servers| servers.remove(name)) {
            Some(_) => Ok(()),
            None => Err(CliError::failed(format!("there is no MCP server `{name}`"))
                .hint("`holdpoint mcp list` shows the configured servers")),
        }
    })
}

fn not_a_table() -> CliError {
    CliError::usage("`mcp` in the configuration is not a table")
}

/// The settings that differ from the defaults.
fn table(server: &McpServer) -> Table {
    let McpServer {
        command,
        args,
        env,
        cwd,
        url,
        headers,
        client_id,
        client_secret,
        sse,
        tools,
        network,
        domains,
        sandbox,
        ..
    } = server;
    let array = |texts: &[String]| value(texts.iter().collect::<Array>());
    let mut table = Table::new();
    if !command.is_empty() {
        table["command"] = value(command);
    }
    if let Some(url) = url {
        table["url"] = value(url);
    }
    if *sse {
        table["sse"] = value(true);
    }
    if !headers.is_empty() {
        table["headers"] = value(headers.iter().collect::<InlineTable>());
    }
    for (key, text) in [("client_id", client_id), ("client_secret", client_secret)] {
        if let Some(text) = text {
            table[key] = value(text);
        }
    }
    if !args.is_empty() {
        table["args"] = array(args);
    }
    if !env.is_empty() {
        table["env"] = value(env.iter().collect::<InlineTable>());
    }
    if let Some(cwd) = cwd {
        table["cwd"] = value(cwd);
    }
    if let Some(tools) = tools {
        table["tools"] = array(tools);
    }
    if *network {
        table["network"] = value(true);
    }
    if !domains.is_empty() {
        table["domains"] = array(domains);
    }
    if !sandbox {
        table["sandbox"] = value(false);
    }
    table
}

/// Changes the configuration file as a whole: another reader sees the old or the new one.
fn change(
    folders: &Folders,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), CliError>,
) -> Result<(), CliError> {
    // An invalid file is reported, and not changed.
    folders.config()?;
    let text = folders.config_text()?.unwrap_or_default();
    let mut document: DocumentMut = text.parse().map_err(CliError::usage)?;
    change(&mut document)?;
    let text = document.to_string();
    let path = folders.config_file();
    Config::parse(&text)
        .map_err(|error| CliError::from(FoldersError::Config { path: path.clone(), error }))?;
    // A link to the file is kept: its target is replaced.
    let target = path.canonicalize().unwrap_or(path);
    let failed = |error: std::io::Error| {
        CliError::failed(format!("{} can't be written: {error}", target.display()))
    };
    let folder = target.parent().ok_or_else(|| failed(std::io::ErrorKind::NotFound.into()))?;
    std::fs::create_dir_all(folder).map_err(failed)?;
    // The new file has mode 0600, unless the old one has another.
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    new.write_all(text.as_bytes()).map_err(failed)?;
    if let Ok(old) = std::fs::metadata(&target) {
        new.as_file().set_permissions(old.permissions()).map_err(failed)?;
    }
    new.as_file().sync_all().map_err(failed)?;
    new.persist(&target).map_err(|error| failed(error.error))?;
    Ok(())
}
