//! Finds and reads instruction files. Reading never blocks, and reads a bounded number of bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use holdpoint_common::InstructionFile;
use holdpoint_common::limits::{MAX_PROJECT_BYTES, MAX_PROJECT_FOLDERS};
use rustix::fs::OFlags;

use super::UserFile;

/// The file in a folder that is addressed to agents.
const FILE: &str = "AGENTS.md";

/// The file that is read in a folder without [`FILE`].
const FALLBACK: &str = "CLAUDE.md";

/// The end of a text that was cut.
const CUT_MARK: &str = "\n[... the rest is left out: the file is too long ...]";

/// An instruction file that exists.
pub(super) struct Found {
    /// The path as users and models see it.
    pub(super) path: String,
    /// The text for the model; `None` if the file is left out.
    pub(super) text: Option<String>,
    /// How many bytes of the file the text contains.
    bytes: usize,
    /// Why the text is not the whole file.
    reason: Option<String>,
    /// Whether the reason is a fault of the file, which the user should learn of.
    is_fault: bool,
}

impl Found {
    fn left_out(path: String, error: &io::Error) -> Self {
        Self { path, text: None, bytes: 0, reason: Some(error.to_string()), is_fault: true }
    }

    fn ignored(path: String, reason: String) -> Self {
        Self { path, text: None, bytes: 0, reason: Some(reason), is_fault: false }
    }

    /// The message to the user about a file with a fault.
    pub(super) fn notice(&self) -> Option<String> {
        let reason = self.reason.as_ref().filter(|_| self.is_fault)?;
        let left_out = if self.text.is_none() { "left out: " } else { "" };
        Some(format!("{} is {left_out}{reason}", self.path))
    }
}

impl From<Found> for InstructionFile {
    fn from(found: Found) -> Self {
        let Found { path, bytes, reason, .. } = found;
        Self { path, bytes, reason }
    }
}

/// The user's own file, if it exists.
pub(super) fn user_file(user: &UserFile) -> Option<Found> {
    let path = user.path.to_string_lossy().into_owned();
    let read = match (user.open)(&user.path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if user.path.symlink_metadata().is_err() {
                return None;
            }
            Err(dangling())
        }
        opened => opened.and_then(|file| Content::read(file, MAX_PROJECT_BYTES)),
    };
    Some(read.map_or_else(
        |error| Found::left_out(path.clone(), &error),
        |content| content.into_found(path.clone(), MAX_PROJECT_BYTES),
    ))
}

/// The files of the project that `workspace` is in, from the root of its repository down to the
/// workspace. If they are too long together, the nearest ones are kept.
pub(super) fn project_files(workspace: &Path) -> Vec<Found> {
    let project = match Project::of(workspace) {
        Ok(project) => project,
        Err(error) => return vec![Found::left_out(FILE.to_owned(), &error)],
    };
    let mut free = MAX_PROJECT_BYTES;
    let mut folders = Vec::new();
    for (depth, folder) in project.folders().enumerate() {
        let found = project.files_in(folder, depth, free);
        free = found.iter().fold(free, |free, found| free.saturating_sub(found.bytes));
        folders.push(found);
    }
    folders.into_iter().rev().flatten().collect()
}

/// The folders of a project that may have instruction files.
struct Project {
    /// The workspace, with its links resolved.
    workspace: PathBuf,
    /// The root of the repository, or the workspace if there is none.
    root: PathBuf,
    is_repository: bool,
    /// The owner of the workspace.
    owner: u32,
}

impl Project {
    fn of(workspace: &Path) -> io::Result<Self> {
        let workspace = workspace.canonicalize()?;
        let owner = workspace.metadata()?.uid();
        let git = |folder: &Path| folder.join(".git").symlink_metadata().ok();
        let nearest = workspace
            .ancestors()
            .take(MAX_PROJECT_FOLDERS)
            .find_map(|folder| Some((folder, git(folder)?.uid())));
        // Like git, do not trust a repository that another user has put around the workspace.
        let root = nearest.filter(|(_, uid)| *uid == owner).map(|(root, _)| root.to_owned());
        let is_repository = root.is_some();
        Ok(Self {
            root: root.unwrap_or_else(|| workspace.clone()),
            workspace,
            is_repository,
            owner,
        })
    }

    /// The folders from the workspace up to the root.
    fn folders(&self) -> impl Iterator<Item = &Path> {
        self.workspace.ancestors().take_while(|folder| folder.starts_with(&self.root))
    }

    /// The instruction files in the folder that is `depth` levels above the workspace. The model
    /// gets at most `free` bytes of them.
    fn files_in(&self, folder: &Path, depth: usize, free: usize) -> Vec<Found> {
        let read = |name: &str| {
            let path = "../".repeat(depth) + name;
            let read = self
                .open(&folder.join(name))
                .and_then(|file| file.map(|file| Content::read(file, free)).transpose());
            read.map_or_else(
                |error| Some(Found::left_out(path.clone(), &error)),
                |content| Some(content?.into_found(path.clone(), free)),
            )
        };
        let Some(found) = read(FILE) else { return read(FALLBACK).into_iter().collect() };
        let fallback = folder.join(FALLBACK).symlink_metadata().is_ok().then(|| {
            let path = "../".repeat(depth) + FALLBACK;
            Found::ignored(path, format!("ignored because {FILE} is there"))
        });
        [found].into_iter().chain(fallback).collect()
    }

    /// Opens the file; `None` if it does not exist.
    ///
    /// # Errors
    /// The file can't be opened, is a link that leads out of the project or to a missing file, or
    /// is above the workspace and belongs to another user than the workspace.
    fn open(&self, given: &Path) -> io::Result<Option<File>> {
        let path = match given.canonicalize() {
            Ok(path) => path,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let is_link = given.symlink_metadata().is_ok();
                return if is_link { Err(dangling()) } else { Ok(None) };
            }
            Err(error) => return Err(error),
        };
        let Ok(inside) = path.strip_prefix(&self.root) else {
            let root = if self.is_repository { "repository" } else { "workspace" };
            return Err(io::Error::other(format!("it is a link that leads out of the {root}")));
        };
        // Git's own files may contain keys.
        if inside.iter().any(|part| part == ".git") {
            return Err(io::Error::other("it is a link into .git"));
        }
        let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let flags = flags.bits().cast_signed();
        let file = OpenOptions::new().read(true).custom_flags(flags).open(&path)?;
        let owner = file.metadata()?.uid();
        if owner != self.owner && !path.starts_with(&self.workspace) {
            let error = format!("it belongs to another user than the workspace (uid {owner})");
            return Err(io::Error::other(error));
        }
        Ok(Some(file))
    }
}

fn dangling() -> io::Error {
    io::Error::other("it is a dangling link")
}

/// The text of a file, cut to a maximum number of bytes.
struct Content {
    text: String,
    /// The size of the whole file in bytes.
    file_bytes: u64,
    is_cut: bool,
    /// Whether the text is valid UTF-8.
    is_utf8: bool,
}

impl Content {
    /// Reads at most `most` bytes of the file, which was opened so that it does not block.
    ///
    /// # Errors
    /// The file is not a regular file, can't be read, or is not text.
    fn read(file: File, most: usize) -> io::Result<Self> {
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("it is not a file"));
        }
        let mut start = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut start)?;
        // The file may have grown in the meantime.
        let file_bytes = metadata.len().max(start.len() as u64);
        if start.contains(&0) {
            return Err(io::Error::other(
                "it contains zero bytes, like binary or UTF-16 text; save it as UTF-8",
            ));
        }
        // A character that the limit splits does not make the file invalid.
        let is_partial = file_bytes > start.len() as u64;
        let is_utf8 = str::from_utf8(&start)
            .map_or_else(|error| error.error_len().is_none() && is_partial, |_| true);
        let mut text = String::from_utf8_lossy(&start).into_owned();
        // The replacement of an invalid byte is longer than the byte.
        let is_cut = text.len() > most;
        text.truncate(text.floor_char_boundary(most));
        Ok(Self { text, file_bytes, is_cut, is_utf8 })
    }

    /// The file with the reasons why the text is not the whole file. `most` is the limit with which
    /// it was read.
    fn into_found(self, path: String, most: usize) -> Found {
        let Self { mut text, file_bytes, is_cut, is_utf8 } = self;
        if most == 0 && is_cut {
            let all = MAX_PROJECT_BYTES / 1024;
            let error = io::Error::other(format!("nearer files fill the limit of {all} KiB"));
            return Found::left_out(path, &error);
        }
        if text.trim().is_empty() && !is_cut {
            return Found::ignored(path, "empty".to_owned());
        }
        let too_long = is_cut.then(|| {
            let (divisor, unit) = if file_bytes < 10 * 1024 { (1, "bytes") } else { (1024, "KiB") };
            let [first, all] = [most as u64, file_bytes].map(|bytes| bytes.div_ceil(divisor));
            let why = if most < MAX_PROJECT_BYTES { " together with nearer files" } else { "" };
            format!("too long{why}: the model gets only the first {first} of its {all} {unit}")
        });
        let invalid = (!is_utf8).then(|| {
            "not UTF-8: the model gets \u{fffd} for invalid bytes; save it as UTF-8".to_owned()
        });
        let reasons: Vec<_> = too_long.into_iter().chain(invalid).collect();
        let bytes = text.len();
        if is_cut {
            text.push_str(CUT_MARK);
        }
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        Found { path, text: Some(text), bytes, is_fault: reason.is_some(), reason }
    }
}
