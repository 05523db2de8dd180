//! The sandbox of tool processes: the files that they can read and write, and the network.
//!
//! A [`SandboxProfile`] gives every path an access: readable, writable, hidden, or replaced by
//! another folder. At the level `bwrap`, programs run in namespaces that bubblewrap makes, where
//! the profile becomes a table of mounts. At the level `landlock`, the process of the program
//! restricts itself before it runs the program, and the profile becomes Landlock rules.

mod advice;
mod bwrap;
mod caches;
#[cfg(target_os = "linux")]
mod confine;
mod confinement;
mod domains;
mod keys;
mod profile;
mod protected_files;
mod proxy;
mod sockets;
mod support;
mod widening;

use std::io;
use std::sync::Arc;

use holdpoint_common::SandboxLevel;

pub(crate) use self::advice::{SEARCHED_BYTES, refused_hosts};
use self::bwrap::Bwrap;
#[cfg(target_os = "linux")]
pub(crate) use self::bwrap::open_mounted;
#[cfg(target_os = "linux")]
pub(crate) use self::confine::{Restrictions, close_inherited_at_exec};
pub(crate) use self::confinement::Confinement;
pub use self::domains::Domains;
pub(crate) use self::domains::Reach;
#[cfg(all(feature = "web", target_os = "linux"))]
pub(crate) use self::domains::Refused;
pub use self::profile::SandboxProfile;
pub(crate) use self::protected_files::{ProtectedFiles, RunningCommand, settle};
pub(crate) use self::proxy::{DomainProxy, RefusedHosts};
pub use self::support::SandboxSupport;
pub use self::widening::Widening;
use crate::process::ProcessSpec;

/// The sandbox of the processes of a session. Clones share it.
#[derive(Debug, Clone)]
pub struct Sandbox(Arc<Method>);

/// How a profile is enforced.
#[derive(Debug)]
enum Method {
    Bwrap(Bwrap, SandboxProfile),
    Landlock(SandboxProfile),
    /// No program can be started, because the level does not work.
    Refuse {
        level: SandboxLevel,
        why: String,
    },
}

impl Sandbox {
    fn new(method: Method) -> Self {
        Self(Arc::new(method))
    }

    /// A sandbox in which no program can be started, because its level does not work.
    pub fn refusing(level: SandboxLevel, why: impl Into<String>) -> Self {
        Self::new(Method::Refuse { level, why: why.into() })
    }

    /// The reason why no program can be started in the sandbox; `None` if programs can.
    #[must_use]
    pub fn refusal(&self) -> Option<&str> {
        match &*self.0 {
            Method::Refuse { why, .. } => Some(why),
            Method::Bwrap(..) | Method::Landlock(_) => None,
        }
    }

    /// The level of the sandbox.
    #[must_use]
    pub fn level(&self) -> SandboxLevel {
        match *self.0 {
            Method::Bwrap(..) => SandboxLevel::Bwrap,
            Method::Landlock(_) => SandboxLevel::Landlock,
            Method::Refuse { level, .. } => level,
        }
    }

    /// The profile; `None` if no program can be started.
    fn profile(&self) -> Option<&SandboxProfile> {
        match &*self.0 {
            Method::Bwrap(_, profile) | Method::Landlock(profile) => Some(profile),
            Method::Refuse { .. } => None,
        }
    }

    /// Whether processes can use the network.
    #[must_use]
    pub fn has_network(&self) -> bool {
        self.profile().is_some_and(SandboxProfile::allows_network)
    }

    /// The reason why processes can't be given single domains; `None` if they can.
    #[must_use]
    pub fn lacks_domains(&self) -> Option<&'static str> {
        match &*self.0 {
            _ if !proxy::HAS_PROXY => Some("this program has no proxy for them"),
            Method::Landlock(_) => Some("the kernel can't restrict hosts at the level landlock"),
            Method::Bwrap(..) | Method::Refuse { .. } => None,
        }
    }

    /// The sandbox with these widenings; `None` if one of them is to run outside.
    #[must_use]
    pub fn widened(&self, widenings: &[Widening]) -> Option<Self> {
        if widenings.contains(&Widening::Outside) {
            return None;
        }
        Some(match &*self.0 {
            Method::Bwrap(bwrap, profile) => {
                Self::new(Method::Bwrap(bwrap.clone(), profile.widened(widenings)))
            }
            Method::Landlock(profile) => Self::new(Method::Landlock(profile.widened(widenings))),
            Method::Refuse { .. } => self.clone(),
        })
    }

    /// The sandbox of a browser that keeps all its files in `folder`, without Chromium's own sandbox.
    /// `None` at the level `landlock`, where it can't make the sockets that it needs.
    #[cfg(feature = "web")]
    pub(crate) fn for_browser(&self, folder: &std::path::Path) -> Option<Self> {
        match &*self.0 {
            Method::Bwrap(bwrap, profile) => {
                Some(Self::new(Method::Bwrap(bwrap.clone(), profile.for_browser(folder))))
            }
            Method::Landlock(_) => None,
            Method::Refuse { .. } => Some(self.clone()),
        }
    }

    /// The protected files of the workspace; `None` if they are not compared.
    pub(crate) fn protected_files(&self) -> Option<&ProtectedFiles> {
        self.profile()?.protected_files()
    }

    /// Begins a command whose changes of protected files are found when it ends. `None` if they are
    /// not compared.
    pub(crate) fn begin_command(&self) -> Option<RunningCommand> {
        self.profile()?.begin_command()
    }

    /// The program to start in place of `spec`, and the restrictions that its supervisor sets up.
    /// The profile is applied to the paths that exist now.
    ///
    /// # Errors
    /// The folders of the sandbox can't be created, or the level does not work.
    pub(crate) fn apply(&self, spec: &ProcessSpec) -> io::Result<SandboxedProgram> {
        match &*self.0 {
            Method::Bwrap(bwrap, profile) => {
                profile.prepare()?;
                let layout = profile.layout(&spec.env, true);
                let spec = bwrap.wrap(spec, layout, profile.allows_network());
                let reach = profile.reach().cloned();
                let confinement = Confinement::Bwrap { listens: reach.is_some() };
                Ok(SandboxedProgram { spec, confinement, reach })
            }
            Method::Landlock(profile) if profile.reach().is_some() => {
                Err(io::Error::other(self.lacks_domains().unwrap_or_default()))
            }
            Method::Landlock(profile) => {
                profile.prepare()?;
                let (confinement, env) = profile.landlock(&spec.env);
                let spec = ProcessSpec { env, ..spec.clone() };
                Ok(SandboxedProgram { spec, confinement, reach: None })
            }
            Method::Refuse { level, why } => {
                Err(io::Error::other(format!("the sandbox `{level}` does not work here: {why}")))
            }
        }
    }
}

/// A program that is to run in a sandbox.
pub(crate) struct SandboxedProgram {
    /// The program to start.
    pub(crate) spec: ProcessSpec,
    /// The restrictions that its supervisor sets up.
    pub(crate) confinement: Confinement,
    /// The hosts that it may reach through a proxy.
    pub(crate) reach: Option<Reach>,
}
