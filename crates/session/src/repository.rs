//! The changes that git reports in a session's folder. Git is run in a way that starts no program
//! from the repository's configuration. A process that changes the configuration while git runs can
//! start one all the same, so git has a supervisor, as a tool call has.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use holdpoint_tools::{ProcessSpec, Processes, Read, environment};

use crate::session_env::SessionEnv;

/// The timeout for git. Without its answer, only the session's own records show the changed files.
const GIT_TIMEOUT: Duration = Duration::from_secs(5);

/// The maximum number of changed files to examine. With more of them, git is likely to time out
/// anyway.
const MAX_GIT_FILES: usize = 10_000;

/// The maximum size of git's output in bytes.
const MAX_GIT_OUTPUT: usize = 64 * 1024 * 1024;

/// Settings that override those of the repository, because each of them could name a program. Each
/// names the variable that holds its value.
const SETTINGS: [(&str, &str); 2] = [("core.fsmonitor", FALSE), ("core.hooksPath", NO_FOLDER)];

/// The names of the variables with the values of settings.
const EMPTY: &str = "HOLDPOINT_EMPTY";
const FALSE: &str = "HOLDPOINT_FALSE";
const NO_FOLDER: &str = "HOLDPOINT_NO_FOLDER";

/// The values of settings.
const VALUES: [(&str, &str); 3] = [(EMPTY, ""), (FALSE, "false"), (NO_FOLDER, "/dev/null")];

/// Variables that keep git from starting programs: no locks and so no hooks, no prompts, and no
/// fetches by any protocol.
const QUIET_VARIABLES: [(&str, &str); 4] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
];

/// The changes since the last commit, and its id.
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

/// The files that differ between two commits, below the folder.
const BETWEEN: [&str; 7] = [
    "diff-tree",
    "-r",
    "-z",
    "--name-only",
    "--no-renames",
    "--ignore-submodules=all",
    "--relative",
];

/// The state of a repository at one moment, with enough detail to find later changes.
#[derive(Debug)]
pub(crate) struct Repository {
    /// The last commit; `None` before the first.
    head: Option<String>,
    /// The files that differ from that commit, by their path below the folder, each with its stamp;
    /// `None` for a file that is missing or can't be examined.
    files: BTreeMap<String, Option<FileStamp>>,
}

/// The size of a file, and the time when it was last written.
type FileStamp = (u64, SystemTime);

/// Settings of git, each with the variable that has its value. A key may have any bytes, not only
/// UTF-8.
type Settings = Vec<(OsString, &'static str)>;

impl Repository {
    /// Reads the present state; `None` without git or a repository, or after the timeout.
    pub(crate) async fn now(env: &Arc<SessionEnv>) -> Option<Self> {
        let found = async { Git::locate(env).await?.repository().await };
        tokio::time::timeout(GIT_TIMEOUT, found).await.ok().flatten()
    }

    /// The files that have changed since this state, committed or not. Empty if git does not answer
    /// in time.
    pub(crate) async fn changed_since(&self, env: &Arc<SessionEnv>) -> Vec<String> {
        let found = async { Git::locate(env).await?.changed_since(self).await };
        tokio::time::timeout(GIT_TIMEOUT, found).await.ok().flatten().unwrap_or_default()
    }
}

/// The git program, with the folder and the environment it runs in.
struct Git {
    program: PathBuf,
    root: PathBuf,
    env: Vec<(String, String)>,
    session: Arc<SessionEnv>,
}

impl Git {
    /// Finds git on a blocking thread, because disks can be slow.
    async fn locate(session: &Arc<SessionEnv>) -> Option<Self> {
        let session = Arc::clone(session);
        tokio::task::spawn_blocking(move || Self::find(session)).await.ok().flatten()
    }

    fn find(session: Arc<SessionEnv>) -> Option<Self> {
        let workspace = session.workspace();
        let root = workspace.root();
        if !root.ancestors().any(|folder| folder.join(".git").exists()) {
            return None;
        }
        let program = environment::program(&["git"], workspace.env(), root)?;
        let inherited = environment::outside(workspace.env(), root)
            .into_iter()
            .filter(|(name, _)| !name.starts_with("GIT_"));
        let ours = QUIET_VARIABLES.iter().chain(&VALUES);
        let ours = ours.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let (root, env) = (root.to_owned(), inherited.chain(ours).collect());
        Some(Self { program, root, env, session })
    }

    async fn repository(&self) -> Option<Repository> {
        let settings = self.settings().await?;
        let prefix = self.run(&["rev-parse", "--show-prefix"], &settings).await?;
        let prefix = String::from_utf8_lossy(&prefix).trim_end_matches('\n').to_owned();
        let listed = self.run(&STATUS, &settings).await?;
        let (mut head, mut paths) = (None, BTreeSet::new());
        for entry in entries(&listed) {
            if let Some(commit) = entry.strip_prefix("# branch.oid ") {
                head = Some(commit.to_owned()).filter(|commit| commit != "(initial)");
            } else if let Some(path) =
                path(&entry).and_then(|path| path.strip_prefix(prefix.as_str()))
            {
                paths.insert(path.to_owned());
            }
        }
        Some(Repository { head, files: self.stamps(paths).await? })
    }

    async fn changed_since(&self, before: &Repository) -> Option<Vec<String>> {
        let now = self.repository().await?;
        let known = before.files.keys().chain(now.files.keys()).cloned();
        let paths =
            self.files_between(&before.head, &now.head).await.into_iter().chain(known).collect();
        let files = self.stamps(paths).await?;
        // A file that was changed before and has only been committed since has the same stamp.
        let changed =
            files.into_iter().filter(|(path, stamp)| before.files.get(path) != Some(stamp));
        Some(changed.map(|(path, _)| path).collect())
    }

    /// The files in which two commits differ. They are read from the repository, never from the
    /// folder.
    async fn files_between(&self, before: &Option<String>, now: &Option<String>) -> Vec<String> {
        let listed = match (before, now) {
            (before, now) if before == now => None,
            (Some(before), Some(now)) => {
                self.run(
                    &[&BETWEEN[..], &[before.as_str(), now.as_str()]].concat(),
                    &fixed_settings(),
                )
                .await
            }
            (None, Some(now)) => {
                self.run(&["ls-tree", "-r", "-z", "--name-only", now], &fixed_settings()).await
            }
            (_, None) => None,
        };
        listed.iter().flat_map(|listed| entries(listed)).map(|path| path.into_owned()).collect()
    }

    /// Reads the present stamps of these files.
    async fn stamps(&self, paths: BTreeSet<String>) -> Option<BTreeMap<String, Option<FileStamp>>> {
        let root = self.root.clone();
        let stamp = move |path: &str| {
            let file = fs::symlink_metadata(root.join(path)).ok()?;
            Some((file.len(), file.modified().ok()?))
        };
        let stamps = tokio::task::spawn_blocking(move || {
            paths.into_iter().take(MAX_GIT_FILES).map(|path| (path.clone(), stamp(&path))).collect()
        });
        stamps.await.ok()
    }

    /// The settings that override those of the repository. They also turn off its filters, which
    /// are programs, under any name. `None` if git can't list the settings.
    async fn settings(&self) -> Option<Settings> {
        let mut settings = fixed_settings();
        let listed = self.run(&["config", "--null", "--name-only", "--list"], &settings).await?;
        let filters: BTreeSet<_> = listed
            .split(|byte| *byte == 0)
            .filter(|name| name.starts_with(b"filter."))
            .filter_map(|name| Some(&name[..name.iter().rposition(|byte| *byte == b'.')?]))
            .collect();
        for filter in filters {
            for (key, variable) in
                [(".clean", EMPTY), (".smudge", EMPTY), (".process", EMPTY), (".required", FALSE)]
            {
                let name = OsStr::from_bytes(&[filter, key.as_bytes()].concat()).to_owned();
                settings.push((name, variable));
            }
        }
        Some(settings)
    }

    /// Runs git and returns its output; `None` if it fails.
    async fn run(&self, args: &[&str], settings: &Settings) -> Option<Vec<u8>> {
        // A key may contain `=`, so git reads the value from a variable.
        let options = settings.iter().map(|(key, variable)| {
            let mut option = OsString::from("--config-env=");
            option.push(key);
            option.push("=");
            option.push(variable);
            option
        });
        let script = ["-c".into(), "exec \"$0\" \"$@\" 2> /dev/null".into()];
        let git = [self.program.clone().into_os_string()];
        let options = script.into_iter().chain(git).chain(options);
        let spec = ProcessSpec {
            program: "/bin/sh".into(),
            args: options.chain(args.iter().map(OsString::from)).collect(),
            cwd: self.root.clone(),
            env: self.env.clone(),
        };
        let running =
            EndOnDrop(self.session.processes(&self.session.workspace(), Duration::ZERO, &[]));
        let processes = running.0.clone();
        tokio::task::spawn_blocking(move || output(&processes, spec)).await.ok().flatten()
    }
}

/// Ends the processes when dropped, even while clones exist.
struct EndOnDrop(Processes);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Runs a program to its end. Returns its output; `None` if it fails.
fn output(processes: &Processes, spec: ProcessSpec) -> Option<Vec<u8>> {
    let mut process = processes.spawn(spec).ok()?;
    let (mut output, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
    while let Read::Bytes(read) = process.read_by(&mut buffer, None).ok()? {
        output.extend(&buffer[..read]);
        if output.len() > MAX_GIT_OUTPUT {
            return None;
        }
    }
    process.wait_by(None)?.is_success().then_some(output)
}

/// The fixed settings, which suffice for commands that do not read the files of the folder.
fn fixed_settings() -> Settings {
    SETTINGS.map(|(key, variable)| (key.into(), variable)).into()
}

/// The entries of git's output, each of which ends with a zero byte.
fn entries(listed: &[u8]) -> impl Iterator<Item = Cow<'_, str>> {
    listed.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()).map(String::from_utf8_lossy)
}

/// The path in an entry of [`STATUS`], relative to the top of the repository. The number of fields
/// before the path depends on the kind of the entry.
fn path(entry: &str) -> Option<&str> {
    let fields = match entry.as_bytes().first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => 1,
        _ => return None,
    };
    entry.splitn(fields + 1, ' ').nth(fields)
}
