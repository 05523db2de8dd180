//! The tool `shell`: runs a command with bash.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use holdpoint_common::EndedProcesses;
use holdpoint_common::limits::MAX_OUTPUT_DELTA;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::act::Act;
use crate::context::ToolContext;
use crate::environment::program;
use crate::error::ToolError;
use crate::input::{parse, schema_of};
use crate::place::{JudgedFolder, Place};
use crate::process::{Exit, Process, ProcessSpec};
use crate::sandbox::{Domains, SEARCHED_BYTES, Sandbox, Widening, refused_hosts, settle};
use crate::shown;
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

/// The timeout of a command unless the call sets one.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// The most bytes of a command. Linux limits one argument to 128 KiB, including its final zero
/// byte.
const MAX_COMMAND: usize = 128 * 1024 - 1;

/// The tool `shell`: runs a command with `bash -c` in the workspace folder and streams its output.
///
/// Standard input is empty. The timeout is 120 s unless the call sets another, of at most an hour.
/// When the command ends, processes that it left running are ended.
///
/// A background command becomes a job of the session. The call returns at once, and the tool `jobs`
/// lists, reads and stops the job. The job ends with the session, with an interrupt of its turn, or
/// at its timeout if the call set one.
#[derive(Debug, Default)]
pub struct Shell {
    /// The folder that the intent showed. The command never runs in another folder that replaced
    /// it.
    folder: JudgedFolder,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The bash command.
    command: String,
    /// The timeout in milliseconds, at most 3600000. Default: 120000, or no timeout in the
    /// background.
    timeout_ms: Option<u64>,
    /// Run the command as a background job and return at once. The tool `jobs` reads and stops it.
    #[serde(default)]
    background: bool,
    /// Let the command reach these hosts through an HTTP proxy, if the sandbox has no network, such
    /// as ["crates.io", "*.crates.io"]. The user is asked.
    #[serde(default)]
    domains: Vec<String>,
    /// Let the command use the network, if the sandbox has none and domains are not enough. The
    /// user is asked.
    #[serde(default)]
    network: bool,
    /// Let the command change this file or folder outside of the workspace, or a protected one in
    /// it. The user is asked.
    writable: Option<String>,
    /// Run the command outside of the sandbox, if nothing else is enough. The user is asked.
    #[serde(default)]
    outside: bool,
}

impl Input {
    /// The widenings of the workspace's sandbox, if it has one.
    fn widenings(&self, workspace: &Workspace) -> Result<Vec<Widening>, ToolError> {
        let Some(sandbox) = workspace.sandbox() else { return Ok(Vec::new()) };
        if self.outside {
            return Ok(vec![Widening::Outside]);
        }
        let mut widenings = Vec::new();
        if self.network && !sandbox.has_network() {
            widenings.push(Widening::Network);
        } else if !self.domains.is_empty() && !sandbox.has_network() {
            if let Some(why) = sandbox.lacks_domains() {
                return Err(ToolError::input(format!(
                    "domains can't be used here: {why}; hint: use \"network\": true"
                )));
            }
            let domains = Domains::parse(&self.domains)
                .map_err(|why| ToolError::input(format!("domains: {why}")))?;
            widenings.push(Widening::Domains(domains));
        }
        if let Some(path) = &self.writable {
            let path = Place::resolve(path, workspace.root())?.path().to_owned();
            if !path.exists() {
                let path = path.display();
                let why = format!("writable: {path} does not exist; name the folder above it");
                return Err(ToolError::input(why));
            }
            if path.parent().is_none() {
                return Err(ToolError::input(
                    "writable: / would be everything; use outside for that",
                ));
            }
            widenings.push(Widening::Writable(path));
        }
        Ok(widenings)
    }
}

impl Shell {
    /// Creates an instance of the tool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn input(input: &Value) -> Result<Input, ToolError> {
        let input: Input = parse(input)?;
        if input.command.contains('\0') {
            return Err(ToolError::input(
                "the command contains a zero byte, which can't be passed to bash",
            ));
        }
        if input.command.len() > MAX_COMMAND {
            return Err(ToolError::input(format!(
                "the command has {} bytes, and bash accepts at most {MAX_COMMAND}: write a script and run it",
                input.command.len()
            )));
        }
        if input.command.trim().is_empty() {
            return Err(ToolError::input("the command is empty"));
        }
        if input
            .timeout_ms
            .is_some_and(|timeout| timeout == 0 || u128::from(timeout) > MAX_TIMEOUT.as_millis())
        {
            return Err(ToolError::input("timeout_ms must be from 1 to 3600000"));
        }
        Ok(input)
    }
}

impl Tool for Shell {
    fn name(&self) -> &str {
        "shell"
    }

    fn description(&self) -> &str {
        "Runs a command with bash in the workspace folder and returns its output, including standard error, and its \
         exit code. Standard input is empty, so commands that ask for input fail or read nothing. Processes that the \
         command leaves running are ended when it ends. The timeout is 120 s unless timeout_ms sets another one. Long \
         output is cut in the middle. With background, the command becomes a job that continues after the call until \
         it ends, is stopped with the tool jobs, or the session ends. Commands may run in a sandbox, without a network \
         and with most files read-only. Only after a command has failed there for that reason, run it again with \
         domains, network, writable or outside, the narrowest that is enough."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        let input = Self::input(input)?;
        let folder = self.folder.judge(workspace.root())?;
        let widenings = input.widenings(workspace)?;
        let Input { command, background, .. } = input;
        let in_background = if background { " in the background" } else { "" };
        let mut details = shown::command(&command, folder.path());
        let mut always = format!("shell{in_background}");
        for widening in &widenings {
            details.push_str(&format!("\nmay {widening}"));
            always.push_str(&format!(", {widening},"));
        }
        always.push_str(&format!(" in {}: {command}", folder.path().display()));
        let sandbox = sandbox_text(workspace.sandbox().is_some(), &widenings);
        let widen = widenings.into_iter().map(Act::Widen);
        Ok(Intent {
            acts: [Act::Command(command)].into_iter().chain(widen).collect(),
            message: format!("Run this command{in_background}{sandbox}?"),
            details: Some(details),
            always: Some(always),
        })
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Input { command, timeout_ms, background, .. } = Self::input(&input)?;
        let timeout = timeout_ms.map(Duration::from_millis);
        let env = context.workspace().env().to_vec();
        let spec = ProcessSpec {
            program: bash(&env, context.root()).into(),
            // The last argument is `$0`.
            args: vec!["-c".into(), command.clone().into(), "bash".into()],
            cwd: self.folder.resolve(context.root())?.path().to_owned(),
            env,
        };
        let failed = |subject: &str, error: io::Error| match context.is_cancelled() {
            true => ToolError::Interrupted,
            false => ToolError::failed(format!("{subject} could not be started: {error}")),
        };
        if background {
            let started = context.start_job(spec, &command, timeout);
            let job = started.map_err(|error| failed("the job", error))?;
            return Ok(ToolOutcome::text(format!("[running in the background as job {job}]")));
        }
        let running = context.processes().sandbox().and_then(Sandbox::begin_command);
        let process = context.processes().spawn(spec).map_err(|error| failed("bash", error))?;
        let outcome = wait_for(process, timeout.unwrap_or(DEFAULT_TIMEOUT), context);
        settle(running, outcome, context)
    }
}

/// The most domains that a question names. The details of the ask name all.
const MAX_ASKED_DOMAINS: usize = 3;

/// How a command runs, for the question to the user. Nothing is said about a sandbox as it is.
fn sandbox_text(is_sandboxed: bool, widenings: &[Widening]) -> String {
    if !is_sandboxed {
        return " without a sandbox".to_owned();
    }
    let mut texts = Vec::new();
    for widening in widenings {
        texts.push(match widening {
            Widening::Outside => return " outside of the sandbox".to_owned(),
            Widening::Domains(domains) if domains.count() > MAX_ASKED_DOMAINS => {
                format!("the network for {} domains", domains.count())
            }
            Widening::Domains(domains) => format!("the network for {domains}"),
            Widening::Network => "the network".to_owned(),
            Widening::Writable(_) | Widening::WritableExcept { .. } => {
                "a further writable path".to_owned()
            }
        });
    }
    // The names of domains last, because further words could look like one.
    texts.reverse();
    if texts.is_empty() { String::new() } else { format!(" with {}", texts.join(" and ")) }
}

/// The bash for all commands. A bash below the workspace is never used, because an agent could have
/// written it, and the policy judges a command by the way the real bash reads it.
fn bash(env: &[(String, String)], workspace: &Path) -> PathBuf {
    let system_bash =
        || if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/usr/bin/bash" }.into();
    program(&["bash"], env, workspace).unwrap_or_else(system_bash)
}

/// Streams a command's output until the command ends or times out.
fn wait_for(
    mut process: Process,
    timeout: Duration,
    context: &ToolContext,
) -> Result<ToolOutcome, ToolError> {
    let deadline = Some(Instant::now() + timeout);
    // `follow` itself ends the program.
    let on_timeout = || {};
    let mut end = EndOfOutput::default();
    let on_text = |text: &str| {
        end.push(text);
        stream(text, context);
    };
    let followed = process.follow(deadline, on_text, on_timeout);
    let timed_out = followed
        .map_err(|error| ToolError::failed(format!("the output could not be read: {error}")))?;
    let refused = process.refused_hosts();
    let (exit, ended) = process.finish();
    if context.is_cancelled() {
        return Err(ToolError::Interrupted);
    }
    let failed = timed_out || !exit.is_success();
    let refused = refused.map(|hosts| hosts.list()).unwrap_or_default();
    let advice = match context.processes().sandbox().filter(|_| failed) {
        Some(sandbox) => sandbox.advice(&end.0, &refused),
        None => refused_hosts(&refused),
    };
    let output = result_line(exit, &ended, timed_out.then_some(timeout), advice.as_deref());
    Ok(ToolOutcome { failed, ..ToolOutcome::text(output) })
}

/// The last part of an output.
#[derive(Default)]
struct EndOfOutput(String);

impl EndOfOutput {
    fn push(&mut self, text: &str) {
        self.0.push_str(text);
        if self.0.len() > 2 * SEARCHED_BYTES {
            let cut = self.0.ceil_char_boundary(self.0.len() - SEARCHED_BYTES);
            self.0.drain(..cut);
        }
    }
}

fn stream(text: &str, context: &ToolContext) {
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, later) = rest.split_at(rest.floor_char_boundary(MAX_OUTPUT_DELTA));
        context.output(piece);
        rest = later;
    }
}

fn result_line(
    exit: Exit,
    ended: &EndedProcesses,
    timed_out: Option<Duration>,
    advice: Option<&str>,
) -> String {
    let mut line = match timed_out {
        Some(timeout) => format!("[timed out after {} ms", timeout.as_millis()),
        None => format!("[{exit}"),
    };
    match ended.total() {
        0 => {}
        1 => line.push_str("; 1 process was still running and was ended"),
        many => line.push_str(&format!("; {many} processes were still running and were ended")),
    }
    if !ended.not_ended.is_empty() {
        let pids: Vec<_> = ended.not_ended.iter().map(u32::to_string).collect();
        line.push_str(&format!("; could not end pid {}", pids.join(", ")));
    }
    if let Some(advice) = advice {
        line.push_str(&format!("; {advice}"));
    }
    line.push(']');
    line
}
