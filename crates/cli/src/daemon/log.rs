//! The daemon's log: a few files of bounded size that only their user reads, and no secret in them.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use holdpoint_session::folders;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};

use crate::error::CliError;
use crate::log;

/// Bytes of one file.
const FILE_SIZE: u64 = 8 * 1024 * 1024;

/// Files that are kept: `daemon.log`, and `daemon.1.log` (the newest of the old ones) and so on.
const FILES: usize = 5;

/// Lines that wait to be written. One more is left out and counted: nobody waits for a disk to log.
const WAITING: usize = 16 * 1024;

/// The log, for as long as this is kept.
pub(super) struct Log {
    pub(super) path: PathBuf,
    /// Lines that were left out.
    pub(super) lost: ErrorCounter,
    /// Its end writes what still waits.
    _writer: WorkerGuard,
}

/// Begins to log into this folder: what `HOLDPOINT_LOG` says, else what the configuration does.
pub(super) fn start(folder: &Path, configured: Option<&str>) -> Result<Log, CliError> {
    let levels = match crate::log::levels()? {
        Some(levels) => levels,
        None => crate::log::configured(configured)?,
    };
    let path = folder.join("daemon.log");
    let rolling = Rolling::open(&path, FILE_SIZE)?;
    let builder = NonBlockingBuilder::default().buffered_lines_limit(WAITING).thread_name("holdpoint-log");
    let (writer, guard) = builder.finish(rolling);
    let lost = writer.error_counter();
    crate::log::write(levels, writer);
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "a panic");
        before(panic);
    }));
    Ok(Log { path, lost, _writer: guard })
}

/// A file that makes room when it is full. Each write is one line: what it says of others is made visible and its
/// secrets are masked, here, where no line comes by.
///
/// Not `tracing_appender::rolling`: its files have the modes that the umask leaves them, and no bound.
struct Rolling {
    path: PathBuf,
    file: File,
    size: u64,
    /// Bytes that one file may have.
    most: u64,
}

impl Rolling {
    fn open(path: &Path, most: u64) -> Result<Self, CliError> {
        let file = folders::open(path, OpenOptions::new().append(true))?;
        let size = file.metadata().map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?.len();
        Ok(Self { path: path.to_owned(), file, size, most })
    }

    /// The file moves aside, the oldest one goes, and a new one begins.
    fn roll(&mut self) -> io::Result<()> {
        let old = |number: usize| match number {
            0 => self.path.clone(),
            number => self.path.with_extension(format!("{number}.log")),
        };
        for number in (1..FILES).rev() {
            match std::fs::rename(old(number - 1), old(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        *self = Self::open(&self.path, self.most).map_err(io::Error::other)?;
        Ok(())
    }
}

impl Write for Rolling {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = log::line(bytes);
        if self.size + line.len() as u64 > self.most {
            self.roll()?;
        }
        self.file.write_all(line.as_bytes())?;
        self.size += line.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn the_log_is_bounded_and_private() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = Rolling::open(&folder.path().join("daemon.log"), 1000).unwrap();
        for _ in 0..200 {
            log.write_all(b"2026-11-20T16:32:19Z INFO something happened\n").unwrap();
        }
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let entry = entry.unwrap();
            let about = entry.metadata().unwrap();
            assert!(about.len() <= 1000 && about.mode() & 0o777 == 0o600, "{entry:?}: {about:?}");
            names.push(entry.file_name().into_string().unwrap());
        }
        names.sort();
        assert_eq!(names, ["daemon.1.log", "daemon.2.log", "daemon.3.log", "daemon.4.log", "daemon.log"]);
    }

    #[test]
    fn t_h1_no_secret_and_no_second_line_gets_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let mut log = Rolling::open(&path, FILE_SIZE).unwrap();
        log.write_all(b"key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789AB\nINFO forged \x1b[2J\n").unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains("characters masked") && !text.contains("uvwxyz") && !text.contains('\u{1b}'), "{text}");
    }
}
