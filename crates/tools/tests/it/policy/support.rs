//! A policy in its own folder.

use std::path::{Path, PathBuf};

use holdpoint_common::{PolicyError, PolicyMode, PolicyRules, Rule, Verdict};
use holdpoint_tools::{Act, Judgement, Place, Policy};
use tempfile::TempDir;

/// A policy, the folder it judges in, and a home folder.
pub(crate) struct PolicyWorkspace {
    pub(crate) policy: Policy,
    pub(crate) root: PathBuf,
    pub(crate) home: PathBuf,
    _folder: TempDir,
}

/// The rules of a policy as text.
#[derive(Clone, Default)]
pub(crate) struct RuleText<'a> {
    pub(crate) mode: PolicyMode,
    pub(crate) allow: &'a [&'a str],
    pub(crate) ask: &'a [&'a str],
    pub(crate) deny: &'a [&'a str],
}

impl RuleText<'_> {
    pub(crate) fn rules(&self) -> PolicyRules {
        let parse =
            |rules: &[&str]| rules.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
        PolicyRules { allow: parse(self.allow), ask: parse(self.ask), deny: parse(self.deny) }
    }

    pub(crate) fn policy(&self, home: Option<&Path>) -> Result<Policy, PolicyError> {
        Policy::new(self.mode, &self.rules(), home)
    }

    pub(crate) fn world(&self) -> PolicyWorkspace {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, home) = (base.join("work"), base.join("home"));
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&home).unwrap();
        PolicyWorkspace { policy: self.policy(Some(&home)).unwrap(), root, home, _folder: folder }
    }
}

impl PolicyWorkspace {
    pub(crate) fn command(&self, command: &str) -> Judgement {
        self.policy.judge("shell", &[Act::Command(command.to_owned())], &self.root)
    }

    pub(crate) fn verdict(&self, command: &str) -> Verdict {
        self.command(command).verdict
    }

    pub(crate) fn write(&self, path: &str) -> Judgement {
        let place = Place::resolve(path, &self.root).unwrap();
        self.policy.judge("write_file", &[Act::Write(place)], &self.root)
    }
}
