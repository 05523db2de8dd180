//! The sandbox of tool processes: the files that they can read and write, and the network.
//!
//! A [`SandboxProfile`] gives every path an access: readable, writable, hidden, or replaced by
//! another folder. At the level `bwrap`, programs run in namespaces that bubblewrap makes, where
//! the profile becomes a table of mounts. At the level `landlock`, the supervisor restricts itself
//! before it starts the program, and the profile becomes Landlock rules.

mod bwrap;
mod caches;
#[cfg(target_os = "linux")]
mod confine;
mod confinement;
mod profile;
mod support;

use std::io;
use std::sync::Arc;

use holdpoint_common::SandboxLevel;

use self::bwrap::Bwrap;
#[cfg(target_os = "linux")]
pub(crate) use self::confine::confine;
pub(crate) use self::confinement::Confinement;
pub use self::profile::SandboxProfile;
pub use self::support::SandboxSupport;
use crate::process::ProcessSpec;

/// The sandbox of the processes of a session. Clones share it.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Settings>);

#[derive(Debug)]
struct Settings {
    method: Method,
    profile: SandboxProfile,
}

/// How the profile is enforced.
#[derive(Debug, Clone)]
enum Method {
    Bwrap(Bwrap),
    Landlock,
}

impl Sandbox {
    fn new(method: Method, profile: SandboxProfile) -> Self {
        Self(Arc::new(Settings { method, profile }))
    }

    /// The level of the sandbox.
    #[must_use]
    pub fn level(&self) -> SandboxLevel {
        match self.0.method {
            Method::Bwrap(_) => SandboxLevel::Bwrap,
            Method::Landlock => SandboxLevel::Landlock,
        }
    }

    /// The program to start in place of `spec`, and the restrictions that its supervisor sets up.
    /// The profile is applied to the paths that exist now.
    ///
    /// # Errors
    /// The folders of the sandbox can't be created.
    pub(crate) fn apply(&self, spec: &ProcessSpec) -> io::Result<(ProcessSpec, Confinement)> {
        let Settings { method, profile } = &*self.0;
        profile.create_folders()?;
        Ok(match method {
            Method::Bwrap(bwrap) => {
                let layout = profile.layout(&spec.env, true);
                (bwrap.wrap(spec, layout, profile.allows_network()), Confinement::Bwrap)
            }
            Method::Landlock => {
                let (confinement, env) = profile.landlock(&spec.env);
                (ProcessSpec { env, ..spec.clone() }, confinement)
            }
        })
    }
}
