//! The tool `write_file`: writes a whole file at once.

use std::cell::RefCell;
use std::fmt::Display;
use std::io;

use holdpoint_common::{FileMark, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::failed_intent::failure_details;
use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::change::Change;
use crate::files::form::{BYTE_ORDER_MARK, Form};
use crate::files::mark::{is_same, mark_of};
use crate::files::old_file::OldFile;
use crate::files::text_encoding::TextEncoding;
use crate::input::{parse, schema_of};
use crate::place::{JudgedPlace, OpenParent, Place, near};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

const NAME: &str = "write_file";

/// The tool `write_file`: writes a whole file and creates missing folders.
///
/// The write is atomic: the text goes into a new file in the same folder, which then replaces the
/// old one. The permissions, encoding and byte order mark of an existing file are kept. If all its
/// lines end in CRLF, a new text without carriage returns gets CRLF line ends. Otherwise the text
/// is written as given. A link at the path is followed, and its target is written.
///
/// The encoding is the one that the call names, else that of the old text, else UTF-8. An old file
/// that is not text in this encoding, has the byte order mark of another one, or is larger than 64
/// MiB, is replaced only if the user approves this call; an *always* does not cover it.
///
/// The call fails, and creates no file or folder, if the path leads elsewhere than when this
/// instance judged the call, or if the file has changed since a call of the session last read or
/// wrote it, or since the diff was shown to the user.
///
/// A diff of more than 4 MiB is not shown. A call that needs approval then fails: at once if the
/// file may be read without approval, else after an ask that shows the error. Where writing needs
/// no approval, files may be of any size.
#[derive(Debug, Default)]
pub struct WriteFile {
    judged: JudgedPlace,
    /// Set when the call is shown: the mark of the old file, `Some(Ok(None))` if there was no file,
    /// or the error that prevented showing the call.
    shown: RefCell<Option<Result<Option<FileMark>, ToolError>>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The path of the file: absolute, or relative to the workspace folder. Missing folders are
    /// created.
    path: String,
    /// The complete new text of the file.
    content: String,
    /// The encoding of the file, such as windows-1252. Default: the encoding of the replaced text,
    /// or UTF-8.
    encoding: Option<String>,
}

impl WriteFile {
    /// Creates an instance of the tool.
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
        "Writes a whole file: creates it, or replaces all of its text. Missing folders are created. If all lines of \
         the old text end in CRLF, the new lines do, too; the encoding is kept."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input = Input::new(input)?;
        let requested = TextEncoding::named(input.encoding.as_ref())?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        self.shown.take();
        let acts = vec![Act::Write(place.clone())];
        let mut loses_content = false;
        let (message, details) =
            match workspace.policy().judge(NAME, &acts, workspace.root()).verdict {
                // The details will not be shown.
                Verdict::Allow | Verdict::Deny => ("Write this file?", None),
                Verdict::Ask => {
                    match self.prepare_ask(&place, &input.content, requested, workspace) {
                        Ok(ShownFile { message, details, loses_content: loses }) => {
                            loses_content = loses;
                            (message, Some(details))
                        }
                        Err(error) => {
                            let keep = |error| drop(self.shown.replace(Some(Err(error))));
                            (
                                "Write this file?",
                                Some(failure_details(error, NAME, &place, workspace, keep)?),
                            )
                        }
                    }
                }
            };
        // Ask every time about protected files, and about content that can't be shown.
        let always = (!loses_content && !workspace.policy().protects(&place, workspace.root()))
            .then(|| format!("write {}", place.path().display()));
        Ok(Intent { acts, message: message.to_owned(), details, always })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input = Input::new(&input)?;
        let requested = TextEncoding::named(input.encoding.as_ref())?;
        let place = self.judged.resolve(&input.path, context.root())?;
        // If the details could not be shown, the call fails even if it was approved.
        let shown = self.shown.take().transpose()?;
        let files = context.workspace().files();
        files.with_lock(place.path(), || {
            let failed =
                |error: io::Error| ToolError::failed(format!("{}: {error}", place.shown()));
            if context.is_cancelled() {
                return Err(ToolError::Interrupted);
            }
            check_folder(&place, context.workspace())?;
            let old = find(&place, requested).map_err(failed)?;
            let now = old.as_ref().map(|old| &old.mark);
            if now.is_some_and(|now| files.is_changed(now)) {
                let why = format!(
                    "{}: the file has changed since it was last read: read it again",
                    place.shown()
                );
                return Err(ToolError::failed(why));
            }
            // Without an ask, the user has not approved the loss of content that is not text.
            if shown.is_none()
                && let Some(Err(why)) = old.as_ref().map(|old| &old.text)
            {
                let why = format!(
                    "{}: {why}; to replace the file, remove it with a command first",
                    place.shown()
                );
                return Err(ToolError::failed(why));
            }
            let is_as_shown = shown.is_none_or(|shown| match (&shown, now) {
                (Some(shown), Some(now)) => is_same(shown, now),
                (shown, now) => shown.is_none() && now.is_none(),
            });
            if !is_as_shown {
                let why =
                    format!("{} has changed since it was shown: nothing was done", place.shown());
                return Err(ToolError::failed(why));
            }
            // A name that is nearly that of an existing file may be intended or a mistake.
            let near_hint = match &old {
                None => near::hint(place.path(), NAME, context.workspace()),
                Some(_) => String::new(),
            };
            let form = form(old.as_ref(), requested);
            let encoding = encoding(old.as_ref(), requested);
            let text = form.apply_to(&input.content);
            let content = encoding
                .encode(&text)
                .map_err(|why| ToolError::failed(format!("{}: {why}", place.shown())))?;
            let parent = OpenParent::open_or_create(place.path()).map_err(failed)?;
            let replace = || parent.replace(old.as_ref().map(|old| &old.metadata), &content);
            let file = context.writing(place.path(), &content, replace).map_err(failed)?;
            let mark = mark_of(&place, &file.metadata().map_err(failed)?, &content);
            files.record_write(old.map(|old| old.mark), mark.clone());
            let encoded = if encoding == TextEncoding::Utf8 {
                String::new()
            } else {
                format!(" in {encoding}")
            };
            let line_ends_note = if form.changes_line_ends(&input.content) {
                ", CRLF line endings kept"
            } else {
                ""
            };
            let output = format!(
                "wrote {} ({} bytes{encoded}{line_ends_note}){near_hint}",
                place.shown(),
                content.len()
            );
            Ok(ToolOutcome { wrote: vec![mark], ..ToolOutcome::text(output) })
        })
    }
}

/// The text of an ask about the call.
struct ShownFile {
    message: &'static str,
    details: String,
    /// The call replaces content that could not be shown.
    loses_content: bool,
}

impl WriteFile {
    /// Returns the text of the ask, and remembers the mark of the old file.
    fn prepare_ask(
        &self,
        place: &Place,
        content: &str,
        requested: Option<TextEncoding>,
        workspace: &Workspace,
    ) -> Result<ShownFile, ToolError> {
        check_folder(place, workspace)?;
        let failed = |error: &dyn Display| ToolError::failed(format!("{}: {error}", place.shown()));
        let old = find(place, requested).map_err(|error| failed(&error))?;
        let mark = old.as_ref().map(|old| old.mark.clone());
        let encoding = encoding(old.as_ref(), requested);
        let content = form(old.as_ref(), requested).apply_to(content).into_owned();
        // Report a character that can't be encoded before the user is asked.
        encoding.encode(&content).map_err(|why| failed(&why))?;
        let whole = |content: &str| shown::diff(place.shown(), None, content);
        let loses_content = old.as_ref().is_some_and(|old| old.text.is_err());
        let (message, diff) = match old.map(|old| old.text) {
            None => ("Create this file?", whole(&content)),
            Some(Ok(text)) => {
                ("Replace this file?", Change::between(text, content).shown(place.shown()))
            }
            Some(Err(why)) => {
                let diff = whole(&content)
                    .map(|diff| format!("The current content is not shown: {why}.\n\n{diff}"));
                ("Replace this file?", diff)
            }
        };
        let diff = diff.map_err(|error| failed(&error))?;
        self.shown.replace(Some(Ok(mark)));
        Ok(ShownFile { message, details: shown::with_encoding(diff, encoding), loses_content })
    }
}

impl Input {
    fn new(input: &Value) -> Result<Self, ToolError> {
        let input: Self = parse(input)?;
        if input.path.ends_with('/') || input.path.ends_with("/.") {
            return Err(ToolError::input(format!("{}: it is a folder, not a file", input.path)));
        }
        Ok(input)
    }
}

/// Refuses to create a folder if one of nearly the same name exists.
fn check_folder(place: &Place, workspace: &Workspace) -> Result<(), ToolError> {
    let Some(folder) = place.path().parent().filter(|folder| folder.symlink_metadata().is_err())
    else {
        return Ok(());
    };
    let near = near::hint(folder, NAME, workspace);
    if near.is_empty() {
        return Ok(());
    }
    let why = format!(
        "{}: no such folder{near}: write there, or create the folder with a command first",
        place.shown()
    );
    Err(ToolError::failed(why))
}

/// The old file. `None` if the file or its folder is missing.
fn find(place: &Place, requested: Option<TextEncoding>) -> io::Result<Option<OldFile>> {
    match OpenParent::open_existing(place.path()) {
        Ok(parent) => OldFile::read(&parent, place, requested),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The form of the new text: that of the text it replaces. Without an old text, a file in UTF-16
/// begins with a byte order mark, so that its encoding is detected from then on.
fn form(old: Option<&OldFile>, requested: Option<TextEncoding>) -> Form {
    match old.map(|old| &old.text) {
        Some(Ok(text)) => Form::from_text(text),
        Some(Err(_)) | None if requested.is_some_and(TextEncoding::has_zeros) => {
            Form::from_text(BYTE_ORDER_MARK)
        }
        Some(Err(_)) | None => Form::default(),
    }
}

/// The encoding of the new text: the requested one, else that of the text it replaces, else UTF-8.
fn encoding(old: Option<&OldFile>, requested: Option<TextEncoding>) -> TextEncoding {
    let old_encoding = old.filter(|old| old.text.is_ok()).map(|old| old.encoding);
    requested.or(old_encoding).unwrap_or_default()
}
