//! The command `holdpoint policy`, which explains verdicts and changes the mode of a session.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use holdpoint_common::{PolicyMode, SandboxLevel, Verdict};
use holdpoint_session::folders::Folders;
use holdpoint_tools::shown::{line, prose_line};
use holdpoint_tools::{Act, Judgement, Place};
use serde_json::{Value, json};

use crate::error::CliError;
use crate::policy::{self, Mode, PolicyArgs};
use crate::runtime::block_on;
use crate::select::{SessionArg, show_resolved};
use crate::sessions::{is_saved, sessions};
use crate::summaries::not_saved_suffix;
use crate::ui::Ui;

/// Explain what the policy allows, asks about and denies, or change the mode of a session
///
/// A policy is a mode and rules. The mode sets which calls need no approval: `--policy ask`,
/// `edits`, `sandboxed`, `all` or `readonly`. Rules are set in the configuration, under `[rules]` as
/// `allow`, `ask` and `deny`, or on the command line as `--allow`, `--ask` and `--deny`. Deny rules
/// take precedence over ask rules, ask rules over allow rules, and all rules over the mode.
///
/// A rule is TOOL or TOOL(PATTERN):
///   shell(git status)     exactly these words
///   shell(npm run *)      these words, and any further ones
///   shell(curl)           this program, with any arguments
///   write(docs/**)        paths in the workspace; also absolute ones, and `~/...`
///   read, write           anything that a tool or a redirection reads, or writes
///   mcp(files read_*)     these tools of an MCP server; mcp(files) for all of its tools
///   deploy                every call of the tool with this name
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    Explain(Explain),
    Set(Set),
}

/// Change the policy mode of a session, for the calls that follow
///
/// The new mode also judges the later calls of the open turn. Open asks stay open, and the rules of
/// the session stay as they are. A saved session is opened.
#[derive(Debug, clap::Args)]
struct Set {
    #[command(flatten)]
    session: SessionArg,

    /// The new mode
    #[arg(value_enum)]
    mode: Mode,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// Print the policy's verdict on each part of a command, and the reason; nothing is run
///
/// The last line is the verdict on the whole command, which is that of its worst part. With --tool,
/// the verdict is on a path that the tool would use, or for `mcp` on a server and its tool. A
/// command is judged as in a sandbox, unless the configuration turns the sandbox off.
#[derive(Debug, clap::Args)]
struct Explain {
    /// The command, as one argument; with --tool, a path, or for `mcp` a server and its tool
    #[arg(value_name = "COMMAND | PATH | SERVER TOOL")]
    subject: String,

    #[command(flatten)]
    policy: PolicyArgs,

    /// The folder that the command would run in; by default, the current folder
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    /// The tool that would be called
    #[arg(long, value_name = "TOOL", default_value = "shell")]
    #[arg(value_parser = [
        "shell", "read_file", "list_dir", "glob", "grep", "write_file", "edit_file", "mcp",
    ])]
    tool: String,

    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    match &args.command {
        PolicyCommand::Explain(explain) => explain.carry_out(folders, ui),
        PolicyCommand::Set(set) => set.carry_out(folders, ui),
    }
}

impl Set {
    fn carry_out(&self, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
        let policy = PolicyMode::from(self.mode);
        let changed = async {
            let sessions = sessions(folders, "policy").await?;
            let session = sessions.get(&self.session.session).await?;
            session.change_policy(policy).await?;
            let saved = is_saved(&sessions, session.id()).await;
            Ok::<_, CliError>((session.snapshot(), saved))
        };
        let (snapshot, saved) = block_on(changed)?;
        show_resolved(&self.session.session, &snapshot, ui)?;
        if self.json {
            let id = &snapshot.settings.id;
            ui.json(&json!({ "session": id, "policy": policy, "saved": saved }))?;
        } else {
            ui.print(&format!("policy: {policy}{}\n", not_saved_suffix(saved)))?;
        }
        Ok(0)
    }
}

impl Explain {
    fn carry_out(&self, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
        let config = folders.config()?;
        let policy = policy::build_policy(self.policy.mode(&config), &self.policy.rules(&config))?
            .protecting(folders.all())
            .sandboxed(config.sandbox.level != SandboxLevel::Off);
        let cwd = self.cwd.as_deref().unwrap_or(Path::new("."));
        let root = cwd.canonicalize().map_err(|error| {
            CliError::usage(format!("{}: {error}", cwd.display()))
                .hint("set the folder to work in with --cwd")
        })?;
        if self.subject.trim().is_empty() {
            return Err(CliError::usage("nothing to explain: the command is empty")
                .hint("give a command, or with --tool a path"));
        }
        let place = || Place::resolve(&self.subject, &root).map_err(CliError::usage);
        let acts = match self.tool.as_str() {
            "shell" => vec![Act::Command(self.subject.clone())],
            "write_file" => vec![Act::Write(place()?)],
            "edit_file" => vec![Act::Read(place()?), Act::Write(place()?)],
            "list_dir" | "glob" | "grep" => vec![Act::Walk(place()?)],
            "mcp" => match self.subject.split_once(' ') {
                Some((server, tool)) => {
                    let (server, tool) = (server.to_owned(), tool.trim().to_owned());
                    vec![Act::Mcp { server, tool }]
                }
                None => {
                    return Err(CliError::usage("the tool of the MCP server is missing")
                        .hint("holdpoint policy explain --tool mcp 'SERVER TOOL'"));
                }
            },
            _ => vec![Act::Read(place()?)],
        };
        let judgement = policy.judge(&self.tool, &acts, &root);
        match self.json {
            true => ui.json(&as_json(&judgement))?,
            false => ui.print(&as_text(&judgement))?,
        }
        Ok(0)
    }
}

fn as_json(judgement: &Judgement) -> Value {
    let parts = judgement
        .parts
        .iter()
        .map(|part| json!({"what": part.what, "verdict": part.verdict, "why": part.why}));
    let parts: Vec<_> = parts.collect();
    json!({"verdict": judgement.verdict, "why": judgement.why(), "parts": parts})
}

/// Two lines for each part, beginning with its verdict, and a last line for the whole call.
fn as_text(judgement: &Judgement) -> String {
    let mut text = String::new();
    for part in &judgement.parts {
        let (what, why) = (line(&part.what), prose_line(&part.why));
        text.push_str(&format!("{:<6} {what}\n       {why}\n", word(part.verdict)));
    }
    text.push_str(&format!("\n{}: {}\n", word(judgement.verdict), prose_line(judgement.why())));
    text
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allow => "allow",
        Verdict::Ask => "ask",
        Verdict::Deny => "deny",
    }
}
