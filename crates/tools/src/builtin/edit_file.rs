//! The tool `edit_file`: replaces strings in a text file.

mod near_match;
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

use super::failed_intent::failure_details;
use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::files::change::Change;
use crate::files::mark::{MAX_HASHED, is_same, mark_of};
use crate::files::old_file::OldFile;
use crate::files::text_encoding::TextEncoding;
use crate::input::{parse, schema_of};
use crate::place::{JudgedPlace, OpenParent, Place, near};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;
use replacement::{EditLimit, Found, Replacement};

const NAME: &str = "edit_file";

/// The most text in bytes that the edits of one call search and copy. Each edit does so with the
/// whole text.
const MAX_EDITED: u64 = 4 << 30;

/// The most occurrences that an error lists.
const MAX_LISTED: usize = 10;

/// The tool `edit_file`: replaces one or more strings in a text file.
///
/// Each old string must occur exactly once in the text, unless `replace_all` is set. The edits are
/// applied one after the other, either all of them or none. A string without carriage returns also
/// matches lines that end in CRLF, and every line keeps its line end. The byte order mark, the
/// encoding and the permissions are kept. The encoding is that of the byte order mark, else the one
/// that the call names, else UTF-8.
///
/// The tool refuses more than 1,000 edits, a file that is not text in its encoding or is larger
/// than 64 MiB, an edit that would make a file larger than that or replace more than 250,000
/// occurrences at once, and a character that the encoding lacks.
///
/// The call fails if the file has changed since a call of the session last read or wrote it, or
/// since the diff was shown to the user, so that only the shown diff is applied. Changes by other
/// calls of the session are accepted as long as this call still changes the same lines in the same
/// way.
///
/// If an edit does not apply, or its diff would be longer than 4 MiB, the call fails without asking
/// the user, provided that the file may be read without approval. If reading needs approval, the
/// user is asked and sees the error, and the call fails even if it is approved. Where edits need no
/// approval, the diff is not shown and may be of any size.
#[derive(Debug, Default)]
pub struct EditFile {
    judged: JudgedPlace,
    /// The source of the diff that was shown, or the error that prevented showing it.
    shown: RefCell<Option<Result<ShownChange, ToolError>>>,
}

/// The file's mark and the change that a diff was made from.
#[derive(Debug)]
struct ShownChange {
    mark: FileMark,
    fingerprint: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The path of the file: absolute, or relative to the workspace folder.
    path: String,
    /// For a single edit: the text to replace, exactly as in the file.
    old_string: Option<String>,
    /// For a single edit: the replacement text.
    new_string: Option<String>,
    /// For a single edit: replace every occurrence. Otherwise, old_string must be unique in the
    /// file.
    #[serde(default)]
    replace_all: bool,
    /// Several edits, instead of the strings above. They are applied one after the other, each to
    /// the result of the one before.
    #[serde(default)]
    edits: Vec<Edit>,
    /// The encoding of the file, such as windows-1252. Needed only if the file is not UTF-8 and has
    /// no byte order mark.
    encoding: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    /// The text to replace, exactly as in the file, including the indentation.
    old_string: String,
    /// The replacement text.
    new_string: String,
    /// Replace every occurrence. Otherwise, old_string must be unique in the file.
    #[serde(default)]
    replace_all: bool,
}

impl EditFile {
    /// Creates an instance of the tool.
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
         old_string must occur in the file exactly as given and only once, unless replace_all is set: add surrounding \
         lines until it is unique. The line numbers of read_file are not part of the text. Line endings and encoding \
         are kept."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        let edits = input.edits()?;
        let requested = TextEncoding::named(input.encoding.as_ref())?;
        let place = self.judged.judge(&input.path, workspace.root())?;
        self.shown.take();
        let acts = vec![Act::Read(place.clone()), Act::Write(place.clone())];
        let details = match workspace.policy().judge(NAME, &acts, workspace.root()).verdict {
            // The details will not be shown.
            Verdict::Allow | Verdict::Deny => None,
            Verdict::Ask => {
                Some(self.prepare_diff(&place, &edits, requested, workspace).or_else(|error| {
                    failure_details(error, NAME, &place, workspace, |error| {
                        drop(self.shown.replace(Some(Err(error))))
                    })
                })?)
            }
        };
        // Ask about a protected file every time.
        let always = (!workspace.policy().protects(&place, workspace.root()))
            .then(|| format!("edit {}", place.path().display()));
        Ok(Intent { acts, message: "Edit this file?".to_owned(), details, always })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let edits = input.edits()?;
        let requested = TextEncoding::named(input.encoding.as_ref())?;
        let place = self.judged.resolve(&input.path, context.root())?;
        // If the diff could not be shown, the call fails even if it was approved.
        let shown = self.shown.take().transpose()?;
        let files = context.workspace().files();
        files.with_lock(place.path(), || {
            let failed =
                |error: io::Error| near::failure(&place, &error, NAME, context.workspace());
            let parent = OpenParent::open_existing(place.path()).map_err(failed)?;
            let workspace = context.workspace();
            let is_cancelled = || context.is_cancelled();
            let Edited { old, change, content } =
                apply_edits(&parent, &place, &edits, requested, workspace, &is_cancelled)?;
            if let Some(shown) = shown
                && !is_same(&shown.mark, &old.mark)
                && !(files.only_session_changed(&shown.mark, &old.mark)
                    && shown.fingerprint == change.fingerprint())
            {
                let why = format!(
                    "{} has changed since the edit was shown: nothing was done",
                    place.shown()
                );
                return Err(ToolError::failed(why));
            }
            if context.is_cancelled() {
                return Err(ToolError::Interrupted);
            }
            let content = content.as_deref().unwrap_or(change.after().as_bytes());
            let replace = || parent.replace(Some(&old.metadata), content);
            let file = context.writing(place.path(), content, replace).map_err(failed)?;
            let mark = mark_of(&place, &file.metadata().map_err(failed)?, content);
            files.record_write(Some(old.mark), mark.clone());
            let lines = match change.new_lines() {
                Some((first, last)) if first < last => format!(": lines {first} to {last}"),
                Some((line, _)) => format!(": line {line}"),
                None => String::new(),
            };
            Ok(ToolOutcome {
                wrote: vec![mark],
                ..ToolOutcome::text(format!("edited {}{lines}", place.shown()))
            })
        })
    }
}

impl EditFile {
    /// Returns the diff, and remembers the mark and the change it was made from.
    fn prepare_diff(
        &self,
        place: &Place,
        edits: &[Replacement<'_>],
        requested: Option<TextEncoding>,
        workspace: &Workspace,
    ) -> Result<String, ToolError> {
        let failed = |error: io::Error| near::failure(place, &error, NAME, workspace);
        let parent = OpenParent::open_existing(place.path()).map_err(failed)?;
        let Edited { old, change, .. } =
            apply_edits(&parent, place, edits, requested, workspace, &|| false)?;
        let diff = change.shown(place.shown());
        let diff =
            diff.map_err(|error| ToolError::failed(format!("{}: {error}", place.shown())))?;
        let diff = shown::with_encoding(diff, old.encoding);
        self.shown
            .replace(Some(Ok(ShownChange { mark: old.mark, fingerprint: change.fingerprint() })));
        Ok(diff)
    }
}

impl Input {
    fn edits(&self) -> Result<Vec<Replacement<'_>>, ToolError> {
        let edits: Vec<_> = match (&self.old_string, &self.new_string) {
            (Some(old), Some(new)) if self.edits.is_empty() => {
                vec![Replacement { old, new, all: self.replace_all }]
            }
            (None, None) if !self.edits.is_empty() && !self.replace_all => {
                let edits = self.edits.iter();
                edits
                    .map(|edit| Replacement {
                        old: &edit.old_string,
                        new: &edit.new_string,
                        all: edit.replace_all,
                    })
                    .collect()
            }
            _ => return Err(ToolError::input("give either old_string and new_string, or edits")),
        };
        for (index, edit) in edits.iter().enumerate() {
            let prefix = edit_prefix(index, edits.len());
            if edit.old.is_empty() {
                return Err(ToolError::input(format!(
                    "{prefix}old_string is empty; use write_file to create a file"
                )));
            }
            if edit.old == edit.new {
                return Err(ToolError::input(format!(
                    "{prefix}old_string and new_string are the same"
                )));
            }
        }
        Ok(edits)
    }
}

/// The prefix of an error about one of several edits.
fn edit_prefix(index: usize, count: usize) -> String {
    if count == 1 { String::new() } else { format!("edit {} of {count}: ", index + 1) }
}

/// A file and the result of the edits.
struct Edited {
    old: OldFile,
    change: Change,
    /// The new text in the file's encoding, unless that is UTF-8.
    content: Option<Vec<u8>>,
}

fn apply_edits(
    parent: &OpenParent,
    place: &Place,
    edits: &[Replacement<'_>],
    requested: Option<TextEncoding>,
    workspace: &Workspace,
    is_cancelled: &dyn Fn() -> bool,
) -> Result<Edited, ToolError> {
    let refused = |why: String| ToolError::failed(format!("{}: {why}", place.shown()));
    let old =
        OldFile::read(parent, place, requested).map_err(|error| refused(error.to_string()))?;
    let Some(mut old) = old else {
        return Err(refused(format!("no such file{}", near::hint(place.path(), NAME, workspace))));
    };
    if workspace.files().is_changed(&old.mark) {
        return Err(refused("the file has changed since it was last read: read it again".into()));
    }
    let text = std::mem::replace(&mut old.text, Ok(String::new()))
        .map_err(|why| refused(why.to_string()))?;
    let mut change = Change::none(text);
    let mut edited = 0;
    for (index, edit) in edits.iter().enumerate() {
        if is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        edited += change.after().len() as u64;
        if edited > MAX_EDITED {
            let count = edits.len();
            return Err(refused(format!(
                "{count} edits are too many for a text of this size: make them in several calls"
            )));
        }
        let parts = parts(change.after(), edit)
            .map_err(|why| refused(format!("{}{why}", edit_prefix(index, edits.len()))))?;
        change.replace(&parts);
    }
    if change.is_none() {
        return Err(refused(
            "the edits cancel each other out, so the file would not change".into(),
        ));
    }
    let content = match old
        .encoding
        .encode(change.after())
        .map_err(|why| refused(why.to_string()))?
    {
        Cow::Borrowed(_) => None,
        Cow::Owned(content) if content.len() as u64 > MAX_HASHED => {
            return Err(refused(EditLimit::ResultSize.to_string()));
        }
        Cow::Owned(content)
            if is_also_utf8(&old, change.before()) && str::from_utf8(&content).is_err() =>
        {
            let encoding = old.encoding;
            return Err(refused(format!(
                "the file is UTF-8, and this edit in {encoding} would make it invalid: leave the encoding out"
            )));
        }
        Cow::Owned(content) => Some(content),
    };
    Ok(Edited { old, change, content })
}

/// Whether the encoded `text` is also valid UTF-8 and has more than ASCII characters.
fn is_also_utf8(old: &OldFile, text: &str) -> bool {
    old.encoding.encode(text).is_ok_and(|bytes| !bytes.is_ascii() && str::from_utf8(&bytes).is_ok())
}

/// A range of a text and its replacement.
type Part<'a> = (Range<usize>, Cow<'a, str>);

/// The ranges of `text` that an edit replaces, with their replacements.
fn parts<'a>(text: &str, edit: &Replacement<'a>) -> Result<Vec<Part<'a>>, String> {
    let found = edit.find(text, MAX_LISTED + 1).map_err(|why| why.to_string())?;
    match found.len() {
        0 => Err(format!("old_string was not found{}", near_match::hint(text, edit.old))),
        count if count > 1 && !edit.all => {
            let times = if count > MAX_LISTED {
                format!("more than {MAX_LISTED}")
            } else {
                count.to_string()
            };
            let line = |found: &Found<'_>| {
                1 + memchr_iter(b'\n', &text.as_bytes()[..found.whole.start]).count()
            };
            let lines: Vec<_> =
                found.iter().take(MAX_LISTED).map(|found| line(found).to_string()).collect();
            Err(format!(
                "old_string occurs {times} times, on lines {}: add surrounding lines to make it unique, or set \
                 replace_all",
                lines.join(", ")
            ))
        }
        _ => Ok(found
            .into_iter()
            .map(|Found { part, replacement, .. }| (part, replacement))
            .collect()),
    }
}
