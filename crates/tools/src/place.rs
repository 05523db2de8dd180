//! Places: where the paths of tools lead, links followed, and what may be done there.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use holdpoint_common::FileMark;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use crate::tool::ToolError;

/// How many links are followed in one path: what Linux follows.
const MAX_LINKS: u32 = 40;

/// Folders and files whose name, anywhere in a path, makes it protected: they start programs or configure
/// what does, or hold what lets people in.
const PROTECTED: [&str; 34] = [
    // Version control and its hooks, ourselves and other agents.
    ".git",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".hg",
    ".hgrc",
    ".holdpoint",
    ".husky",
    ".githooks",
    ".claude",
    ".codex",
    ".cursor",
    ".mcp.json",
    // Shells.
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".inputrc",
    ".envrc",
    ".config",
    // Editors.
    ".vscode",
    ".idea",
    ".vimrc",
    ".exrc",
    ".emacs",
    ".emacs.d",
    // Keys.
    ".ssh",
    ".gnupg",
];

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub(crate) path: PathBuf,
    named: PathBuf,
    pub(crate) inside: bool,
    pub(crate) shown: String,
    protected: bool,
}

impl Place {
    /// Follows `path`, which is relative to the workspace at `root` or absolute, through all links. The last
    /// parts need not exist.
    ///
    /// # Errors
    /// [`ToolError::Input`] if the path is empty, can't be, or can't be followed.
    pub fn resolve(path: &str, root: &Path) -> Result<Self, ToolError> {
        if path.is_empty() {
            return Err(ToolError::input("the path is empty"));
        }
        if path.contains('\0') {
            return Err(ToolError::input("the path contains a zero byte"));
        }
        let named = root.join(path);
        let resolved = follow(&named).map_err(|error| ToolError::input(format!("{path}: {error}")))?;
        // What a path is called counts as much as where it leads.
        let protected = is_protected(&named, root) || is_protected(&resolved, root);
        let within = resolved.strip_prefix(root).ok();
        let shown = within.unwrap_or(&resolved);
        let shown = if shown.as_os_str().is_empty() { ".".into() } else { shown.to_string_lossy().into_owned() };
        Ok(Self { inside: within.is_some(), shown, protected, named: tidy(&named), path: resolved })
    }

    /// Absolute; no part of it was a link when it was looked at.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path it was reached by: absolute, without `.` and `..`, its links not followed.
    #[must_use]
    pub(crate) fn named(&self) -> &Path {
        &self.named
    }

    /// As it is shown: relative to the workspace where it lies inside.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// It lies in the workspace.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// A part of its name, or of the name it was reached by, starts programs or configures what does.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.protected
    }

    /// The file as it is now.
    pub(crate) fn mark(&self, metadata: &Metadata) -> FileMark {
        let modified = i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec());
        let modified = u64::try_from(modified).unwrap_or(0);
        FileMark { path: self.shown.clone(), size: metadata.len(), modified }
    }
}

/// Remembers from a tool's intent to its call where a path led, so that what was judged is what is done.
#[derive(Debug, Default)]
pub(crate) struct Judged(RefCell<Option<(String, Place)>>);

impl Judged {
    pub(crate) fn judge(&self, path: &str, root: &Path) -> Result<Place, ToolError> {
        let place = Place::resolve(path, root)?;
        self.0.replace(Some((path.to_owned(), place.clone())));
        Ok(place)
    }

    /// Where the path leads now: an error if it was judged and led elsewhere then.
    pub(crate) fn resolve(&self, path: &str, root: &Path) -> Result<Place, ToolError> {
        let place = Place::resolve(path, root)?;
        match self.0.take() {
            Some((judged, before)) if judged == path && before != place => Err(ToolError::failed(format!(
                "{path} led to {} when it was judged and leads to {} now: nothing was done",
                before.path.display(),
                place.path.display()
            ))),
            _ => Ok(place),
        }
    }
}

/// Opens a place that no part of may be a link any more, without waiting for the other end of a pipe.
pub(crate) fn open(path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    match rustix::fs::openat2(rustix::fs::CWD, path, flags, Mode::empty(), rustix::fs::ResolveFlags::NO_SYMLINKS) {
        // Not known to an old kernel, or not allowed in a container.
        Err(Errno::NOSYS | Errno::PERM) => {}
        opened => return Ok(File::from(opened?)),
    }
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Names are compared without regard to case: a file system may do the same.
fn is_protected(path: &Path, root: &Path) -> bool {
    let below = path.strip_prefix(root).unwrap_or(path);
    let names = below.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name),
        _ => None,
    });
    names.into_iter().any(|name| PROTECTED.iter().any(|known| OsStr::new(known).eq_ignore_ascii_case(name)))
}

/// An absolute path without `.` and `..`, by its words alone.
fn tidy(path: &Path) -> PathBuf {
    let mut tidy = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => tidy.push(name),
            Component::ParentDir => {
                tidy.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    tidy
}

/// Follows every link of an absolute path. `..` is taken after the link before it, as the system does.
fn follow(path: &Path) -> io::Result<PathBuf> {
    let mut resolved = PathBuf::from("/");
    let mut rest: Vec<PathBuf> = parts(path);
    let mut links = 0;
    while let Some(part) = rest.pop() {
        if part == Path::new("..") {
            resolved.pop();
            continue;
        }
        let next = resolved.join(&part);
        match fs::symlink_metadata(&next) {
            Ok(metadata) if metadata.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = fs::read_link(&next)?;
                if target.is_absolute() {
                    resolved = PathBuf::from("/");
                }
                rest.extend(parts(&target));
            }
            Ok(_) => resolved = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => resolved = next,
            Err(error) => return Err(error),
        }
    }
    Ok(resolved)
}

/// The parts of a path, last first.
fn parts(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(PathBuf::from(name)),
        Component::ParentDir => Some("..".into()),
        Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
    });
    let mut parts: Vec<_> = parts.collect();
    parts.reverse();
    parts
}
