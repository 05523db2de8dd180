//! The paths that a walk through a readable folder leaves out.

use std::path::{Path, PathBuf};

use holdpoint_common::PolicyMode;

use super::Policy;
use super::matches::Match;
use super::rule::CompiledRule;
use crate::place::{Place, follow};

/// The deny and ask rules with paths that a walk leaves out, and the protected folders.
#[derive(Debug)]
pub(crate) struct Exceptions<'a> {
    rules: Vec<&'a CompiledRule>,
    /// Protected folders below the one of the walk.
    folders: Vec<PathBuf>,
    tool: &'a str,
    root: &'a Path,
}

impl Policy {
    /// The rules and folders that limit a walk of `tool` through `folder`, in the workspace at
    /// `root`.
    pub(crate) fn exceptions<'a>(
        &'a self,
        tool: &'a str,
        folder: &Place,
        root: &'a Path,
    ) -> Exceptions<'a> {
        let restricts =
            |rule: &CompiledRule, path: &Path| rule.restricts_walk(tool, path, root) != Match::No;
        // An ask rule that matches `folder` itself was approved before the walk.
        let only_below = |rule: &&CompiledRule| {
            !restricts(rule, folder.path()) && !restricts(rule, folder.given_path())
        };
        let asked: &[_] = if self.mode == PolicyMode::All { &[] } else { &self.rules.ask };
        let rules = self.rules.deny.iter().chain(asked.iter().filter(only_below)).collect();
        let real = |path: &PathBuf| follow(path).ok().map(|(real, _)| real);
        let folders = self.protected_folders.iter();
        let folders = folders.flat_map(|path| [Some(path.clone()), real(path)]).flatten();
        // A walk that begins in one of them was approved before.
        let is_below = |path: &PathBuf, above: &Path| path != above && path.starts_with(above);
        let folders = folders.filter(|path| {
            self.mode != PolicyMode::All
                && (is_below(path, folder.path()) || is_below(path, folder.given_path()))
        });
        Exceptions { rules, folders: folders.collect(), tool, root }
    }
}

impl Exceptions<'_> {
    /// Whether the walk leaves out no path.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.folders.is_empty()
    }

    /// Whether the walk leaves out `path`, which must be absolute.
    pub(crate) fn leaves_out(&self, path: &Path) -> bool {
        self.folders.iter().any(|folder| path.starts_with(folder))
            || self
                .rules
                .iter()
                .any(|rule| rule.restricts_walk(self.tool, path, self.root) != Match::No)
    }
}
