//! The files that git reads as configuration, or runs, wherever they are.
//!
//! A folder with another name than `.git` can be a git directory: a bare repository, or the target
//! of a `.git` file, a `.git` link or a `commondir` file. The configuration can name further files:
//! by `include.path`, `core.hooksPath`, and every setting whose value is a command.

mod config;
mod own_settings;

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use config::Setting;
pub(crate) use own_settings::changes_only_gits_own;
use rustix::fs::OFlags;

use crate::place::{Place, folded, follow, normalize};

/// The most text that is read for one call, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// The most names in this text, and links in the folders of hooks, that are followed for one call.
const MAX_NAMES: usize = 20_000;

/// How deeply one configuration may include another, as in git.
const MAX_DEPTH: u32 = 10;

/// The setting with the folder in which git runs commands, if it is not the parent of `.git`.
const WORK_TREE: (&[u8], &[u8]) = (b"core", b"worktree");

/// The characters that can end a path in a command.
const ENDS_WORD: &[u8] = b" \t\n'\"`;&|()<>{}$=,:!";

/// The reason for a file that git reads or runs.
const IS_READ: &str = "git would read it as its configuration, or run it";

/// The reason if a limit is reached.
const IS_TOO_LARGE: &str = "git's configuration names too many files to check";

/// The files that git reads or runs, as seen from a workspace. Repositories are read when a place
/// inside them is checked.
#[derive(Debug)]
pub(super) struct GitFiles<'a> {
    root: &'a Path,
    home: Option<&'a str>,
    /// Folders of git, with everything below them.
    folders: Paths,
    /// Files that the configuration names.
    files: Paths,
    /// The folders that were searched for a repository.
    searched: HashSet<PathBuf>,
    bytes_left: usize,
    names_left: usize,
    /// Whether a limit was reached, so that any file may be one of git's.
    full: bool,
}

/// Paths, with the device and inode of those that exist.
#[derive(Debug, Default)]
struct Paths {
    paths: HashSet<PathBuf>,
    ids: HashSet<(u64, u64)>,
}

impl Paths {
    fn insert(&mut self, path: &Path) {
        match id(path) {
            Some(id) => drop(self.ids.insert(id)),
            None => self.paths.extend(follow(path).map(|(real, _)| real)),
        }
        self.paths.insert(normalize(path));
    }

    fn contains(&self, path: &Path) -> bool {
        self.paths.contains(path) || id(path).is_some_and(|id| self.ids.contains(&id))
    }
}

/// The device and the inode of a file.
fn id(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

impl<'a> GitFiles<'a> {
    /// For the workspace at `root`. `home` has the configuration of the user.
    pub(super) fn new(root: &'a Path, home: Option<&'a str>) -> Self {
        Self {
            root,
            home,
            folders: Paths::default(),
            files: Paths::default(),
            searched: HashSet::new(),
            bytes_left: MAX_BYTES,
            names_left: MAX_NAMES,
            full: false,
        }
    }

    pub(super) fn root(&self) -> &'a Path {
        self.root
    }

    /// The reason why writing `place` may change which programs git runs; `None` if it does not.
    pub(super) fn reason(&mut self, place: &Place) -> Option<&'static str> {
        // Every git directory has this file, so none is created without an ask, whichever of its
        // other files are written first.
        let is_head = place.path().file_name().is_some_and(|name| is_named(name, "head"));
        if is_head || self.is_in_git_directory(place) {
            return Some(IS_READ);
        }
        self.search(place);
        if self.full {
            return Some(IS_TOO_LARGE);
        }
        let is_known = [place.path(), place.given_path()].into_iter().any(|path| {
            self.files.contains(path) || self.inside(path).any(|path| self.folders.contains(path))
        });
        is_known.then_some(IS_READ)
    }

    /// The path and its parents, without the parents of the workspace.
    fn inside<'p>(&self, path: &'p Path) -> impl Iterator<Item = &'p Path> {
        let root = self.root;
        path.ancestors().filter(move |path| !is_above(path, root))
    }

    /// Whether a parent of the place has the members of a git directory, or has them after the
    /// place was written.
    fn is_in_git_directory(&self, place: &Place) -> bool {
        self.inside(place.path()).zip(place.path().ancestors().skip(1)).any(|(below, folder)| {
            let added = below.file_name();
            let has = |name| {
                added.is_some_and(|added| is_named(added, name))
                    || folder.join(name).symlink_metadata().is_ok()
            };
            !is_above(folder, self.root)
                // A `commondir` can lead to a folder that has no `HEAD`.
                && (is_head(&folder.join("HEAD")) || has("objects") && has("refs"))
        })
    }

    /// Reads the repositories that the workspace and the place are in.
    fn search(&mut self, place: &Place) {
        if self.searched.is_empty() {
            self.read_user_config(&[self.root.to_owned()]);
        }
        for folder in self.root.ancestors().chain(place.path().ancestors()) {
            if !self.full && self.searched.insert(folder.to_owned()) {
                self.read_repository(folder);
            }
        }
    }

    /// Reads the repository with its work tree at `top`, if there is one.
    fn read_repository(&mut self, top: &Path) {
        let dot_git = top.join(".git");
        if dot_git.symlink_metadata().is_err() {
            return;
        }
        // `.git` is a folder, a link to one, or a file with the path of one.
        let text = if dot_git.is_file() { self.read(&dot_git) } else { None };
        let target = text.as_deref().and_then(|text| text.strip_prefix(b"gitdir:"));
        let git_dir = target.map_or(dot_git, |target| top.join(path_in(target)));
        // A work tree of its own shares the configuration and the hooks of a repository.
        let common = self.read(&git_dir.join("commondir"));
        let common = common.map_or_else(|| git_dir.clone(), |text| git_dir.join(path_in(&text)));
        for folder in [&git_dir, &common, &common.join("hooks"), &common.join("info")] {
            self.add_folder(folder);
        }
        let mut bases = vec![top.to_owned(), git_dir.clone()];
        for config in [git_dir.join("config.worktree"), common.join("config")] {
            self.read_config(&config, &mut bases, 0);
        }
        self.read_user_config(&bases);
    }

    /// Reads the configuration of the user and of the system.
    fn read_user_config(&mut self, bases: &[PathBuf]) {
        let home = self.home.map(Path::new);
        let of_user = home.map(|home| [home.join(".gitconfig"), home.join(".config/git/config")]);
        for config in of_user.into_iter().flatten().chain(["/etc/gitconfig".into()]) {
            self.read_config(&config, &mut bases.to_owned(), 0);
        }
    }

    /// Reads a configuration and those that it includes. Relative names begin in one of `bases`:
    /// the work tree, and then the git directory.
    fn read_config(&mut self, path: &Path, bases: &mut Vec<PathBuf>, depth: u32) {
        self.files.insert(path);
        let Some(text) = self.read(path) else { return };
        let settings = config::settings(&text);
        let is_work_tree = |setting: &&Setting| (&*setting.section, &*setting.key) == WORK_TREE;
        if let Some(setting) = settings.iter().rfind(is_work_tree) {
            let folder = self.expanded(&setting.value);
            bases.extend(bases.get(1).map(|git_dir| git_dir.join(folder)));
        }
        for Setting { section, key, value, .. } in settings {
            if value.is_empty() || self.full {
                continue;
            }
            let whole = self.expanded(&value);
            match (section.as_slice(), key.as_slice()) {
                // These settings have no files. A repository can have thousands of them.
                (b"branch", _) => {}
                (b"include" | b"includeif", b"path") => {
                    let included = path.parent().unwrap_or(Path::new("/")).join(whole);
                    self.add_file(&included);
                    match depth < MAX_DEPTH {
                        true => self.read_config(&included, bases, depth + 1),
                        false => self.full = true,
                    }
                }
                (b"core", b"hookspath") | (b"init", b"templatedir") => {
                    for base in bases.iter() {
                        self.add_folder(&base.join(&whole));
                    }
                }
                _ => self.add_names(&value, bases),
            }
        }
    }

    /// Adds the files that a value may name. It can be a path, or a command with paths in it.
    fn add_names(&mut self, value: &[u8], bases: &[PathBuf]) {
        let words = value.split(|byte| ENDS_WORD.contains(byte)).map(<[u8]>::to_vec);
        let names: HashSet<_> = words.chain(quoted_words(value)).chain([value.to_vec()]).collect();
        for name in names.iter().filter(|name| !name.is_empty()) {
            let name = self.expanded(name);
            for base in bases {
                self.add_file(&base.join(&name));
            }
        }
    }

    fn add_file(&mut self, path: &Path) {
        if self.takes_a_name() {
            self.files.insert(path);
        }
    }

    /// Adds a folder, and the targets of links in it. A hook is often a link to a script.
    fn add_folder(&mut self, folder: &Path) {
        let contains_workspace = follow(folder).is_ok_and(|(real, _)| is_above(&real, self.root));
        if !contains_workspace && self.takes_a_name() {
            self.folders.insert(folder);
        }
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if !self.takes_a_name() {
                return;
            }
            if entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                self.folders.insert(&entry.path());
            }
        }
    }

    /// Counts one name. Returns `false` if there are too many.
    fn takes_a_name(&mut self) -> bool {
        match self.names_left.checked_sub(1) {
            Some(left) => self.names_left = left,
            None => self.full = true,
        }
        !self.full
    }

    /// A name as a path, with `~/` replaced by the home folder.
    fn expanded(&self, name: &[u8]) -> PathBuf {
        match (name.strip_prefix(b"~/"), self.home) {
            (Some(rest), Some(home)) => Path::new(home).join(OsStr::from_bytes(rest)),
            _ => PathBuf::from(OsStr::from_bytes(name)),
        }
    }

    /// Reads a file; `None` if it is missing, not a file, or too large.
    fn read(&mut self, path: &Path) -> Option<Vec<u8>> {
        let text = read_start(path, self.bytes_left + 1)?;
        match self.bytes_left.checked_sub(text.len()) {
            Some(left) => self.bytes_left = left,
            None => self.full = true,
        }
        (!self.full).then_some(text)
    }
}

/// The words of a command, with spaces where they are quoted.
fn quoted_words(command: &[u8]) -> Vec<Vec<u8>> {
    let (mut words, mut quote) = (vec![Vec::new()], None);
    let mut bytes = command.iter();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'\\' if quote != Some(b'\'') => bytes.next().unwrap_or(byte),
            byte if quote == Some(*byte) => {
                quote = None;
                continue;
            }
            b'\'' | b'"' if quote.is_none() => {
                quote = Some(*byte);
                continue;
            }
            byte if quote.is_none() && ENDS_WORD.contains(byte) => {
                words.push(Vec::new());
                continue;
            }
            byte => byte,
        };
        words.last_mut().into_iter().for_each(|word| word.push(*byte));
    }
    words
}

/// Whether `path` is a parent of the workspace.
fn is_above(path: &Path, root: &Path) -> bool {
    path != root && root.starts_with(path)
}

/// Whether a file system may take `name` for `known`, which is in lower case.
fn is_named(name: &OsStr, known: &str) -> bool {
    name.to_str().is_some_and(|name| folded(name) == known)
}

/// Whether git would accept this file as the `HEAD` of a git directory.
fn is_head(path: &Path) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    let is_head = |text: Vec<u8>| {
        text.starts_with(b"ref:")
            || text.len() >= 40 && text[..40].iter().all(u8::is_ascii_hexdigit)
    };
    metadata.is_symlink() || read_start(path, 40).is_some_and(is_head)
}

/// Reads at most `limit` bytes of a file. Never blocks: a pipe or a device is not read.
fn read_start(path: &Path, limit: usize) -> Option<Vec<u8>> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).ok()?;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = Vec::new();
    file.take(limit as u64).read_to_end(&mut text).ok()?;
    Some(text)
}

/// The path in a `.git` or a `commondir` file.
fn path_in(text: &[u8]) -> &Path {
    let text = text.strip_prefix(b" ").unwrap_or(text);
    let end = text.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
    Path::new(OsStr::from_bytes(&text[..end]))
}
