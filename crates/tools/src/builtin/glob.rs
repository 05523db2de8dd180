//! The tool `glob`: finds files by their names.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::input::{or_workspace, parse, schema_of};
use crate::place::{Judged, near};
use crate::shown::{self, prose_line};
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::walk::pattern::Pattern;
use crate::walk::{Crew, Walk};
use crate::workspace::Workspace;

/// The tool's name.
const NAME: &str = "glob";

/// Files that one call shows.
const MAX_FILES: usize = 200;

/// The tool `glob`: finds files by their names, those changed last first.
///
/// What is looked at and what is not is as with [`Grep`](crate::Grep). Files changed in the same nanosecond are in the
/// order of their paths. A call shows at most 200 and says how many more there are.
#[derive(Debug, Default)]
pub struct Glob {
    judged: Judged,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// What paths match: `*.rs` in any folder, `src/**/*.{ts,tsx}` from the folder on; `**` stands for folders.
    pattern: String,
    /// The folder to search: absolute, or relative to the workspace folder, which it is if not given.
    path: Option<String>,
}

/// A file that matches: the one changed last is the least, so that the heap's greatest is the one to drop.
type Match = (Reverse<(i64, u64)>, PathBuf);

/// What one thread has found.
#[derive(Default)]
struct Newest {
    kept: BinaryHeap<Match>,
    count: usize,
}

impl Glob {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for Glob {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Finds files by a pattern of their paths, in a folder and all below; those changed last come first. Files that \
         git ignores and .git are passed over; hidden files are not."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        Pattern::new(&input.pattern)?;
        let place = self.judged.judge(or_workspace(input.path.as_ref()), workspace.root())?;
        let path = place.path().to_string_lossy().into_owned();
        Ok(Intent {
            details: Some(format!("{}\n\nfor {}", shown::line(&path), shown::line(&input.pattern))),
            always: Some(format!("glob {path}")),
            ..Intent::new(Act::Walk(place), "Look for files here?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let place = self.judged.resolve(or_workspace(input.path.as_ref()), context.root())?;
        let pattern = Pattern::below(&input.pattern, &place)?;
        let failed = |error: io::Error| near::failure(&place, &error, NAME, context.workspace());
        let walk = Walk::through(&place, context).map_err(failed)?;
        let found = Crew::go(&walk, Newest::default, |newest, path| {
            if pattern.matches(&path) {
                match walk.modified(&path) {
                    Ok(modified) => newest.keep((Reverse(modified), path)),
                    // It is gone again, as a draft is in a moment.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => walk.could_not_read(),
                }
            }
        });
        if context.is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        let count: usize = found.iter().map(|newest| newest.count).sum();
        let mut files: Vec<_> = found.into_iter().flat_map(|newest| newest.kept).collect();
        files.sort_unstable();
        files.truncate(MAX_FILES);
        let mut notes = Vec::new();
        if files.is_empty() {
            notes.extend(["nothing found"].into_iter().chain(pattern.hint()).map(str::to_owned));
        }
        if count > files.len() {
            notes.push(format!("{} more, changed before these: take a narrower pattern or path", count - files.len()));
        }
        notes.extend(walk.left_out());
        let mut output = String::new();
        // Writing to a string does not fail.
        for (_, path) in files {
            let _ = writeln!(output, "{}", prose_line(&walk.shown(&path).to_string_lossy()));
        }
        if !notes.is_empty() {
            let _ = writeln!(output, "[{}]", notes.join("; "));
        }
        Ok(ToolOutcome::text(output))
    }
}

impl Newest {
    fn keep(&mut self, file: Match) {
        self.count += 1;
        self.kept.push(file);
        if self.kept.len() > MAX_FILES {
            self.kept.pop();
        }
    }
}
