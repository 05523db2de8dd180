//! One rule: what it speaks of.

use std::fmt;
use std::path::Path;

use holdpoint_common::Rule;

use super::command_rule::CommandRule;
use super::error::PolicyError;
use super::matches::Match;
use super::path_rule::PathRule;
use crate::place::Place;
use crate::script::Word;

/// Tools whose rules may have a path for a pattern.
const PATH_TOOLS: [&str; 6] = ["read_file", "list_dir", "glob", "grep", "write_file", "edit_file"];

/// A rule, ready to be matched.
#[derive(Debug)]
pub(super) struct RuleOf {
    rule: Rule,
    subject: Subject,
}

#[derive(Debug)]
enum Subject {
    /// Whatever a tool does.
    Tool,
    /// Commands that match.
    Commands(Box<CommandRule>),
    /// Places that any tool reads, or writes; or that the rule's own tool does either with.
    Places(Group, PathRule),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Read,
    Write,
    Own,
}

impl RuleOf {
    /// `allows`: the rule allows something, and so must not allow more than it seems to.
    pub(super) fn new(rule: &Rule, home: Option<&str>, allows: bool) -> Result<Self, PolicyError> {
        let error = |why: String| PolicyError { rule: rule.to_string(), why };
        let group = match rule.tool.as_str() {
            "read" => Some(Group::Read),
            "write" => Some(Group::Write),
            tool => PATH_TOOLS.contains(&tool).then_some(Group::Own),
        };
        let subject = match (rule.tool.as_str(), &rule.pattern, group) {
            ("shell", None, _) if allows => {
                return Err(error("it would allow every command; write `--policy all` if that is meant".to_owned()));
            }
            ("shell", Some(pattern), _) => {
                Subject::Commands(Box::new(CommandRule::new(pattern, home, allows).map_err(error)?))
            }
            (_, Some(pattern), Some(group)) => {
                Subject::Places(group, PathRule::new(pattern, home, allows).map_err(error)?)
            }
            (_, None, Some(group @ (Group::Read | Group::Write))) => Subject::Places(group, PathRule::any()),
            (_, None, _) => Subject::Tool,
            (tool, Some(_), None) => {
                return Err(error(format!("nothing is known of patterns of `{tool}`; write `{tool}` alone")));
            }
        };
        Ok(Self { rule: rule.clone(), subject })
    }

    /// Whether it speaks of whatever this tool does.
    pub(super) fn names(&self, tool: &str) -> Match {
        if matches!(self.subject, Subject::Tool) && self.rule.tool == tool { Match::Yes } else { Match::No }
    }

    /// Whether it allows reading or writing there.
    pub(super) fn allows_place(&self, tool: &str, place: &Place, writes: bool, root: &Path) -> bool {
        match &self.subject {
            Subject::Tool => self.rule.tool == tool,
            Subject::Places(group, path) => self.covers(*group, tool, writes) && path.allows(place, root),
            Subject::Commands(_) => false,
        }
    }

    /// Whether it restricts reading or writing there. Reading a folder may be reading all that is below.
    pub(super) fn restricts_place(&self, tool: &str, place: &Place, writes: bool, root: &Path) -> Match {
        match &self.subject {
            Subject::Tool => self.names(tool),
            Subject::Places(group, path) if self.covers(*group, tool, writes) => path.restricts(place, !writes, root),
            Subject::Places(..) | Subject::Commands(_) => Match::No,
        }
    }

    /// Whether it allows reading a place with all that is below.
    pub(super) fn allows_walk(&self, tool: &str, place: &Place, root: &Path) -> bool {
        match &self.subject {
            Subject::Tool => self.rule.tool == tool,
            Subject::Places(group, path) => self.covers(*group, tool, false) && path.allows_below(place, root),
            Subject::Commands(_) => false,
        }
    }

    /// Whether it restricts reading this very path on a walk.
    pub(super) fn restricts_walk(&self, tool: &str, path: &Path, root: &Path) -> Match {
        match &self.subject {
            Subject::Tool => self.names(tool),
            Subject::Places(group, rule) if self.covers(*group, tool, false) && rule.matches(path, root) => Match::Yes,
            Subject::Places(..) | Subject::Commands(_) => Match::No,
        }
    }

    fn covers(&self, group: Group, tool: &str, writes: bool) -> bool {
        match group {
            Group::Read => !writes,
            Group::Write => writes,
            Group::Own => self.rule.tool == tool,
        }
    }

    /// Whether it allows this call of a command.
    pub(super) fn allows_call(&self, words: &[Word]) -> bool {
        matches!(&self.subject, Subject::Commands(command) if command.allows(words))
    }

    /// Whether it restricts this call of a command.
    pub(super) fn restricts_call(&self, tool: &str, words: &[Word]) -> Match {
        match &self.subject {
            Subject::Commands(command) => command.restricts(words),
            Subject::Tool => self.names(tool),
            Subject::Places(..) => Match::No,
        }
    }

    /// Whether it restricts something of which nothing is known.
    pub(super) fn restricts_unknown(&self, tool: &str) -> Match {
        match &self.subject {
            Subject::Commands(_) | Subject::Places(Group::Read | Group::Write, _) => Match::Maybe,
            Subject::Tool => self.names(tool),
            Subject::Places(Group::Own, _) => Match::No,
        }
    }
}

impl fmt::Display for RuleOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}
