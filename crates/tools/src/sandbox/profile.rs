//! The files that processes in a sandbox can read and write.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use super::caches;
use super::confinement::Confinement;
use super::domains::Reach;
use super::keys::KEYS;
use super::protected_files::{ProtectedFiles, RunningCommand};
use super::sockets;
use super::widening::Widening;
use crate::place::{PROTECTED, is_protected_name};

/// Folders of sockets and other state of running programs.
const RUNTIME: [&str; 2] = ["/run", "/var/run"];

/// Folders in [`RUNTIME`] where NixOS keeps programs, which stay readable.
const RUNTIME_PROGRAMS: [&str; 3] =
    ["/run/current-system", "/run/booted-system", "/run/opengl-driver"];

/// The folder for temporary files of all users.
const TEMPORARY: &str = "/tmp";

/// The file that configures the resolver of host names. It is often a link into [`RUNTIME`].
const RESOLVER: &str = "/etc/resolv.conf";

/// Variables of processes without a network: npm and pip try again at most once, not for minutes.
const WITHOUT_NETWORK: [(&str, &str); 2] =
    [("npm_config_fetch_retries", "0"), ("PIP_RETRIES", "1")];

/// The folder of devices, and the devices that processes can use at the level `landlock`.
const DEVICES: &str = "/dev";
const USED_DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The most entries of a folder that are examined: for protected names, and at the level `landlock`
/// for entries beside hidden ones.
const MAX_ENTRIES: usize = 10_000;

/// The access of processes to a path and everything below it. The nearest path above a file counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Access {
    Readable,
    Writable,
    /// Writable, but the folder itself can't be moved, because a path below it has another access.
    Pinned,
    Hidden,
    /// An empty folder takes its place, which is writable and new for each program.
    Empty,
    /// Another folder takes its place, which is writable.
    Replaced(PathBuf),
}

/// The paths that exist, with their access, and the variables of processes.
#[derive(Debug)]
pub(super) struct Layout {
    /// By path, so that a folder comes before the paths below it. No path has a link.
    pub(super) access: BTreeMap<PathBuf, Access>,
    pub(super) env: Vec<(String, String)>,
}

/// The files that the processes of a session can read and write.
///
/// Everything is readable but the user's keys and the sockets in `/run`. The workspace is writable,
/// unless it is [read-only](Self::read_only).
/// Temporary files and caches are in folders of the sandbox.
#[derive(Debug, Clone)]
pub struct SandboxProfile {
    workspace: PathBuf,
    temporary: PathBuf,
    /// A short name of `temporary` for programs that make sockets there.
    temporary_name: Option<PathBuf>,
    caches: PathBuf,
    home: PathBuf,
    other_home: Option<PathBuf>,
    writable: Vec<PathBuf>,
    /// Paths below a writable one that can only be read.
    readable: Vec<PathBuf>,
    hidden: Vec<PathBuf>,
    own: Vec<PathBuf>,
    network: bool,
    reach: Option<Reach>,
    /// Whether the workspace is only readable.
    read_only: bool,
    /// The rules for hosts that a proxy may reach, or not: `allow` and `deny`.
    host_rules: [Vec<String>; 2],
    protected_files: Option<ProtectedFiles>,
}

impl SandboxProfile {
    /// Creates a profile for the workspace folder `workspace` of a user with this home folder.
    /// `temporary` is the folder for the temporary files of the session, `caches` that for the
    /// caches of all sessions in this workspace; both are created when they are needed. All paths
    /// are absolute, with their links resolved.
    pub fn new(
        workspace: impl Into<PathBuf>,
        home: impl Into<PathBuf>,
        temporary: impl Into<PathBuf>,
        caches: impl Into<PathBuf>,
    ) -> Self {
        Self {
            workspace: workspace.into(),
            temporary: temporary.into(),
            temporary_name: None,
            caches: caches.into(),
            home: home.into(),
            other_home: None,
            writable: Vec::new(),
            readable: Vec::new(),
            hidden: Vec::new(),
            own: Vec::new(),
            network: false,
            reach: None,
            read_only: false,
            host_rules: Default::default(),
            protected_files: None,
        }
    }

    /// Sets another home folder, whose keys are also hidden.
    #[must_use]
    pub fn other_home(self, home: Option<PathBuf>) -> Self {
        Self { other_home: home, ..self }
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
    /// They are created if they do not exist.
    #[must_use]
    pub fn own_folders(self, folders: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: folders.into_iter().collect(), ..self }
    }

    /// Sets whether processes can use the network.
    #[must_use]
    pub fn network(self, network: bool) -> Self {
        Self { network, ..self }
    }

    /// Sets whether processes can only read the workspace, even if a folder above it or below it is
    /// [writable](Self::writable).
    #[must_use]
    pub fn read_only(self, read_only: bool) -> Self {
        Self { read_only, ..self }
    }

    /// Sets the rules for hosts that processes reach by [`Widening::Domains`], in the format of
    /// `web.allow` and `web.deny`. A host in a private network needs a rule that allows it; one on
    /// this machine needs a rule with its port.
    #[must_use]
    pub fn host_rules(self, allow: &[String], deny: &[String]) -> Self {
        Self { host_rules: [allow.to_vec(), deny.to_vec()], ..self }
    }

    /// The profile with these widenings, of which none is to run outside.
    pub(super) fn widened(&self, widenings: &[Widening]) -> Self {
        let mut widened = self.clone();
        for widening in widenings {
            match widening {
                Widening::Domains(domains) => {
                    let (domains, [allow, deny]) = (domains.clone(), self.host_rules.clone());
                    widened.reach = Some(Reach { domains, allow, deny });
                }
                Widening::Network => widened.network = true,
                Widening::Writable(path) => widened.writable.push(path.clone()),
                Widening::WritableExcept { folder, except } => {
                    widened.writable.push(folder.clone());
                    widened.readable.extend(except.iter().cloned());
                }
                Widening::Outside => {}
            }
        }
        widened
    }

    /// The profile of a browser that keeps all its files in its working folder `folder` and needs
    /// the network. It does not write to the workspace, its caches or its temporary files.
    #[cfg(feature = "web")]
    pub(super) fn for_browser(&self, folder: &Path) -> Self {
        Self {
            workspace: folder.to_owned(),
            temporary: folder.join("tmp"),
            temporary_name: Some("/proc/self/cwd/tmp".into()),
            caches: folder.join("caches"),
            writable: Vec::new(),
            readable: Vec::new(),
            network: true,
            read_only: false,
            protected_files: None,
            ..self.clone()
        }
    }

    /// Compares the protected files of the workspace before and after each command of the tool
    /// `shell`. Files that a command creates or changes are put aside in this folder, in which no
    /// process in the sandbox may be able to write. Clones of the profile share the comparison.
    ///
    /// Nothing is compared if the workspace contains the home folder, where other programs of the
    /// user write to such files.
    #[must_use]
    pub fn aside(self, folder: impl Into<PathBuf>) -> Self {
        let protected_files = (!self.home.starts_with(&self.workspace))
            .then(|| ProtectedFiles::new(self.workspace.clone(), folder.into()));
        Self { protected_files, ..self }
    }

    pub(super) fn protected_files(&self) -> Option<&ProtectedFiles> {
        self.protected_files.as_ref()
    }

    /// Begins a command whose changes of protected files are found when it ends.
    pub(super) fn begin_command(&self) -> Option<RunningCommand> {
        let hidden = self.own.iter().chain(&self.hidden);
        Some(self.protected_files.as_ref()?.begin(hidden, &self.writable))
    }

    pub(super) fn allows_network(&self) -> bool {
        self.network
    }

    /// The hosts that processes may reach through a proxy, if not the whole network.
    pub(super) fn reach(&self) -> Option<&Reach> {
        self.reach.as_ref().filter(|_| !self.network)
    }

    /// Creates the folders of the sandbox and of the program, for this user only. A process in the
    /// sandbox can replace none of them: the folders above them are not writable there.
    ///
    /// # Errors
    /// A folder can't be created, or the workspace, a writable path or one that is protected below it
    /// is a link by now, which a process in the sandbox may have made.
    pub(super) fn prepare(&self) -> io::Result<()> {
        for path in [&self.workspace].into_iter().chain(&self.writable).chain(&self.readable) {
            if path.canonicalize().is_ok_and(|real| real != *path) {
                let path = path.display();
                return Err(io::Error::other(format!("{path} has been replaced by a link")));
            }
        }
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        let named = caches::NAMED.iter().map(|(name, _)| self.named_cache(name));
        let replaced = caches::REPLACED.iter().map(|cache| self.caches.join(cache.name));
        let own = self.own.iter().chain([&self.temporary]).cloned();
        own.chain(named).chain(replaced).try_for_each(|folder| builder.create(folder))
    }

    /// The folder of all caches that variables name, which is writable as a whole. The others are
    /// beside it, so that no process can put a link in the place of a folder that is mounted.
    fn named_caches(&self) -> PathBuf {
        self.caches.join("named")
    }

    fn named_cache(&self, name: &str) -> PathBuf {
        self.named_caches().join(name)
    }

    /// The access to the paths that exist now. Where mounts are possible (`can_mount`), folders of
    /// the sandbox take the place of others that no variable names, and protected names are not
    /// writable.
    pub(super) fn layout(&self, env: &[(String, String)], can_mount: bool) -> Layout {
        let mut layout = Layout {
            access: BTreeMap::from([("/".into(), Access::Readable)]),
            env: env.iter().filter(|(name, _)| !is_dropped(name)).cloned().collect(),
        };
        RUNTIME.iter().for_each(|path| layout.set(path, Access::Hidden));
        RUNTIME_PROGRAMS.iter().for_each(|path| layout.set(path, Access::Readable));
        if self.network {
            layout.set(RESOLVER, Access::Readable);
        } else if self.reach.is_none() {
            for (name, value) in WITHOUT_NETWORK {
                layout.set_text(name, value);
            }
        }
        for (name, variable) in caches::NAMED {
            layout.set_variable(variable, &self.named_cache(name));
        }
        layout.set(self.named_caches(), Access::Writable);
        if can_mount {
            for cache in caches::REPLACED {
                let own = self.caches.join(cache.name);
                layout.set(cache.real(env, &self.home), Access::Replaced(own));
            }
        } else {
            layout.set(DEVICES, Access::Hidden);
            USED_DEVICES.iter().for_each(|path| layout.set(path, Access::Writable));
        }
        for home in [&self.home].into_iter().chain(&self.other_home) {
            KEYS.iter().for_each(|path| layout.set(home.join(path), Access::Hidden));
        }
        self.hidden.iter().for_each(|path| layout.set(path, Access::Hidden));
        // Not resolved: processes may be able to put links there.
        let is_kept = |path: &&PathBuf| !self.read_only || !path.starts_with(&self.workspace);
        let writable = [&self.workspace].into_iter().chain(&self.writable).filter(is_kept);
        let existing = writable.filter(|path| path.exists()).cloned();
        layout.access.extend(existing.map(|path| (path, Access::Writable)));
        if self.read_only {
            layout.access.insert(self.workspace.clone(), Access::Readable);
        }
        let readable = self.readable.iter().filter(|path| path.exists()).cloned();
        layout.access.extend(readable.map(|path| (path, Access::Readable)));
        self.own.iter().for_each(|path| layout.set(path, Access::Hidden));
        self.set_temporary(&mut layout, can_mount);
        if can_mount {
            layout.protect(&self.workspace);
            layout.hide_sockets();
        }
        layout.without_redundant();
        layout.pin();
        layout
    }

    /// Sets the folder for temporary files. A process can put links there, so nothing is mounted in
    /// it: if it contains the workspace, it is empty, and a variable names the sandbox's folder.
    fn set_temporary(&self, layout: &mut Layout, can_mount: bool) {
        let contains = |path: &Path| path != Path::new(TEMPORARY) && path.starts_with(TEMPORARY);
        if layout.access.get(Path::new(TEMPORARY)) == Some(&Access::Writable) {
            return;
        }
        let is_simple = can_mount && !layout.access.keys().any(|path| contains(path));
        if is_simple {
            layout.set(TEMPORARY, Access::Replaced(self.temporary.clone()));
            return;
        }
        if can_mount {
            layout.set(TEMPORARY, Access::Empty);
        }
        layout.set(&self.temporary, Access::Writable);
        layout.set_variable("TMPDIR", self.temporary_name.as_ref().unwrap_or(&self.temporary));
    }

    /// The restrictions at the level `landlock`, and the variables of processes.
    pub(super) fn landlock(
        &self,
        env: &[(String, String)],
    ) -> (Confinement, Vec<(String, String)>) {
        let Layout { access, env } = self.layout(env, false);
        let is_writable = |access: &Access| matches!(access, Access::Writable | Access::Pinned);
        let visible = |writable: bool| {
            let mut paths = Vec::new();
            let wanted =
                |access: &Access| *access != Access::Hidden && is_writable(access) == writable;
            let with_access = access.iter().filter(|(_, access)| wanted(access));
            with_access.for_each(|(path, _)| add_visible(path, &access, &mut paths));
            paths
        };
        let (readable, writable) = (visible(false), visible(true));
        (Confinement::Landlock { readable, writable, network: self.network }, env)
    }
}

/// Whether processes in a sandbox do not get the variable: its folder is hidden or replaced.
fn is_dropped(name: &str) -> bool {
    matches!(name, "XDG_RUNTIME_DIR" | "TMPDIR")
}

impl Layout {
    /// Sets the access to a path with its links resolved, if it exists.
    fn set(&mut self, path: impl AsRef<Path>, access: Access) {
        if let Ok(path) = path.as_ref().canonicalize() {
            self.access.insert(path, access);
        }
    }

    fn set_variable(&mut self, name: &str, path: &Path) {
        if let Some(path) = path.to_str() {
            self.set_text(name, path);
        }
    }

    fn set_text(&mut self, name: &str, value: &str) {
        self.env.retain(|(known, _)| known != name);
        self.env.push((name.to_owned(), value.to_owned()));
    }

    /// Makes the protected names in a workspace unwritable, unless they are hidden. A link is left
    /// out, because its target has a path of its own. Git needs to write in `.git`, so only its
    /// hooks are protected.
    fn protect(&mut self, workspace: &Path) {
        let is_link =
            |path: &Path| path.symlink_metadata().map_or(true, |metadata| metadata.is_symlink());
        for name in protected_names(workspace) {
            let mut path = workspace.join(&name);
            if !is_link(&path) && name == ".git" && path.is_dir() {
                path.push("hooks");
            }
            if !is_link(&path) {
                self.access.entry(path).or_insert(Access::Readable);
            }
        }
    }

    /// Hides the sockets of running programs in readable folders: a read-only mount does not
    /// prevent a process from connecting to them.
    fn hide_sockets(&mut self) {
        let is_readable = |path: &PathBuf| {
            let nearest = path.ancestors().find_map(|above| self.access.get(above));
            nearest == Some(&Access::Readable)
        };
        // Most sockets are in folders that are hidden or replaced as a whole.
        let absent = [&RUNTIME[..], &[DEVICES]].concat();
        let hidden: Vec<_> = sockets::existing(&absent)
            .into_iter()
            .filter(is_readable)
            .take(sockets::MAX_HIDDEN)
            .collect();
        self.access.extend(hidden.into_iter().map(|path| (path, Access::Hidden)));
    }

    /// Removes the paths that have the same access as the nearest path above them.
    fn without_redundant(&mut self) {
        let mut kept = BTreeMap::from([("/".into(), Access::Readable)]);
        for (path, access) in std::mem::take(&mut self.access) {
            let above = path.ancestors().skip(1).find_map(|above| kept.get(above));
            let is_plain = !matches!(access, Access::Replaced(_));
            if !(is_plain && above.is_some_and(|above| *above == access)) {
                kept.insert(path, access);
            }
        }
        self.access = kept;
    }

    /// Pins the folders between a writable path and another access below it. Otherwise a process
    /// could rename such a folder, and for the next program the path below it would not exist.
    fn pin(&mut self) {
        let mut pinned = Vec::new();
        for (path, access) in &self.access {
            let mut between = Vec::new();
            for above in path.ancestors().skip(1) {
                match self.access.get(above) {
                    Some(Access::Writable) if *access != Access::Writable => {
                        pinned.append(&mut between);
                        break;
                    }
                    Some(_) => break,
                    None => between.push(above.to_owned()),
                }
            }
        }
        self.access.extend(pinned.into_iter().map(|path| (path, Access::Pinned)));
    }
}

/// The protected names that may exist in a folder: the usual spelling of each, and others among the
/// first [`MAX_ENTRIES`] entries of the folder.
fn protected_names(folder: &Path) -> impl Iterator<Item = OsString> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(MAX_ENTRIES);
    let names = entries.map(|entry| entry.file_name());
    let others = names.filter(|name| name.to_str().is_some_and(is_protected_name));
    PROTECTED.into_iter().map(OsString::from).chain(others)
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
