//! Folders and files that only their user can access, or only their user can change.

use std::fs::{DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Group, User};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;

use super::FoldersError;

/// A folder or file that others can access. It is left as it is, because its user may have shared
/// it on purpose, and others may still use it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Exposed {
    /// The folder or file belongs to another user.
    #[error("{} belongs to another user (uid {uid})", path.display())]
    Foreign {
        /// The path of the folder or file.
        path: PathBuf,
        /// The id of that user.
        uid: u32,
    },
    /// The permissions give others access.
    #[error("other users can {} {} (mode {mode:04o})", if *is_folder { "enter" } else { "access" }, path.display())]
    Open {
        /// The path of the folder or file.
        path: PathBuf,
        /// The permissions of the folder or file.
        mode: u32,
        /// Whether it is a folder.
        is_folder: bool,
    },
    /// The permissions let others change the file, or replace the contents of the folder.
    #[error("other users can write to {} (mode {mode:04o})", path.display())]
    Writable {
        /// The path of the folder or file.
        path: PathBuf,
        /// The permissions of the folder or file.
        mode: u32,
    },
    /// A link was found instead of a file.
    #[error("{} is a link", path.display())]
    Link {
        /// The path of the link.
        path: PathBuf,
    },
}

/// Creates a folder with mode 0700 if it does not exist, and its missing parents.
///
/// # Errors
/// The folder can't be created, would be in another user's folder, or exists and is not private.
pub(super) fn make(folder: &Path) -> Result<(), FoldersError> {
    let failed = |error| FoldersError::Io { path: folder.to_owned(), error };
    check_above(folder)?;
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(failed)?;
    // Another user may have made a folder above meanwhile.
    check_above(folder)?;
    Ok(check(folder, &folder.metadata().map_err(failed)?, 0o077)?)
}

/// Creates a folder with mode 0700 in an existing folder, if it does not exist.
///
/// # Errors
/// The folder can't be created, would be in another user's folder, or exists and is not private.
pub fn make_folder(folder: &Path) -> Result<(), FoldersError> {
    let failed = |error| FoldersError::Io { path: folder.to_owned(), error };
    check_above(folder)?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    Ok(check(folder, &folder.metadata().map_err(failed)?, 0o077)?)
}

/// Opens a private file with these options, and creates it with mode 0600 if it does not exist.
///
/// # Errors
/// The file can't be opened, or is not private.
pub fn open(path: &Path, options: &mut OpenOptions) -> Result<File, FoldersError> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(code) if code == Errno::LOOP.raw_os_error() => {
            Exposed::Link { path: path.to_owned() }.into()
        }
        _ => FoldersError::Io { path: path.to_owned(), error },
    };
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let file = options
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)
        .map_err(failed)?;
    check(path, &file.metadata().map_err(failed)?, 0o077)?;
    Ok(file)
}

/// Checks that a file is private, if it exists.
///
/// # Errors
/// The file is not private, or can't be examined.
pub fn check_file(path: &Path) -> Result<(), FoldersError> {
    match path.metadata() {
        Ok(found) if found.is_file() => Ok(check(path, &found, 0o077)?),
        // If it is not a file, the error is reported when it is opened.
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(FoldersError::Io { path: path.to_owned(), error }),
    }
}

/// Refuses a folder that another user could replace; see [`check_unchangeable`]. Root can make one
/// in another user's folder under `sudo -E`, which keeps that user's `HOME`, and under `su`, which
/// keeps their `XDG_RUNTIME_DIR`; that user then can't use it.
pub(crate) fn check_above(folder: &Path) -> Result<(), Exposed> {
    folder.parent().map_or(Ok(()), check_unchangeable)
}

/// The maximum number of links on the way to a file.
const MAX_LINKS: usize = 40;

/// Refuses a path whose file or folder a user other than this one and root could change or replace:
/// one of another user, or one that others can write to, at the path itself or above it, and
/// wherever links on the way lead. Parts that do not exist are left out.
///
/// In a folder with the sticky bit, like `/tmp`, others can't replace anything, so such a folder is
/// accepted. The owner of `/` counts as root: in a user namespace that maps only one user, root's
/// files have another owner.
pub(crate) fn check_unchangeable(path: &Path) -> Result<(), Exposed> {
    check_with_links(path, &mut 0)
}

/// Reads a file that no other user can change or replace. The inner error is that of
/// [`check_unchangeable`].
pub(super) fn read_unchangeable(path: &Path) -> io::Result<Result<String, Exposed>> {
    let mut file = match open_checked(path)? {
        Ok(file) => file,
        Err(exposed) => return Ok(Err(exposed)),
    };
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(Ok(text))
}

/// Opens a file for reading that no other user can change or replace. Does not block.
///
/// # Errors
/// The file can't be opened, or another user could change or replace it ([`Exposed`]).
pub fn open_unchangeable(path: &Path) -> io::Result<File> {
    open_checked(path)?.map_err(io::Error::other)
}

fn open_checked(path: &Path) -> io::Result<Result<File, Exposed>> {
    // A pipe of another user would block.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // The opened file is checked as well: another one may be at the path by now.
    let opened = file.metadata()?;
    let checked = check_unchangeable(path).and_then(|()| check_found(path, &opened));
    Ok(checked.map(|()| file))
}

fn check_with_links(path: &Path, links: &mut usize) -> Result<(), Exposed> {
    for path in path.ancestors() {
        let Ok(found) = path.symlink_metadata() else { continue };
        check_found(path, &found)?;
        if found.is_symlink() {
            *links += 1;
            if *links > MAX_LINKS {
                return Err(Exposed::Link { path: path.to_owned() });
            }
            let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
            if let Some((folder, target)) = folder.zip(path.read_link().ok()) {
                check_with_links(&folder.join(target), links)?;
            }
        }
    }
    Ok(())
}

/// Refuses a file or folder of another user, or one that others can write to.
fn check_found(path: &Path, found: &Metadata) -> Result<(), Exposed> {
    let root = || Path::new("/").metadata().map(|root| root.uid());
    let is_ours = [0, geteuid().as_raw()].contains(&found.uid());
    if !is_ours && !root().is_ok_and(|root| root == found.uid()) {
        return Err(Exposed::Foreign { path: path.to_owned(), uid: found.uid() });
    }
    if !found.is_symlink() && others_can_write(found) {
        return Err(Exposed::Writable { path: path.to_owned(), mode: found.mode() & 0o777 });
    }
    Ok(())
}

/// Whether other users can change the file, or replace the contents of the folder.
fn others_can_write(found: &Metadata) -> bool {
    const STICKY: u32 = 0o1000;
    if found.is_dir() && found.mode() & STICKY != 0 {
        return false;
    }
    found.mode() & 0o002 != 0 || found.mode() & 0o020 != 0 && !is_private_group(found.gid())
}

/// Whether only this user and root are in the group: on many systems each user has a group of the
/// same name, which may write to the user's files.
fn is_private_group(gid: u32) -> bool {
    let user = || User::from_uid(geteuid().as_raw().into()).ok().flatten();
    let group = || Group::from_gid(gid.into()).ok().flatten();
    let is_of = |user: &User, group: &Group| {
        group.name == user.name && group.mem.iter().all(|member| *member == user.name)
    };
    gid == 0 || user().zip(group()).is_some_and(|(user, group)| is_of(&user, &group))
}

/// Refuses a folder or file that belongs to another user or gives others one of these permissions.
pub(crate) fn check(path: &Path, found: &Metadata, others: u32) -> Result<(), Exposed> {
    let (path, mode) = (path.to_owned(), found.mode() & 0o777);
    if found.uid() != geteuid().as_raw() {
        return Err(Exposed::Foreign { path, uid: found.uid() });
    }
    if mode & others != 0 {
        return Err(Exposed::Open { path, mode, is_folder: found.is_dir() });
    }
    Ok(())
}
