//! The small program that only supervises, in the folder of this program.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::IntoRawFd;
use std::path::PathBuf;

use memchr::memmem;

/// The name and the build of a supervisor's code. A program that contains this text is a supervisor
/// of this build.
pub const SUPERVISOR_BUILD: &str = concat!(
    "holdpoint-supervisor ",
    env!("CARGO_PKG_VERSION"),
    " (build ",
    env!("SUPERVISOR_SOURCES"),
    ")"
);

/// The file name of the program.
const FILE_NAME: &str = "holdpoint-supervisor";

/// How much of the program is searched, in bytes. A larger program has debug information after its
/// code and texts.
const SEARCHED_BYTES: u64 = 2 * 1024 * 1024;

/// Opens the program, for as long as this program runs. Returns a path by which it can be started;
/// `None` if there is no such program, or it is of another build.
pub(super) fn open() -> Option<PathBuf> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let path = std::env::current_exe().ok()?.with_file_name(FILE_NAME);
    if !path.is_file() {
        return None;
    }
    let file = File::open(path).ok().filter(|file| is_same_build(file).unwrap_or(false))?;
    Some(format!("/proc/self/fd/{}", file.into_raw_fd()).into())
}

fn is_same_build(file: &File) -> io::Result<bool> {
    let mut start = Vec::new();
    file.take(SEARCHED_BYTES).read_to_end(&mut start)?;
    Ok(memmem::find(&start, SUPERVISOR_BUILD.as_bytes()).is_some())
}
