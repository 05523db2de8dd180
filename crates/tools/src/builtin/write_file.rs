//! The tool `write_file`: writes a whole file at once.

use std::cell::RefCell;
use std::fmt::Display;
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
use crate::files::coding::Coding;
use crate::files::form::{BYTE_ORDER_MARK, Form};
use crate::files::mark::{is_same, mark_of};
use crate::files::old_file::OldFile;
use crate::input::{parse, schema_of};
use crate::place::{Judged, Place, Spot, near};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

/// What the model calls it by.
const NAME: &str = "write_file";

/// The tool `write_file`: writes a whole file, with the folders it needs.
///
/// All or nothing: the text goes into a new file beside it, which then takes its place. An existing file's
/// permissions, encoding and byte order mark are kept, and if all its lines end in carriage return and line feed, so do
/// those of a text that has no carriage return. All else is as given. A link at its path is followed, and the file it
/// leads to is written.
///
/// The encoding is that of the byte order mark, else the one that the call names, else UTF-8. A file that is not text in
/// it, or is larger than 64 MiB, is replaced only if the user was asked, each time: *always* does not count.
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
    /// The file's encoding, such as windows-1252. Without it: that of the text that is replaced, or UTF-8.
    encoding: Option<String>,
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
         text end in CRLF, the new ones do, too; its encoding is kept."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input = Input::new(input)?;
        let named = Coding::named(input.encoding.as_ref())?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        self.shown.take();
        let acts = vec![Act::Write(place.clone())];
        let mut loses = false;
        let (message, details) = match workspace.policy().judge(NAME, &acts, workspace.root()).verdict {
            // Nobody is going to see it.
            Verdict::Allow | Verdict::Deny => ("Write this file?", None),
            Verdict::Ask => match self.show(&place, &input.content, named, workspace) {
                Ok(Shown { message, details, loses: is_lost }) => {
                    loses = is_lost;
                    (message, Some(details))
                }
                Err(error) => {
                    let keep = |error| drop(self.shown.replace(Some(Err(error))));
                    ("Write this file?", Some(failing(error, NAME, &place, workspace, keep)?))
                }
            },
        };
        // Protected files, and those whose content can't be shown, are asked about every time.
        let always =
            (!loses && !workspace.policy().protects(&place)).then(|| format!("write {}", place.path().display()));
        Ok(Intent { acts, message: message.to_owned(), details, always })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input = Input::new(&input)?;
        let named = Coding::named(input.encoding.as_ref())?;
        let place = self.judged.resolve(&input.path, context.root())?;
        // What nobody has seen is not done.
        let shown = self.shown.take().transpose()?;
        let files = context.workspace().files();
        files.alone_with(place.path(), || {
            let failed = |error: io::Error| ToolError::failed(format!("{}: {error}", place.shown()));
            if context.is_cancelled() {
                return Err(ToolError::Interrupted);
            }
            check_folder(&place, context.workspace())?;
            let old = find(&place, named).map_err(failed)?;
            let now = old.as_ref().map(|old| &old.mark);
            if now.is_some_and(|now| files.is_changed(now)) {
                let why = format!("{}: it has changed since it was last read: read it again", place.shown());
                return Err(ToolError::failed(why));
            }
            if shown.is_none()
                && let Some(Err(why)) = old.as_ref().map(|old| &old.text)
            {
                let why = format!("{}: {why}; it is not replaced unless a command removes it first", place.shown());
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
            // A new file of nearly the same name may be meant, or a slip.
            let near = match &old {
                None => near::hint(place.path(), NAME, context.workspace()),
                Some(_) => String::new(),
            };
            let form = form(old.as_ref(), named);
            let coding = coding(old.as_ref(), named);
            let text = form.give(&input.content);
            let content = coding.encode(&text).map_err(|why| ToolError::failed(format!("{}: {why}", place.shown())))?;
            let spot = Spot::make(place.path()).map_err(failed)?;
            let file = spot.replace(old.as_ref().map(|old| &old.metadata), &content).map_err(failed)?;
            let mark = mark_of(&place, &file.metadata().map_err(failed)?, &content);
            files.wrote(old.map(|old| old.mark), mark.clone());
            let encoded = if coding == Coding::Utf8 { String::new() } else { format!(" of {coding}") };
            let told = if form.has_ends_for(&input.content) { ", lines end in CRLF as before" } else { "" };
            let output = format!("wrote {} ({} bytes{encoded}{told}){near}", place.shown(), content.len());
            Ok(ToolOutcome { wrote: vec![mark], ..ToolOutcome::text(output) })
        })
    }
}

/// How a call is shown.
struct Shown {
    message: &'static str,
    details: String,
    /// It replaces content that could not be shown.
    loses: bool,
}

impl WriteFile {
    /// The question and what would be done. What is found is remembered.
    fn show(
        &self,
        place: &Place,
        content: &str,
        named: Option<Coding>,
        workspace: &Workspace,
    ) -> Result<Shown, ToolError> {
        check_folder(place, workspace)?;
        let failed = |error: &dyn Display| ToolError::failed(format!("{}: {error}", place.shown()));
        let old = find(place, named).map_err(|error| failed(&error))?;
        let mark = old.as_ref().map(|old| old.mark.clone());
        let coding = coding(old.as_ref(), named);
        let content = form(old.as_ref(), named).give(content).into_owned();
        // A character that can't be written is an error before the user is asked.
        coding.encode(&content).map_err(|why| failed(&why))?;
        let all = |content: &str| shown::diff(place.shown(), None, content);
        let loses = old.as_ref().is_some_and(|old| old.text.is_err());
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
        Ok(Shown { message, details: shown::with_coding(diff, coding), loses })
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

/// Refuses to make a folder beside one of nearly the same name.
fn check_folder(place: &Place, workspace: &Workspace) -> Result<(), ToolError> {
    let Some(folder) = place.path().parent().filter(|folder| folder.symlink_metadata().is_err()) else {
        return Ok(());
    };
    let near = near::hint(folder, NAME, workspace);
    if near.is_empty() {
        return Ok(());
    }
    let why = format!(
        "{}: there is no such folder{near}: write there, or make the folder with a command first",
        place.shown()
    );
    Err(ToolError::failed(why))
}

/// The file there, if there is one, and a folder for it.
fn find(place: &Place, named: Option<Coding>) -> io::Result<Option<OldFile>> {
    match Spot::of(place.path()) {
        Ok(spot) => OldFile::at(&spot, place, named),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The form of the new text: that of the text it replaces. A new file in UTF-16 begins with a byte order mark, so that its
/// encoding is detected from then on.
fn form(old: Option<&OldFile>, named: Option<Coding>) -> Form {
    match old.map(|old| &old.text) {
        Some(Ok(text)) => Form::of(text),
        Some(Err(_)) | None if named.is_some_and(Coding::has_zeros) => Form::of(BYTE_ORDER_MARK),
        Some(Err(_)) | None => Form::default(),
    }
}

/// The encoding of the new text: the named one, else that of the text it replaces.
fn coding(old: Option<&OldFile>, named: Option<Coding>) -> Coding {
    let kept = old.filter(|old| old.text.is_ok()).map(|old| old.coding);
    named.or(kept).unwrap_or_default()
}
