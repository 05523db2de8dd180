//! A protected file or link as it was found.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{AtFlags, FileType, OFlags, Stat, fstat, readlinkat, statat};
use rustix::io::Errno;

use crate::place::open;

/// The most bytes of a file whose contents are kept.
pub(super) const MAX_FILE: u64 = 1024 * 1024;

/// A file system records changes in steps of up to 10 ms. A file that was changed less than this
/// before it was read could change again without a new time.
const SETTLED: Duration = Duration::from_millis(50);

/// The device, inode, attributes and times of a file or folder. No process in a sandbox can set the
/// change time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) device: u64,
    inode: u64,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    size: u64,
    changed: (i64, u64),
}

/// A file, a link, or something else with a protected name.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    stamp: Stamp,
    /// Whether a later change would alter the stamp.
    settled: bool,
    pub(super) content: Content,
    /// Whether git reads its own settings from the file.
    pub(super) is_git_config: bool,
}

/// The part of an entry that is compared and put back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    /// A file.
    File(Arc<[u8]>),
    /// A link with its target.
    Link(Arc<[u8]>),
    /// Something whose contents are not kept, with the reason.
    NotKept(&'static str),
}

/// How many bytes of contents may still be read.
#[derive(Debug)]
pub(super) struct Quota(pub(super) u64);

#[allow(
    clippy::unnecessary_cast,
    clippy::cast_sign_loss,
    clippy::cast_possible_truncation,
    reason = "the types of these fields differ between systems; none is negative"
)]
impl Stamp {
    pub(super) fn new(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            mode: stat.st_mode as u32,
            owner: (stat.st_uid, stat.st_gid),
            size: stat.st_size as u64,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as u64),
        }
    }

    /// Whether a change after `now` would alter the stamp.
    pub(super) fn is_settled(&self, now: SystemTime) -> bool {
        let (seconds, nanoseconds) = self.changed;
        let changed = Duration::new(seconds.max(0) as u64, nanoseconds as u32);
        now.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|now| now > changed + SETTLED)
    }
}

impl Stamp {
    pub(super) fn is_folder(&self) -> bool {
        self.kind() == FileType::Directory
    }

    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }
}

impl Entry {
    /// A file that a tool has written with the approval of the user.
    pub(super) fn written(file: &File, content: &[u8]) -> io::Result<Self> {
        let content = match content.len() as u64 {
            ..=MAX_FILE => Content::File(content.into()),
            _ => Content::NotKept(TOO_LARGE),
        };
        let stamp = Stamp::new(&fstat(file)?);
        Ok(Self { stamp, settled: false, content, is_git_config: false })
    }

    /// Reads the entry `name` of a folder. `None` if it is missing or a folder. If `known` has the
    /// same stamp, its contents are not read again.
    pub(super) fn read(
        folder: &OwnedFd,
        name: &OsStr,
        known: Option<&Arc<Self>>,
        is_git_config: bool,
        now: SystemTime,
        quota: &mut Quota,
    ) -> io::Result<Option<Arc<Self>>> {
        let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
            stat => stat?,
        };
        let mut stamp = Stamp::new(&stat);
        if let Some(known) = known
            && known.stamp == stamp
            && known.settled
            && known.is_git_config == is_git_config
        {
            return Ok(Some(Arc::clone(known)));
        }
        let content = match stamp.kind() {
            FileType::Directory => return Ok(None),
            FileType::Symlink => Content::Link(link(folder, name)?),
            FileType::RegularFile => match read_file(folder, name, quota) {
                Ok((read, content)) => {
                    stamp = read;
                    content
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    Content::NotKept("it can't be read")
                }
                Err(error) => return Err(error),
            },
            _ => Content::NotKept(NOT_A_FILE),
        };
        Ok(Some(Arc::new(Self { stamp, settled: stamp.is_settled(now), content, is_git_config })))
    }

    /// Whether two entries have the same contents and permissions. If the contents are not kept,
    /// the stamps count.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        match (&self.content, &other.content) {
            (Content::NotKept(_), _) | (_, Content::NotKept(_)) => self.stamp == other.stamp,
            (Content::Link(one), Content::Link(other)) => one == other,
            (one, other_content) => one == other_content && self.mode() == other.mode(),
        }
    }

    /// The permissions.
    pub(super) fn mode(&self) -> u32 {
        self.stamp.mode & 0o7777
    }

    pub(super) fn owner(&self) -> (u32, u32) {
        self.stamp.owner
    }

    pub(super) fn kept_bytes(&self) -> u64 {
        match &self.content {
            Content::File(bytes) | Content::Link(bytes) => bytes.len() as u64,
            Content::NotKept(_) => 0,
        }
    }

    pub(super) fn size(&self) -> u64 {
        self.stamp.size
    }
}

const TOO_LARGE: &str = "it is too large to be kept";
const NOT_A_FILE: &str = "it is not a file";

fn link(folder: &OwnedFd, name: &OsStr) -> io::Result<Arc<[u8]>> {
    Ok(readlinkat(folder, name, Vec::new())?.into_bytes().into())
}

/// Reads a regular file without blocking. Another process may have replaced it meanwhile.
fn read_file(folder: &OwnedFd, name: &OsStr, quota: &mut Quota) -> io::Result<(Stamp, Content)> {
    let file = File::from(open(folder.as_fd(), Path::new(name), OFlags::RDONLY)?);
    let stamp = Stamp::new(&fstat(&file)?);
    if stamp.kind() != FileType::RegularFile {
        return Ok((stamp, Content::NotKept(NOT_A_FILE)));
    }
    let limit = MAX_FILE.min(quota.0);
    if stamp.size > limit {
        return Ok((stamp, Content::NotKept(TOO_LARGE)));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    let length = bytes.len() as u64;
    quota.0 = quota.0.saturating_sub(length);
    let content = match length > limit {
        true => Content::NotKept(TOO_LARGE),
        false => Content::File(bytes.into()),
    };
    Ok((stamp, content))
}
