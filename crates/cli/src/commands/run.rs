//! The command `holdpoint run`, which runs one prompt.

use std::io::IsTerminal;

use holdpoint_common::{AsksMode, Config};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::{Catalog, DefaultModel};
use holdpoint_session::{AttachFrom, Engine, Sessions};
use holdpoint_tools::Supervisor;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::follow::{Begin, FollowRequest, Follower, View};
use crate::mcp;
use crate::open::OpenArgs;
use crate::prompt_input::read_prompt_for;
use crate::runtime::block_on;
use crate::sessions::{daemon_sessions, discard_unused, supplies, who};
use crate::signals::{self, SignalAction};
use crate::summaries;
use crate::terminal::KeyTerminal;
use crate::tone::Tone;
use crate::ui::Ui;
use crate::web;

/// Run one prompt and show its turn
///
/// The model's text goes to standard output, everything else to standard error. Esc or Ctrl+C
/// interrupts: the agent's processes are ended, and a receipt lists them; a second Ctrl+C leaves at
/// once, and the session stays open. The session runs in the daemon, so other clients can attach to
/// it. This program closes it when its turn has ended. If the program is killed or its terminal is
/// gone, the turn continues and the session stays open; `holdpoint close` closes it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    the turn is done
  1    the turn failed, panicked or reached a limit, or this program failed
  2    the command line or the configuration is wrong
  3    the turn ended, but a Confirm was denied because no user was there to answer
  129  this program was ended by HUP (the terminal is gone); the session continues, except with
       --in-process
  130  interrupted (Ctrl+C, Esc)
  141  the reader of the output is gone; the agent was interrupted
  143  interrupted by TERM

Without a key, the model `rehearsal` plays a script with the real tools:
  holdpoint run --model rehearsal 'shell: ls'")]
pub(crate) struct Args {
    /// The prompt; `-` (or no prompt, in a pipe) reads it from standard input
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,

    #[command(flatten)]
    open: OpenArgs,

    /// Print every event as one line of JSON on standard output
    #[arg(long)]
    json: bool,

    /// Run the session in this process, without a daemon: the session ends with the process, and
    /// nothing is saved
    #[arg(long, conflicts_with = "on")]
    in_process: bool,
}

/// The asks mode, the reason for it, and the user's terminal.
struct AsksChoice {
    mode: AsksMode,
    why: &'static str,
    /// The user's terminal, if there is one. Its Esc key interrupts; in the mode `wait`, its keys
    /// also answer asks.
    terminal: Option<KeyTerminal>,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = args.open.add_mcp_file(folders.config()?)?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let DefaultModel { name: model, why } = args.open.model(&catalog);
    let prompt = read_prompt_for(&model, args.prompt.as_deref(), &config, "holdpoint run")?;
    let asks = args.choose_asks(&config, ui);
    let open = args.open.session(&config, &model, asks.mode)?;
    let supplies = supplies(&config, &catalog);
    let exit_timeout = config.limits.grace() + signals::EXIT_MARGIN;
    // Dropped last: the engine ends everything that still runs.
    let engine = args.in_process.then(|| {
        let browsers = web::browsers(&config, folders)?;
        let builder = Engine::builder(catalog).configured(&config, folders);
        let builder =
            builder.tools(web::tools(&browsers)).supervisor(Supervisor::beside_this_program());
        let builder = builder.mcp(mcp::source(folders.logins())).folder_servers(folders.trust());
        Ok::<_, CliError>(builder.start()?)
    });
    let engine = engine.transpose()?;
    block_on(async {
        let sessions: Sessions = match &engine {
            Some(engine) => engine.sessions(who("run")).with_supplies(supplies),
            None => daemon_sessions(folders, "run", supplies).await?,
        };
        let session = sessions.open(open).await?;
        let in_process = args.in_process;
        let on_signal =
            SignalAction::Interrupts { session: session.clone(), exit_timeout, in_process };
        let leaving = signals::watch(on_signal, asks.terminal.clone()).map_err(|error| {
            CliError::failed(format!("signal handlers can't be installed: {error}"))
        })?;
        let settings = session.snapshot().settings.clone();
        if !args.in_process {
            ui.line(
                Tone::Dim,
                &format!("session: {} ({})", prose_line(&settings.name), settings.id),
            )?;
        }
        ui.line(
            Tone::Dim,
            &format!("model: {} ({})", prose_line(&settings.model), prose_line(&why)),
        )?;
        ui.line(Tone::Dim, &format!("asks: {} ({})", asks.mode, asks.why))?;
        ui.line(Tone::Dim, &format!("sandbox: {}", summaries::sandbox(&settings.sandbox)))?;
        ui.flush()?;
        let answers_here = asks.mode == AsksMode::Wait && asks.terminal.is_some();
        let view = View::steps(args.json, answers_here);
        let daemon_folders = (!args.in_process).then_some(folders);
        let id = session.id().clone();
        let followed = FollowRequest {
            session,
            from: AttachFrom::start(),
            daemon: daemon_folders,
            answers: answers_here,
        };
        let result = match Follower::attach(followed, asks.terminal, leaving, view, ui).await {
            Ok(follower) => follower.run(Begin::Prompt(prompt)).await,
            Err(error) => Err(error),
        };
        if result.is_err() {
            // A session that can't be followed, or that refused its prompt, is not needed.
            discard_unused(&sessions, &id).await;
        }
        result
    })
}

impl Args {
    /// Chooses the asks mode.
    fn choose_asks(&self, config: &Config, ui: &Ui) -> AsksChoice {
        let is_interactive = ui.out_is_terminal() && std::io::stdin().is_terminal();
        let (mode, why) = match self.open.asks(config) {
            Some(choice) => choice,
            None if is_interactive => (AsksMode::Wait, "you answer here"),
            None => (AsksMode::Deny, "this is not a terminal"),
        };
        let terminal = KeyTerminal::find().filter(|_| ui.err_is_terminal());
        let why = if mode != AsksMode::Wait || terminal.is_some() {
            why
        } else if self.in_process {
            "no user can answer here: an ask waits until you interrupt"
        } else {
            "other clients can answer: see `holdpoint inbox`"
        };
        AsksChoice { mode, why, terminal }
    }
}
