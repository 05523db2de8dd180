//! Policies: which calls are allowed, asked about or denied, by class of effect and by rule.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The class of a call's effect, by which a policy mode judges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PolicyClass {
    /// Affects only the user or the session itself.
    Internal,
    /// Reads inside the workspace.
    Read,
    /// Reads outside the workspace.
    ReadOutside,
    /// Writes inside the workspace.
    Write,
    /// Writes a protected name inside the workspace: a file that starts programs or configures
    /// them.
    WriteProtected,
    /// Writes outside the workspace.
    WriteOutside,
    /// Runs a program or a command.
    Run,
    /// Runs a command in the sandbox.
    RunSandboxed,
    /// Extends the sandbox of a command, or runs it outside.
    LeaveSandbox,
    /// Starts a hosted agent that gets more than the sandbox allows, or has none. Every mode but `all`
    /// asks about it.
    StartAgent,
}

/// The mode of a policy: its verdict on calls that no rule covers.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// Allows reading inside the workspace, and asks about everything else.
    #[default]
    Ask,
    /// Allows reading and writing inside the workspace, except for writing protected names, and
    /// asks about everything else.
    Edits,
    /// Allows reading and writing as `edits` does, and allows commands in the sandbox. Asks about
    /// everything else. Without a sandbox, it asks as `ask` does.
    Sandboxed,
    /// Allows everything that no deny rule denies.
    All,
    /// Allows reading inside the workspace, and denies everything else. Allow rules do not extend
    /// it.
    Readonly,
}

/// The verdict of a policy on a call, from the weakest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// The call may run.
    Allow,
    /// The call may run if the user approves it.
    Ask,
    /// The call may not run.
    Deny,
}

impl PolicyMode {
    /// Returns the verdict of this mode on calls of the class.
    #[must_use]
    pub fn judge(self, class: PolicyClass) -> Verdict {
        use PolicyClass as C;
        match (self, class) {
            (_, C::Internal | C::Read)
            | (Self::All, _)
            | (Self::Edits | Self::Sandboxed, C::Write)
            | (Self::Sandboxed, C::RunSandboxed) => Verdict::Allow,
            (Self::Readonly, C::StartAgent) | (Self::Ask | Self::Edits | Self::Sandboxed, _) => {
                Verdict::Ask
            }
            (Self::Readonly, _) => Verdict::Deny,
        }
    }
}

impl fmt::Display for PolicyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::Sandboxed => "sandboxed",
            Self::All => "all",
            Self::Readonly => "readonly",
        })
    }
}

/// The rules of a policy, which override its mode. Deny overrides ask, and ask overrides allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolicyRules {
    /// Calls that run without an ask.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Rule>,
    /// Calls that are asked about, even if the mode or an allow rule allows them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<Rule>,
    /// Calls that are denied without an ask.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Rule>,
}

impl PolicyRules {
    /// Whether there are no rules.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }
}

/// A rule, written `TOOL` or `TOOL(PATTERN)`: `shell(git status)`, `write(docs/**)`, `web`.
///
/// The pattern is only text here. The crate `holdpoint-tools` interprets it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    /// Name of a tool or of a group of tools.
    pub tool: String,
    /// Pattern that a call must match. Without one, the rule covers all calls of the tool.
    pub pattern: Option<String>,
}

/// The error for a rule that can't be applied, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, JsonSchema)]
#[error("invalid rule `{rule}`: {problem}")]
pub struct PolicyError {
    /// Rule as the user wrote it.
    pub rule: String,
    /// Mistake in the rule, and a rule to write instead.
    pub problem: String,
}

/// The error for a text that does not have the form `TOOL` or `TOOL(PATTERN)`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a rule: write TOOL or TOOL(PATTERN), for example shell(git status) or write(docs/**)"
)]
pub struct RuleError {
    /// The text that was given.
    pub text: String,
}

impl FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        let error = || RuleError { text: text.to_owned() };
        let (tool, pattern) = match text.trim().split_once('(') {
            None => (text.trim(), None),
            Some((tool, rest)) => (tool, Some(rest.strip_suffix(')').ok_or_else(error)?.trim())),
        };
        let is_name_character =
            |character: char| character.is_ascii_alphanumeric() || character == '_';
        if tool.is_empty()
            || !tool.chars().all(is_name_character)
            || pattern.is_some_and(str::is_empty)
        {
            return Err(error());
        }
        Ok(Self { tool: tool.to_owned(), pattern: pattern.map(str::to_owned) })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pattern {
            Some(pattern) => write!(f, "{}({pattern})", self.tool),
            None => f.write_str(&self.tool),
        }
    }
}

impl TryFrom<String> for Rule {
    type Error = RuleError;

    fn try_from(text: String) -> Result<Self, RuleError> {
        text.parse()
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.to_string()
    }
}

impl JsonSchema for Rule {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "string", "pattern": "^[A-Za-z0-9_]+(\\(.+\\))?$" })
    }
}
