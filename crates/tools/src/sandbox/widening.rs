//! The widenings of a sandbox: more than it allows, for one call.

use std::fmt;
use std::path::PathBuf;

use super::domains::Domains;
use crate::shown::line;

/// An extension of the sandbox for one call, from the narrowest to the widest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Widening {
    /// Processes can reach these hosts, through a proxy outside of the sandbox.
    Domains(Domains),
    /// Processes can use the network.
    Network,
    /// Processes can also read and change this file or folder. The path is absolute, with its links
    /// resolved.
    Writable(PathBuf),
    /// Processes can also read and change this folder, but only read these paths below it. Needs
    /// mounts: a sandbox of the level `landlock` makes the whole folder writable. The paths are as
    /// above, and have to exist when a process starts.
    WritableExcept {
        /// The folder.
        folder: PathBuf,
        /// The paths below it.
        except: Vec<PathBuf>,
    },
    /// Processes run outside of the sandbox, with the permissions of their user.
    Outside,
}

impl fmt::Display for Widening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Domains(domains) => write!(f, "reach {domains} and no other host"),
            Self::Network => f.write_str("use the network"),
            Self::Writable(path) => write!(f, "read and change {}", line(&path.to_string_lossy())),
            Self::WritableExcept { folder, except } => {
                let below = |path: &PathBuf| {
                    let path = path.strip_prefix(folder).unwrap_or(path);
                    line(&path.to_string_lossy()).into_owned()
                };
                let except: Vec<_> = except.iter().map(below).collect();
                let (folder, except) = (folder.to_string_lossy(), except.join(", "));
                write!(f, "read and change {}, and only read {except} in it", line(&folder))
            }
            Self::Outside => f.write_str("run outside of the sandbox"),
        }
    }
}
