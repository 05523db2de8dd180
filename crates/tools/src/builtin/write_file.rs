//! The tool `write_file`: writes a whole file at once.

use std::cell::RefCell;
use std::error::Error;
use std::io;

use holdpoint_common::{FileMark, Verdict};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::asking::failing;
use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::change::Change;
use crate::files::form::Form;
use crate::files::mark::{is_same, mark_of};
use crate::files::old_file::OldFile;
use crate::input::{parse, schema_of};
use crate::place::{Judged, Place, Spot};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

/// What the model calls it by.
const NAME: &str = "write_file";

/// The tool `write_file`: writes a whole file, with the folders it needs.
///
/// All or nothing: the text goes into a new file beside it, which then takes its place. An existing file's
/// permissions and byte order mark are kept, and if all its lines end in carriage return and line feed, so do those of
/// a text that has no carriage return. All else is as given. A link at its path is followed and what it leads to is
/// written.
///
/// If the path leads elsewhere than it did when this instance judged the call, nothing is written. Nor if the file has
/// changed since a call of the session has last read or written it, or since the diff was shown to the user. Nothing is
/// made before all of this is known.
///
/// A diff of more than 4 MiB is not shown: where the user would be asked, that is an error, or what the user is told
/// if the file may not be read unasked. Where writing is allowed unasked, files may be of any size.
#[derive(Debug, Default)]
pub struct WriteFile {
    judged: Judged,
    /// What was there when the call was shown, or why it could not be.
    shown: RefCell<Option<Result<Option<FileMark>, ToolError>>>,
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
        "Writes a whole file: makes it, or replaces all of its text. Missing folders are made. If all lines of the old \
         text end in CRLF, the new ones do, too."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input = Input::new(input)?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        self.shown.take();
        let acts = vec![Act::Write(place.clone())];
        let (message, details) = match workspace.policy().judge(NAME, &acts, workspace.root()).verdict {
            // Nobody is going to see it.
            Verdict::Allow | Verdict::Deny => ("Write this file?", None),
            Verdict::Ask => match self.show(&place, &input.content) {
                Ok((message, details)) => (message, Some(details)),
                Err(error) => {
                    let keep = |error| drop(self.shown.replace(Some(Err(error))));
                    ("Write this file?", Some(failing(error, NAME, &place, workspace, keep)?))
                }
            },
        };
        // What is protected is asked about every time.
        let always = (!workspace.policy().protects(&place)).then(|| format!("write {}", place.path().display()));
        Ok(Intent { acts, message: message.to_owned(), details, always })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input = Input::new(&input)?;
        let place = self.judged.resolve(&input.path, context.root())?;
        // What nobody has seen is not done.
        let shown = self.shown.take().transpose()?;
        let files = context.workspace().files();
        files.alone_with(place.path(), || {
            let failed = |error: io::Error| ToolError::failed(format!("{}: {error}", place.shown()));
            if context.is_cancelled() {
                return Err(ToolError::Interrupted);
            }
            let old = find(&place).map_err(failed)?;
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
            let form = form(old.as_ref());
            let content = form.give(&input.content);
            let spot = Spot::make(place.path()).map_err(failed)?;
            let file = spot.replace(old.as_ref().map(|old| &old.metadata), content.as_bytes()).map_err(failed)?;
            let mark = mark_of(&place, &file.metadata().map_err(failed)?, content.as_bytes());
            files.wrote(old.map(|old| old.mark), mark.clone());
            let told = if form.has_ends_for(&input.content) { ", lines end in CRLF as before" } else { "" };
            let output = format!("wrote {} ({} bytes{told})", place.shown(), content.len());
            Ok(ToolOutcome { wrote: vec![mark], ..ToolOutcome::text(output) })
        })
    }
}

impl WriteFile {
    /// The question and what would be done. What is found is remembered.
    fn show(&self, place: &Place, content: &str) -> Result<(&'static str, String), ToolError> {
        let failed = |error: &dyn Error| ToolError::failed(format!("{}: {error}", place.shown()));
        let old = find(place).map_err(|error| failed(&error))?;
        let mark = old.as_ref().map(|old| old.mark.clone());
        let content = form(old.as_ref()).give(content).into_owned();
        let all = |content: &str| shown::diff(place.shown(), None, content);
        let (message, diff) = match old.map(|old| old.text) {
            None => ("Make this file?", all(&content)),
            Some(Ok(text)) => ("Replace this file?", Change::between(text, content).shown(place.shown())),
            Some(Err(why)) => {
                let all = all(&content).map(|all| format!("What is there is not shown: {why}.\n\n{all}"));
                ("Replace this file?", all)
            }
        };
        let diff = diff.map_err(|error| failed(&error))?;
        self.shown.replace(Some(Ok(mark)));
        Ok((message, diff))
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

/// The file there, if there is one, and a folder for it.
fn find(place: &Place) -> io::Result<Option<OldFile>> {
    match Spot::of(place.path()) {
        Ok(spot) => OldFile::at(&spot, place),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The form that what is written takes: that of the text it replaces.
fn form(old: Option<&OldFile>) -> Form {
    old.and_then(|old| old.text.as_ref().ok()).map(|text| Form::of(text)).unwrap_or_default()
}
