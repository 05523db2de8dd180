//! The policy of a session: whether a call may run, must be confirmed, or may not.

use std::path::Path;

use holdpoint_common::{PolicyMode, PolicyRules, Verdict};
use thiserror::Error;

use crate::act::Act;

/// What may be done unasked, and what not at all.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    mode: PolicyMode,
}

/// What a policy says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Whether it may run.
    pub verdict: Verdict,
    /// What the verdict comes from.
    pub parts: Vec<Part>,
}

/// What a policy says of one part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it would do.
    pub what: String,
    /// Whether it may.
    pub verdict: Verdict,
    /// Why, in words.
    pub why: String,
}

/// A rule that can't be kept.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PolicyError {}

impl Policy {
    /// The policy of this mode and these rules.
    ///
    /// # Errors
    /// [`PolicyError`] if a rule can't be kept.
    pub fn new(mode: PolicyMode, _rules: &PolicyRules) -> Result<Self, PolicyError> {
        Ok(Self { mode })
    }

    /// What it says of a call of `tool` that would do these acts in the workspace at `root`.
    #[must_use]
    pub fn judge(&self, _tool: &str, acts: &[Act], _root: &Path) -> Judgement {
        let part = |act: &Act| Part {
            what: format!("{act:?}"),
            verdict: self.mode.judge(act.class()),
            why: format!("the policy is `{}`", self.mode),
        };
        let parts: Vec<_> = acts.iter().map(part).collect();
        let verdict = parts.iter().map(|part| part.verdict).max().unwrap_or(Verdict::Allow);
        Judgement { verdict, parts }
    }
}

impl Judgement {
    /// Why the verdict is what it is, in words.
    #[must_use]
    pub fn why(&self) -> &str {
        self.parts.iter().find(|part| part.verdict == self.verdict).map_or("nothing is done", |part| &part.why)
    }
}
