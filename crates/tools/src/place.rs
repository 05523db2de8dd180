//! Places: paths with their links resolved, and whether they are inside the workspace or protected.

mod attributes;
pub(crate) mod near;
mod open;
mod protected;
mod replace;

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::{fs, io};

use rustix::fs::{CWD, fstat};
use rustix::io::Errno;

pub(crate) use open::{OpenParent, open};
use protected::is_protected;
pub(crate) use protected::{PROTECTED, folded, is_protected_name};

use crate::error::ToolError;

/// How many links are followed in one path, as on Linux.
const MAX_LINKS: u32 = 40;

/// A path with its links resolved, and whether it is inside the workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub(crate) path: PathBuf,
    given_path: PathBuf,
    pub(crate) inside: bool,
    pub(crate) shown: String,
    protected: bool,
    has_proc_link: bool,
}

impl Place {
    /// Resolves all links of `path`, which is absolute or relative to the workspace at `root`. Its
    /// last parts need not exist.
    ///
    /// # Errors
    /// [`ToolError::Input`] if the path is empty, invalid or can't be followed, or if it begins
    /// with a home folder in shell syntax: `~`, `~/…`, `~name/…`.
    pub fn resolve(path: &str, root: &Path) -> Result<Self, ToolError> {
        if path.is_empty() {
            return Err(ToolError::input("the path is empty"));
        }
        if path.contains('\0') {
            return Err(ToolError::input("the path contains a zero byte"));
        }
        if path.starts_with('~') && (path == "~" || path.contains('/')) {
            let why = format!("{path}: `~` is not expanded: give the full path, or begin with ./");
            return Err(ToolError::input(why));
        }
        let given = root.join(path);
        let (resolved, has_proc_link) =
            follow(&given).map_err(|error| ToolError::input(format!("{path}: {error}")))?;
        // Both the given and the resolved path can make a place protected.
        let protected = is_protected(&given, root) || is_protected(&resolved, root);
        let within = resolved.strip_prefix(root).ok();
        let shown = within.unwrap_or(&resolved);
        let shown = if shown.as_os_str().is_empty() {
            ".".into()
        } else {
            shown.to_string_lossy().into_owned()
        };
        Ok(Self {
            inside: within.is_some(),
            shown,
            protected,
            has_proc_link,
            given_path: normalize(&given),
            path: resolved,
        })
    }

    /// The resolved path: absolute, and without links when it was resolved.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the path has a link of `/proc`, which leads elsewhere for every process that follows
    /// it.
    #[must_use]
    pub(crate) fn differs_per_process(&self) -> bool {
        self.has_proc_link
    }

    /// The given path: absolute, without `.` and `..`, its links not followed.
    #[must_use]
    pub(crate) fn given_path(&self) -> &Path {
        &self.given_path
    }

    /// The path for display: relative to the workspace if it is inside.
    #[must_use]
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether the place is inside the workspace.
    #[must_use]
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// Whether this is `folder` or lies below it, by its resolved or its given path. An existing
    /// folder is recognised by its device and inode, under any name.
    pub(crate) fn is_below(&self, folder: &Path) -> bool {
        let real = follow(folder).ok().map(|(real, _)| real);
        let device_and_inode =
            |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let folder_id = device_and_inode(folder);
        [self.path(), self.given_path()].into_iter().any(|path| {
            let mut above = path.ancestors();
            path.starts_with(folder)
                || real.as_ref().is_some_and(|real| path.starts_with(real))
                || folder_id.is_some() && above.any(|path| device_and_inode(path) == folder_id)
        })
    }

    /// Whether a part of the resolved or the given path is a protected name.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.protected
    }
}

/// The place that a path led to when the intent was judged, so that the call acts on the same
/// place.
#[derive(Debug, Default)]
pub(crate) struct JudgedPlace(RefCell<Option<(String, Place)>>);

/// The workspace folder when the intent was judged, so that the call acts in the same folder. It is
/// compared by its inode and not only by its path.
#[derive(Debug, Default)]
pub(crate) struct JudgedFolder {
    place: JudgedPlace,
    /// Held open, so that no other folder gets its inode.
    held: RefCell<Option<OwnedFd>>,
}

impl JudgedFolder {
    pub(crate) fn judge(&self, root: &Path) -> Result<Place, ToolError> {
        let place = self.place.judge(".", root)?;
        self.held.replace(Some(hold(&place)?));
        Ok(place)
    }

    /// The current folder. Fails if another one was judged.
    pub(crate) fn resolve(&self, root: &Path) -> Result<Place, ToolError> {
        let place = self.place.resolve(".", root)?;
        let Some(held) = self.held.take() else { return Ok(place) };
        let device_and_inode =
            |folder: &OwnedFd| fstat(folder).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        match device_and_inode(&hold(&place)?) == device_and_inode(&held) {
            true => Ok(place),
            false => Err(ToolError::failed(format!(
                "{} was replaced by another folder after the call was judged: nothing was done",
                place.path.display()
            ))),
        }
    }
}

/// Holds a folder open without reading it, so that its inode is not reused.
fn hold(folder: &Place) -> Result<OwnedFd, ToolError> {
    let failed =
        |error| ToolError::failed(format!("{} can't be opened: {error}", folder.path.display()));
    open(CWD, &folder.path, open::HOLD).map_err(failed)
}

impl JudgedPlace {
    pub(crate) fn judge(&self, path: &str, root: &Path) -> Result<Place, ToolError> {
        let place = Place::resolve(path, root)?;
        self.0.replace(Some((path.to_owned(), place.clone())));
        Ok(place)
    }

    /// The current place of the path. Fails if another one was judged.
    pub(crate) fn resolve(&self, path: &str, root: &Path) -> Result<Place, ToolError> {
        let place = Place::resolve(path, root)?;
        match self.0.take() {
            Some((judged, before)) if judged == path && before != place => {
                Err(ToolError::failed(format!(
                    "{path} led to {} when the call was judged, and leads to {} now: nothing was done",
                    before.path.display(),
                    place.path.display()
                )))
            }
            _ => Ok(place),
        }
    }
}

/// Removes `.` and `..` from an absolute path, without regard to links.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut normal = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir => {
                normal.pop();
            }
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    normal
}

/// Follows every link of an absolute path. `..` is applied after the link before it, as the system
/// does.
///
/// Also returns whether one of them was a link of `/proc`.
pub(crate) fn follow(path: &Path) -> io::Result<(PathBuf, bool)> {
    let mut resolved = PathBuf::from("/");
    let mut has_proc_link = false;
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
                has_proc_link |= next.starts_with("/proc");
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
            // Opening the path reports the error. Until it may be read, the error must not reveal
            // which part is missing or not a folder.
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
            {
                resolved = next
            }
            Err(error) => return Err(error),
        }
    }
    Ok((resolved, has_proc_link))
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
