//! The tool `edit_file`: replaces strings in a text file.

mod miss;
mod replacement;

use std::borrow::Cow;
use std::cell::RefCell;
use std::io;
use std::ops::Range;

use holdpoint_common::{FileMark, Verdict};
use memchr::memchr_iter;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::asking::failing;
use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::change::Change;
use crate::files::coding::Coding;
use crate::files::mark::{MAX_HASHED, is_same, mark_of};
use crate::files::old_file::OldFile;
use crate::input::{parse, schema_of};
use crate::place::{Judged, Place, Spot, near};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;
use replacement::{Found, Replacement, TooMuch};

/// What the model calls it by.
const NAME: &str = "edit_file";

/// Places that an error names.
const MAX_PLACES: usize = 10;

/// The tool `edit_file`: replaces strings in a text file, one or several at once.
///
/// Each old string has to stand in the text in exactly one place, unless all of its places are meant; the edits are
/// made one after the other, and all of them or none. A string without carriage returns fits lines that end in carriage
/// return and line feed, too, and every line keeps its end; byte order mark, encoding and permissions stay. The encoding
/// is that of the byte order mark, else the one that the call names, else UTF-8. Refused are: a file that is not text in
/// its encoding or is larger than 64 MiB, an edit that would make one larger or replace more than 250,000 places at
/// once, and a character that the encoding does not have.
///
/// If the file has changed since a call of the session has last read or written it, nothing is done. Nor if it has
/// since the diff was shown to the user: what was shown is what is done. Other calls of the session are not held
/// against it, as long as the same lines become the same. An edit that does not fit, or whose diff would be longer than 4
/// MiB, is told at once, and not asked about, if the file may be read unasked; else the user is told, and it is not
/// made whatever the user says. Where edits are allowed unasked nothing is shown, and the diff may be of any size.
#[derive(Debug, Default)]
pub struct EditFile {
    judged: Judged,
    /// What the call was shown by, or why that could not be.
    shown: RefCell<Option<Result<Shown, ToolError>>>,
}

/// What the diff was made from, and what it came to.
#[derive(Debug)]
struct Shown {
    mark: FileMark,
    gist: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The file: absolute, or relative to the workspace folder.
    path: String,
    /// For a single edit: the text to replace, exactly as it stands in the file.
    old_string: Option<String>,
    /// For a single edit: what takes its place.
    new_string: Option<String>,
    /// For a single edit: replace it everywhere; without it, old_string has to be unique.
    #[serde(default)]
    replace_all: bool,
    /// For several edits, instead of the strings above: each is made in the text as those before it left it.
    #[serde(default)]
    edits: Vec<Edit>,
    /// The file's encoding, such as windows-1252. Needed only if it is not UTF-8 and the file has no byte order mark.
    encoding: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The text to replace, exactly as it stands in the file, with the white space at its lines' beginnings.
    old_string: String,
    /// What takes its place.
    new_string: String,
    /// Replace it everywhere; without it, old_string has to be unique in the file.
    #[serde(default)]
    replace_all: bool,
}

impl EditFile {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for EditFile {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Replaces text in a file: old_string by new_string, or several such edits at once, all or none. Each \
         old_string has to stand in the file exactly as given and in one place only, unless replace_all is set: add \
         the lines around it until it does. Line numbers of read_file are not part of the text. Line ends and encoding \
         are kept."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        let edits = input.edits()?;
        let named = Coding::named(input.encoding.as_ref())?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        self.shown.take();
        let acts = vec![Act::Read(place.clone()), Act::Write(place.clone())];
        let details = match workspace.policy().judge(NAME, &acts, workspace.root()).verdict {
            // Nobody is going to see it.
            Verdict::Allow | Verdict::Deny => None,
            Verdict::Ask => Some(self.show(&place, &edits, named, workspace).or_else(|error| {
                failing(error, NAME, &place, workspace, |error| drop(self.shown.replace(Some(Err(error)))))
            })?),
        };
        // What is protected is asked about every time.
        let always = (!workspace.policy().protects(&place)).then(|| format!("edit {}", place.path().display()));
        Ok(Intent { acts, message: "Edit this file?".to_owned(), details, always })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let edits = input.edits()?;
        let named = Coding::named(input.encoding.as_ref())?;
        let place = self.judged.resolve(&input.path, context.root())?;
        // What nobody has seen is not done.
        let shown = self.shown.take().transpose()?;
        let files = context.workspace().files();
        files.alone_with(place.path(), || {
            let failed = |error: io::Error| near::failure(&place, &error, NAME, context.workspace());
            let spot = Spot::of(place.path()).map_err(failed)?;
            let Edited { old, change, content } = change(&spot, &place, &edits, named, context.workspace())?;
            if let Some(shown) = shown
                && !is_same(&shown.mark, &old.mark)
                && !(files.is_ours_since(&shown.mark, &old.mark) && shown.gist == change.gist())
            {
                let why = format!("{} has changed since the edit was shown: nothing was done", place.shown());
                return Err(ToolError::failed(why));
            }
            if context.is_cancelled() {
                return Err(ToolError::Interrupted);
            }
            let content = content.as_deref().unwrap_or(change.after().as_bytes());
            let file = spot.replace(Some(&old.metadata), content).map_err(failed)?;
            let mark = mark_of(&place, &file.metadata().map_err(failed)?, content);
            files.wrote(Some(old.mark), mark.clone());
            let lines = match change.new_lines() {
                Some((first, last)) if first < last => format!(": lines {first} to {last}"),
                Some((line, _)) => format!(": line {line}"),
                None => String::new(),
            };
            Ok(ToolOutcome { wrote: vec![mark], ..ToolOutcome::text(format!("edited {}{lines}", place.shown())) })
        })
    }
}

impl EditFile {
    /// The diff, and what it was made from is remembered.
    fn show(
        &self,
        place: &Place,
        edits: &[Replacement<'_>],
        named: Option<Coding>,
        workspace: &Workspace,
    ) -> Result<String, ToolError> {
        let failed = |error: io::Error| near::failure(place, &error, NAME, workspace);
        let spot = Spot::of(place.path()).map_err(failed)?;
        let Edited { old, change, .. } = change(&spot, place, edits, named, workspace)?;
        let diff = change.shown(place.shown());
        let diff = diff.map_err(|error| ToolError::failed(format!("{}: {error}", place.shown())))?;
        let diff = shown::with_coding(diff, old.coding);
        self.shown.replace(Some(Ok(Shown { mark: old.mark, gist: change.gist() })));
        Ok(diff)
    }
}

impl Input {
    fn edits(&self) -> Result<Vec<Replacement<'_>>, ToolError> {
        let edits: Vec<_> = match (&self.old_string, &self.new_string) {
            (Some(old), Some(new)) if self.edits.is_empty() => vec![Replacement { old, new, all: self.replace_all }],
            (None, None) if !self.edits.is_empty() && !self.replace_all => {
                let edits = self.edits.iter();
                edits
                    .map(|edit| Replacement { old: &edit.old_string, new: &edit.new_string, all: edit.replace_all })
                    .collect()
            }
            _ => return Err(ToolError::input("either old_string and new_string are needed, or edits")),
        };
        for (number, edit) in edits.iter().enumerate() {
            let which = which(number, edits.len());
            if edit.old.is_empty() {
                return Err(ToolError::input(format!("{which}old_string is empty; to make a file, use write_file")));
            }
            if edit.old == edit.new {
                return Err(ToolError::input(format!("{which}old_string and new_string are the same")));
            }
        }
        Ok(edits)
    }
}

/// How an error names an edit.
fn which(number: usize, of: usize) -> String {
    if of == 1 { String::new() } else { format!("edit {} of {of}: ", number + 1) }
}

/// The file as it is, and what the edits make of it.
struct Edited {
    old: OldFile,
    change: Change,
    /// The new bytes, where they are not those of the new text.
    content: Option<Vec<u8>>,
}

fn change(
    spot: &Spot,
    place: &Place,
    edits: &[Replacement<'_>],
    named: Option<Coding>,
    workspace: &Workspace,
) -> Result<Edited, ToolError> {
    let refused = |why: String| ToolError::failed(format!("{}: {why}", place.shown()));
    let old = OldFile::at(spot, place, named).map_err(|error| refused(error.to_string()))?;
    let Some(mut old) = old else {
        return Err(refused(format!("there is no such file{}", near::hint(place.path(), NAME, workspace))));
    };
    if workspace.files().is_changed(&old.mark) {
        return Err(refused("it has changed since it was last read: read it again".into()));
    }
    let text = std::mem::replace(&mut old.text, Ok(String::new())).map_err(|why| refused(why.to_string()))?;
    let mut change = Change::none(text);
    for (number, edit) in edits.iter().enumerate() {
        let parts =
            parts(change.after(), edit).map_err(|why| refused(format!("{}{why}", which(number, edits.len()))))?;
        change.replace(&parts);
    }
    if change.is_none() {
        return Err(refused("the edits undo each other, nothing would change".into()));
    }
    let content = match old.coding.encode(change.after()).map_err(|why| refused(why.to_string()))? {
        Cow::Borrowed(_) => None,
        Cow::Owned(content) if content.len() as u64 > MAX_HASHED => return Err(refused(TooMuch::Text.to_string())),
        Cow::Owned(content) if is_utf8(&old, change.before()) && str::from_utf8(&content).is_err() => {
            let coding = old.coding;
            return Err(refused(format!(
                "it is UTF-8, and would be neither with this in {coding}: leave the encoding out"
            )));
        }
        Cow::Owned(content) => Some(content),
    };
    Ok(Edited { old, change, content })
}

/// Whether the file with this text is UTF-8 beyond ASCII, too.
fn is_utf8(old: &OldFile, text: &str) -> bool {
    old.coding.encode(text).is_ok_and(|bytes| !bytes.is_ascii() && str::from_utf8(&bytes).is_ok())
}

/// A part of a text, and what takes its place.
type Part<'a> = (Range<usize>, Cow<'a, str>);

/// What is replaced in `text` by what.
fn parts<'a>(text: &str, edit: &Replacement<'a>) -> Result<Vec<Part<'a>>, String> {
    let found = edit.find(text, MAX_PLACES + 1).map_err(|why| why.to_string())?;
    match found.len() {
        0 => Err(format!("old_string does not stand in it{}", miss::hint(text, edit.old))),
        count if count > 1 && !edit.all => {
            let times = if count > MAX_PLACES { format!("more than {MAX_PLACES}") } else { count.to_string() };
            let line = |found: &Found<'_>| 1 + memchr_iter(b'\n', &text.as_bytes()[..found.whole.start]).count();
            let lines: Vec<_> = found.iter().take(MAX_PLACES).map(|found| line(found).to_string()).collect();
            Err(format!(
                "old_string stands in it {times} times, on lines {}: add the lines around the one that is meant, or \
                 set replace_all",
                lines.join(", ")
            ))
        }
        _ => Ok(found.into_iter().map(|Found { part, by, .. }| (part, by)).collect()),
    }
}
