//! The tool `read_file`: shows lines of a text file.

mod exact;
mod page;

use std::fs::{File, Metadata};
use std::io::{self, BufRead, BufReader, Read, Take};

use holdpoint_common::FileMark;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::form::{BYTE_ORDER_MARK, is_binary};
use crate::files::mark::{Hashing, MAX_HASHED, mark};
use crate::files::old_file::NotText;
use crate::files::text_encoding::TextEncoding;
use crate::input::{parse, schema_of};
use crate::place::{JudgedPlace, OpenParent, Place, near};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;
use page::Page;

const NAME: &str = "read_file";

/// The most lines that one call shows.
const MAX_LINES: usize = 2_000;

/// The largest file that is read, in bytes. The whole file is read, to count its lines.
const MAX_FILE: u64 = 256 * 1024 * 1024;

/// Bytes that are read at once.
const CHUNK: usize = 128 * 1024;

/// The tool `read_file`: shows lines of a text file, numbered from 1.
///
/// One call shows at most 2,000 lines and 64 KiB, and says how to continue. Files of more than 256
/// MiB, binary files, folders, devices and pipes are errors. The encoding is that of the byte order
/// mark, else the one that the call names, else UTF-8; a byte order mark of another encoding than
/// the named one is an error. In other encodings than UTF-8, a file may have at most 64 MiB. Bytes
/// that are invalid in the encoding are shown as U+FFFD, and CRLF line ends are not shown. Notes
/// report invalid UTF-8, other encodings and CRLF.
///
/// The call fails if the path leads elsewhere than when this instance judged it.
#[derive(Debug, Default)]
pub struct ReadFile {
    judged: JudgedPlace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The path of the file: absolute, or relative to the workspace folder.
    path: String,
    /// The number of the first line to show, counted from 1. Default 1.
    offset: Option<usize>,
    /// How many lines to show. Default 2000, at most 2000.
    limit: Option<usize>,
    /// The encoding of the file, such as windows-1252. Needed only if the file is not UTF-8 and has
    /// no byte order mark.
    encoding: Option<String>,
}

impl ReadFile {
    /// Creates an instance of the tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the lines that the input of a call names, or all lines if it has no `limit`, and returns
    /// their exact text, of at most `max_bytes`. A byte order mark is left out. Otherwise like
    /// [`call`](Tool::call), for a program that works with the text.
    ///
    /// # Errors
    /// As [`call`](Tool::call). Also an error if the text is too long or has invalid bytes.
    pub fn read_exact(
        &mut self,
        input: &Value,
        max_bytes: usize,
        context: &ToolContext,
    ) -> Result<(String, FileMark), ToolError> {
        let (place, requested, input) = self.begin(input, context)?;
        let (first, limit) = (input.offset.unwrap_or(1), input.limit.unwrap_or(usize::MAX));
        let lines = exact::Lines { first, limit, max_bytes };
        let files = context.workspace().files();
        files.with_lock(place.path(), || {
            let (text, mark) = exact::read(&place, requested, lines, context)?;
            files.record_read(mark.clone());
            Ok((text, mark))
        })
    }

    /// Checks the input of a call that was judged. Returns the file and its encoding, too.
    fn begin(
        &mut self,
        input: &Value,
        context: &ToolContext,
    ) -> Result<(Place, Option<TextEncoding>, Input), ToolError> {
        let input: Input = parse(input)?;
        if input.offset == Some(0) || input.limit == Some(0) {
            return Err(ToolError::input("offset and limit must be at least 1"));
        }
        let requested = TextEncoding::named(input.encoding.as_ref())?;
        let place = self.judged.resolve(&input.path, context.root())?;
        Ok((place, requested, input))
    }
}

impl Tool for ReadFile {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Shows lines of a text file, each with its number. One call shows at most 2000 lines and 64 KiB, and says how \
         to continue. offset and limit select the lines."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        TextEncoding::named(input.encoding.as_ref())?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        let path = place.path().to_string_lossy().into_owned();
        Ok(Intent {
            details: Some(shown::line(&path).into_owned()),
            always: Some(format!("read {path}")),
            ..Intent::new(Act::Read(place.clone()), "Read this file?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let (place, requested, input) = self.begin(&input, context)?;
        let first = input.offset.unwrap_or(1);
        let limit = input.limit.unwrap_or(MAX_LINES);
        // No call may write between the read and its record, so that the mark fits the output.
        let files = context.workspace().files();
        files.with_lock(place.path(), || {
            let read = read(&place, requested, first, limit.min(MAX_LINES), context)?;
            files.record_read(read.mark.clone());
            Ok(ToolOutcome { read: vec![read.mark], ..ToolOutcome::text(read.output) })
        })
    }
}

struct Reading {
    output: String,
    mark: FileMark,
}

/// A file that was opened, at its beginning.
struct OpenedFile {
    content: BufReader<Hashing<Take<File>>>,
    metadata: Metadata,
    encoding: TextEncoding,
}

impl OpenedFile {
    fn open(
        place: &Place,
        requested: Option<TextEncoding>,
        context: &ToolContext,
    ) -> Result<Self, ToolError> {
        let failed = |error: io::Error| near::failure(place, &error, NAME, context.workspace());
        let parent = OpenParent::open_existing(place.path());
        let Some((file, metadata)) = parent.and_then(|parent| parent.open()).map_err(failed)?
        else {
            let near = near::hint(place.path(), NAME, context.workspace());
            return Err(refused(place, &format!("no such file{near}")));
        };
        if metadata.len() > MAX_FILE {
            let why = format!(
                "the file is too large ({} bytes): read parts of it with a command",
                metadata.len()
            );
            return Err(refused(place, &why));
        }
        let mut content = BufReader::with_capacity(CHUNK, Hashing::new(file.take(MAX_FILE)));
        let probe = content.fill_buf().map_err(failed)?;
        let encoding = match (TextEncoding::of_bom(probe), requested) {
            (Some(bom), Some(requested)) if bom != requested => {
                let why = NotText::BomMismatch { bom, requested };
                return Err(refused(place, &why.to_string()));
            }
            (bom, requested) => requested.or(bom).unwrap_or_default(),
        };
        if is_binary(probe) && !encoding.has_zeros() {
            let why = match metadata.len() {
                // Files that are generated when they are read, as in `/proc`, have a size of 0.
                0 => "the file is binary".to_owned(),
                bytes => format!("the file is binary ({bytes} bytes)"),
            };
            return Err(refused(place, &why));
        }
        if encoding == TextEncoding::Utf8 && probe.starts_with(BYTE_ORDER_MARK.as_bytes()) {
            content.consume(BYTE_ORDER_MARK.len());
        }
        Ok(Self { content, metadata, encoding })
    }

    /// The bytes of a file that is not UTF-8.
    fn bytes(&mut self, place: &Place) -> Result<Vec<u8>, ToolError> {
        let mut bytes = Vec::new();
        let failed = |error: io::Error| refused(place, &error.to_string());
        self.content.by_ref().take(MAX_HASHED + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > MAX_HASHED {
            let (encoding, max_mib) = (self.encoding, MAX_HASHED / 1024 / 1024);
            return Err(refused(
                place,
                &format!(
                    "a file in {encoding} can have at most {max_mib} MiB: read parts of it with a command"
                ),
            ));
        }
        Ok(bytes)
    }

    /// The mark of the file, which was read to its end.
    fn mark(&self, place: &Place) -> FileMark {
        mark(place, &self.metadata, self.content.get_ref().hash())
    }
}

fn refused(place: &Place, why: &str) -> ToolError {
    ToolError::failed(format!("{}: {why}", place.shown()))
}

fn read(
    place: &Place,
    requested: Option<TextEncoding>,
    first: usize,
    limit: usize,
    context: &ToolContext,
) -> Result<Reading, ToolError> {
    let mut file = OpenedFile::open(place, requested, context)?;
    let output = match file.encoding {
        TextEncoding::Utf8 => Page::new(context).format_lines(&mut file.content, first, limit),
        encoding => {
            let bytes = file.bytes(place)?;
            let text = encoding.decode_lossily(&bytes);
            drop(bytes);
            let mut text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text).as_bytes();
            Page::new(context).in_encoding(encoding).format_lines(&mut text, first, limit)
        }
    };
    let failed = |error: io::Error| near::failure(place, &error, NAME, context.workspace());
    let output = output.map_err(failed)?.ok_or(ToolError::Interrupted)?;
    Ok(Reading { output, mark: file.mark(place) })
}
