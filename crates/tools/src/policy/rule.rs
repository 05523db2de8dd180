//! One rule of a policy and the acts that it matches.

use std::fmt;
use std::path::Path;

use holdpoint_common::{PolicyError, Rule};

use super::agent_rule::AgentRule;
use super::command_rule::CommandRule;
use super::matches::Match;
use super::mcp_rule::McpRule;
use super::path_rule::PathRule;
use crate::place::Place;
use crate::script::Word;

/// Tools with path patterns in their rules.
const PATH_TOOLS: [&str; 6] = ["read_file", "list_dir", "glob", "grep", "write_file", "edit_file"];

/// A rule, compiled for matching.
#[derive(Debug)]
pub(super) struct CompiledRule {
    rule: Rule,
    target: RuleTarget,
}

#[derive(Debug)]
enum RuleTarget {
    /// Every call of a tool.
    Tool,
    /// Commands that match the pattern.
    Commands(Box<CommandRule>),
    /// Paths that any tool reads, that any tool writes, or that the rule's own tool reads or
    /// writes.
    Places(Access, PathRule),
    /// Tools of MCP servers.
    Mcp(McpRule),
    /// The start of hosted agents.
    Agent(AgentRule),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
    OwnTool,
}

impl CompiledRule {
    /// Compiles a rule. `allows` marks an allow rule, which is rejected if it would allow more than
    /// its text suggests.
    pub(super) fn new(rule: &Rule, home: Option<&str>, allows: bool) -> Result<Self, PolicyError> {
        let error = |problem: String| PolicyError { rule: rule.to_string(), problem };
        let access = match rule.tool.as_str() {
            "read" => Some(Access::Read),
            "write" => Some(Access::Write),
            tool => PATH_TOOLS.contains(&tool).then_some(Access::OwnTool),
        };
        let target = match (rule.tool.as_str(), &rule.pattern, access) {
            ("shell", None, _) if allows => {
                return Err(error(
                    "it would allow every command: use `--policy all` for that".to_owned(),
                ));
            }
            ("shell", Some(pattern), _) => RuleTarget::Commands(Box::new(
                CommandRule::new(pattern, home, allows).map_err(error)?,
            )),
            ("mcp", pattern, _) => {
                RuleTarget::Mcp(McpRule::new(pattern.as_deref(), allows).map_err(error)?)
            }
            ("agent", Some(pattern), _) => {
                RuleTarget::Agent(AgentRule::new(pattern, allows).map_err(error)?)
            }
            (_, Some(pattern), Some(access)) => {
                RuleTarget::Places(access, PathRule::new(pattern, home, allows).map_err(error)?)
            }
            (_, None, Some(access @ (Access::Read | Access::Write))) => {
                RuleTarget::Places(access, PathRule::any())
            }
            (_, None, _) => RuleTarget::Tool,
            (tool, Some(_), None) => {
                return Err(error(format!("`{tool}` takes no pattern: write `{tool}` alone")));
            }
        };
        Ok(Self { rule: rule.clone(), target })
    }

    /// Whether the rule matches this tool of an MCP server.
    pub(super) fn matches_mcp(&self, server: &str, tool: &str) -> Match {
        match &self.target {
            RuleTarget::Mcp(rule) if rule.matches(server, tool) => Match::Yes,
            _ => Match::No,
        }
    }

    /// Whether the rule matches the start of this hosted agent.
    pub(super) fn matches_agent(&self, name: &str) -> Match {
        match &self.target {
            RuleTarget::Agent(rule) if rule.matches(name) => Match::Yes,
            _ => Match::No,
        }
    }

    /// Whether the rule matches every call of `tool`.
    pub(super) fn matches_tool(&self, tool: &str) -> Match {
        if matches!(self.target, RuleTarget::Tool) && self.rule.tool == tool {
            Match::Yes
        } else {
            Match::No
        }
    }

    pub(super) fn allows_place(
        &self,
        tool: &str,
        place: &Place,
        writes: bool,
        root: &Path,
    ) -> bool {
        match &self.target {
            RuleTarget::Tool => self.rule.tool == tool,
            RuleTarget::Places(access, paths) => {
                self.covers(*access, tool, writes) && paths.allows(place, root)
            }
            RuleTarget::Commands(_) | RuleTarget::Mcp(_) | RuleTarget::Agent(_) => false,
        }
    }

    /// Whether the rule restricts reading or writing `place`. Reading a folder may read everything
    /// below it.
    pub(super) fn restricts_place(
        &self,
        tool: &str,
        place: &Place,
        writes: bool,
        root: &Path,
    ) -> Match {
        match &self.target {
            RuleTarget::Tool => self.matches_tool(tool),
            RuleTarget::Places(access, paths) if self.covers(*access, tool, writes) => {
                paths.restricts(place, !writes, root)
            }
            RuleTarget::Places(..)
            | RuleTarget::Commands(_)
            | RuleTarget::Mcp(_)
            | RuleTarget::Agent(_) => Match::No,
        }
    }

    /// Whether the rule allows reading `place` and everything below it.
    pub(super) fn allows_walk(&self, tool: &str, place: &Place, root: &Path) -> bool {
        let writes = false;
        match &self.target {
            RuleTarget::Tool => self.rule.tool == tool,
            RuleTarget::Places(access, paths) => {
                self.covers(*access, tool, writes) && paths.allows_below(place, root)
            }
            RuleTarget::Commands(_) | RuleTarget::Mcp(_) | RuleTarget::Agent(_) => false,
        }
    }

    /// Whether the rule restricts reading exactly this path on a walk.
    pub(super) fn restricts_walk(&self, tool: &str, path: &Path, root: &Path) -> Match {
        let writes = false;
        match &self.target {
            RuleTarget::Tool => self.matches_tool(tool),
            RuleTarget::Places(access, paths)
                if self.covers(*access, tool, writes) && paths.matches(path, root) =>
            {
                Match::Yes
            }
            RuleTarget::Places(..)
            | RuleTarget::Commands(_)
            | RuleTarget::Mcp(_)
            | RuleTarget::Agent(_) => Match::No,
        }
    }

    fn covers(&self, access: Access, tool: &str, writes: bool) -> bool {
        match access {
            Access::Read => !writes,
            Access::Write => writes,
            Access::OwnTool => self.rule.tool == tool,
        }
    }

    pub(super) fn allows_call(&self, words: &[Word]) -> bool {
        matches!(&self.target, RuleTarget::Commands(command) if command.allows(words))
    }

    pub(super) fn restricts_call(&self, tool: &str, words: &[Word]) -> Match {
        match &self.target {
            RuleTarget::Commands(command) => command.restricts(words),
            RuleTarget::Tool => self.matches_tool(tool),
            RuleTarget::Places(..) | RuleTarget::Mcp(_) | RuleTarget::Agent(_) => Match::No,
        }
    }

    /// Whether the rule restricts an act that is unknown until it runs.
    pub(super) fn restricts_unknown(&self, tool: &str) -> Match {
        match &self.target {
            RuleTarget::Commands(_) | RuleTarget::Places(Access::Read | Access::Write, _) => {
                Match::Maybe
            }
            RuleTarget::Tool => self.matches_tool(tool),
            // The tools with path patterns and those of MCP servers run no commands, and an agent
            // is not a command.
            RuleTarget::Places(Access::OwnTool, _) | RuleTarget::Mcp(_) | RuleTarget::Agent(_) => {
                Match::No
            }
        }
    }
}

impl fmt::Display for CompiledRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)
    }
}
