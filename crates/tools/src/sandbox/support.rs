//! The levels of the sandbox that work on this machine.

use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, io};

use holdpoint_common::SandboxLevel;

use super::bwrap::Bwrap;
use super::{Method, Sandbox, SandboxProfile};
use crate::environment::program;
use crate::process::{ProcessSpec, Processes, Read, Supervisor};

/// How long a trial of a level may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of output that are kept: the help of bubblewrap has about 5 KiB.
const MAX_OUTPUT: usize = 64 * 1024;

/// Folders with the programs of the system, in which bubblewrap is looked for. An agent can't write
/// to them.
const SYSTEM_PATH: &str = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin";

/// The levels of the sandbox that work on this machine, and the reasons why others do not.
#[derive(Debug, Clone)]
pub struct SandboxSupport {
    bwrap: Result<Bwrap, String>,
    landlock: Result<(), String>,
}

impl SandboxSupport {
    /// No level works, for this reason.
    #[must_use]
    pub fn none(why: &str) -> Self {
        Self { bwrap: Err(why.to_owned()), landlock: Err(why.to_owned()) }
    }

    /// Tries each level by running a program, which takes some milliseconds.
    /// `folder` is for the files of the trial.
    #[must_use]
    pub fn probe(supervisor: &Supervisor, folder: &Path) -> Self {
        if !cfg!(target_os = "linux") {
            return Self::none("this system is not Linux");
        }
        if *supervisor == Supervisor::None {
            return Self::none("processes have no supervisor");
        }
        let profile = match trial_profile(folder) {
            Ok(profile) => profile,
            Err(error) => return Self::none(&format!("{}: {error}", folder.display())),
        };
        let trial = Trial { supervisor, profile: profile.clone() };
        Self { bwrap: trial.bwrap(), landlock: trial.run(Method::Landlock(profile)) }
    }

    /// The reason why a level does not work; `None` if it does.
    #[must_use]
    pub fn why_not(&self, level: SandboxLevel) -> Option<&str> {
        match level {
            SandboxLevel::Bwrap => self.bwrap.as_ref().err().map(String::as_str),
            SandboxLevel::Landlock => self.landlock.as_ref().err().map(String::as_str),
            SandboxLevel::Auto | SandboxLevel::Off => None,
        }
    }

    /// The strongest level that works.
    #[must_use]
    pub fn strongest(&self) -> SandboxLevel {
        match (&self.bwrap, &self.landlock) {
            (Ok(_), _) => SandboxLevel::Bwrap,
            (Err(_), Ok(())) => SandboxLevel::Landlock,
            (Err(_), Err(_)) => SandboxLevel::Off,
        }
    }

    /// The sandbox of a level; `None` for no sandbox, and for `auto` if no level works. If the
    /// level does not work, the sandbox [refuses](Sandbox::refusal) every program.
    #[must_use]
    pub fn sandbox(&self, level: SandboxLevel, profile: SandboxProfile) -> Option<Sandbox> {
        let method = match (level, &self.bwrap, &self.landlock) {
            (SandboxLevel::Bwrap | SandboxLevel::Auto, Ok(bwrap), _) => {
                Method::Bwrap(bwrap.clone(), profile)
            }
            (SandboxLevel::Landlock | SandboxLevel::Auto, _, Ok(())) => Method::Landlock(profile),
            (SandboxLevel::Bwrap, Err(why), _) | (SandboxLevel::Landlock, _, Err(why)) => {
                Method::Refuse { level, why: why.clone() }
            }
            (SandboxLevel::Auto | SandboxLevel::Off, ..) => return None,
        };
        Some(Sandbox::new(method))
    }
}

/// A profile with nothing of the user.
fn trial_profile(folder: &Path) -> io::Result<SandboxProfile> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder.join("workspace"))?;
    let folder = folder.canonicalize()?;
    let [workspace, home, temporary, caches] =
        ["workspace", "home", "tmp", "caches"].map(|name| folder.join(name));
    Ok(SandboxProfile::new(workspace, home, temporary, caches))
}

struct Trial<'a> {
    supervisor: &'a Supervisor,
    profile: SandboxProfile,
}

impl Trial<'_> {
    /// Finds bubblewrap, reads its options, and tries it.
    fn bwrap(&self) -> Result<Bwrap, String> {
        let Some(program) = program(&["bwrap"], &env(), Path::new("/nonexistent")) else {
            return Err("bubblewrap (bwrap) is not installed".to_owned());
        };
        let processes = Processes::new(self.supervisor.clone(), Duration::ZERO);
        let (_, help) = self.output(&processes, &program, &["--help"])?;
        let bwrap = Bwrap {
            program,
            disables_namespaces: help.contains("--disable-userns"),
            binds_descriptors: help.contains("--ro-bind-fd"),
        };
        self.run(Method::Bwrap(bwrap.clone(), self.profile.clone()))?;
        Ok(bwrap)
    }

    /// Runs a program in the sandbox. `Err` is the reason why it does not run.
    fn run(&self, method: Method) -> Result<(), String> {
        let processes = Processes::new(self.supervisor.clone(), Duration::ZERO);
        let processes = processes.sandboxed(Some(Sandbox::new(method)));
        match self.output(&processes, Path::new("/bin/sh"), &["-c", ":"])? {
            (true, _) => Ok(()),
            (false, output) => Err(output.trim().to_owned()),
        }
    }

    /// Whether a program succeeds, and the start of its output.
    fn output(
        &self,
        processes: &Processes,
        program: &Path,
        args: &[&str],
    ) -> Result<(bool, String), String> {
        let failed = |error: io::Error| error.to_string();
        let spec = ProcessSpec {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: PathBuf::from("/"),
            env: env(),
        };
        let mut process = processes.spawn(spec).map_err(failed)?;
        let deadline = Some(Instant::now() + TIMEOUT);
        let (mut output, mut buffer) = (Vec::new(), [0; 4096]);
        while let Read::Bytes(bytes) = process.read_by(&mut buffer, deadline).map_err(failed)? {
            let room = MAX_OUTPUT.saturating_sub(output.len());
            output.extend(&buffer[..bytes.min(room)]);
        }
        let exit = process.wait_by(deadline).ok_or("it does not end")?;
        Ok((exit.is_success(), String::from_utf8_lossy(&output).into_owned()))
    }
}

fn env() -> Vec<(String, String)> {
    vec![("PATH".to_owned(), SYSTEM_PATH.to_owned())]
}
