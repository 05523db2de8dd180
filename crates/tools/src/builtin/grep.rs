//! The tool `grep`: finds the lines of files that match a regular expression.

mod file;
mod found;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::input::{or_workspace, parse, schema_of};
use crate::place::{JudgedPlace, OpenParent, Place, near};
use crate::shown::{self, prose_line};
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::walk::pattern::Pattern;
use crate::walk::{ParallelWalk, Walk, count_note};
use crate::workspace::Workspace;
use file::{End, FileSearch, Hits, Searched};
use found::Found;

const NAME: &str = "grep";

/// Matches shown when the call sets no limit.
const DEFAULT_LIMIT: u64 = 200;

const MAX_LIMIT: u64 = 2_000;

/// The most context lines before and after each match.
const MAX_CONTEXT: usize = 20;

/// Bytes of one call's output, without its notes.
const MAX_BYTES: usize = 64 * 1024;

/// Bytes that a compiled pattern may take, and as many again for its search cache.
const MAX_PATTERN: usize = 8 * 1024 * 1024;

/// The tool `grep`: finds lines that match a regular expression, in a file or in a folder and
/// everything below it.
///
/// The search follows ripgrep's rules: it obeys `.gitignore` in a git repository and `.ignore`
/// everywhere, and follows no links. Files with a zero byte in their first 8 KiB are binary and are
/// skipped. A later zero byte, or a line of more than 4 MiB, ends the search of that file. Hidden
/// files are searched, `.git` never. Above the workspace, `.gitignore` files apply up to the root
/// of the repository, and `.ignore` files do not apply. Paths that a policy rule denies or asks
/// about are left out. Notes in the output count the files and paths that were left out.
///
/// Results are sorted by path and are the same for every search of the same files. A call shows at
/// most 2,000 matches, 64 KiB, and 500 bytes of each line, and says where it cut.
#[derive(Debug, Default)]
pub struct Grep {
    judged: JudgedPlace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A regular expression in Rust syntax, matched line by line.
    pattern: String,
    /// The file or folder to search: absolute, or relative to the workspace folder. Default: the
    /// workspace folder.
    path: Option<String>,
    /// Search only files whose path matches this pattern: `*.rs`, `src/**/*.{ts,tsx}`, or `!*.lock`
    /// for all other files.
    glob: Option<String>,
    /// Ignore case.
    #[serde(default)]
    case_insensitive: bool,
    /// The number of lines to show before and after each match, at most 20.
    #[serde(default)]
    context: usize,
    /// The output: the matching `lines` (default), the `files` that contain a match, or the `count`
    /// of matching lines in each file.
    #[serde(default)]
    output: Output,
    /// The most matches to show, or files if the output is not `lines`. Default 200, at most 2000.
    limit: Option<u64>,
}

/// The output of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Output {
    #[default]
    Lines,
    Files,
    Count,
}

/// Counts of the files that were skipped, entirely or in part.
#[derive(Default)]
struct SkippedFiles {
    binary: AtomicU64,
    too_long: AtomicU64,
    in_part: AtomicU64,
}

impl Grep {
    /// Creates an instance of the tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for Grep {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Searches a file, or a folder and all folders below it, for lines that match a regular expression. Shows the \
         lines with their numbers, only the files that contain matches, or the number of matching lines in each file. \
         Skips .git, binary files and files that git ignores; hidden files are included. Results are sorted by path."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        input.matcher()?;
        let place = self.judged.judge(or_workspace(input.path.as_ref()), workspace.root())?;
        let path = place.path().to_string_lossy().into_owned();
        Ok(Intent {
            details: Some(format!(
                "{}\n\npattern: {}",
                shown::line(&path),
                shown::line(&input.pattern)
            )),
            always: Some(format!("grep {path}")),
            ..Intent::new(Act::Walk(place), "Search here?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let matcher = input.matcher()?;
        if input.limit == Some(0) {
            return Err(ToolError::input("limit must be at least 1"));
        }
        let limit = input.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
        let place = self.judged.resolve(or_workspace(input.path.as_ref()), context.root())?;
        let glob = input.glob.as_deref().map(|glob| Pattern::below(glob, &place)).transpose()?;
        let failed = |error: io::Error| near::failure(&place, &error, NAME, context.workspace());
        let search = || {
            FileSearch::new(context, &matcher, input.output, input.context.min(MAX_CONTEXT), limit)
        };
        let found = Found::new(input.output, limit);
        let skipped = SkippedFiles::default();
        let mut notes = Vec::new();
        if place.path().is_dir() {
            let walk = Walk::through(&place, context).map_err(failed)?;
            ParallelWalk::walk_files(&walk, search, |search, path| {
                let shown = walk.shown(&path);
                if glob.as_ref().is_some_and(|glob| !glob.matches(&path))
                    || !found.has_room_for(&shown)
                {
                    return;
                }
                match walk.open(&path).map(|file| search.search(&file)) {
                    // Deleted after it was listed, as short-lived temporary files are.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Ok(Searched { end: End::Unreadable, .. }) | Err(_) => walk.count_unreadable(),
                    Ok(searched) => skipped.record(searched, |hits| found.keep(shown, hits)),
                }
            });
            notes.extend(walk.left_out_notes());
        } else {
            let file = open_file(&place).map_err(failed)?.ok_or_else(|| {
                let near = near::hint(place.path(), NAME, context.workspace());
                ToolError::failed(format!("{}: no such file or folder{near}", place.shown()))
            })?;
            match search().search(&file) {
                Searched { end: End::Unreadable, .. } => {
                    return Err(failed(io::Error::other("the file can't be read")));
                }
                searched => skipped.record(searched, |hits| found.keep(place.shown().into(), hits)),
            }
        }
        if context.is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        notes.extend(skipped.notes());
        let (files, is_cut) = found.into_files();
        if files.is_empty() {
            let hint = glob
                .and_then(|glob| glob.hint())
                .map_or_else(String::new, |hint| format!("; {hint}"));
            notes.insert(0, format!("nothing found{hint}"));
        }
        Ok(ToolOutcome::text(page(&files, is_cut, input.output, limit, notes)))
    }
}

fn open_file(place: &Place) -> io::Result<Option<std::fs::File>> {
    Ok(OpenParent::open_existing(place.path())?.open()?.map(|(file, _)| file))
}

impl Input {
    fn matcher(&self) -> Result<RegexMatcher, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder
            .case_insensitive(self.case_insensitive)
            .line_terminator(Some(b'\n'))
            .multi_line(true);
        builder.size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        builder
            .build(&self.pattern)
            .map_err(|error| ToolError::input(format!("invalid pattern: {error}")))
    }
}

impl SkippedFiles {
    fn record(&self, searched: Searched, keep: impl FnOnce(Hits)) {
        let Searched { hits, end } = searched;
        let found = hits.count > 0;
        let counter = match end {
            End::Done | End::Unreadable => None,
            _ if found => Some(&self.in_part),
            End::Binary => Some(&self.binary),
            End::TooLong => Some(&self.too_long),
        };
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        if found {
            keep(hits);
        }
    }

    fn notes(self) -> impl Iterator<Item = String> {
        let notes = [
            (self.binary, "binary file", "skipped"),
            (self.too_long, "file", "skipped because of lines that are too long"),
            (self.in_part, "file", "searched only up to a zero byte or a line that is too long"),
        ];
        notes
            .into_iter()
            .filter_map(|(count, noun, note)| count_note(count.into_inner(), noun, note))
    }
}

/// Formats the results, up to `limit` matches or files, and the notes.
fn page(
    files: &BTreeMap<PathBuf, Hits>,
    is_cut: bool,
    output: Output,
    limit: u64,
    mut notes: Vec<String>,
) -> String {
    let mut page = String::new();
    let mut shown = 0;
    let mut is_full = false;
    for (path, hits) in files {
        if page.len() >= MAX_BYTES || shown >= limit {
            is_full = true;
            break;
        }
        let path = path.to_string_lossy();
        let path = prose_line(&path);
        // Writing to a string does not fail.
        match output {
            Output::Files => {
                let _ = writeln!(page, "{path}");
                shown += 1;
            }
            Output::Count => {
                let _ = writeln!(page, "{path}: {}", hits.count);
                shown += 1;
            }
            Output::Lines => {
                let gap = if page.is_empty() { "" } else { "\n" };
                let _ = writeln!(page, "{gap}{path}");
                for line in &hits.lines {
                    if page.len() >= MAX_BYTES || line.is_match && shown == limit {
                        is_full = true;
                        break;
                    }
                    shown += u64::from(line.is_match);
                    let gap = if line.after_gap { "--\n" } else { "" };
                    let sign = if line.is_match { ':' } else { '-' };
                    let _ = writeln!(page, "{gap}{}{sign} {}", line.number, line.text);
                }
            }
        }
    }
    if is_full || is_cut {
        let unit = if output == Output::Lines { "matches" } else { "files" };
        notes.insert(
            0,
            format!(
                "the first {shown} {unit}; there may be more: use a narrower pattern, path or glob"
            ),
        );
    }
    if !notes.is_empty() {
        let gap = if page.is_empty() { "" } else { "\n" };
        let _ = writeln!(page, "{gap}[{}]", notes.join("; "));
    }
    page
}
