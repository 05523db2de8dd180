//! The command `holdpoint man`.

use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::Command;
use clap_mangen::Man;

use crate::error::CliError;
use crate::ui::Ui;

/// Print the manual page, or write the pages of all commands to a folder
#[derive(Debug, clap::Args)]
#[command(after_help = "For example:  holdpoint man | man -l -
              holdpoint man ~/.local/share/man/man1")]
pub(crate) struct Args {
    /// Write a page for each command into this folder, which is created if it does not exist
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn carry_out(args: &Args, command: Command, ui: &mut Ui) -> Result<i32, CliError> {
    match &args.folder {
        Some(folder) => {
            write_pages(folder, command).map_err(|error| {
                let message =
                    format!("the pages can't be written to {}: {error}", folder.display());
                CliError::failed(message).hint("give a folder that you can write to")
            })?;
        }
        None => {
            let mut page = Vec::new();
            Man::new(command).render(&mut page)?;
            ui.write(&page)?;
        }
    }
    Ok(0)
}

/// Writes a page for each command. A link with the name of a page is replaced, not followed.
fn write_pages(folder: &Path, command: Command) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let temporary = tempfile::tempdir_in(folder)?;
    clap_mangen::generate_to(command, &temporary)?;
    for page in fs::read_dir(&temporary)? {
        let page = page?;
        fs::rename(page.path(), folder.join(page.file_name()))?;
    }
    Ok(())
}
