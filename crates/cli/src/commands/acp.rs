//! The command `holdpoint acp`.

use holdpoint_session::folders::Folders;

use crate::acp;
use crate::error::CliError;

/// Serve an editor as an agent of the Agent Client Protocol, over standard input and output
///
/// An editor starts this command, as `docs/editors.md` describes. Its sessions are the daemon's:
/// other clients can attach to them, and they continue when the editor ends. A line on standard
/// output is always a message of the protocol; logs go to standard error.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn carry_out(Args {}: &Args, folders: &Folders) -> Result<i32, CliError> {
    acp::serve(folders)?;
    Ok(0)
}
