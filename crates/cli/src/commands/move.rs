//! The command `holdpoint move`.

use std::path::{Path, PathBuf};

use clap::ArgGroup;
use holdpoint_common::SessionStatus;
use holdpoint_common::api::MoveRequest;
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{SessionArg, show_resolved};
use crate::sessions::sessions;
use crate::tone::Tone;
use crate::ui::Ui;

/// Move a session to another folder, also on another machine of the fleet
///
/// A live session is held at the end of its step, or of the iteration of its run, moves, and continues
/// there; an open Confirm of the policy is asked for the new folder. Background jobs end. The files of the folder are
/// not copied.
#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("place").args(["to", "cwd"]).required(true).multiple(true)))]
pub(crate) struct Args {
    #[command(flatten)]
    session: SessionArg,

    /// The machine of the fleet to move it to; by default, this one
    #[arg(long, value_name = "MACHINE")]
    to: Option<String>,

    /// The folder there; by default, the one with the same path
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// Print the session as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let workspace = args.cwd.as_deref().map(|folder| args.absolute(folder)).transpose()?;
    block_on(async {
        let sessions = sessions(folders, "move").await?;
        let session = sessions.look(&args.session.session).await?;
        show_resolved(&args.session.session, &session, ui)?;
        let id = session.settings.id.as_str();
        if session.status == SessionStatus::Running {
            let text = format!(
                "waiting for the end of the step; `holdpoint interrupt {id}` ends it, Ctrl-C lets the \
                 session stay where it is"
            );
            ui.line(Tone::Dim, &text)?;
            ui.flush()?;
        }
        let request = MoveRequest { machine: args.to.clone(), workspace, ..MoveRequest::default() };
        let moved = sessions.move_session(id, request).await?;
        if args.json {
            ui.json(&*moved)?;
        } else {
            let machine = args.to.as_ref().map(|to| format!("{to}:")).unwrap_or_default();
            let folder = format!("{machine}{}", moved.settings.workspace);
            ui.print(&format!("moved to {}\n", prose_line(&folder)))?;
        }
        Ok(0)
    })
}

impl Args {
    /// The absolute path of the folder.
    fn absolute(&self, folder: &Path) -> Result<PathBuf, CliError> {
        if self.to.is_some() && folder.is_relative() {
            return Err(CliError::usage("with --to, the path of --cwd has to be absolute")
                .hint("give the path that the folder has on that machine"));
        }
        std::path::absolute(folder).map_err(|error| {
            CliError::usage(format!("the folder {} can't be used: {error}", folder.display()))
        })
    }
}
