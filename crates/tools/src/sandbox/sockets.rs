//! The sockets of running programs that have a path.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{getegid, geteuid};

/// The most sockets that are hidden one by one. Each is a mount.
pub(super) const MAX_HIDDEN: usize = 64;

/// The kernel's table of the sockets in this network namespace.
const TABLE: &str = "/proc/net/unix";

/// How many bytes of the table are read: about 10,000 sockets.
const MAX_TABLE: u64 = 1024 * 1024;

/// The age of a socket from which it counts. Bubblewrap fails if a socket is removed while it
/// starts, as the sockets of a test suite may be.
const MIN_AGE: Duration = Duration::from_mins(1);

/// The sockets that processes need. This one only names users and groups.
const NEEDED: [&str; 1] = ["/var/lib/sss/pipes/nss"];

/// The sockets of this user and of root that exist for some time, by absolute paths with their
/// links resolved, without those below the folders `absent`. Other users could have commands fail:
/// a socket must exist when bubblewrap mounts something in its place.
pub(super) fn existing(absent: &[&str]) -> Vec<PathBuf> {
    let mut table = Vec::new();
    // The part that was read before an error is used.
    let _ = File::open(TABLE).and_then(|file| file.take(MAX_TABLE).read_to_end(&mut table));
    let paths: BTreeSet<_> = table.split(|byte| *byte == b'\n').filter_map(path).collect();
    let counts = |path: &&Path| !absent.iter().chain(&NEEDED).any(|not| path.starts_with(not));
    let real = paths.into_iter().filter(counts).filter_map(|path| path.canonicalize().ok());
    real.filter(|path| is_old_socket(path) && can_be_entered(path)).collect()
}

/// The path in a line of the table, which is its last column. The program has chosen it, so the
/// file may be another one now.
fn path(line: &[u8]) -> Option<&Path> {
    let at = line.windows(2).position(|pair| pair == b" /")? + 1;
    Some(Path::new(OsStr::from_bytes(&line[at..])))
}

/// Whether a process of this user without capabilities of root can enter the folders of a path.
/// Neither bubblewrap nor a program in the sandbox has them.
fn can_be_entered(path: &Path) -> bool {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    // Only root could resolve the path in spite of its folders.
    !geteuid().is_root()
        || path.ancestors().skip(1).all(|folder| {
            folder.metadata().is_ok_and(|metadata| {
                let is_group = metadata.gid() == group;
                let executable = if is_group { 0o010 } else { 0o001 };
                metadata.uid() == user || metadata.mode() & executable != 0
            })
        })
}

fn is_old_socket(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|metadata| {
        let is_trusted = [0, geteuid().as_raw()].contains(&metadata.uid());
        let age = metadata.modified().map(|modified| modified.elapsed());
        // A time in the future has no age.
        let is_old = !matches!(age, Ok(Ok(age)) if age < MIN_AGE);
        metadata.file_type().is_socket() && is_trusted && is_old
    })
}
