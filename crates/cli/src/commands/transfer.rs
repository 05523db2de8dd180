//! `holdpoint export` and `import`

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter};
use std::path::{Path, PathBuf};

use holdpoint_common::SessionSettings;
use holdpoint_session::folders::Folders;
use holdpoint_session::transfer::{ExportError, ImportError};
use holdpoint_tools::shown::prose_line;
use serde_json::json;

use crate::error::CliError;
use crate::runtime::block_on;
use crate::select::{SessionArg, tell_meant};
use crate::sessions::sessions;
use crate::ui::{Style, Ui};

/// Bytes of a text that are read at a time.
const CHUNK: usize = 64 * 1024;

/// Writes a session out as JSON lines: all that is saved of it, live or not
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    #[command(flatten)]
    session: SessionArg,

    /// Writes it to this file, which must not be there yet, instead of standard output
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Takes a session in that was written out, here or elsewhere, and prints its id
///
/// It has its own id, unless there is one of that id already. Nothing of it runs. Whatever it was allowed, here it asks.
#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// The file; `-` reads standard input
    #[arg(value_name = "FILE | -")]
    file: PathBuf,

    /// Prints what came of it as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn export(args: &Export, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    block_on(async {
        let sessions = sessions(folders, "export").await?;
        let what = &args.session.session;
        tell_meant(what, &*sessions.look(what).await?, ui)?;
        let exported = match &args.output {
            None => sessions.export(what, &mut ui.json_out()).await,
            Some(path) => {
                let file = File::create_new(path).map_err(|error| {
                    CliError::failed(format!("{}: {error}", path.display()))
                        .hint("--output names a file that is not there yet")
                })?;
                let exported = sessions.export(what, &mut BufWriter::new(file)).await;
                if exported.is_err() {
                    // It is ours, and not whole.
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
    let unreadable = |error: io::Error| CliError::usage(format!("{}: {error}", args.file.display()));
    let mut text: Box<dyn BufRead + Send> = match args.file.to_str() {
        Some("-") => Box::new(BufReader::with_capacity(CHUNK, io::stdin())),
        _ => Box::new(BufReader::with_capacity(CHUNK, File::open(&args.file).map_err(unreadable)?)),
    };
    let session = block_on(async {
        let sessions = sessions(folders, "import").await?;
        let wrong = |error: &dyn std::fmt::Display| {
            CliError::failed(format!("{}: {error}", args.file.display()))
                .hint("`holdpoint export` writes it again, where its session is")
        };
        let imported = sessions.import(&mut *text).await.map_err(|error| match error {
            // The daemon has read it.
            ImportError::Session(error) if error.code() == "malformed" => wrong(&error),
            ImportError::Session(error) => error.into(),
            ImportError::Io(error) => unreadable(error),
            error => wrong(&error),
        });
        Ok::<_, CliError>(sessions.look(imported?.as_str()).await?)
    })?;
    let SessionSettings { id, workspace, .. } = &*session.settings;
    let there = Path::new(workspace).is_dir();
    match args.json {
        true => ui.json(&json!({ "session": id, "workspace": workspace, "workspaceMissing": !there }))?,
        false => ui.print(&format!("{id}\n"))?,
    }
    if !there {
        let what = format!("its folder {} is not there: its tools fail until it is", prose_line(workspace));
        ui.line(Style::Warning, &what)?;
        ui.flush()?;
    }
    Ok(0)
}
