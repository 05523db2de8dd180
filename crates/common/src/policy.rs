//! What tools may do without asking: by class of act, and by rule.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// What a call does to the world: what the policy judges by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PolicyClass {
    /// Only talks to the user or to the session itself.
    Talk,
    /// Reads inside the workspace.
    Read,
    /// Reads elsewhere.
    ReadOutside,
    /// Writes inside the workspace.
    Write,
    /// Writes inside the workspace, at a name that starts programs or configures them.
    WriteProtected,
    /// Writes elsewhere.
    WriteOutside,
    /// Runs a program.
    Run,
}

/// What is allowed unasked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PolicyMode {
    /// Reading inside the workspace; the rest asks.
    #[default]
    Ask,
    /// Also writing inside the workspace, but for protected names; the rest asks.
    Edits,
    /// Everything.
    All,
    /// Reading inside the workspace; the rest is denied unasked.
    Readonly,
}

/// What a policy says of a call. The later beats the earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It may run.
    Allow,
    /// It may run if the user confirms it.
    Ask,
    /// It may not run.
    Deny,
}

impl PolicyMode {
    /// What this mode says of a call of that class.
    #[must_use]
    pub fn judge(self, class: PolicyClass) -> Verdict {
        use PolicyClass as C;
        match (self, class) {
            (_, C::Talk | C::Read) | (Self::All, _) | (Self::Edits, C::Write) => Verdict::Allow,
            (Self::Readonly, C::ReadOutside | C::Write | C::WriteProtected | C::WriteOutside | C::Run) => Verdict::Deny,
            (Self::Ask, C::ReadOutside | C::Write | C::WriteProtected | C::WriteOutside | C::Run)
            | (Self::Edits, C::ReadOutside | C::WriteProtected | C::WriteOutside | C::Run) => Verdict::Ask,
        }
    }
}

impl fmt::Display for PolicyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::All => "all",
            Self::Readonly => "readonly",
        })
    }
}

/// Rules that say more than the mode. Deny beats ask beats allow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PolicyRules {
    /// What is allowed unasked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<Rule>,
    /// What is asked, even where it would be allowed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ask: Vec<Rule>,
    /// What is denied, unasked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<Rule>,
}

impl PolicyRules {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.ask.is_empty() && self.deny.is_empty()
    }
}

/// What a rule speaks of, written `TOOL` or `TOOL(PATTERN)`: `shell(git status)`, `write(docs/**)`, `web`.
///
/// What a pattern means is the matter of whoever judges; here it is text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Rule {
    /// The tool's name, or that of a group of tools.
    pub tool: String,
    /// What of it; without a pattern, all.
    pub pattern: Option<String>,
}

/// A rule that is not of the form `TOOL` or `TOOL(PATTERN)`.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no rule: write TOOL or TOOL(PATTERN), for example shell(git status) or write(docs/**)")]
pub struct RuleError {
    /// What was given.
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
        let named = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if tool.is_empty() || !tool.chars().all(named) || pattern.is_some_and(str::is_empty) {
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
