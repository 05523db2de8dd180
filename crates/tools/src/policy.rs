//! The policy of a session: the rules and the mode that allow a tool call, ask about it or deny it.

mod agent_rule;
mod builtins;
mod command;
mod command_effects;
mod command_rule;
mod exceptions;
mod folders;
mod git;
mod impossible_patterns;
mod matches;
mod mcp_rule;
mod path_rule;
mod rule;
mod shells;
mod variables;
mod wrapper;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdpoint_common::{PolicyClass, PolicyError, PolicyMode, PolicyRules, Rule, Verdict};

use crate::act::Act;
use crate::place::Place;
use crate::sandbox::Widening;
use crate::shown::line;
pub(crate) use exceptions::Exceptions;
use git::GitFiles;
pub(crate) use git::changes_only_gits_own;
use matches::Match;
use rule::CompiledRule;

/// The rules and the mode that decide whether a tool call is allowed, asked about or denied.
///
/// A deny rule beats an ask rule, an ask rule beats an allow rule, and an allow rule beats the
/// mode. Under `readonly`, no rule allows an act that the mode denies. Under `all`, only deny rules
/// count. Under `sandboxed`, a command in the sandbox needs no allow rule. No rule allows an act that
/// is unknown until it runs.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    mode: PolicyMode,
    /// Whether commands run in a sandbox.
    sandboxed: bool,
    home: Option<String>,
    rules: Arc<Rules>,
    /// Protected folders, inside or outside the workspace.
    protected_folders: Arc<[PathBuf]>,
}

#[derive(Debug, Default)]
struct Rules {
    allow: Vec<CompiledRule>,
    ask: Vec<CompiledRule>,
    deny: Vec<CompiledRule>,
}

/// The verdict of a policy on a call, with the verdict on each part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The strictest verdict of all parts.
    pub verdict: Verdict,
    /// One part for each act of the call; a command has one for each of its calls and redirections.
    pub parts: Vec<Part>,
}

/// The verdict of a policy on one part of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The act in words, such as `write notes.txt`, or the text of a command.
    pub what: String,
    /// Whether the part is allowed, asked about or denied.
    pub verdict: Verdict,
    /// The reason for the verdict, in words.
    pub why: String,
    /// Whether the part asks because a deny rule may match it.
    pub may_be_denied: bool,
}

/// The verdict of the rules and the mode on one act.
struct ActVerdict {
    verdict: Verdict,
    why: String,
    may_be_denied: bool,
}

impl ActVerdict {
    fn new(verdict: Verdict, why: String) -> Self {
        Self { verdict, why, may_be_denied: false }
    }

    fn into_part(self, what: String) -> Part {
        let Self { verdict, why, may_be_denied } = self;
        Part { what, verdict, why, may_be_denied }
    }
}

impl Policy {
    /// Creates a policy from a mode and rules. `home` replaces `~` in patterns.
    ///
    /// # Errors
    /// [`PolicyError`] if a rule is invalid.
    pub fn new(
        mode: PolicyMode,
        rules: &PolicyRules,
        home: Option<&Path>,
    ) -> Result<Self, PolicyError> {
        let home = home.and_then(Path::to_str).map(|home| home.trim_end_matches('/'));
        let compile = |rules: &[Rule], allows| -> Result<Vec<_>, _> {
            rules.iter().map(|rule| CompiledRule::new(rule, home, allows)).collect()
        };
        let rules = Rules {
            allow: compile(&rules.allow, true)?,
            ask: compile(&rules.ask, false)?,
            deny: compile(&rules.deny, false)?,
        };
        Ok(Self {
            mode,
            sandboxed: false,
            home: home.map(str::to_owned),
            rules: Arc::new(rules),
            protected_folders: Arc::default(),
        })
    }

    /// The mode: the verdict on calls that no rule covers.
    #[must_use]
    pub fn mode(&self) -> PolicyMode {
        self.mode
    }

    /// Sets the mode.
    #[must_use]
    pub(crate) fn with_mode(self, mode: PolicyMode) -> Self {
        Self { mode, ..self }
    }

    /// Protects these folders and everything below them, inside or outside the workspace. As for a
    /// protected name, every write there asks under `ask` and `edits`, even where a rule allows it.
    /// So does every read, also under `readonly`.
    #[must_use]
    pub fn protecting(self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { protected_folders: folders.into_iter().collect(), ..self }
    }

    /// Sets whether commands run in a sandbox, and their changes of protected names are undone. If
    /// not, the mode `sandboxed` asks as `ask` does.
    #[must_use]
    pub fn sandboxed(self, sandboxed: bool) -> Self {
        Self { sandboxed, ..self }
    }

    /// Whether writing `place`, in the workspace at `root`, asks even where a rule allows it.
    pub(crate) fn protects(&self, place: &Place, root: &Path) -> bool {
        self.protection(place, &mut self.git_files(root)).is_some()
    }

    /// The reason why writing `place` asks even where a rule allows it; `None` if it does not.
    fn protection(&self, place: &Place, git: &mut GitFiles<'_>) -> Option<&'static str> {
        if place.is_protected() {
            return Some("its name is protected: such files start or configure programs");
        }
        if self.is_in_protected_folder(place) {
            return Some(
                "it is in one of Holdpoint's own folders, which hold the configuration of the \
                 policy",
            );
        }
        git.reason(place)
    }

    /// Whether a place is one of the [protected folders](Self::protecting), or below one.
    #[must_use]
    pub fn is_in_protected_folder(&self, place: &Place) -> bool {
        self.protected_folders.iter().any(|folder| place.is_below(folder))
    }

    /// The reason why reading `place` asks even where a rule allows it; `None` if it does not.
    fn read_protection(&self, place: &Place) -> Option<&'static str> {
        self.is_in_protected_folder(place)
            .then_some("it is in one of Holdpoint's own folders, which hold keys and logins")
    }

    fn git_files<'a>(&'a self, root: &'a Path) -> GitFiles<'a> {
        GitFiles::new(root, self.home.as_deref())
    }

    /// Judges a call of `tool` that would carry out `acts` in the workspace at `root`.
    #[must_use]
    pub fn judge(&self, tool: &str, acts: &[Act], root: &Path) -> Judgement {
        if self.sandboxed && acts.contains(&Act::Widen(Widening::Outside)) {
            return self.clone().sandboxed(false).judge(tool, acts, root);
        }
        let mut parts = Vec::new();
        let git = &mut self.git_files(root);
        for act in if acts.is_empty() { &[Act::Other] } else { acts } {
            match act {
                Act::Read(place) => parts.push(self.judge_place(
                    tool,
                    place,
                    false,
                    format!("read {}", place.shown()),
                    git,
                )),
                Act::Walk(place) => parts.push(self.judge_walk(tool, place, root)),
                Act::Write(place) => parts.push(self.judge_place(
                    tool,
                    place,
                    true,
                    format!("write {}", place.shown()),
                    git,
                )),
                Act::Command(command) => self.judge_command(tool, command, git, &mut parts),
                Act::Widen(widening) => parts.push(self.judge_widening(tool, widening)),
                Act::Mcp { server, tool: name } => parts.push(self.judge_mcp(tool, server, name)),
                Act::StartAgent { name } => parts.push(self.judge_start(name)),
                Act::Internal | Act::Other => {
                    let what = format!("use {tool}");
                    let allowed = |policy: &Self| {
                        let rule = policy
                            .rules
                            .allow
                            .iter()
                            .find(|rule| rule.matches_tool(tool) == Match::Yes);
                        rule.map(allowed_by).ok_or(None)
                    };
                    parts.push(
                        self.judge_act(act.class(), |rule| rule.matches_tool(tool), allowed)
                            .into_part(what),
                    );
                }
            }
        }
        let verdict = parts.iter().map(|part| part.verdict).max().unwrap_or(Verdict::Allow);
        Judgement { verdict, parts }
    }

    /// Judges the call of a tool of an MCP server. The server's own words have no effect.
    fn judge_mcp(&self, tool: &str, server: &str, name: &str) -> Part {
        let matches =
            |rule: &CompiledRule| rule.matches_tool(tool).max(rule.matches_mcp(server, name));
        let allowed = |policy: &Self| {
            let mut rules = policy.rules.allow.iter();
            rules.find(|rule| matches(rule) == Match::Yes).map(allowed_by).ok_or(None)
        };
        self.judge_act(PolicyClass::Run, matches, allowed)
            .into_part(format!("call {} of the MCP server {server}", line(name)))
    }

    /// Judges the start of a hosted agent. Rules that allow the calls of agents do not allow it.
    fn judge_start(&self, agent: &str) -> Part {
        let allowed = |policy: &Self| {
            let mut rules = policy.rules.allow.iter();
            let rule = rules.find(|rule| rule.matches_agent(agent) == Match::Yes);
            rule.map(allowed_by).ok_or(None)
        };
        self.judge_act(PolicyClass::StartAgent, |rule| rule.matches_agent(agent), allowed)
            .into_part(format!("start the agent {}", line(agent)))
    }

    /// Judges a widening of the sandbox. Rules that allow the command do not allow it.
    fn judge_widening(&self, tool: &str, widening: &Widening) -> Part {
        let restricts = |rule: &CompiledRule| rule.matches_tool(tool);
        self.judge_act(PolicyClass::LeaveSandbox, restricts, |_| Err(None))
            .into_part(widening.to_string())
    }

    fn judge_place(
        &self,
        tool: &str,
        place: &Place,
        writes: bool,
        what: String,
        git: &mut GitFiles<'_>,
    ) -> Part {
        let root = git.root();
        let act = if writes { Act::Write(place.clone()) } else { Act::Read(place.clone()) };
        let allowed = |policy: &Self| {
            let protection = match writes {
                true => policy.protection(place, git),
                false => policy.read_protection(place),
            };
            if let Some(why) = protection {
                return Err(Some(why.to_owned()));
            }
            let mut rules = policy.rules.allow.iter();
            let rule = rules.find(|rule| rule.allows_place(tool, place, writes, root));
            rule.map(allowed_by).ok_or(None)
        };
        self.judge_act(act.class(), |rule| rule.restricts_place(tool, place, writes, root), allowed)
            .into_part(what)
    }

    /// Judges a walk through a folder. Only rules that match the folder itself count, because the
    /// walk leaves out the paths below it that other rules restrict.
    fn judge_walk(&self, tool: &str, place: &Place, root: &Path) -> Part {
        let restricts = |rule: &CompiledRule| {
            let restricts_path = |path| rule.restricts_walk(tool, path, root);
            restricts_path(place.path()).max(restricts_path(place.given_path()))
        };
        let allowed = |policy: &Self| {
            if let Some(why) = policy.read_protection(place) {
                return Err(Some(why.to_owned()));
            }
            let rule = policy.rules.allow.iter().find(|rule| rule.allows_walk(tool, place, root));
            rule.map(allowed_by).ok_or(None)
        };
        let act_verdict = self.judge_act(Act::Walk(place.clone()).class(), restricts, allowed);
        act_verdict.into_part(format!("read {} and below", place.shown()))
    }

    /// Combines the rules and the mode. `restricts` returns whether a deny or ask rule matches the
    /// act. `allowed` returns the reason why the act is allowed, `Err(Some)` with the reason why no
    /// rule can allow it, or `Err(None)` if no rule allows it.
    fn judge_act(
        &self,
        class: PolicyClass,
        restricts: impl Fn(&CompiledRule) -> Match,
        allowed: impl FnOnce(&Self) -> Result<String, Option<String>>,
    ) -> ActVerdict {
        let strongest = |rules: &[CompiledRule]| {
            let matching = rules
                .iter()
                .map(|rule| (restricts(rule), rule))
                .filter(|(matched, _)| *matched != Match::No);
            matching
                .max_by_key(|(matched, _)| *matched)
                .map(|(matched, rule)| (matched, rule.to_string()))
        };
        let mode_verdict = self.effective_mode().judge(class);
        let mode_reason = || self.mode_reason();
        match strongest(&self.rules.deny) {
            Some((Match::Yes, rule)) => {
                return ActVerdict::new(Verdict::Deny, format!("denied by the rule `{rule}`"));
            }
            _ if mode_verdict == Verdict::Deny => {
                return ActVerdict::new(Verdict::Deny, mode_reason());
            }
            Some((_, rule)) => {
                let why = format!("the rule `{rule}` may deny it");
                return ActVerdict { may_be_denied: true, ..ActVerdict::new(Verdict::Ask, why) };
            }
            None => {}
        }
        if self.mode == PolicyMode::All {
            return ActVerdict::new(Verdict::Allow, mode_reason());
        }
        match strongest(&self.rules.ask) {
            Some((Match::Yes, rule)) => {
                return ActVerdict::new(
                    Verdict::Ask,
                    format!("the rule `{rule}` asks for approval"),
                );
            }
            Some((_, rule)) => {
                return ActVerdict::new(
                    Verdict::Ask,
                    format!("the rule `{rule}` may ask for approval"),
                );
            }
            None => {}
        }
        if class == PolicyClass::RunSandboxed && mode_verdict == Verdict::Allow {
            return ActVerdict::new(Verdict::Allow, mode_reason());
        }
        match allowed(self) {
            Ok(why) => ActVerdict::new(Verdict::Allow, why),
            Err(Some(why)) => ActVerdict::new(mode_verdict.max(Verdict::Ask), why),
            Err(None) => ActVerdict::new(mode_verdict, mode_reason()),
        }
    }
}

impl Policy {
    /// The mode that judges. Without a sandbox, `sandboxed` is `ask`.
    fn effective_mode(&self) -> PolicyMode {
        match self.mode {
            PolicyMode::Sandboxed if !self.sandboxed => PolicyMode::Ask,
            mode => mode,
        }
    }

    fn mode_reason(&self) -> String {
        let outside = match self.mode {
            PolicyMode::Sandboxed if !self.sandboxed => {
                ", which asks without a sandbox, and if the workspace contains the home folder"
            }
            _ => "",
        };
        format!("the policy is `{}`{outside}", self.mode)
    }

    /// The class of a command.
    fn command_class(&self) -> PolicyClass {
        if self.sandboxed { PolicyClass::RunSandboxed } else { PolicyClass::Run }
    }
}

fn allowed_by(rule: &CompiledRule) -> String {
    format!("allowed by the rule `{rule}`")
}

impl Judgement {
    /// Whether a part asks because a deny rule may match it. Such a call needs a person's approval.
    #[must_use]
    pub fn may_be_denied(&self) -> bool {
        self.parts.iter().any(|part| part.may_be_denied)
    }

    /// The reason for the verdict, in words.
    #[must_use]
    pub fn why(&self) -> &str {
        let mut reasons = self
            .parts
            .iter()
            .filter(|part| part.verdict == self.verdict)
            .map(|part| part.why.as_str());
        let Some(first) = reasons.next() else { return "the call has no effect" };
        // One part is enough to ask or to deny, but not to allow.
        let allows = self.verdict == Verdict::Allow;
        if allows && reasons.any(|why| why != first) { "every part is allowed" } else { first }
    }
}
