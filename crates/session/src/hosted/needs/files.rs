//! The files of a known agent: those that it may change, and those below them that it can only read.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use holdpoint_common::SandboxLevel;
use holdpoint_tools::{Sandbox, Widening, Workspace};

use crate::hosted::known::KnownAgent;

/// The files of an agent, which may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Files {
    folders: Vec<PathBuf>,
    /// With the text that a new file has.
    files: Vec<(PathBuf, &'static str)>,
}

impl Files {
    /// Determines the files of an agent, and the widenings of the sandbox for them.
    ///
    /// # Errors
    /// A path leads to a folder that contains more than the files of the agent.
    pub(super) fn of(
        known: &KnownAgent,
        workspace: &Workspace,
        sandbox: &Sandbox,
    ) -> Result<(Self, Vec<Widening>), String> {
        let mut files = Self::default();
        let mut widenings = Vec::new();
        for path in known.paths {
            let resolved = resolve(path, workspace)?;
            files.add(&resolved, path);
            widenings.push(Widening::Writable(resolved));
        }
        // Landlock can't protect a part of a writable folder.
        if sandbox.level() != SandboxLevel::Landlock
            && let Some(Widening::Writable(folder)) = widenings.first().cloned()
        {
            let mut except = Vec::new();
            for path in known.read_only {
                let resolved = folder.join(path.trim_end_matches('/'));
                // A link can't be protected, and its target is not in the folder.
                if !resolved.is_symlink() {
                    files.add(&resolved, path);
                    except.push(resolved);
                }
            }
            widenings[0] = Widening::WritableExcept { folder, except };
        }
        for (path, text) in known.expected {
            let resolved = resolve(path, workspace)?;
            files.folders.extend(resolved.parent().map(Path::to_owned));
            files.files.push((resolved, text));
        }
        Ok((files, widenings))
    }

    /// Adds a file or folder, with its name in the table.
    fn add(&mut self, path: &Path, name: &str) {
        let text = match path.extension().and_then(|extension| extension.to_str()) {
            _ if name.ends_with('/') => return self.folders.push(path.to_owned()),
            Some("json") => "{}\n",
            Some("toml") => "",
            // Others have a meaning even if they are empty.
            _ => return,
        };
        self.files.push((path.to_owned(), text));
    }

    /// Creates the files and folders that are missing. A path that does not exist can neither be made
    /// writable nor protected.
    ///
    /// # Errors
    /// The reason why one can't be created.
    pub(super) fn create(&self) -> Result<(), String> {
        let failed =
            |path: &Path, error: io::Error| format!("can't create {}: {error}", path.display());
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        for folder in &self.folders {
            builder.create(folder).map_err(|error| failed(folder, error))?;
        }
        for (file, text) in &self.files {
            let created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
            match created.and_then(|mut created| created.write_all(text.as_bytes())) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(failed(file, error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A path of a known agent, with its links resolved. It may be missing.
///
/// # Errors
/// The path leads to a folder that contains more than the files of the agent.
fn resolve(path: &str, workspace: &Workspace) -> Result<PathBuf, String> {
    let variable = |name: &str| {
        let mut env = workspace.env().iter().rev();
        let value = env.find(|(known, _)| known == name).map(|(_, value)| PathBuf::from(value));
        value.filter(|value| value.is_absolute())
    };
    let home = variable("HOME").ok_or("there is no home folder")?;
    let (base, below) = path.split_once('/').unwrap_or((path, ""));
    let base = match base {
        "$XDG_CONFIG_HOME" => variable("XDG_CONFIG_HOME").unwrap_or(home.join(".config")),
        "$XDG_DATA_HOME" => variable("XDG_DATA_HOME").unwrap_or(home.join(".local/share")),
        "$XDG_STATE_HOME" => variable("XDG_STATE_HOME").unwrap_or(home.join(".local/state")),
        _ => home.clone(),
    };
    let path = base.join(below.trim_end_matches('/'));
    let resolved = canonical(&path);
    let contains = |folder: &Path| canonical(folder).starts_with(&resolved);
    if contains(&home) || contains(workspace.root()) {
        let (path, resolved) = (path.display(), resolved.display());
        return Err(format!("{path} leads to {resolved}, which has more than the agent's files"));
    }
    Ok(resolved)
}

/// The path with the links of all parts that exist resolved.
fn canonical(path: &Path) -> PathBuf {
    for above in path.ancestors() {
        if let (Ok(real), Ok(rest)) = (above.canonicalize(), path.strip_prefix(above)) {
            return if rest.as_os_str().is_empty() { real } else { real.join(rest) };
        }
    }
    path.to_owned()
}
