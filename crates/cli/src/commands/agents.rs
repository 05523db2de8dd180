//! The command `holdpoint agents`.

use std::path::Path;
use std::time::Instant;

use clap::builder::PossibleValuesParser;
use holdpoint_session::folders::{AgentStore, Folders};
use holdpoint_session::{CheckedAgent, KNOWN_AGENTS, KnownAgent, check_agent};
use holdpoint_tools::shown::prose_line;
use holdpoint_tools::{Supervisor, environment};
use serde_json::{Value, json};

use crate::error::{CliError, FAILED};
use crate::runtime::block_on;
use crate::signals::{self, SignalAction};
use crate::ui::Ui;

/// Show the agents that a session can host by their names, and their needs
///
/// An agent is found if its program is in `PATH`. A session asks before it starts one of them, because
/// its sandbox has to allow the files, hosts and variables that are shown here. `--check` starts each
/// agent that is found, with these needs, in an empty folder, and waits until it has introduced
/// itself. No prompt is sent. With the configuration `sandbox = "off"`, it runs without a sandbox.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0  the agents were shown; with --check, all that are found answer
  1  an agent does not answer, or the named one is not found
  2  the command line or the configuration is wrong
  130  interrupted (Ctrl+C)")]
pub(crate) struct Args {
    /// Only this agent
    #[arg(value_parser = PossibleValuesParser::new(KNOWN_AGENTS.iter().map(|known| known.name)))]
    name: Option<String>,

    /// Start the agents, and report whether they answer
    #[arg(long)]
    check: bool,

    /// Forget that the agent was approved for all sessions
    #[arg(long, requires = "name", conflicts_with = "check")]
    forget: bool,

    /// Print the agents as JSON
    #[arg(long)]
    json: bool,
}

/// A known agent on this machine.
struct Found {
    known: &'static KnownAgent,
    program: Option<String>,
    version: Option<String>,
    /// Whether the user has approved it for all sessions.
    approved: bool,
    check: Option<Result<(CheckedAgent, f64), String>>,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let env: Vec<_> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let store = folders.agents();
    let is_named = |known: &&KnownAgent| args.name.as_ref().is_none_or(|name| name == known.name);
    let mut found = Vec::new();
    for known in KNOWN_AGENTS.iter().filter(is_named) {
        if args.forget {
            let word = if store.remove(known)? { "forgotten" } else { "not approved before" };
            ui.print(&format!("{}: {word}\n", known.name))?;
            return Ok(0);
        }
        found.push(find(known, &store, &env)?);
    }
    if args.check {
        let config = folders.config()?;
        folders.make()?;
        let leaving = signals::watch(SignalAction::Detaches, None)
            .map_err(|error| CliError::failed(format!("signals can't be watched: {error}")))?;
        for agent in found.iter_mut().filter(|agent| agent.program.is_some()) {
            let supervisor = Supervisor::beside_this_program();
            let started = Instant::now();
            let checking = check_agent(agent.known, &config, folders, supervisor, &env);
            let checked = block_on(async {
                tokio::select! {
                    checked = checking => Ok(Some(checked)),
                    () = leaving.requested() => Ok(None),
                }
            })?;
            let Some(checked) = checked else { return Ok(leaving.code().unwrap_or(FAILED)) };
            let seconds = started.elapsed().as_secs_f64();
            agent.check = Some(checked.map(|checked| (checked, seconds)));
        }
    }
    match args.json {
        true => ui.json(&found.iter().map(Found::as_json).collect::<Vec<_>>())?,
        false => {
            for agent in &found {
                ui.print(&agent.as_text(&env))?;
            }
        }
    }
    let failed = found.iter().any(|agent| matches!(agent.check, Some(Err(_))));
    let is_missing = args.name.is_some() && found.iter().any(|agent| agent.program.is_none());
    Ok(if failed || is_missing { FAILED } else { 0 })
}

/// Looks for the program of an agent, as a session in the current folder would.
fn find(
    known: &'static KnownAgent,
    store: &AgentStore,
    env: &[(String, String)],
) -> Result<Found, CliError> {
    let folder = std::env::current_dir().unwrap_or_else(|_| Path::new("/").to_owned());
    let program = known.find(&environment::allowed(env.iter().cloned()), &folder);
    let version = program.as_ref().and_then(|program| known.version(program));
    let program = program.map(|program| program.display().to_string());
    let approved = store.get(known)?.is_some();
    Ok(Found { known, program, version, approved, check: None })
}

impl Found {
    fn as_json(&self) -> Value {
        let Self { known, program, version, approved, check } = self;
        let check = check.as_ref().map(|check| match check {
            Ok((checked, seconds)) => json!({
                "answers": true,
                "seconds": seconds,
                "program": checked.program.as_ref().map(|(name, _)| name),
                "version": checked.program.as_ref().map(|(_, version)| version),
                "logins": checked.logins,
                "sandbox": checked.level,
            }),
            Err(why) => json!({ "answers": false, "why": why }),
        });
        json!({
            "name": known.name,
            "program": program,
            "version": version,
            "args": known.args,
            "package": known.package,
            "paths": known.paths,
            "readOnly": known.read_only,
            "domains": known.domains,
            "variables": known.variables,
            "approved": approved,
            "check": check,
        })
    }

    fn as_text(&self, env: &[(String, String)]) -> String {
        let Self { known, program, version, approved, check } = self;
        let Some(program) = program else {
            let (name, package) = (known.name, known.package);
            return format!("{name}: not found (npm install -g {package})\n");
        };
        let version = version.as_ref().map(|version| format!(" ({version})")).unwrap_or_default();
        let is_set = |name: &str| env.iter().any(|(known, _)| known == name);
        let variable = |name: &&str| match is_set(name) {
            true => format!("{name} (set)"),
            false => (*name).to_owned(),
        };
        let variables: Vec<_> = known.variables.iter().map(variable).collect();
        let start = if *approved { "approved for all sessions" } else { "asks" };
        let mut text = format!("{}: {}{}\n", known.name, prose_line(program), prose_line(&version));
        for (head, value) in [
            ("files", known.paths.join(", ")),
            ("read only", known.read_only.join(", ")),
            ("hosts", known.domains.join(", ")),
            ("variables", variables.join(", ")),
            ("start", start.to_owned()),
        ] {
            text.push_str(&format!("  {head:<9}  {value}\n"));
        }
        match check {
            None => {}
            Some(Ok((checked, seconds))) => {
                let program = checked.program.as_ref();
                let program = program.map(|(name, version)| format!(": {name} {version}"));
                let program = program.unwrap_or_default();
                let level = checked.level;
                text.push_str(&format!(
                    "  check      answers ({seconds:.1} s, sandbox {level}){}\n",
                    prose_line(&program)
                ));
            }
            Some(Err(why)) => text.push_str(&format!("  check      {}\n", prose_line(why))),
        }
        text
    }
}
