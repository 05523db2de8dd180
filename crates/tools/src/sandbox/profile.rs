//! The files that processes in a sandbox can read and write.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use super::caches::CACHES;
use super::confinement::Confinement;
use crate::place::is_protected_name;

/// Files and folders with keys or sessions of the user, relative to the home folder.
const KEYS: [&str; 34] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".pgpass",
    ".git-credentials",
    ".password-store",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".pypirc",
    ".claude",
    ".claude.json",
    ".codex",
    ".gemini",
    ".config/gh",
    ".config/glab-cli",
    ".config/git/credentials",
    ".config/gcloud",
    ".config/op",
    ".config/sops",
    ".config/containers",
    ".local/share/keyrings",
    ".local/share/opencode",
    // Browsers.
    ".mozilla",
    ".thunderbird",
    ".config/chromium",
    ".config/google-chrome",
    ".config/microsoft-edge",
    ".config/BraveSoftware",
    "snap/firefox",
    "snap/chromium",
];

/// Folders of sockets and other state of running programs.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];

/// Folders in [`RUNTIME`] where NixOS keeps programs, which stay readable.
const RUNTIME_PROGRAMS: [&str; 3] =
    ["/run/current-system", "/run/booted-system", "/run/opengl-driver"];

/// Folders for temporary files, in place of which processes get a folder of the sandbox.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// The file that configures the resolver of host names. It is often a link into [`RUNTIME`].
const RESOLVER: &str = "/etc/resolv.conf";

/// Devices that processes can use at the level `landlock`.
const DEVICES: [&str; 7] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"];

/// The most entries of one folder that are examined. Further entries of a folder beside hidden ones
/// can't be read at the level `landlock`, and protected names after them are not found.
const MAX_ENTRIES: usize = 10_000;

/// The access of processes to a path and everything below it. The nearest path above a file counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    /// It can be read.
    Readable,
    /// It can be read and changed.
    Writable,
    /// It can't be read.
    Hidden,
    /// Another folder takes its place, which can be changed.
    Replaced(PathBuf),
}

/// The paths that exist, with their access, and the variables of processes.
#[derive(Debug)]
pub(super) struct Layout {
    /// By path, so that a folder comes before the paths below it. All links are resolved.
    pub(super) access: BTreeMap<PathBuf, Access>,
    pub(super) env: Vec<(String, String)>,
}

/// The files that the processes of a session can read and write.
///
/// Everything is readable but the user's keys and the sockets in `/run`. The workspace is writable.
/// Temporary files and caches are in folders of the sandbox.
#[derive(Debug, Clone)]
pub struct SandboxProfile {
    workspace: PathBuf,
    temporary: PathBuf,
    caches: PathBuf,
    home: Option<PathBuf>,
    writable: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    own: Vec<PathBuf>,
    network: bool,
}

impl SandboxProfile {
    /// Creates a profile for the workspace folder `workspace`. `temporary` is the folder for the
    /// temporary files of the session, `caches` that for the caches of all sessions in this
    /// workspace; both are created when they are needed. All paths are absolute.
    pub fn new(
        workspace: impl Into<PathBuf>,
        temporary: impl Into<PathBuf>,
        caches: impl Into<PathBuf>,
    ) -> Self {
        Self {
            workspace: workspace.into(),
            temporary: temporary.into(),
            caches: caches.into(),
            home: None,
            writable: Vec::new(),
            hidden: Vec::new(),
            own: Vec::new(),
            network: false,
        }
    }

    /// Sets the home folder of the user, in which keys are hidden and caches replaced.
    #[must_use]
    pub fn home(self, home: Option<PathBuf>) -> Self {
        Self { home, ..self }
    }

    /// Makes further files and folders writable.
    #[must_use]
    pub fn writable(self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { writable: paths.into_iter().collect(), ..self }
    }

    /// Hides further files and folders.
    #[must_use]
    pub fn hidden(self, paths: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { hidden: paths.into_iter().collect(), ..self }
    }

    /// Hides the folders of the program itself, even if they are also [writable](Self::writable).
    #[must_use]
    pub fn own_folders(self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: folders.into_iter().collect(), ..self }
    }

    /// Sets whether processes can use the network.
    #[must_use]
    pub fn network(self, network: bool) -> Self {
        Self { network, ..self }
    }

    pub(super) fn workspace(&self) -> &Path {
        &self.workspace
    }

    pub(super) fn allows_network(&self) -> bool {
        self.network
    }

    /// Creates the folders of the sandbox, for this user only.
    pub(super) fn create_folders(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(&self.temporary)?;
        CACHES.iter().try_for_each(|cache| builder.create(self.caches.join(cache.name)))
    }

    /// The access to the paths that exist now. Where folders `can_replace` others, those of the
    /// sandbox do; elsewhere variables name them.
    pub(super) fn layout(&self, env: &[(String, String)], can_replace: bool) -> Layout {
        let mut layout = Layout {
            access: BTreeMap::from([("/".into(), Access::Readable)]),
            env: env.iter().filter(|(name, _)| !is_dropped(name)).cloned().collect(),
        };
        RUNTIME.iter().for_each(|path| layout.set(path, Access::Hidden));
        RUNTIME_PROGRAMS.iter().for_each(|path| layout.set(path, Access::Readable));
        if self.network {
            layout.set(RESOLVER, Access::Readable);
        }
        if can_replace {
            TEMPORARY.iter().for_each(|path| layout.replace(path, &self.temporary));
        } else {
            layout.set(&self.temporary, Access::Writable);
            layout.set_variable(Some("TMPDIR"), &self.temporary);
            DEVICES.iter().for_each(|path| layout.set(path, Access::Writable));
        }
        layout.set(&self.caches, Access::Writable);
        for cache in &CACHES {
            let own = self.caches.join(cache.name);
            match cache.real(env, self.home.as_deref()) {
                Some(real) if can_replace && real.is_dir() => layout.replace(real, &own),
                _ => layout.set_variable(cache.variable, &own),
            }
        }
        if let Some(home) = &self.home {
            KEYS.iter().for_each(|path| layout.set(home.join(path), Access::Hidden));
        }
        self.hidden.iter().for_each(|path| layout.set(path, Access::Hidden));
        layout.set(&self.workspace, Access::Writable);
        self.writable.iter().for_each(|path| layout.set(path, Access::Writable));
        if can_replace {
            protected(&self.workspace).iter().for_each(|path| layout.set(path, Access::Readable));
        }
        self.own.iter().for_each(|path| layout.set(path, Access::Hidden));
        layout.without_redundant()
    }

    /// The restrictions at the level `landlock`, and the variables of processes.
    pub(super) fn landlock(
        &self,
        env: &[(String, String)],
    ) -> (Confinement, Vec<(String, String)>) {
        let Layout { access, env } = self.layout(env, false);
        let visible = |wanted: Access| {
            let mut paths = Vec::new();
            let with_access = access.iter().filter(|(_, access)| **access == wanted);
            with_access.for_each(|(path, _)| add_visible(path, &access, &mut paths));
            paths
        };
        let (readable, writable) = (visible(Access::Readable), visible(Access::Writable));
        (Confinement::Landlock { readable, writable, network: self.network }, env)
    }
}

/// Whether processes in a sandbox do not get the variable: its folder is hidden or replaced.
fn is_dropped(name: &str) -> bool {
    matches!(name, "XDG_RUNTIME_DIR" | "TMPDIR")
}

impl Layout {
    /// Sets the access to a path, if it exists.
    fn set(&mut self, path: impl AsRef<Path>, access: Access) {
        if let Ok(path) = path.as_ref().canonicalize() {
            self.access.insert(path, access);
        }
    }

    fn replace(&mut self, path: impl AsRef<Path>, by: &Path) {
        self.set(path, Access::Replaced(by.to_owned()));
    }

    fn set_variable(&mut self, name: Option<&str>, path: &Path) {
        if let (Some(name), Some(path)) = (name, path.to_str()) {
            self.env.retain(|(known, _)| known != name);
            self.env.push((name.to_owned(), path.to_owned()));
        }
    }

    /// Removes the paths that have the same access as the nearest path above them.
    fn without_redundant(mut self) -> Self {
        let mut kept = BTreeMap::from([("/".into(), Access::Readable)]);
        for (path, access) in std::mem::take(&mut self.access) {
            let above = path.ancestors().skip(1).find_map(|above| kept.get(above));
            let is_plain = !matches!(access, Access::Replaced(_));
            if !(is_plain && above.is_some_and(|above| *above == access)) {
                kept.insert(path, access);
            }
        }
        Self { access: kept, ..self }
    }
}

/// The protected names in the workspace folder itself that exist. In `.git`, git needs to write, so
/// only the hooks are protected.
fn protected(workspace: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(workspace).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let names = entries.map(|entry| entry.file_name());
    let protected = names.filter(|name| name.to_str().is_some_and(is_protected_name));
    let path = |name: std::ffi::OsString| match workspace.join(&name) {
        folder if name == ".git" && folder.is_dir() => folder.join("hooks"),
        path => path,
    };
    protected.map(path).collect()
}

/// Adds `path`, or the largest folders and files below it that contain nothing hidden.
fn add_visible(path: &Path, access: &BTreeMap<PathBuf, Access>, visible: &mut Vec<PathBuf>) {
    let at_or_below = access.range(path.to_owned()..).take_while(|(at, _)| at.starts_with(path));
    if !at_or_below.into_iter().any(|(_, access)| *access == Access::Hidden) {
        visible.push(path.to_owned());
    } else if access.get(path) != Some(&Access::Hidden) {
        // A link grants nothing: its target has a path of its own.
        let is_link = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let entries = fs::read_dir(path).into_iter().flatten().flatten().take(MAX_ENTRIES);
        for entry in entries.filter(|entry| !is_link(entry)) {
            add_visible(&entry.path(), access, visible);
        }
    }
}
