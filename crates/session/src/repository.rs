//! What git says has changed in a session's folder, asked so that nothing that the repository configures is run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use holdpoint_tools::Workspace;
use tokio::process::Command;

/// How long git may take. Without its answer there is only our own bookkeeping.
const PATIENCE: Duration = Duration::from_secs(5);

/// Files that are looked at. In a folder with more of them than that, git is not asked for long.
const MOST: usize = 10_000;

/// Settings that go before those of the repository, for each of them could name a program.
const SETTINGS: [(&str, &str); 2] = [("core.fsmonitor", "false"), ("core.hooksPath", "/dev/null")];

/// What else keeps git from starting anything: no lock, so no hook; nobody to ask; nothing to fetch, by no protocol.
const KEPT_QUIET: [(&str, &str); 4] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// Files that differ from the last commit, by their path below the folder, and what each is: enough to see it change.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes(BTreeMap<String, Option<(u64, SystemTime)>>);

impl Changes {
    /// As they are now; nothing where there is no git, no repository, or no answer in time.
    pub(crate) async fn of(workspace: &Workspace) -> Option<Self> {
        let found = tokio::time::timeout(PATIENCE, Git::of(workspace)?.changes()).await;
        found.ok().flatten()
    }

    /// The files that have changed since `before`.
    pub(crate) fn since(&self, before: &Self) -> Vec<String> {
        let here = self.0.iter().filter(|(path, file)| before.0.get(*path) != Some(*file)).map(|(path, _)| path);
        let gone = before.0.keys().filter(|path| !self.0.contains_key(*path));
        here.chain(gone).cloned().collect()
    }
}

/// How git is asked.
struct Git<'a> {
    program: PathBuf,
    root: &'a Path,
    env: Vec<(String, String)>,
}

impl<'a> Git<'a> {
    fn of(workspace: &'a Workspace) -> Option<Self> {
        let root = workspace.root();
        if !root.ancestors().any(|folder| folder.join(".git").exists()) {
            return None;
        }
        // Not one that lies in the folder itself, nor one that is found only from there.
        let path = workspace.env().iter().find(|(name, _)| name == "PATH").map(|(_, path)| path)?;
        let folders = std::env::split_paths(path).filter(|folder| folder.is_absolute() && !folder.starts_with(root));
        let program = folders.map(|folder| folder.join("git")).find(|program| program.is_file())?;
        let own = workspace.env().iter().filter(|(name, _)| !name.starts_with("GIT_")).cloned();
        let quiet = KEPT_QUIET.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self { program, root, env: own.chain(quiet).collect() })
    }

    async fn changes(&self) -> Option<Changes> {
        let settings = self.settings().await?;
        let prefix = self.ask(&["rev-parse", "--show-prefix"], &settings).await?;
        let prefix = String::from_utf8_lossy(&prefix).trim_end_matches('\n').to_owned();
        let status =
            ["status", "--porcelain", "-z", "--no-renames", "--untracked-files=all", "--ignore-submodules=all"];
        let listed = self.ask(&[&status[..], &["--", "."]].concat(), &settings).await?;
        let root = self.root.to_owned();
        let looked = tokio::task::spawn_blocking(move || {
            // Each entry: two letters, a space, the path from the repository's top.
            let paths = listed.split(|byte| *byte == 0).filter_map(|entry| entry.get(3..)).take(MOST);
            let below =
                paths.filter_map(|path| Some(String::from_utf8_lossy(path).strip_prefix(prefix.as_str())?.to_owned()));
            let file = |path: &str| {
                let file = fs::symlink_metadata(root.join(path)).ok()?;
                Some((file.len(), file.modified().ok()?))
            };
            Changes(below.map(|path| (path.clone(), file(&path))).collect())
        });
        looked.await.ok()
    }

    /// The settings that go before the repository's: its filters are programs too, of whatever name.
    async fn settings(&self) -> Option<Vec<(String, String)>> {
        let own = SETTINGS.map(|(key, value)| (key.to_owned(), value.to_owned()));
        // There may be none, which git takes for a failure.
        let listed = self.ask(&["config", "--null", "--name-only", "--get-regexp", r"^filter\."], &own).await;
        let listed = listed.unwrap_or_default();
        let names = listed.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        let filters: BTreeSet<_> = names.filter_map(|name| Some(name.rsplit_once('.')?.0.to_owned())).collect();
        let off = filters.iter().flat_map(|filter| {
            [("clean", ""), ("smudge", ""), ("process", ""), ("required", "false")]
                .map(|(key, value)| (format!("{filter}.{key}"), value.to_owned()))
        });
        Some(own.into_iter().chain(off).collect())
    }

    /// What git answers, unless it fails.
    async fn ask(&self, args: &[&str], settings: &[(String, String)]) -> Option<Vec<u8>> {
        let numbered = settings.iter().enumerate().flat_map(|(n, (key, value))| {
            [(format!("GIT_CONFIG_KEY_{n}"), key.clone()), (format!("GIT_CONFIG_VALUE_{n}"), value.clone())]
        });
        let mut command = Command::new(&self.program);
        command.args(args).current_dir(self.root).env_clear().envs(self.env.iter().cloned());
        command.env("GIT_CONFIG_COUNT", settings.len().to_string()).envs(numbered);
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.ok()?;
        output.status.success().then_some(output.stdout)
    }
}
