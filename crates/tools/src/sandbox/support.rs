//! The levels of the sandbox that work on this machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdpoint_common::SandboxLevel;

use super::bwrap::Bwrap;
use super::{Method, Sandbox, SandboxProfile};
use crate::environment::program;
use crate::process::{ProcessSpec, Processes, Read, Supervisor};

/// How long a trial of a level may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of output that are kept: the help of bubblewrap has about 5 KiB.
const MAX_OUTPUT: usize = 64 * 1024;

/// Folders with the programs of the system, in which bubblewrap is looked for after the `PATH`.
const SYSTEM_PATH: &str = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin";

/// The levels of the sandbox that work on this machine, and why the others do not.
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

    /// Tries each level by running a program in it, which takes some milliseconds. `env` is the
    /// environment of processes, in whose `PATH` bubblewrap is looked for.
    #[must_use]
    pub fn probe(
        supervisor: &Supervisor,
        env: &[(String, String)],
        profile: &SandboxProfile,
    ) -> Self {
        if !cfg!(target_os = "linux") {
            return Self::none("this system is not Linux");
        }
        if *supervisor == Supervisor::None {
            return Self::none("processes have no supervisor");
        }
        let trial = Trial { supervisor, env, profile };
        Self { bwrap: trial.bwrap(), landlock: trial.run(Method::Landlock(profile.clone())) }
    }

    /// The sandbox of a level; `None` for no sandbox, and for `auto` if no level works. If the level
    /// does not work, the sandbox [refuses](Sandbox::refusal) every program.
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

struct Trial<'a> {
    supervisor: &'a Supervisor,
    env: &'a [(String, String)],
    profile: &'a SandboxProfile,
}

impl Trial<'_> {
    /// Finds bubblewrap outside the workspace, reads its options, and tries it.
    fn bwrap(&self) -> Result<Bwrap, String> {
        let system = [("PATH".to_owned(), SYSTEM_PATH.to_owned())];
        let find = |env: &[(String, String)]| program(&["bwrap"], env, self.profile.workspace());
        let Some(program) = find(self.env).or_else(|| find(&system)) else {
            return Err("bubblewrap (bwrap) is not installed".to_owned());
        };
        let processes = Processes::new(self.supervisor.clone(), Duration::ZERO);
        let (_, help) = self.output(&processes, &program, &["--help"])?;
        let bwrap = Bwrap { program, disables_namespaces: help.contains("--disable-userns") };
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
        let failed = |error: std::io::Error| error.to_string();
        let spec = ProcessSpec {
            program: program.into(),
            args: args.iter().map(Into::into).collect(),
            cwd: PathBuf::from("/"),
            env: self.env.to_vec(),
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
