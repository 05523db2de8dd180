//! The levels of the sandbox that work on this machine.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdpoint_common::{SandboxChoice, SandboxLevel};

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
    bwrap: Result<Method, String>,
    landlock: Result<Method, String>,
}

impl SandboxSupport {
    /// Tries each level by running a program in it, which takes some milliseconds. `env` is the
    /// environment of processes, in whose `PATH` bubblewrap is looked for.
    #[must_use]
    pub fn probe(
        supervisor: &Supervisor,
        env: &[(String, String)],
        profile: &SandboxProfile,
    ) -> Self {
        if *supervisor == Supervisor::None || !cfg!(target_os = "linux") {
            let why = match cfg!(target_os = "linux") {
                true => "processes have no supervisor",
                false => "this system is not Linux",
            };
            return Self { bwrap: Err(why.to_owned()), landlock: Err(why.to_owned()) };
        }
        let trial = Trial { supervisor, env, profile };
        Self {
            bwrap: trial.find_bwrap().and_then(|bwrap| trial.run(Method::Bwrap(bwrap))),
            landlock: trial.run(Method::Landlock),
        }
    }

    /// The sandbox for a choice; `None` for no sandbox.
    ///
    /// # Errors
    /// The chosen level does not work: the reason.
    pub fn sandbox(
        &self,
        choice: SandboxChoice,
        profile: SandboxProfile,
    ) -> Result<Option<Sandbox>, String> {
        let method = match choice {
            SandboxChoice::Off => return Ok(None),
            SandboxChoice::Bwrap => self.bwrap.clone()?,
            SandboxChoice::Landlock => self.landlock.clone()?,
            SandboxChoice::Auto => match self.bwrap.as_ref().or(self.landlock.as_ref()) {
                Ok(method) => method.clone(),
                Err(_) => return Ok(None),
            },
        };
        Ok(Some(Sandbox::new(method, profile)))
    }

    /// Why the level does not work; `None` if it does.
    #[must_use]
    pub fn why_not(&self, level: SandboxLevel) -> Option<&str> {
        match level {
            SandboxLevel::Bwrap => self.bwrap.as_ref().err().map(String::as_str),
            SandboxLevel::Landlock => self.landlock.as_ref().err().map(String::as_str),
            SandboxLevel::Off => None,
        }
    }
}

struct Trial<'a> {
    supervisor: &'a Supervisor,
    env: &'a [(String, String)],
    profile: &'a SandboxProfile,
}

impl Trial<'_> {
    /// Finds bubblewrap outside the workspace, and reads its options.
    fn find_bwrap(&self) -> Result<Bwrap, String> {
        let system = [("PATH".to_owned(), SYSTEM_PATH.to_owned())];
        let find = |env: &[(String, String)]| program(&["bwrap"], env, self.profile.workspace());
        let Some(program) = find(self.env).or_else(|| find(&system)) else {
            return Err("bubblewrap (bwrap) is not installed".to_owned());
        };
        let processes = Processes::new(self.supervisor.clone(), Duration::ZERO);
        let (_, help) = self.output(&processes, &program, &["--help"])?;
        Ok(Bwrap { program, disables_namespaces: help.contains("--disable-userns") })
    }

    /// Runs a program in the sandbox. Returns the method if it runs.
    fn run(&self, method: Method) -> Result<Method, String> {
        let sandbox = Sandbox::new(method.clone(), self.profile.clone());
        let processes =
            Processes::new(self.supervisor.clone(), Duration::ZERO).sandboxed(Some(sandbox));
        match self.output(&processes, Path::new("/bin/sh"), &["-c", ":"])? {
            (true, _) => Ok(method),
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
