//! What a walk through a folder that may be read leaves out.

use std::path::Path;

use holdpoint_common::PolicyMode;

use super::Policy;
use super::matches::Match;
use super::rule::RuleOf;
use crate::place::Place;

/// What a walk leaves out: what rules deny or ask about.
#[derive(Debug)]
pub(crate) struct Exceptions<'a> {
    rules: Vec<&'a RuleOf>,
    tool: &'a str,
    root: &'a Path,
}

impl Policy {
    /// What a walk of `tool` through that folder leaves out, in the workspace at `root`.
    pub(crate) fn exceptions<'a>(&'a self, tool: &'a str, folder: &Place, root: &'a Path) -> Exceptions<'a> {
        let speaks_of = |rule: &RuleOf, path: &Path| rule.restricts_walk(tool, path, root) != Match::No;
        // To walk through a folder that has to be asked about, it was.
        let of_below = |rule: &&RuleOf| !speaks_of(rule, folder.path()) && !speaks_of(rule, folder.named());
        let asked: &[_] = if self.mode == PolicyMode::All { &[] } else { &self.rules.ask };
        let rules = self.rules.deny.iter().chain(asked.iter().filter(of_below)).collect();
        Exceptions { rules, tool, root }
    }
}

impl Exceptions<'_> {
    /// Nothing is left out.
    pub(crate) fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// Whether this is left out: an absolute path.
    pub(crate) fn include(&self, path: &Path) -> bool {
        self.rules.iter().any(|rule| rule.restricts_walk(self.tool, path, self.root) != Match::No)
    }
}
