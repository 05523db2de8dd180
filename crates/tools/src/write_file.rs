//! The tool `write_file`: writes a whole file at once.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::fs::OFlags;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::input::{parse, schema_of};
use crate::place::{Judged, open};
use crate::tool::{Intent, Tool, ToolError, ToolOutcome};
use crate::workspace::Workspace;

/// The tool `write_file`: writes a whole file, with the folders it needs.
///
/// All or nothing: the text goes into a new file beside it, which then takes its place. An existing file's
/// permissions are kept; a link at its path is followed and what it leads to is written.
///
/// If the path leads elsewhere than it did when this instance judged it, nothing is written.
#[derive(Debug, Default)]
pub struct WriteFile {
    judged: Judged,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file: absolute, or relative to the workspace folder. Missing folders are made.
    path: String,
    /// All of the file's new text.
    content: String,
}

impl WriteFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for WriteFile {
    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        "Writes a whole file: makes it, or replaces all of its text. Missing folders are made."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        let path = place.path.display();
        let message = if place.path.exists() { "Replace this file?" } else { "Make this file?" };
        Ok(Intent {
            details: Some(format!("{path}\n\n{}", input.content)),
            always: Some(format!("write {path}")),
            ..Intent::new(Act::Write(place.clone()), message)
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let place = self.judged.resolve(&input.path, context.root())?;
        if context.is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        let failed = |error: io::Error| ToolError::failed(format!("{}: {error}", place.shown));
        let folder = place.path.parent().ok_or_else(|| ToolError::failed("the root folder is not a file"))?;
        fs::create_dir_all(folder).map_err(failed)?;
        let file = write(folder, &place.path, input.content.as_bytes()).map_err(failed)?;
        let mark = place.mark(&file.metadata().map_err(failed)?);
        context.workspace().files().saw(mark.clone());
        let output = format!("wrote {} ({} bytes)", place.shown, input.content.len());
        Ok(ToolOutcome { wrote: vec![mark], ..ToolOutcome::text(output) })
    }
}

fn write(folder: &Path, path: &Path, content: &[u8]) -> io::Result<File> {
    // What was judged is where the path led. Held open: a link that is put in its way now leads nowhere.
    let opened = open(folder, OFlags::RDONLY | OFlags::DIRECTORY)?;
    #[cfg(target_os = "linux")]
    let folder = &Path::new("/proc/self/fd").join(std::os::fd::AsRawFd::as_raw_fd(&opened).to_string());
    let name = path.file_name().ok_or(io::ErrorKind::IsADirectory)?;
    let path = &folder.join(name);
    let mode = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
        Ok(metadata) if metadata.is_file() => Some(metadata.permissions().mode() & 0o7777),
        Ok(_) => return Err(io::Error::other("it is a link, a device, a pipe or a socket, not a file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    let mut builder = tempfile::Builder::new();
    // Without a mode of its own, what the umask leaves of this, like any new file.
    builder.prefix(".holdpoint-").permissions(Permissions::from_mode(0o666));
    let mut new = builder.tempfile_in(folder)?;
    new.write_all(content)?;
    if let Some(mode) = mode {
        new.as_file().set_permissions(Permissions::from_mode(mode))?;
    }
    // Replaces whatever is there by then, a link included, and never writes through it.
    let file = new.persist(path)?;
    drop(opened);
    Ok(file)
}
