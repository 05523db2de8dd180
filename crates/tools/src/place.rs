//! Places: where the paths of tools lead, links followed, and what may be done there.

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

pub(crate) use open::{Spot, open};
use protected::is_protected;

use crate::error::ToolError;

/// How many links are followed in one path: what Linux follows.
const MAX_LINKS: u32 = 40;

/// Where a path leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub(crate) path: PathBuf,
    named: PathBuf,
    pub(crate) inside: bool,
    pub(crate) shown: String,
    protected: bool,
    varies: bool,
}

impl Place {
    /// Follows `path`, which is relative to the workspace at `root` or absolute, through all links. The last
    /// parts need not exist.
    ///
    /// # Errors
    /// [`ToolError::Input`] if the path is empty, can't be, or can't be followed; and if it begins with what a shell
    /// takes for somebody's home: `~`, `~/…`, `~name/…`.
    pub fn resolve(path: &str, root: &Path) -> Result<Self, ToolError> {
        if path.is_empty() {
            return Err(ToolError::input("the path is empty"));
        }
        if path.contains('\0') {
            return Err(ToolError::input("the path contains a zero byte"));
        }
        if path.starts_with('~') && (path == "~" || path.contains('/')) {
            let why = format!("{path}: `~` stands for no folder here: give the whole path, or begin with ./");
            return Err(ToolError::input(why));
        }
        let named = root.join(path);
        let (resolved, varies) = follow(&named).map_err(|error| ToolError::input(format!("{path}: {error}")))?;
        // What a path is called counts as much as where it leads.
        let protected = is_protected(&named, root) || is_protected(&resolved, root);
        let within = resolved.strip_prefix(root).ok();
        let shown = within.unwrap_or(&resolved);
        let shown = if shown.as_os_str().is_empty() { ".".into() } else { shown.to_string_lossy().into_owned() };
        Ok(Self { inside: within.is_some(), shown, protected, varies, named: tidy(&named), path: resolved })
    }

    /// Absolute; no part of it was a link when it was looked at.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// It was reached by a link of `/proc`, which leads elsewhere for everyone who follows it.
    #[must_use]
    pub(crate) fn varies(&self) -> bool {
        self.varies
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

    /// It is this folder or lies below, by where it leads or what it is called. One that is there is known by what it is,
    /// whatever it is called.
    pub(crate) fn is_below(&self, folder: &Path) -> bool {
        let real = follow(folder).ok().map(|(real, _)| real);
        let number = |path: &Path| fs::metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        let same = number(folder);
        [self.path(), self.named()].into_iter().any(|path| {
            let mut above = path.ancestors();
            path.starts_with(folder)
                || real.as_ref().is_some_and(|real| path.starts_with(real))
                || same.is_some() && above.any(|path| number(path) == same)
        })
    }

    /// A part of its name, or of the name it was reached by, starts programs or configures what does.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.protected
    }
}

/// Remembers from a tool's intent to its call where a path led, so that what was judged is what is done.
#[derive(Debug, Default)]
pub(crate) struct Judged(RefCell<Option<(String, Place)>>);

/// The same of the workspace's folder: another of that name is another folder.
#[derive(Debug, Default)]
pub(crate) struct JudgedFolder {
    place: Judged,
    /// Held open: while it is, no other folder gets its number.
    held: RefCell<Option<OwnedFd>>,
}

impl JudgedFolder {
    pub(crate) fn judge(&self, root: &Path) -> Result<Place, ToolError> {
        let place = self.place.judge(".", root)?;
        self.held.replace(Some(hold(&place)?));
        Ok(place)
    }

    /// The folder now: an error if it was judged and was another then.
    pub(crate) fn resolve(&self, root: &Path) -> Result<Place, ToolError> {
        let place = self.place.resolve(".", root)?;
        let Some(held) = self.held.take() else { return Ok(place) };
        let number = |folder: &OwnedFd| fstat(folder).map(|stat| (stat.st_dev, stat.st_ino)).ok();
        match number(&hold(&place)?) == number(&held) {
            true => Ok(place),
            false => Err(ToolError::failed(format!(
                "{} is another folder now than when it was judged: nothing was done",
                place.path.display()
            ))),
        }
    }
}

/// Holds a folder open: not to read it, but so that it stays what it is.
fn hold(folder: &Place) -> Result<OwnedFd, ToolError> {
    let failed = |error| ToolError::failed(format!("{} can't be opened: {error}", folder.path.display()));
    open(CWD, &folder.path, open::HOLD).map_err(failed)
}

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
///
/// Says also whether one of them was a link of `/proc`.
fn follow(path: &Path) -> io::Result<(PathBuf, bool)> {
    let (mut resolved, mut varies) = (PathBuf::from("/"), false);
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
                varies |= next.starts_with("/proc");
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
            // Whoever opens it is told; what it is that can't be passed is not, before it may be read.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                resolved = next
            }
            Err(error) => return Err(error),
        }
    }
    Ok((resolved, varies))
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
