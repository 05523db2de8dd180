//! The tool `write_file`: writes a whole file at once.

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;

use holdpoint_common::{FileMark, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::files::change::Change;
use crate::files::mark::{is_same, mark_of};
use crate::files::old_file::OldFile;
use crate::input::{parse, schema_of};
use crate::place::{Judged, Place, Spot};
use crate::shown;
use crate::tool::{Intent, Tool, ToolError, ToolOutcome};
use crate::workspace::Workspace;

/// What the model calls it by.
const NAME: &str = "write_file";

/// The mark of text files that some editors put first. Not part of the text, and nobody sees it.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The tool `write_file`: writes a whole file, with the folders it needs.
///
/// All or nothing: the text goes into a new file beside it, which then takes its place. An existing file's
/// permissions and byte order mark are kept; all else, line ends too, is as given. A link at its path is followed and
/// what it leads to is written.
///
/// If the path leads elsewhere than it did when this instance judged the call, nothing is written. Nor if the file has
/// changed since a call of the session has last read or written it, or since the diff was shown to the user.
#[derive(Debug, Default)]
pub struct WriteFile {
    judged: Judged,
    /// What was there when the call was shown, if it was.
    shown: RefCell<Option<Option<FileMark>>>,
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
        self.shown.take();
        let acts = vec![Act::Write(place.clone())];
        let (message, details) = match workspace.policy().judge(NAME, &acts, workspace.root()).verdict {
            // Nobody is going to see it.
            Verdict::Allow | Verdict::Deny => ("Write this file?", None),
            Verdict::Ask => {
                let (message, details) = self.show(&place, &input.content);
                (message, Some(details))
            }
        };
        let always = Some(format!("write {}", place.path().display()));
        Ok(Intent { acts, message: message.to_owned(), details, always })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let place = self.judged.resolve(&input.path, context.root())?;
        let shown = self.shown.take();
        let files = context.workspace().files();
        files.alone_with(place.path(), || {
            let failed = |error: io::Error| ToolError::failed(format!("{}: {error}", place.shown()));
            if context.is_cancelled() {
                return Err(ToolError::Interrupted);
            }
            let spot = Spot::make(place.path()).map_err(failed)?;
            let old = OldFile::at(&spot, &place).map_err(failed)?;
            let now = old.as_ref().map(|old| &old.mark);
            if now.is_some_and(|now| files.is_changed(now)) {
                let why = format!("{}: it has changed since it was last read: read it again", place.shown());
                return Err(ToolError::failed(why));
            }
            let is_as_shown = shown.is_none_or(|shown| match (&shown, now) {
                (Some(shown), Some(now)) => is_same(shown, now),
                (shown, now) => shown.is_none() && now.is_none(),
            });
            if !is_as_shown {
                let why = format!("{} has changed since it was shown: nothing was done", place.shown());
                return Err(ToolError::failed(why));
            }
            let content = with_mark_of(old.as_ref(), &input.content);
            let file = spot.replace(old.as_ref().map(|old| &old.metadata), content.as_bytes()).map_err(failed)?;
            let mark = mark_of(&place, &file.metadata().map_err(failed)?, content.as_bytes());
            files.wrote(old.map(|old| old.mark), mark.clone());
            let output = format!("wrote {} ({} bytes)", place.shown(), content.len());
            Ok(ToolOutcome { wrote: vec![mark], ..ToolOutcome::text(output) })
        })
    }
}

impl WriteFile {
    /// The question and what would be done. What is found is remembered.
    fn show(&self, place: &Place, content: &str) -> (&'static str, String) {
        let old = match Spot::of(place.path()).and_then(|spot| OldFile::at(&spot, place)) {
            Ok(old) => old,
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let path = shown::line(place.shown());
                return ("Write this file?", format!("{path}\n\nAs it is, this will fail: {error}\n"));
            }
        };
        self.shown.replace(Some(old.as_ref().map(|old| old.mark.clone())));
        let content = with_mark_of(old.as_ref(), content).into_owned();
        match old.map(|old| old.text) {
            None => ("Make this file?", shown::diff(place.shown(), None, &content)),
            Some(Ok(text)) => ("Replace this file?", Change::between(text, content).shown(place.shown())),
            Some(Err(why)) => {
                let all = shown::diff(place.shown(), None, &content);
                ("Replace this file?", format!("What is there is not shown: {why}.\n\n{all}"))
            }
        }
    }
}

/// What is written: the content, behind the byte order mark if the file has one.
fn with_mark_of<'a>(old: Option<&OldFile>, content: &'a str) -> Cow<'a, str> {
    let is_marked = |text: &String| text.starts_with(BYTE_ORDER_MARK);
    match old.is_some_and(|old| old.text.as_ref().is_ok_and(is_marked)) && !content.starts_with(BYTE_ORDER_MARK) {
        true => format!("{BYTE_ORDER_MARK}{content}").into(),
        false => content.into(),
    }
}
