//! The tool `list_dir`: lists a folder as a tree.

use std::fmt::Write;
use std::io;

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
use crate::walk::{Entry, Folder, Kind, Walk};
use crate::workspace::Workspace;

const NAME: &str = "list_dir";

const MAX_DEPTH: usize = 10;

/// The most entries that one call shows.
const MAX_ENTRIES: usize = 1_000;

/// The tool `list_dir`: lists a folder as a tree of one or more levels.
///
/// The list includes hidden files, and links, which are not followed. Folders that git ignores and
/// `.git` are shown but not entered. A call shows at most 1,000 entries, upper levels first. Notes
/// say whether there are more, and count the paths that a policy rule denies or asks about.
#[derive(Debug, Default)]
pub struct ListDir {
    judged: JudgedPlace,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The folder to list: absolute, or relative to the workspace folder. Default: the workspace
    /// folder.
    path: Option<String>,
    /// How many levels to show. Default 1, at most 10.
    depth: Option<usize>,
}

/// A folder in the tree.
struct Branch {
    folder: Folder,
    /// The level in the tree, counted from 1.
    level: usize,
    /// The entries sorted by name. An entered folder also has the index of its branch.
    leaves: Vec<(Entry, Option<usize>)>,
}

impl ListDir {
    /// Creates an instance of the tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Tool for ListDir {
    fn name(&self) -> &str {
        NAME
    }

    fn description(&self) -> &str {
        "Lists a folder as a tree of the given depth. Folders end in /, and links show their target. Folders that git \
         ignores are shown but not entered."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input: Input = parse(input)?;
        let place = self.judged.judge(or_workspace(input.path.as_ref()), workspace.root())?;
        let path = place.path().to_string_lossy().into_owned();
        Ok(Intent {
            details: Some(shown::line(&path).into_owned()),
            always: Some(format!("list {path}")),
            ..Intent::new(Act::Walk(place), "List this folder?")
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let input: Input = parse(&input)?;
        if input.depth == Some(0) {
            return Err(ToolError::input("depth must be at least 1"));
        }
        let depth = input.depth.unwrap_or(1).min(MAX_DEPTH);
        let place = self.judged.resolve(or_workspace(input.path.as_ref()), context.root())?;
        let failed = |error: io::Error| near::failure(&place, &error, NAME, context.workspace());
        let walk = Walk::through(&place, context).map_err(failed)?.with_ignored();
        let (branches, is_cut) = list_tree(&walk, depth).ok_or(ToolError::Interrupted)?;
        let mut output = String::new();
        format_tree(&walk, &branches, 0, depth, &mut output);
        let mut notes = Vec::new();
        if is_cut {
            notes.push(format!(
                "the first {MAX_ENTRIES} entries; there are more: list a folder below, or use a lower depth"
            ));
        } else if output.is_empty() {
            notes.push("the folder is empty".to_owned());
        }
        notes.extend(walk.left_out_notes());
        if !notes.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(output, "[{}]", notes.join("; "));
        }
        Ok(ToolOutcome::text(output))
    }
}

/// Lists the tree level by level, and returns whether there are more entries than are shown. `None`
/// if the turn was cut.
fn list_tree(walk: &Walk<'_>, depth: usize) -> Option<(Vec<Branch>, bool)> {
    let mut branches = vec![Branch { folder: walk.top(), level: 1, leaves: Vec::new() }];
    let mut room = MAX_ENTRIES;
    let mut next = 0;
    while next < branches.len() {
        if walk.is_cancelled() {
            return None;
        }
        let level = branches[next].level;
        let mut listing = walk.list(&branches[next].folder);
        let mut entries = std::mem::take(&mut listing.entries);
        entries.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        let is_cut = entries.len() > room;
        entries.truncate(room);
        room -= entries.len();
        for entry in entries {
            let is_entered = entry.kind == Kind::Folder && !entry.ignored && level < depth;
            let branch = is_entered.then_some(branches.len());
            if is_entered {
                let folder = Walk::enter(&branches[next].folder, &listing, &entry);
                branches.push(Branch { folder, level: level + 1, leaves: Vec::new() });
            }
            branches[next].leaves.push((entry, branch));
        }
        if is_cut {
            return Some((branches, true));
        }
        next += 1;
    }
    Some((branches, false))
}

/// Writes the entries of a branch and of the branches below it.
fn format_tree(
    walk: &Walk<'_>,
    branches: &[Branch],
    index: usize,
    depth: usize,
    output: &mut String,
) {
    let Branch { folder, level, leaves } = &branches[index];
    for (entry, branch) in leaves {
        let name = entry.name.to_string_lossy();
        let indent = 2 * (level - 1);
        let suffix = match entry.kind {
            Kind::File => String::new(),
            Kind::Folder if entry.ignored && *level < depth => {
                "/ (ignored, not entered)".to_owned()
            }
            Kind::Folder => "/".to_owned(),
            Kind::Link => match walk.target(&folder.path.join(&entry.name)) {
                Some(target) => format!(" -> {}", prose_line(&target)),
                None => " (a link)".to_owned(),
            },
            Kind::Other => " (a device, a pipe or a socket)".to_owned(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(output, "{:indent$}{}{suffix}", "", prose_line(&name));
        if let Some(branch) = branch {
            format_tree(walk, branches, *branch, depth, output);
        }
    }
}
