//! The tool `read_file`: shows lines of a text file.

mod page;

use std::io::{self, BufRead, BufReader, Read};

use holdpoint_common::FileMark;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::coding::Coding;
use crate::files::form::{BYTE_ORDER_MARK, is_binary};
use crate::files::mark::{Hashing, MAX_HASHED, mark};
use crate::files::old_file::NoText;
use crate::input::{parse, schema_of};
use crate::place::{Judged, Place, Spot, near};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;
use page::Page;

/// The tool's name.
const NAME: &str = "read_file";

/// Lines of one call.
const MAX_LINES: usize = 2_000;

/// Bytes of a file that is read at all: to count its lines, all of it is.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// Bytes that are read at once.
const CHUNK: usize = 128 * 1024;

/// The tool `read_file`: shows lines of a text file, numbered from 1.
///
/// One call shows at most 2,000 lines and 64 KiB, and says what it left out and how to go on. Files of more than 256
/// MiB, binary files, folders, devices and pipes are errors. The encoding is that of the byte order mark, else the one
/// that the call names, else UTF-8; a file in another encoding than UTF-8 has at most 64 MiB. Bytes that are not text in
/// it are shown as U+FFFD, and lines that end in carriage return and line feed without both; a note says so.
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
    /// The file's encoding, such as windows-1252. Needed only if it is not UTF-8 and the file has no byte order mark.
    encoding: Option<String>,
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
        NAME
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
        Coding::named(input.encoding.as_ref())?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        let path = place.path().to_string_lossy().into_owned();
        Ok(Intent {
            details: Some(shown::line(&path).into_owned()),
            always: Some(format!("read {path}")),
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
        let named = Coding::named(input.encoding.as_ref())?;
        let place = self.judged.resolve(&input.path, context.root())?;
        // What is told of the file and what it is remembered by have to be the same.
        let files = context.workspace().files();
        files.alone_with(place.path(), || {
            let read = read(&place, named, first, limit.min(MAX_LINES), context)?;
            files.read(read.mark.clone());
            Ok(ToolOutcome { read: vec![read.mark], ..ToolOutcome::text(read.output) })
        })
    }
}

/// What was read.
struct Reading {
    output: String,
    mark: FileMark,
}

fn read(
    place: &Place,
    named: Option<Coding>,
    first: usize,
    limit: usize,
    context: &ToolContext,
) -> Result<Reading, ToolError> {
    let failed = |error: io::Error| near::failure(place, &error, NAME, context.workspace());
    let refused = |what: String| Err(ToolError::failed(format!("{}: {what}", place.shown())));
    let Some((file, metadata)) = Spot::of(place.path()).and_then(|spot| spot.open()).map_err(failed)? else {
        return refused(format!("there is no such file{}", near::hint(place.path(), NAME, context.workspace())));
    };
    if metadata.len() > MAX_FILE {
        return refused(format!("{} bytes are too many; look into it with a command", metadata.len()));
    }
    let mut content = BufReader::with_capacity(CHUNK, Hashing::new(file.take(MAX_FILE)));
    let probe = content.fill_buf().map_err(failed)?;
    let coding = match (Coding::marked(probe), named) {
        (Some(marked), Some(named)) if marked != named => return refused(NoText::Marked(marked, named).to_string()),
        (marked, named) => named.or(marked).unwrap_or_default(),
    };
    if is_binary(probe) && !coding.has_zeros() {
        return refused(match metadata.len() {
            // So files say that are made as they are read.
            0 => "a binary file".to_owned(),
            bytes => format!("a binary file of {bytes} bytes"),
        });
    }
    let output = match coding {
        Coding::Utf8 => {
            if probe.starts_with(BYTE_ORDER_MARK.as_bytes()) {
                content.consume(BYTE_ORDER_MARK.len());
            }
            Page::new(context).of(&mut content, first, limit)
        }
        coding => {
            let mut bytes = Vec::new();
            content.by_ref().take(MAX_HASHED + 1).read_to_end(&mut bytes).map_err(failed)?;
            if bytes.len() as u64 > MAX_HASHED {
                let most = MAX_HASHED / 1024 / 1024;
                return refused(format!("more than {most} MiB of {coding} are too many; look into it with a command"));
            }
            let text = coding.decode_lossily(&bytes);
            drop(bytes);
            let mut text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text).as_bytes();
            Page::new(context).in_coding(coding).of(&mut text, first, limit)
        }
    };
    let output = output.map_err(failed)?.ok_or(ToolError::Interrupted)?;
    let mark = mark(place, &metadata, content.get_ref().hash());
    Ok(Reading { output, mark })
}
