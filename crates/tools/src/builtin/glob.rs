//! The tool `glob`: finds files by name.

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
use crate::place::{JudgedPlace, near};
use crate::shown::{self, prose_line};
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::walk::pattern::Pattern;
use crate::walk::{ParallelWalk, Walk};
use crate::workspace::Workspace;

const NAME: &str = "glob";

/// The most files that one call shows.
const MAX_FILES: usize = 200;

/// The tool `glob`: finds files by name, the most recently changed first.
///
/// It walks folders by the same rules as [`Grep`](crate::Grep). Files changed in the same
/// nanosecond are sorted by path. A call shows at most 200 files and says how many more match.
#[derive(Debug, Default)]
pub struct Glob {
    judged: JudgedPlace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The pattern of paths: `*.rs` matches in any folder, `src/**/*.{ts,tsx}` from the searched
    /// folder; `**` matches any number of folders.
    pattern: String,
    /// The folder to search: absolute, or relative to the workspace folder. Default: the workspace
    /// folder.
    path: Option<String>,
}

/// A matching file: the time of its last change, in seconds and nanoseconds, and its path. The
/// newest file is the least, so that the greatest in the heap is the one to drop.
type Match = (Reverse<(i64, u64)>, PathBuf);

/// The newest matches that one thread has found, and the count of all its matches.
#[derive(Default)]
struct Newest {
    matches: BinaryHeap<Match>,
    count: usize,
}

impl Glob {
    /// Creates an instance of the tool.
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
        "Finds files whose path matches a pattern, in a folder and all folders below it, most recently changed first. \
         Skips .git and files that git ignores; hidden files are included."
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
            details: Some(format!(
                "{}\n\npattern: {}",
                shown::line(&path),
                shown::line(&input.pattern)
            )),
            always: Some(format!("glob {path}")),
            ..Intent::new(Act::Walk(place), "Find files here?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let place = self.judged.resolve(or_workspace(input.path.as_ref()), context.root())?;
        let pattern = Pattern::below(&input.pattern, &place)?;
        let failed = |error: io::Error| near::failure(&place, &error, NAME, context.workspace());
        let walk = Walk::through(&place, context).map_err(failed)?;
        let found = ParallelWalk::walk_files(&walk, Newest::default, |newest, path| {
            if pattern.matches(&path) {
                match walk.modified(&path) {
                    Ok(modified) => newest.add((Reverse(modified), path)),
                    // Deleted after it was listed, as short-lived temporary files are.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(_) => walk.count_unreadable(),
                }
            }
        });
        if context.is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        let count: usize = found.iter().map(|newest| newest.count).sum();
        let mut files: Vec<_> = found.into_iter().flat_map(|newest| newest.matches).collect();
        files.sort_unstable();
        files.truncate(MAX_FILES);
        let mut notes = Vec::new();
        if files.is_empty() {
            notes.extend(["nothing found"].into_iter().chain(pattern.hint()).map(str::to_owned));
        }
        if count > files.len() {
            notes.push(format!(
                "{} more, changed earlier: use a narrower pattern or path",
                count - files.len()
            ));
        }
        notes.extend(walk.left_out_notes());
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
    fn add(&mut self, file: Match) {
        self.count += 1;
        self.matches.push(file);
        if self.matches.len() > MAX_FILES {
            self.matches.pop();
        }
    }
}
