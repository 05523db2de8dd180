//! The tool `grep`: finds lines of files by a regular expression.

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
use crate::place::{Judged, Place, Spot, near};
use crate::shown::{self, prose_line};
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::walk::pattern::Pattern;
use crate::walk::{Crew, Walk, counted};
use crate::workspace::Workspace;
use file::{End, FileSearch, Hits, Searched};
use found::Found;

/// The tool's name.
const NAME: &str = "grep";

/// Matches that are shown if the call does not say.
const LIMIT: u64 = 200;

/// The most matches that are shown.
const MAX_LIMIT: u64 = 2_000;

/// The most lines around each match.
const MAX_CONTEXT: usize = 20;

/// Bytes of one call's output, without its notes.
const MAX_BYTES: usize = 64 * 1024;

/// Bytes that a pattern may take when it is compiled, and as many again when it is searched for.
const MAX_PATTERN: usize = 8 * 1024 * 1024;

/// The tool `grep`: finds lines of files by a regular expression, in a file or in a folder and all below.
///
/// As ripgrep does: `.gitignore` is obeyed in a git repository, and `.ignore` anywhere; links are not followed; binary
/// files are passed over, which is said: those with a zero byte among the first 8 KiB. After a later one, or a line of
/// more than 4 MiB, no more of the file is searched. Hidden files are searched, but never `.git`. Above the workspace,
/// `.gitignore` counts up to where the repository begins, and `.ignore` does not. What a rule of the policy denies or
/// asks about is left out, and said.
///
/// Results are in the order of their paths, and always the same. A call shows at most 2,000 matches and 64 KiB, 500
/// bytes of a line, and says what it left out.
#[derive(Debug, Default)]
pub struct Grep {
    judged: Judged,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// A regular expression in Rust's syntax; it is matched line by line.
    pattern: String,
    /// The file or folder to search: absolute, or relative to the workspace folder, which it is if not given.
    path: Option<String>,
    /// Only files whose path matches: `*.rs`, `src/**/*.{ts,tsx}`, or `!*.lock` for all but those.
    glob: Option<String>,
    /// Upper and lower case are the same.
    #[serde(default)]
    case_insensitive: bool,
    /// How many lines around each match to show as well: at most 20.
    #[serde(default)]
    context: usize,
    /// What to show: the matching `lines`, which it is if not given, the `files` that have any, or the `count` in each.
    #[serde(default)]
    output: Output,
    /// How many matches to show, or files: 200 if not given, at most 2000.
    limit: Option<u64>,
}

/// What is shown of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Output {
    #[default]
    Lines,
    Files,
    Count,
}

/// Files that were passed over, wholly or from some place on.
#[derive(Default)]
struct PassedOver {
    binary: AtomicU64,
    too_long: AtomicU64,
    in_part: AtomicU64,
}

impl Grep {
    /// The tool.
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
        "Searches a file, or a folder and all below, for lines that match a regular expression. Shows the lines with \
         their numbers, or only which files have any, or how many. Files that git ignores, binary files and .git are \
         passed over; hidden files are not. Results are in the order of paths."
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
            details: Some(format!("{}\n\nfor {}", shown::line(&path), shown::line(&input.pattern))),
            always: Some(format!("grep {path}")),
            ..Intent::new(Act::Walk(place), "Search here?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        let matcher = input.matcher()?;
        if input.limit == Some(0) {
            return Err(ToolError::input("limit is at least 1"));
        }
        let limit = input.limit.unwrap_or(LIMIT).min(MAX_LIMIT);
        let place = self.judged.resolve(or_workspace(input.path.as_ref()), context.root())?;
        let glob = input.glob.as_deref().map(|glob| Pattern::below(glob, &place)).transpose()?;
        let failed = |error: io::Error| near::failure(&place, &error, NAME, context.workspace());
        let search = || FileSearch::new(context, &matcher, input.output, input.context.min(MAX_CONTEXT), limit);
        let found = Found::new(input.output, limit);
        let passed = PassedOver::default();
        let mut notes = Vec::new();
        if place.path().is_dir() {
            let walk = Walk::through(&place, context).map_err(failed)?;
            Crew::go(&walk, search, |search, path| {
                let shown = walk.shown(&path);
                if glob.as_ref().is_some_and(|glob| !glob.matches(&path)) || !found.has_room_for(&shown) {
                    return;
                }
                match walk.open(&path).map(|file| search.search(&file)) {
                    // It is gone again, as a draft is in a moment.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Ok(Searched { end: End::Unreadable, .. }) | Err(_) => walk.could_not_read(),
                    Ok(searched) => passed.take(searched, |hits| found.keep(shown, hits)),
                }
            });
            notes.extend(walk.left_out());
        } else {
            let file = file_at(&place).map_err(failed)?.ok_or_else(|| {
                let near = near::hint(place.path(), NAME, context.workspace());
                ToolError::failed(format!("{}: there is no such file or folder{near}", place.shown()))
            })?;
            match search().search(&file) {
                Searched { end: End::Unreadable, .. } => return Err(failed(io::Error::other("it could not be read"))),
                searched => passed.take(searched, |hits| found.keep(place.shown().into(), hits)),
            }
        }
        if context.is_cancelled() {
            return Err(ToolError::Interrupted);
        }
        notes.extend(passed.notes());
        let (files, is_cut) = found.into_files();
        if files.is_empty() {
            let hint = glob.and_then(|glob| glob.hint()).map_or_else(String::new, |hint| format!("; {hint}"));
            notes.insert(0, format!("nothing found{hint}"));
        }
        Ok(ToolOutcome::text(page(&files, is_cut, input.output, limit, notes)))
    }
}

fn file_at(place: &Place) -> io::Result<Option<std::fs::File>> {
    Ok(Spot::of(place.path())?.open()?.map(|(file, _)| file))
}

impl Input {
    fn matcher(&self) -> Result<RegexMatcher, ToolError> {
        let mut builder = RegexMatcherBuilder::new();
        builder.case_insensitive(self.case_insensitive).line_terminator(Some(b'\n')).multi_line(true);
        builder.size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        builder.build(&self.pattern).map_err(|error| ToolError::input(format!("the pattern can't be used: {error}")))
    }
}

impl PassedOver {
    fn take(&self, searched: Searched, keep: impl FnOnce(Hits)) {
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
            (self.binary, "binary file", "passed over"),
            (self.too_long, "file", "passed over, its lines being too long"),
            (self.in_part, "file", "searched only up to a zero byte or a line that is too long"),
        ];
        notes.into_iter().filter_map(|(count, thing, what)| counted(count.into_inner(), thing, what))
    }
}

/// What is shown.
fn page(files: &BTreeMap<PathBuf, Hits>, is_cut: bool, output: Output, limit: u64, mut notes: Vec<String>) -> String {
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
        let what = if output == Output::Lines { "matches" } else { "files" };
        notes.insert(
            0,
            format!("the first {shown} {what}, there may be more: go on with a narrower pattern, path or glob"),
        );
    }
    if !notes.is_empty() {
        let gap = if page.is_empty() { "" } else { "\n" };
        let _ = writeln!(page, "{gap}[{}]", notes.join("; "));
    }
    page
}
