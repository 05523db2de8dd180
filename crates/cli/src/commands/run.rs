//! `holdpoint run`: one prompt, its turn, its end.

mod asked;
mod asking;
mod follow;
mod human;

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::ValueEnum;
use holdpoint_common::{AsksMode, Config, Supplies, Who};
use holdpoint_session::model::Catalog;
use holdpoint_session::{AttachFrom, Engine, OpenSession};
use holdpoint_tools::Supervisor;
use holdpoint_tools::shown::prose_line;

use self::follow::Follower;
use self::human::Human;
use crate::error::CliError;
use crate::folders::Folders;
use crate::policy::PolicyArgs;
use crate::signals;
use crate::terminal::{self, Terminal};
use crate::ui::{Style, Ui};

/// Gives an agent something to do, shows what it does, and ends when it is done
///
/// The model's words go to standard output, everything about them to standard error. Ctrl+C
/// interrupts: what the agent has started is ended, and a receipt says what that was; a second
/// Ctrl+C leaves at once.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    the agent has done what it was asked
  1    it failed, panicked or reached a limit, or this program failed
  2    the command line or the configuration is wrong
  3    it ended, but a Confirm was denied because nobody was there to answer
  129  interrupted by HUP (the terminal is gone)
  130  interrupted (Ctrl+C, Esc)
  141  nobody reads the output any more; the agent was interrupted
  143  interrupted by TERM

Without a key, the model `rehearsal` plays a script with the real tools:
  holdpoint run --model rehearsal 'shell: ls'")]
pub(crate) struct Args {
    /// What to do; `-` (or no prompt, in a pipe) reads it from standard input
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,

    /// The model, as PROVIDER/NAME or PROVIDER: openai, anthropic, gemini, ollama, or rehearsal.
    /// Without it: the configuration's, else the first provider whose key is set, else rehearsal
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,

    /// The folder to work in; without it, this one
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,

    #[command(flatten)]
    policy: PolicyArgs,

    /// Who answers when a tool asks; without it, the configuration's, else `wait` on a terminal, else
    /// `deny`
    #[arg(long, value_enum)]
    asks: Option<Asks>,

    /// Writes every event to standard output instead, one line of JSON each
    #[arg(long)]
    json: bool,

    /// Ends the turn after so many steps (requests to the model); 0 for no limit
    #[arg(long, value_name = "N")]
    max_steps: Option<u32>,

    /// Runs the session in this process, which ends it when it ends. The only way for now
    #[arg(long)]
    in_process: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Asks {
    /// You do, at the terminal
    Wait,
    /// Nobody: a Continue goes on, a Confirm is denied
    Deny,
    /// Nobody: a Continue goes on, a Confirm is approved
    Approve,
}

/// Who answers the asks, and why they do.
struct AsksChoice {
    mode: AsksMode,
    why: &'static str,
    /// Asks are shown here and answered by keys.
    terminal: Option<Terminal>,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = folders.config()?;
    let prompt = args.prompt(&config)?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let (model, why) = match &args.model {
        Some(name) => (name.clone(), "--model".to_owned()),
        None => {
            let default = catalog.default_name();
            (default.name, default.why)
        }
    };
    let asks = args.asks(&config, ui);
    let folder = match &args.cwd {
        Some(folder) => folder.clone(),
        None => std::env::current_dir().map_err(|error| {
            CliError::usage(format!("the current folder can't be used: {error}")).hint("--cwd names another")
        })?,
    };
    // The session lets through to tools what its list allows.
    let env =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let open = OpenSession::in_folder(folder)
        .model(model)
        .asks(asks.mode)
        .policy(args.policy.mode(&config))
        .rules(args.policy.rules(&config))
        .max_steps(args.max_steps.unwrap_or(config.max_steps));

    let patience = config.limits.grace() + signals::BEYOND_GRACE;
    let mut engine = Engine::builder(catalog).limits(config.limits).supervisor(Supervisor::ThisProgram);
    if let Some(prompt) = config.system_prompt {
        engine = engine.system_prompt(prompt);
    }
    let engine = engine.start()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .map_err(|error| CliError::failed(format!("no runtime: {error}")))?;
    runtime.block_on(async {
        let sessions = engine
            .sessions(Who { name: "run".to_owned(), pid: Some(std::process::id()) })
            .with_supplies(Supplies::env(env.collect()));
        let session = sessions.open(open).await?;
        let leaving = signals::watch(session.clone(), asks.terminal.clone(), patience, runtime.handle().clone())
            .map_err(|error| CliError::failed(format!("signals can't be watched: {error}")))?;
        let snapshot = session.snapshot();
        let model = prose_line(&snapshot.settings.model);
        ui.line(Style::Dim, &format!("model: {model} ({})", prose_line(&why)))?;
        ui.line(Style::Dim, &format!("asks: {} ({})", asks.mode, asks.why))?;
        ui.flush()?;
        let attachment = session.attach(AttachFrom::start()).await?;
        let human = (!args.json).then(|| Human::new(asks.terminal.is_some()));
        Follower::new(session, attachment, asks.terminal, leaving, human, ui).run(prompt).await
    })
}

impl Args {
    /// What to do.
    fn prompt(&self, config: &Config) -> Result<String, CliError> {
        match self.prompt.as_deref() {
            Some("-") => {}
            Some(prompt) => return Ok(prompt.to_owned()),
            None if !std::io::stdin().is_terminal() => {}
            None => {
                return Err(CliError::usage("there is no prompt")
                    .hint("holdpoint run \"what to do\", or `-` to read it from standard input"));
            }
        }
        terminal::read_stdin(config.limits.max_prompt_bytes)
            .map_err(|error| CliError::usage(format!("the prompt can't be read from standard input: {error}")))
    }

    /// Who answers.
    fn asks(&self, config: &Config, ui: &Ui) -> AsksChoice {
        let seated = ui.out_is_terminal() && std::io::stdin().is_terminal();
        let (mode, why) = match (self.asks, config.asks) {
            (Some(Asks::Wait), _) => (AsksMode::Wait, "--asks wait"),
            (Some(Asks::Deny), _) => (AsksMode::Deny, "--asks deny"),
            (Some(Asks::Approve), _) => (AsksMode::Approve, "--asks approve"),
            (None, Some(mode)) => (mode, "`asks` in the configuration"),
            (None, None) if seated => (AsksMode::Wait, "you answer here"),
            (None, None) => (AsksMode::Deny, "this is no terminal"),
        };
        if mode != AsksMode::Wait {
            return AsksChoice { mode, why, terminal: None };
        }
        match Terminal::find().filter(|_| ui.err_is_terminal()) {
            Some(terminal) => AsksChoice { mode, why, terminal: Some(terminal) },
            None => {
                AsksChoice { mode, why: "nobody can answer here: an ask waits until you interrupt", terminal: None }
            }
        }
    }
}
