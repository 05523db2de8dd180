//! The policy of a session: whether a call may run, must be confirmed, or may not.

mod builtins;
mod command;
mod command_rule;
mod error;
mod exceptions;
mod folders;
mod matches;
mod opened;
mod path_rule;
mod prefixes;
mod programs;
mod rule;
mod shells;
mod unmatched;
mod variables;
mod wrapper;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::{PolicyClass, PolicyMode, PolicyRules, Rule, Verdict};

use crate::act::Act;
use crate::place::Place;
pub use error::PolicyError;
pub(crate) use exceptions::Exceptions;
use matches::Match;
use rule::RuleOf;

/// What may be done unasked, and what not at all.
///
/// Deny beats ask beats allow beats the mode. Under `readonly` no rule allows what the mode denies; under `all`
/// only deny rules count. What can't be known before it runs is never allowed by a rule.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    mode: PolicyMode,
    home: Option<String>,
    rules: Arc<Rules>,
    /// Folders that are protected wherever they lie.
    own: Arc<[PathBuf]>,
}

#[derive(Debug, Default)]
struct Rules {
    allow: Vec<RuleOf>,
    ask: Vec<RuleOf>,
    deny: Vec<RuleOf>,
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
    /// It is asked about because a rule may deny it.
    pub may_be_denied: bool,
}

/// What rules and the mode say together.
struct Settled {
    verdict: Verdict,
    why: String,
    may_be_denied: bool,
}

impl Settled {
    fn of(verdict: Verdict, why: String) -> Self {
        Self { verdict, why, may_be_denied: false }
    }

    fn part(self, what: String) -> Part {
        let Self { verdict, why, may_be_denied } = self;
        Part { what, verdict, why, may_be_denied }
    }
}

impl Policy {
    /// The policy of this mode and these rules. `home` is what `~` means.
    ///
    /// # Errors
    /// [`PolicyError`] if a rule can't be kept.
    pub fn new(mode: PolicyMode, rules: &PolicyRules, home: Option<&Path>) -> Result<Self, PolicyError> {
        let home = home.and_then(Path::to_str).map(|home| home.trim_end_matches('/'));
        let compile = |rules: &[Rule], allows| -> Result<Vec<_>, _> {
            rules.iter().map(|rule| RuleOf::new(rule, home, allows)).collect()
        };
        let rules = Rules {
            allow: compile(&rules.allow, true)?,
            ask: compile(&rules.ask, false)?,
            deny: compile(&rules.deny, false)?,
        };
        Ok(Self { mode, home: home.map(str::to_owned), rules: Arc::new(rules), own: Arc::default() })
    }

    /// The same that protects these folders and what is below them, wherever they lie: like a protected name, nothing is
    /// written there unasked under `ask` and `edits`, whatever is allowed.
    #[must_use]
    pub fn protecting(self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: folders.into_iter().collect(), ..self }
    }

    /// Whether what is written there is asked about every time.
    pub(crate) fn protects(&self, place: &Place) -> bool {
        place.is_protected() || self.own.iter().any(|folder| place.is_below(folder))
    }

    /// What it says of a call of `tool` that would do these acts in the workspace at `root`.
    #[must_use]
    pub fn judge(&self, tool: &str, acts: &[Act], root: &Path) -> Judgement {
        let mut parts = Vec::new();
        for act in if acts.is_empty() { &[Act::Talk] } else { acts } {
            match act {
                Act::Read(place) => {
                    parts.push(self.judge_place(tool, place, false, format!("read {}", place.shown()), root))
                }
                Act::Walk(place) => parts.push(self.judge_walk(tool, place, root)),
                Act::Write(place) => {
                    parts.push(self.judge_place(tool, place, true, format!("write {}", place.shown()), root))
                }
                Act::Command(command) => self.judge_command(tool, command, root, &mut parts),
                Act::Talk | Act::Other => {
                    let what = if matches!(act, Act::Talk) { "talk".to_owned() } else { format!("use {tool}") };
                    let allowed = |policy: &Self| {
                        let named = policy.rules.allow.iter().find(|rule| rule.names(tool) == Match::Yes);
                        named.map(allowed_by).ok_or(None)
                    };
                    parts.push(self.settle(act.class(), |rule| rule.names(tool), allowed).part(what));
                }
            }
        }
        let verdict = parts.iter().map(|part| part.verdict).max().unwrap_or(Verdict::Allow);
        Judgement { verdict, parts }
    }

    /// What it says of a place that is read or written.
    fn judge_place(&self, tool: &str, place: &Place, writes: bool, what: String, root: &Path) -> Part {
        let class = if writes { Act::Write(place.clone()).class() } else { Act::Read(place.clone()).class() };
        let allowed =
            |policy: &Self| match policy.rules.allow.iter().find(|rule| rule.allows_place(tool, place, writes, root)) {
                _ if writes && place.is_protected() => {
                    Err(Some("its name is protected: it starts programs or configures what does".to_owned()))
                }
                _ if writes && self.protects(place) => {
                    Err(Some("it is in Holdpoint's own folders: what may be done is configured there".to_owned()))
                }
                Some(rule) => Ok(allowed_by(rule)),
                None => Err(None),
            };
        self.settle(class, |rule| rule.restricts_place(tool, place, writes, root), allowed).part(what)
    }

    /// What it says of a folder that is walked through. What lies below and may not be read is left out, so rules about
    /// that do not count here.
    fn judge_walk(&self, tool: &str, place: &Place, root: &Path) -> Part {
        let restricts = |rule: &RuleOf| {
            let of = |path| rule.restricts_walk(tool, path, root);
            of(place.path()).max(of(place.named()))
        };
        let allowed = |policy: &Self| {
            let rule = policy.rules.allow.iter().find(|rule| rule.allows_walk(tool, place, root));
            rule.map(allowed_by).ok_or(None)
        };
        let settled = self.settle(Act::Walk(place.clone()).class(), restricts, allowed);
        settled.part(format!("read {} and below", place.shown()))
    }

    /// Weighs the rules and the mode. `restricts` says whether a rule of denying or asking speaks of it,
    /// `allowed` why it is allowed unasked, or what keeps it from being.
    fn settle(
        &self,
        class: PolicyClass,
        restricts: impl Fn(&RuleOf) -> Match,
        allowed: impl FnOnce(&Self) -> Result<String, Option<String>>,
    ) -> Settled {
        let strongest = |rules: &[RuleOf]| {
            let matching = rules.iter().map(|rule| (restricts(rule), rule)).filter(|(is, _)| *is != Match::No);
            matching.max_by_key(|(is, _)| *is).map(|(is, rule)| (is, rule.to_string()))
        };
        let by_mode = self.mode.judge(class);
        let why_mode = || format!("the policy is `{}`", self.mode);
        match strongest(&self.rules.deny) {
            Some((Match::Yes, rule)) => return Settled::of(Verdict::Deny, format!("denied by the rule `{rule}`")),
            _ if by_mode == Verdict::Deny => return Settled::of(Verdict::Deny, why_mode()),
            Some((_, rule)) => {
                let why = format!("it may be what the rule `{rule}` denies");
                return Settled { may_be_denied: true, ..Settled::of(Verdict::Ask, why) };
            }
            None => {}
        }
        if self.mode == PolicyMode::All {
            return Settled::of(Verdict::Allow, why_mode());
        }
        match strongest(&self.rules.ask) {
            Some((Match::Yes, rule)) => return Settled::of(Verdict::Ask, format!("asked for by the rule `{rule}`")),
            Some((_, rule)) => return Settled::of(Verdict::Ask, format!("it may be what the rule `{rule}` asks for")),
            None => {}
        }
        match allowed(self) {
            Ok(why) => Settled::of(Verdict::Allow, why),
            Err(Some(why)) => Settled::of(by_mode.max(Verdict::Ask), why),
            Err(None) => Settled::of(by_mode, why_mode()),
        }
    }
}

fn allowed_by(rule: &RuleOf) -> String {
    format!("allowed by the rule `{rule}`")
}

impl Judgement {
    /// Whether it asks about something that a rule may deny: nobody but a person can say that it does not.
    #[must_use]
    pub fn may_be_denied(&self) -> bool {
        self.parts.iter().any(|part| part.may_be_denied)
    }

    /// Why the verdict is what it is, in words.
    #[must_use]
    pub fn why(&self) -> &str {
        let mut reasons = self.parts.iter().filter(|part| part.verdict == self.verdict).map(|part| part.why.as_str());
        let Some(first) = reasons.next() else { return "nothing is done" };
        // One part is enough to ask or to deny, but not to allow.
        let allows = self.verdict == Verdict::Allow;
        if allows && reasons.any(|why| why != first) { "every part is allowed" } else { first }
    }
}
