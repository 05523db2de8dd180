//! What a policy says of a command: of every call and every redirection in it.

use std::path::Path;

use holdpoint_common::{PolicyClass, Verdict};

use super::folders::Stands;
use super::matches::Match;
use super::opened::{Opened, OpenedDeed, Run};
use super::rule::RuleOf;
use super::wrapper::Wrapper;
use super::{Part, Policy, allowed_by, builtins, programs, variables};
use crate::place::Place;
use crate::script::{Assignment, Redirection, Word};

/// Why something is not allowed by a rule; none: no rule says it is.
type NotAllowed = Option<String>;

impl Policy {
    pub(super) fn judge_command(&self, tool: &str, command: &str, root: &Path, parts: &mut Vec<Part>) {
        let (opened, before) = (Opened::new(command), parts.len());
        let stands = Stands::of(&opened.goes_to, root, self.home.as_deref());
        for deed in opened.deeds {
            parts.extend(match deed {
                OpenedDeed::Call(text, assignments, run) => {
                    Some(self.judge_call(tool, text, &assignments, &run, stands))
                }
                OpenedDeed::Text(text, run) => Some(self.judge_text(tool, text, &run)),
                OpenedDeed::Redirect(redirection) => self.judge_redirection(tool, &redirection, stands, root),
                OpenedDeed::Unclear(text, why) => Some(self.judge_unknown(tool, text, why)),
            });
        }
        if parts.len() == before {
            let settled = self.settle(PolicyClass::Run, |rule| rule.names(tool), |_| Ok("it does nothing".to_owned()));
            parts.push(settled.part("nothing".to_owned()));
        }
    }

    fn judge_call(&self, tool: &str, text: String, assignments: &[Assignment], run: &Run, stands: Stands) -> Part {
        let evaluates = assignments.iter().any(variables::evaluates);
        let restricts = |rule: &RuleOf| {
            let unknown = if evaluates { rule.restricts_unknown(tool) } else { Match::No };
            restricts(rule, tool, run).max(unknown)
        };
        let allowed = |policy: &Self| {
            let ahead = |name: &str| format!("it sets {name}, which may change what runs");
            for assignment in assignments {
                let harmless = match run.words.is_empty() {
                    true => variables::is_harmless_here(assignment),
                    false => variables::is_harmless(&assignment.name, assignment.value.literal()),
                };
                if !harmless {
                    return Err(Some(ahead(&assignment.name)));
                }
            }
            if run.words.is_empty() { Ok("it only sets a variable".to_owned()) } else { policy.allows_run(run, stands) }
        };
        self.settle(PolicyClass::Run, restricts, allowed).part(text)
    }

    /// `cat` that only gives the text of a here-document: needs no rule, but one may deny it or ask for it.
    fn judge_text(&self, tool: &str, text: String, run: &Run) -> Part {
        let allowed = |_: &Self| Ok("`cat` only gives the text behind it".to_owned());
        self.settle(PolicyClass::Run, |rule| restricts(rule, tool, run), allowed).part(text)
    }

    /// Whether rules allow a program, and all that it would run.
    fn allows_run(&self, run: &Run, stands: Stands) -> Result<String, NotAllowed> {
        let no = |why: &str| Err(Some(why.to_owned()));
        let Some(program) = run.words.first().and_then(|word| word.known(self.home.as_deref())) else {
            return no("which program it is, is known only when it runs");
        };
        let program = &*program;
        let own = run.by_bash && !program.contains('/');
        if own && programs::is_evaluating(program) {
            return Err(Some(format!("`{program}` evaluates what it is given, or changes what later words mean")));
        }
        if own && builtins::evaluates(program, &run.words[1..]) {
            return Err(Some(format!("`{program}` evaluates some of what it is given")));
        }
        if stands != Stands::Here && program.contains('/') && !program.starts_with('/') {
            return no("its folder is not known: the command goes elsewhere");
        }
        if let Some(option) = programs::option_that_runs(program, &run.words[1..]) {
            return Err(Some(format!(
                "`{option}` of `{program}` runs another program, and may be among its arguments"
            )));
        }
        if let Some(rule) = self.rules.allow.iter().find(|rule| rule.allows_call(&run.words)) {
            return Ok(allowed_by(rule));
        }
        if own && programs::is_quiet(program) {
            return match program == "cd" && stands == Stands::Anywhere {
                true => no("the command goes outside the workspace, or where it goes is known only when it runs"),
                false => Ok(format!("`{program}` runs nothing and changes no file")),
            };
        }
        let Some(wrapper) = &run.wrapper else { return Err(None) };
        if wrapper.unclear {
            return Err(Some(format!("what `{program}` would run is not clear")));
        }
        if !wrapper.harmless || program.contains('/') {
            return Err(Some(format!("`{program}` is never allowed by what it would run")));
        }
        if let Some((name, _)) = wrapper.sets.iter().find(|(name, value)| !variables::is_harmless(name, Some(value))) {
            return Err(Some(format!("it sets {name}, which may change what runs")));
        }
        if run.calls.is_empty() {
            return Err(None);
        }
        let mut why = String::new();
        for call in &run.calls {
            why = self.allows_run(call, stands)?;
        }
        Ok(why)
    }

    /// What it says of a file that a command opens; none if it is one that can't matter.
    fn judge_redirection(&self, tool: &str, redirection: &Redirection, stands: Stands, root: &Path) -> Option<Part> {
        let what = redirection.text.clone();
        let Some(path) = redirection.target.known(self.home.as_deref()) else {
            return Some(self.judge_unknown(tool, what, "which file it is, is known only when it runs"));
        };
        if path == "/dev/null" {
            return None;
        }
        if stands != Stands::Here && !path.starts_with('/') {
            return Some(self.judge_unknown(tool, what, "its folder is not known: the command goes elsewhere"));
        }
        // Bash opens connections for some files in `/dev`, and others there are what the command has open by then.
        let place = match Place::resolve(&path, root) {
            Ok(place) if !(place.varies() || ["/dev", "/proc"].iter().any(|of| place.path().starts_with(of))) => place,
            Ok(_) => return Some(self.judge_unknown(tool, what, "what this file is depends on who opens it")),
            Err(_) => return Some(self.judge_unknown(tool, what, "where this path leads can't be found out")),
        };
        let part = self.judge_place(tool, &place, redirection.writes, what, root);
        // What begins so may be no file to bash, wherever the path would lead.
        if path.starts_with("/dev/") && part.verdict != Verdict::Deny {
            return Some(self.judge_unknown(tool, part.what, "what this file is depends on who opens it"));
        }
        Some(part)
    }

    /// What it says of what can't be known before it runs.
    fn judge_unknown(&self, tool: &str, what: String, why: &str) -> Part {
        let allowed = |_: &Self| Err(Some(why.to_owned()));
        let part = self.settle(PolicyClass::Run, |rule| rule.restricts_unknown(tool), allowed).part(what);
        if part.verdict == Verdict::Ask { Part { why: why.to_owned(), ..part } } else { part }
    }
}

/// Whether a rule restricts a program or anything that it would run.
fn restricts(rule: &RuleOf, tool: &str, run: &Run) -> Match {
    let own = rule.restricts_call(tool, &run.words);
    let unknown = if may_run_more(run) { rule.restricts_unknown(tool) } else { Match::No };
    let guesses = run.wrapper.as_ref().map_or(0, |wrapper| wrapper.guesses);
    let guessed = run.words.len() - guesses..run.words.len();
    let guessed = guessed.map(|at| rule.restricts_call(tool, &run.words[at..]));
    let inner = run.calls.iter().map(|call| restricts(rule, tool, call));
    guessed.chain(inner).chain([own, unknown]).max().unwrap_or(Match::No)
}

/// Whether it may run more than what is known.
fn may_run_more(run: &Run) -> bool {
    let wraps =
        |wrapper: &Wrapper| wrapper.unclear || wrapper.sets.iter().any(|(name, _)| variables::is_evaluated(name));
    let is_evaluated = |(program, words): (&Word, &[Word])| match program {
        Word::Literal(program) => run.by_bash && builtins::may_run(program, words),
        Word::Home(_) | Word::Dynamic => false,
    };
    run.wrapper.as_ref().is_some_and(wraps) || run.words.split_first().is_some_and(is_evaluated)
}
