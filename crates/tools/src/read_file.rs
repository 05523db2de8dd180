//! The tool `read_file`: shows lines of a text file.

use std::fmt::Write;
use std::io::{self, BufRead, BufReader, Read};

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

/// Lines of one call.
const MAX_LINES: usize = 2_000;

/// Bytes of one call's text, without the numbers of lines.
const MAX_BYTES: usize = 64 * 1024;

/// Bytes of a file that is read at all: to count lines, all before the first wanted one are read.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// Bytes in which a zero byte says that a file is no text.
const PROBE: usize = 8 * 1024;

/// The tool `read_file`: shows lines of a text file, numbered from 1.
///
/// One call shows at most 2,000 lines and 64 KiB, and says what it left out. Files of more than 256 MiB,
/// binary files, folders, devices and pipes are errors. What is not UTF-8 is shown as U+FFFD, and said.
///
/// If the path leads elsewhere than it did when this instance judged it, nothing is read.
#[derive(Debug, Default)]
pub struct ReadFile {
    judged: Judged,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file: absolute, or relative to the workspace folder.
    path: String,
    /// The first line to show, counted from 1: 1 if not given.
    offset: Option<usize>,
    /// How many lines to show: at most 2000, which it is if not given.
    limit: Option<usize>,
}

impl ReadFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for ReadFile {
    fn name(&self) -> &str {
        "read_file"
    }

    fn description(&self) -> &str {
        "Shows lines of a text file, each with its number. One call shows at most 2000 lines and 64 KiB and says \
         how to go on; offset and limit choose which."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        Ok(Intent {
            details: Some(place.path.display().to_string()),
            always: Some(format!("read {}", place.path.display())),
            ..Intent::new(Act::Read(place.clone()), "Read this file?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let first = input.offset.unwrap_or(1);
        let limit = input.limit.unwrap_or(MAX_LINES);
        if first == 0 || limit == 0 {
            return Err(ToolError::input("offset and limit are counted from 1"));
        }
        let place = self.judged.resolve(&input.path, context.root())?;
        let failed = |error: io::Error| ToolError::failed(format!("{}: {error}", place.shown));
        let file = open(&place.path, OFlags::RDONLY).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        let refused = |what: &str| Err(ToolError::failed(format!("{}: {what}", place.shown)));
        if metadata.is_dir() {
            return refused("it is a folder");
        }
        if !metadata.is_file() {
            return refused("it is a device, a pipe or a socket, not a file");
        }
        if metadata.len() > MAX_FILE {
            return refused(&format!("{} bytes are too many; look into it with a command", metadata.len()));
        }
        let mut lines = BufReader::with_capacity(PROBE, file.take(MAX_FILE));
        if lines.fill_buf().map_err(failed)?.contains(&0) {
            return refused(&format!("a binary file of {} bytes", metadata.len()));
        }
        let output =
            show(lines, first, limit.min(MAX_LINES), context).map_err(failed)?.ok_or(ToolError::Interrupted)?;
        let mark = place.mark(&metadata);
        context.workspace().files().saw(mark.clone());
        Ok(ToolOutcome { read: vec![mark], ..ToolOutcome::text(output) })
    }
}

/// The lines as they are shown; `None` if the turn was cut.
fn show(mut lines: impl BufRead, first: usize, limit: usize, context: &ToolContext) -> io::Result<Option<String>> {
    let mut output = String::new();
    let mut notes = Vec::new();
    let mut line = Vec::new();
    let (mut number, mut shown, mut bytes, mut foreign) = (0, 0, 0, false);
    let mut more = false;
    loop {
        if number % 4_096 == 0 && context.is_cancelled() {
            return Ok(None);
        }
        if number + 1 < first {
            if lines.skip_until(b'\n')? == 0 {
                break;
            }
            number += 1;
            continue;
        }
        line.clear();
        if shown == limit || bytes >= MAX_BYTES {
            more = !lines.fill_buf()?.is_empty();
            break;
        }
        let room = MAX_BYTES - bytes;
        // One byte more than there is room for tells that the line does not fit.
        if lines.by_ref().take(room as u64 + 1).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        number += 1;
        let cut = line.len() > room;
        if cut && shown > 0 {
            number -= 1;
            more = true;
            break;
        }
        if cut {
            line.truncate(room);
            lines.skip_until(b'\n')?;
            notes.push(format!("line {number} is longer than {MAX_BYTES} bytes and cut"));
        }
        bytes += line.len();
        shown += 1;
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        // A character that the cut has split is no fault of the file.
        foreign |= str::from_utf8(text).is_err_and(|error| !cut || error.error_len().is_some());
        let _ = writeln!(output, "{number:>6}\t{}", String::from_utf8_lossy(text));
    }
    if shown == 0 {
        notes.push(match number {
            0 => "the file is empty".to_owned(),
            lines => format!("the file has {lines} lines"),
        });
    }
    if more {
        notes.push(format!("there is more: go on with offset {}", number + 1));
    }
    if foreign {
        notes.push("the file is not UTF-8: what could not be read is shown as \u{fffd}".to_owned());
    }
    if !notes.is_empty() {
        let _ = writeln!(output, "[{}]", notes.join("; "));
    }
    Ok(Some(output))
}
