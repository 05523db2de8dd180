//! The commands `holdpoint export` and `import`.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use holdpoint_common::api::RequestError;
use holdpoint_common::{SessionError, SessionSettings};
use holdpoint_session::folders::Folders;
use holdpoint_session::transfer::{ExportError, ImportError};
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{SessionArg, show_resolved};
use crate::sessions::sessions;
use crate::tone::Tone;
use crate::ui::Ui;

/// The size of the read buffer in bytes.
const CHUNK: usize = 64 * 1024;

/// Export a session as JSON lines
///
/// The export contains the whole log of the session, live or saved.
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    session: SessionArg,

    /// Write to this file, which must not exist yet, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Import an exported session and print its id
///
/// The session keeps its id, unless a session with that id exists. Importing runs nothing. Whatever
/// the session was allowed before, its policy is `ask` now.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The file; `-` reads standard input
    #[arg(value_name = "FILE | -")]
    file: PathBuf,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn export(args: &Export, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = sessions(folders, "export").await?;
        let session = &args.session.session;
        show_resolved(session, &*sessions.look(session).await?, ui)?;
        let exported = match &args.output {
            None => sessions.export(session, &mut ui.json_out()).await,
            Some(path) => {
                let file = File::create_new(path).map_err(|error| {
                    CliError::failed(format!("{}: {error}", path.display()))
                        .hint("give a file that does not exist yet with --output")
                })?;
                let exported = sessions.export(session, &mut BufWriter::new(file)).await;
                if exported.is_err() {
                    // The file is ours and incomplete.
                    let _ = std::fs::remove_file(path);
                }
                exported
            }
        };
        exported.map(|()| 0).map_err(|error| match error {
            ExportError::Session(error) => error.into(),
            ExportError::Io(error) => error.into(),
            error => CliError::failed(error),
        })
    })
}

pub(crate) fn import(args: &Import, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let unreadable =
        |error: io::Error| CliError::usage(format!("{}: {error}", args.file.display()));
    let mut text: Box<dyn BufRead + Send> = match args.file.to_str() {
        Some("-") => Box::new(BufReader::with_capacity(CHUNK, io::stdin())),
        _ => Box::new(BufReader::with_capacity(CHUNK, File::open(&args.file).map_err(unreadable)?)),
    };
    let session = block_on(async {
        let sessions = sessions(folders, "import").await?;
        let invalid = |error: &dyn std::fmt::Display| {
            CliError::failed(format!("{}: {error}", args.file.display()))
                .hint("export it again with `holdpoint export`, where its session is")
        };
        let imported = sessions.import(&mut *text).await.map_err(|error| match error {
            // The daemon has found the error in the text.
            ImportError::Session(error @ SessionError::Request(RequestError::Malformed { .. })) => {
                invalid(&error)
            }
            ImportError::Session(error) => error.into(),
            ImportError::Io(error) => unreadable(error),
            error => invalid(&error),
        });
        Ok::<_, CliError>(sessions.look(imported?.as_str()).await?)
    })?;
    let SessionSettings { id, workspace, .. } = &*session.settings;
    let workspace_exists = Path::new(workspace).is_dir();
    match args.json {
        true => ui.json(&json!({
            "session": id,
            "workspace": workspace,
            "workspaceMissing": !workspace_exists,
        }))?,
        false => ui.print(&format!("{id}\n"))?,
    }
    if !workspace_exists {
        let message = format!(
            "its folder {} does not exist: its tools fail until it does",
            prose_line(workspace)
        );
        ui.line(Tone::Warning, &message)?;
        ui.flush()?;
    }
    Ok(0)
}
