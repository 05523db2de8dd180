//! What git says has changed in a session's folder, asked so that nothing that the repository configures is run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdpoint_tools::{Workspace, environment};
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

/// What has changed since the last commit, and which that is.
const STATUS: [&str; 9] = [
    "status",
    "--porcelain=v2",
    "--branch",
    "--no-ahead-behind",
    "-z",
    "--no-renames",
    "--untracked-files=all",
    "--ignore-submodules=all",
    ".",
];

/// What has changed between two commits, below the folder.
const BETWEEN: [&str; 7] =
    ["diff-tree", "-r", "-z", "--name-only", "--no-renames", "--ignore-submodules=all", "--relative"];

/// A repository at one moment: enough to see what changes from then on.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The last commit; nothing before the first.
    head: Option<String>,
    /// The files that differ from it, by their path below the folder, and what each is.
    files: BTreeMap<String, Option<Look>>,
}

/// How a file looks from outside: its size, and when it was written.
type Look = (u64, SystemTime);

impl Repository {
    /// As it is now; nothing where there is no git, no repository, or no answer in time.
    pub(crate) async fn now(workspace: &Arc<Workspace>) -> Option<Self> {
        let found = async { Git::of(workspace).await?.repository().await };
        tokio::time::timeout(PATIENCE, found).await.ok().flatten()
    }

    /// The files that have changed since, committed or not; nothing where git does not say it in time.
    pub(crate) async fn changed_since(&self, workspace: &Arc<Workspace>) -> Vec<String> {
        let found = async { Git::of(workspace).await?.changed_since(self).await };
        tokio::time::timeout(PATIENCE, found).await.ok().flatten().unwrap_or_default()
    }
}

/// How git is asked.
struct Git {
    program: PathBuf,
    root: PathBuf,
    env: Vec<(String, String)>,
}

impl Git {
    /// Disks may not answer: looked for on a thread that may wait.
    async fn of(workspace: &Arc<Workspace>) -> Option<Self> {
        let workspace = Arc::clone(workspace);
        tokio::task::spawn_blocking(move || Self::find(&workspace)).await.ok().flatten()
    }

    fn find(workspace: &Workspace) -> Option<Self> {
        let root = workspace.root();
        if !root.ancestors().any(|folder| folder.join(".git").exists()) {
            return None;
        }
        let program = environment::program(&["git"], workspace.env(), root)?;
        let own = environment::outside(workspace.env(), root).into_iter().filter(|(name, _)| !name.starts_with("GIT_"));
        let quiet = KEPT_QUIET.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self { program, root: root.to_owned(), env: own.chain(quiet).collect() })
    }

    async fn repository(&self) -> Option<Repository> {
        let settings = self.settings().await?;
        let prefix = self.ask(&["rev-parse", "--show-prefix"], &settings).await?;
        let prefix = String::from_utf8_lossy(&prefix).trim_end_matches('\n').to_owned();
        let listed = self.ask(&STATUS, &settings).await?;
        let (mut head, mut paths) = (None, BTreeSet::new());
        for line in lines(&listed) {
            if let Some(commit) = line.strip_prefix("# branch.oid ") {
                head = Some(commit.to_owned()).filter(|commit| commit != "(initial)");
            } else if let Some(path) = path(&line).and_then(|path| path.strip_prefix(prefix.as_str())) {
                paths.insert(path.to_owned());
            }
        }
        Some(Repository { head, files: self.look(paths).await? })
    }

    async fn changed_since(&self, before: &Repository) -> Option<Vec<String>> {
        let now = self.repository().await?;
        let known = before.files.keys().chain(now.files.keys()).cloned();
        let paths = self.committed(&before.head, &now.head).await.into_iter().chain(known).collect();
        let files = self.look(paths).await?;
        // One that had changed before, and was only committed since, looks as it did.
        let changed = files.into_iter().filter(|(path, look)| before.files.get(path) != Some(look));
        Some(changed.map(|(path, _)| path).collect())
    }

    /// The files in which two commits differ. They are in the repository: of the folder, nothing is looked at.
    async fn committed(&self, before: &Option<String>, now: &Option<String>) -> Vec<String> {
        let listed = match (before, now) {
            (before, now) if before == now => None,
            (Some(before), Some(now)) => {
                self.ask(&[&BETWEEN[..], &[before.as_str(), now.as_str()]].concat(), &own_settings()).await
            }
            (None, Some(now)) => self.ask(&["ls-tree", "-r", "-z", "--name-only", now], &own_settings()).await,
            (_, None) => None,
        };
        listed.iter().flat_map(|listed| lines(listed)).map(|path| path.into_owned()).collect()
    }

    /// How these files look now.
    async fn look(&self, paths: BTreeSet<String>) -> Option<BTreeMap<String, Option<Look>>> {
        let root = self.root.clone();
        let look = move |path: &str| {
            let file = fs::symlink_metadata(root.join(path)).ok()?;
            Some((file.len(), file.modified().ok()?))
        };
        let looked = tokio::task::spawn_blocking(move || {
            paths.into_iter().take(MOST).map(|path| (path.clone(), look(&path))).collect()
        });
        looked.await.ok()
    }

    /// The settings that go before the repository's: its filters are programs too, of whatever name.
    async fn settings(&self) -> Option<Vec<(String, String)>> {
        let own = own_settings();
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
        command.args(args).current_dir(&self.root).env_clear().envs(self.env.iter().cloned());
        command.env("GIT_CONFIG_COUNT", settings.len().to_string()).envs(numbered);
        command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let output = command.output().await.ok()?;
        output.status.success().then_some(output.stdout)
    }
}

/// Our own settings, for an answer that takes nothing from the files of the folder.
fn own_settings() -> Vec<(String, String)> {
    SETTINGS.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// What git lists, each with a zero byte behind it.
fn lines(listed: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    listed.split(|byte| *byte == 0).filter(|line| !line.is_empty()).map(String::from_utf8_lossy)
}

/// The path of a line of [`STATUS`], from the top of the repository: behind so many fields for each kind of line.
fn path(line: &str) -> Option<&str> {
    let fields = match line.as_bytes().first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => 1,
        _ => return None,
    };
    line.splitn(fields + 1, ' ').nth(fields)
}
