//! The policy's verdict on a shell command: on every call and every redirection in it.

use holdpoint_common::{PolicyMode, Verdict};

use super::command_effects::{CommandEffect, CommandEffects, Run};
use super::folders::WorkingFolder;
use super::git::GitFiles;
use super::matches::Match;
use super::rule::CompiledRule;
use super::wrapper::Wrapper;
use super::{Part, Policy, allowed_by, builtins, variables};
use crate::place::Place;
use crate::programs;
use crate::script::{Assignment, Redirection, Word};

/// The reason why no rule may allow a call; `None` if no rule matches it.
type NotAllowed = Option<String>;

impl Policy {
    pub(super) fn judge_command(
        &self,
        tool: &str,
        command: &str,
        git: &mut GitFiles<'_>,
        parts: &mut Vec<Part>,
    ) {
        let found = CommandEffects::new(command);
        let count_before = parts.len();
        let folder =
            WorkingFolder::from_targets(&found.cd_targets, git.root(), self.home.as_deref());
        for effect in found.effects {
            parts.extend(match effect {
                CommandEffect::Call(text, assignments, run) => {
                    Some(self.judge_call(tool, text, &assignments, &run, folder))
                }
                CommandEffect::Text(text, run) => Some(self.judge_text(tool, text, &run)),
                CommandEffect::Redirect(redirection) => {
                    self.judge_redirection(tool, &redirection, folder, git)
                }
                CommandEffect::Unclear(text, why) => Some(self.judge_unknown(tool, text, why)),
            });
        }
        if parts.len() == count_before {
            let act_verdict = self.judge_act(
                self.command_class(),
                |rule| rule.matches_tool(tool),
                |_| Ok("the command does nothing".to_owned()),
            );
            parts.push(act_verdict.into_part("an empty command".to_owned()));
        }
    }

    fn judge_call(
        &self,
        tool: &str,
        text: String,
        assignments: &[Assignment],
        run: &Run,
        folder: WorkingFolder,
    ) -> Part {
        let evaluates = assignments.iter().any(variables::evaluates);
        let call_restricts = |rule: &CompiledRule| {
            let unknown = if evaluates { rule.restricts_unknown(tool) } else { Match::No };
            restricts(rule, tool, run).max(unknown)
        };
        let allowed = |policy: &Self| {
            let sets_reason =
                |name: &str| format!("it sets {name}, which can change which programs run");
            for assignment in assignments {
                let harmless = match run.words.is_empty() {
                    true => variables::is_harmless_here(assignment),
                    false => variables::is_harmless(&assignment.name, assignment.value.literal()),
                };
                if !harmless {
                    return Err(Some(sets_reason(&assignment.name)));
                }
            }
            if run.words.is_empty() {
                Ok("it only sets a variable".to_owned())
            } else {
                policy.allow_reason(run, folder)
            }
        };
        self.judge_act(self.command_class(), call_restricts, allowed).into_part(text)
    }

    /// Judges a `cat` that only outputs the text of a here-document. It needs no allow rule, but a
    /// rule may deny it or ask about it.
    fn judge_text(&self, tool: &str, text: String, run: &Run) -> Part {
        let allowed = |_: &Self| Ok("`cat` only prints the text of its here-document".to_owned());
        self.judge_act(self.command_class(), |rule| restricts(rule, tool, run), allowed)
            .into_part(text)
    }

    /// Returns the reason why a program and every program that it would run are allowed, or the
    /// reason why not.
    fn allow_reason(&self, run: &Run, folder: WorkingFolder) -> Result<String, NotAllowed> {
        let not_allowed = |why: &str| Err(Some(why.to_owned()));
        let Some(program) = run.words.first().and_then(|word| word.known(self.home.as_deref()))
        else {
            return not_allowed("its program is known only at run time");
        };
        let program = &*program;
        let may_be_builtin = run.called_by_bash && !program.contains('/');
        if may_be_builtin && programs::is_evaluating(program) {
            return Err(Some(format!(
                "`{program}` evaluates its arguments or changes the meaning of later words"
            )));
        }
        if may_be_builtin && builtins::evaluates(program, &run.words[1..]) {
            return Err(Some(format!("`{program}` evaluates some of its arguments")));
        }
        if folder != WorkingFolder::Here && program.contains('/') && !program.starts_with('/') {
            return not_allowed("its folder is unknown, because the command changes folders");
        }
        if let Some(rule) = self.rules.allow.iter().find(|rule| rule.allows_call(&run.words)) {
            return Ok(allowed_by(rule));
        }
        if let Some(found) = programs::running(program, &run.words[1..]).first() {
            return Err(Some(format!(
                "`{program}` runs another program with `{}`, which may be among its arguments",
                found.option
            )));
        }
        if may_be_builtin && programs::is_quiet(program) {
            return match program == "cd" && folder == WorkingFolder::Anywhere {
                true => not_allowed(
                    "the command leaves the workspace, or its folder is known only at run time",
                ),
                false => Ok(format!("`{program}` runs no program and changes no file")),
            };
        }
        let Some(wrapper) = &run.wrapper else { return Err(None) };
        if wrapper.unclear {
            return Err(Some(format!("it is not clear which command `{program}` would run")));
        }
        if !wrapper.harmless || program.contains('/') {
            return Err(Some(format!(
                "a rule that allows the wrapped command does not allow `{program}`"
            )));
        }
        if let Some((name, _)) =
            wrapper.sets.iter().find(|(name, value)| !variables::is_harmless(name, Some(value)))
        {
            return Err(Some(format!("it sets {name}, which can change which programs run")));
        }
        if run.calls.is_empty() {
            return Err(None);
        }
        let mut why = String::new();
        for call in &run.calls {
            why = self.allow_reason(call, folder)?;
        }
        Ok(why)
    }

    /// Judges a file that a command opens. Returns `None` for `/dev/null`.
    fn judge_redirection(
        &self,
        tool: &str,
        redirection: &Redirection,
        folder: WorkingFolder,
        git: &mut GitFiles<'_>,
    ) -> Option<Part> {
        let what = redirection.text.clone();
        let Some(path) = redirection.target.known(self.home.as_deref()) else {
            return Some(self.judge_unknown(tool, what, "its file is known only at run time"));
        };
        if path == "/dev/null" {
            return None;
        }
        if folder != WorkingFolder::Here && !path.starts_with('/') {
            return Some(self.judge_unknown(
                tool,
                what,
                "its folder is unknown, because the command changes folders",
            ));
        }
        // Bash opens network connections for some paths in `/dev`; others there name the command's
        // open descriptors.
        let place = match Place::resolve(&path, git.root()) {
            Ok(place)
                if !(place.differs_per_process()
                    || ["/dev", "/proc"]
                        .iter()
                        .any(|special| place.path().starts_with(special))) =>
            {
                place
            }
            Ok(_) => {
                return Some(self.judge_unknown(
                    tool,
                    what,
                    "which file this is depends on the process that opens it",
                ));
            }
            Err(_) => return Some(self.judge_unknown(tool, what, "this path can't be resolved")),
        };
        let part = match self.effective_mode() {
            // The sandbox decides which files a command can open.
            PolicyMode::Sandboxed => {
                let (writes, root) = (redirection.writes, git.root());
                let restricts =
                    |rule: &CompiledRule| rule.restricts_place(tool, &place, writes, root);
                self.judge_act(self.command_class(), restricts, |_| Err(None)).into_part(what)
            }
            _ => self.judge_place(tool, &place, redirection.writes, what, git),
        };
        // Bash may open a connection for such a path, even if the path resolves to a place
        // elsewhere.
        if path.starts_with("/dev/") && part.verdict != Verdict::Deny {
            return Some(self.judge_unknown(
                tool,
                part.what,
                "which file this is depends on the process that opens it",
            ));
        }
        Some(part)
    }

    /// Judges a part that is unknown until it runs.
    fn judge_unknown(&self, tool: &str, what: String, why: &str) -> Part {
        let allowed = |_: &Self| Err(Some(why.to_owned()));
        let part = self
            .judge_act(self.command_class(), |rule| rule.restricts_unknown(tool), allowed)
            .into_part(what);
        // An ask states this cause, not the rule that may match.
        if part.verdict == Verdict::Ask { Part { why: why.to_owned(), ..part } } else { part }
    }
}

/// Whether a rule restricts a program or any program that it would run.
fn restricts(rule: &CompiledRule, tool: &str, run: &Run) -> Match {
    let outer = rule.restricts_call(tool, &run.words);
    let unknown = if may_run_more(run) { rule.restricts_unknown(tool) } else { Match::No };
    // Each of the last `possible_starts` words may begin the wrapped command.
    let possible_starts = run.wrapper.as_ref().map_or(0, |wrapper| wrapper.possible_starts);
    let possible_calls = (run.words.len() - possible_starts..run.words.len())
        .map(|at| rule.restricts_call(tool, &run.words[at..]));
    let inner = run.calls.iter().map(|call| restricts(rule, tool, call));
    possible_calls.chain(inner).chain([outer, unknown]).max().unwrap_or(Match::No)
}

/// Whether a program may run more than the calls that are known.
fn may_run_more(run: &Run) -> bool {
    let runs_unknown = |wrapper: &Wrapper| {
        wrapper.unclear || wrapper.sets.iter().any(|(name, _)| variables::is_evaluated(name))
    };
    let builtin_may_run = |(program, words): (&Word, &[Word])| match program {
        Word::Literal(program) => run.called_by_bash && builtins::may_run(program, words),
        Word::Home(_) | Word::Dynamic => false,
    };
    run.wrapper.as_ref().is_some_and(runs_unknown)
        || run.words.split_first().is_some_and(builtin_may_run)
}
