//! The paths that a walk through a readable folder leaves out.

use std::path::Path;

use holdpoint_common::PolicyMode;

use super::Policy;
use super::matches::Match;
use super::rule::CompiledRule;
use crate::place::Place;

/// The deny and ask rules with paths that a walk leaves out.
#[derive(Debug)]
pub(crate) struct Exceptions<'a> {
    rules: Vec<&'a CompiledRule>,
    tool: &'a str,
    root: &'a Path,
}

impl Policy {
    /// The rules that limit a walk of `tool` through `folder`, in the workspace at `root`.
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
        Exceptions { rules, tool, root }
    }
}

impl Exceptions<'_> {
    /// Whether the walk leaves out no path.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether the walk leaves out `path`, which must be absolute.
    pub(crate) fn leaves_out(&self, path: &Path) -> bool {
        self.rules.iter().any(|rule| rule.restricts_walk(self.tool, path, self.root) != Match::No)
    }
}
