//! The agent of the Agent Client Protocol (ACP): lets an editor use sessions of the daemon.
//!
//! An editor starts `holdpoint acp` and sends JSON-RPC messages, one per line, to its standard
//! input. Terms of the protocol: a *request* has a reply, a *notification* has none, and an
//! *update* is a notification about a session.
//!
//! - [`wire`] reads and writes lines, [`rpc`] the messages in them.
//! - [`connection`] reads the editor's messages and passes those about an open session to its task.
//! - [`session`] is the task of one session: it follows the events, carries out requests and asks
//!   the editor.
//! - [`updates`] turns events into updates, [`asks`] turns asks into requests and replies into
//!   answers, [`prompt`] content into text, [`modes`] settings into modes and options, [`list`]
//!   summaries into pages, [`servers`] the MCP servers of an editor into ours, and [`commands`] some
//!   prompts into verbs. These are pure.
//!
//! The types of the protocol come from the crate `agent-client-protocol-schema`, which is used in
//! this module only. `docs/protocols.md` shows how its terms and ours correspond, and
//! `docs/decisions/0029-our-own-lines-for-acp.md` gives the reason for the own connection.

mod asks;
mod commands;
mod connection;
mod features;
mod list;
mod modes;
mod prompt;
mod rpc;
mod servers;
mod session;
mod updates;
mod wire;

use std::fs::File;

use holdpoint_session::folders::Folders;

use self::connection::Connection;
use crate::error::CliError;
use crate::runtime::block_on;

/// Serves the editor at standard input and output until its input ends.
///
/// # Errors
/// Fails if a thread or the runtime can't be started, or standard output can't be kept for messages
/// alone.
pub(crate) fn serve(folders: &Folders) -> Result<(), CliError> {
    let output = take_output().map_err(|error| {
        CliError::failed(format!("standard output can't be kept for messages: {error}"))
    })?;
    let hang_up = wire::hang_up(std::io::stdin())?;
    let input = wire::read_lines(std::io::stdin())?;
    let (lines, writing) = wire::write_lines(output)?;
    block_on(async {
        Connection::new(folders.clone(), lines).serve(input, hang_up).await;
        writing.finish().await;
        Ok(())
    })
}

/// Takes standard output for messages. Anything else that is written to it, by this process or one
/// that it starts, goes to standard error from now on.
fn take_output() -> std::io::Result<File> {
    let output = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdout(), 3)?;
    rustix::stdio::dup2_stdout(rustix::stdio::stderr())?;
    Ok(File::from(output))
}
