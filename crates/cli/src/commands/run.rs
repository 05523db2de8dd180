//! `holdpoint run`: one prompt, its turn, its end.

use std::io::IsTerminal;

use holdpoint_common::{AsksMode, Config};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::{Catalog, DefaultModel};
use holdpoint_session::{AttachFrom, Engine, Sessions};
use holdpoint_tools::Supervisor;
use holdpoint_tools::shown::prose_line;

use crate::error::CliError;
use crate::follow::{Begin, Followed, Follower, View};
use crate::open::OpenArgs;
use crate::runtime::block_on;
use crate::sessions::{forget, of_daemon, supplies, who};
use crate::signals::{self, Signalled};
use crate::terminal::Terminal;
use crate::ui::{Style, Ui};
use crate::web;
use crate::words::words_for;

/// Gives an agent something to do, shows what it does, and ends when it is done
///
/// The model's words go to standard output, everything about them to standard error. Esc or Ctrl+C
/// interrupts: what the agent has started is ended, and a receipt says what that was; a second
/// Ctrl+C leaves at once, and the session stays. The session is the daemon's: others can attach to it
/// while it lasts. This program closes it when its turn has ended; when it is killed or its terminal is
/// gone, the turn goes on, and the session stays. `holdpoint close` closes one that stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Exit codes:
  0    the agent has done what it was asked
  1    it failed, panicked or reached a limit, or this program failed
  2    the command line or the configuration is wrong
  3    it ended, but a Confirm was denied because nobody was there to answer
  129  left by HUP (the terminal is gone): the session goes on; with --in-process, interrupted
  130  interrupted (Ctrl+C, Esc)
  141  nobody reads the output any more; the agent was interrupted
  143  interrupted by TERM

Without a key, the model `rehearsal` plays a script with the real tools:
  holdpoint run --model rehearsal 'shell: ls'")]
pub(crate) struct Args {
    /// What to do; `-` (or no prompt, in a pipe) reads it from standard input
    #[arg(value_name = "PROMPT | -")]
    prompt: Option<String>,

    #[command(flatten)]
    open: OpenArgs,

    /// Writes every event to standard output instead, one line of JSON each
    #[arg(long)]
    json: bool,

    /// Runs the session in this process, which ends it when it ends: no daemon is started, and nothing is saved
    #[arg(long)]
    in_process: bool,
}

/// Who answers the asks, and why they do.
struct AsksChoice {
    mode: AsksMode,
    why: &'static str,
    /// The user's: asks are shown here and answered by keys, and Esc interrupts.
    terminal: Option<Terminal>,
}

pub(crate) fn carry_out(args: &Args, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    let config = folders.config()?;
    let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
    let DefaultModel { name: model, why } = args.open.model(&catalog);
    let prompt = words_for(&model, args.prompt.as_deref(), &config, "holdpoint run")?;
    let asks = args.asks(&config, ui);
    let open = args.open.session(&config, &model, asks.mode)?;
    let supplies = supplies(&config, &catalog);
    let patience = config.limits.grace() + signals::BEYOND_GRACE;
    // Dropped last: it ends what still runs.
    let engine = args.in_process.then(|| {
        let browsers = web::browsers(&config, folders)?;
        let engine = Engine::builder(catalog).limits(config.limits.clone()).tools(web::tools(&browsers));
        Ok::<_, CliError>(engine.own_folders(folders.all()).supervisor(Supervisor::ThisProgram).start()?)
    });
    let engine = engine.transpose()?;
    block_on(async {
        let sessions: Sessions = match &engine {
            Some(engine) => engine.sessions(who("run")).with_supplies(supplies),
            None => of_daemon(folders, "run", supplies).await?,
        };
        let session = sessions.open(open).await?;
        let hang_up = args.in_process;
        let signalled = Signalled::Interrupts { session: session.clone(), patience, hang_up };
        let leaving = signals::watch(signalled, asks.terminal.clone())
            .map_err(|error| CliError::failed(format!("signals can't be watched: {error}")))?;
        let settings = session.snapshot().settings.clone();
        if !args.in_process {
            ui.line(Style::Dim, &format!("session: {} ({})", prose_line(&settings.name), settings.id))?;
        }
        ui.line(Style::Dim, &format!("model: {} ({})", prose_line(&settings.model), prose_line(&why)))?;
        ui.line(Style::Dim, &format!("asks: {} ({})", asks.mode, asks.why))?;
        ui.flush()?;
        let answers = asks.mode == AsksMode::Wait && asks.terminal.is_some();
        let view = View::steps(args.json, answers);
        let daemon = (!args.in_process).then_some(folders);
        let id = session.id().clone();
        let followed = Followed { session, from: AttachFrom::start(), daemon, answers };
        let ended = match Follower::attach(followed, asks.terminal, leaving, view, ui).await {
            Ok(follower) => follower.run(Begin::Prompt(prompt)).await,
            Err(error) => Err(error),
        };
        if ended.is_err() {
            // One that can't be followed, or whose prompt was refused, is of no use.
            forget(&sessions, &id).await;
        }
        ended
    })
}

impl Args {
    /// Who answers.
    fn asks(&self, config: &Config, ui: &Ui) -> AsksChoice {
        let seated = ui.out_is_terminal() && std::io::stdin().is_terminal();
        let (mode, why) = match self.open.asks(config) {
            Some(said) => said,
            None if seated => (AsksMode::Wait, "you answer here"),
            None => (AsksMode::Deny, "this is no terminal"),
        };
        let terminal = Terminal::find().filter(|_| ui.err_is_terminal());
        match terminal {
            terminal if mode != AsksMode::Wait || terminal.is_some() => AsksChoice { mode, why, terminal },
            _ => AsksChoice {
                mode,
                why: if self.in_process {
                    "nobody can answer here: an ask waits until you interrupt"
                } else {
                    "an ask waits for `holdpoint inbox`"
                },
                terminal: None,
            },
        }
    }
}
