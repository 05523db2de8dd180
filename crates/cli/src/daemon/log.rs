//! The daemon's log: a few files of bounded size, readable only by their user and without secrets.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use holdpoint_session::folders;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};

use crate::error::CliError;
use crate::log;

/// The maximum size of a file in bytes.
const MAX_FILE_BYTES: u64 = 8 * 1024 * 1024;

/// The number of files: `daemon.log`, `daemon.1.log` (the newest of the old ones) and so on.
const FILES: usize = 5;

/// The maximum number of lines that wait to be written. Further ones are dropped and counted, so
/// that logging never waits for a disk.
const MAX_WAITING_LINES: usize = 16 * 1024;

/// The log, open until dropped.
pub(super) struct Log {
    pub(super) path: PathBuf,
    /// Counts the dropped lines.
    pub(super) lost: ErrorCounter,
    /// Writes the waiting lines when dropped.
    _writer: WorkerGuard,
}

/// Starts to log into this folder, with the levels of `HOLDPOINT_LOG`, else of the configuration.
pub(super) fn start(folder: &Path, configured: Option<&str>) -> Result<Log, CliError> {
    let levels = match log::levels_from_env()? {
        Some(levels) => levels,
        None => log::levels_from_config(configured)?,
    };
    let path = folder.join("daemon.log");
    let file = RotatingFile::open(&path, MAX_FILE_BYTES)?;
    let builder = NonBlockingBuilder::default()
        .buffered_lines_limit(MAX_WAITING_LINES)
        .thread_name("holdpoint-log");
    let (writer, guard) = builder.finish(file);
    let lost = writer.error_counter();
    log::init(levels, writer);
    let previous_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tracing::error!(%panic, "a panic");
        previous_hook(panic);
    }));
    Ok(Log { path, lost, _writer: guard })
}

/// A file that is rotated when it is full. Each write is one line. All lines pass through here, so
/// this is where foreign text is escaped and secrets are masked.
///
/// `tracing_appender::rolling` does not fit: the modes of its files follow the umask, and their
/// size has no bound.
struct RotatingFile {
    path: PathBuf,
    file: File,
    size: u64,
    max_bytes: u64,
}

impl RotatingFile {
    fn open(path: &Path, max_bytes: u64) -> Result<Self, CliError> {
        let file = folders::open(path, OpenOptions::new().append(true))?;
        let size = file
            .metadata()
            .map_err(|error| CliError::failed(format!("{}: {error}", path.display())))?
            .len();
        Ok(Self { path: path.to_owned(), file, size, max_bytes })
    }

    /// Renames the files to their next numbers, which drops the oldest, and starts a new file.
    fn rotate(&mut self) -> io::Result<()> {
        let numbered = |number: usize| match number {
            0 => self.path.clone(),
            number => self.path.with_extension(format!("{number}.log")),
        };
        // The current file is missing if the last rotation could not open a new one.
        let shifted = if self.path.exists() { FILES } else { 1 };
        for number in (1..shifted).rev() {
            match std::fs::rename(numbered(number - 1), numbered(number)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        *self = Self::open(&self.path, self.max_bytes).map_err(io::Error::other)?;
        Ok(())
    }
}

impl Write for RotatingFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let line = log::line(bytes);
        if self.size + line.len() as u64 > self.max_bytes {
            self.rotate()?;
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
        let mut log = RotatingFile::open(&folder.path().join("daemon.log"), 1000).unwrap();
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
        assert_eq!(
            names,
            ["daemon.1.log", "daemon.2.log", "daemon.3.log", "daemon.4.log", "daemon.log"]
        );
    }

    /// If the new file can't be opened, the current one has already been moved. The next write
    /// rotates again and must not move the old files.
    #[test]
    fn a_repeated_rotation_keeps_the_old_files() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let mut log = RotatingFile::open(&path, 10).unwrap();
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
            log.write_all(line.as_bytes()).unwrap();
            log.rotate().unwrap();
        }
        let old = || {
            let file = |number| path.with_extension(format!("{number}.log"));
            [1, 2, 3, 4].map(|number| std::fs::read_to_string(file(number)).unwrap())
        };
        let before = old();
        assert_eq!(before, ["five\n", "four\n", "three\n", "two\n"]);
        std::fs::remove_file(&path).unwrap();
        log.rotate().unwrap();
        assert_eq!(old(), before);
        assert!(path.exists());
    }

    #[test]
    fn t_h1_no_secret_and_no_second_line_gets_into_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("daemon.log");
        let mut log = RotatingFile::open(&path, MAX_FILE_BYTES).unwrap();
        log.write_all(b"key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789AB\nINFO forged \x1b[2J\n")
            .unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.contains("characters masked")
                && !text.contains("uvwxyz")
                && !text.contains('\u{1b}'),
            "{text}"
        );
    }
}
