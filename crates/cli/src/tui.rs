//! The screen: all sessions, and one at a time, in a terminal.
//!
//! | file | what it is |
//! | --- | --- |
//! | `state`, `hub`, `session`, `ask`, `prompt` | what is shown, and nothing else |
//! | `transcript` | what a session's events come to |
//! | `message`, `update` | what the screen is told, and what that does: pure |
//! | `keymap` | every key |
//! | `view`, `layout`, `markdown`, `code`, `wrap`, `style` | the state as a frame |
//! | `link` | sessions, through their handles |
//! | `run`, `signals`, `terminal`, `editor` | the loop, and the terminal it runs in |

mod ask;
mod code;
mod editor;
mod hub;
mod keymap;
mod layout;
mod link;
mod markdown;
mod message;
mod prompt;
mod run;
#[cfg(test)]
mod scene;
mod session;
mod signals;
mod state;
mod style;
mod terminal;
mod transcript;
#[cfg(test)]
#[path = "../tests/it/tty.rs"]
#[allow(dead_code, reason = "shared with the tests of the screen")]
mod tty;
mod update;
mod view;
mod wrap;

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::{AsksMode, Config};
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_session::{OpenSession, SessionHandle};
use holdpoint_tools::shown::prose_line;
use tokio::sync::mpsc;

use self::keymap::Keymap;
use self::link::{Fresh, Link};
use self::message::Moment;
use self::run::{HEARD, Loop};
use self::session::PAST;
use self::state::{Me, Opening, Refused, State};
use self::terminal::Terminal;
use crate::error::CliError;
use crate::runtime::runtime;
use crate::sessions::{of_daemon, supplies};
use crate::ui::{Style, Ui};

/// Whether there is a terminal that can show it: standard input and output are one, and it can be written all over.
pub(crate) fn can_be_shown() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows all sessions, or the one of this name or id, until the user leaves.
///
/// # Errors
/// A log would be written over it, the daemon can't be reached, the session can't be opened, or the terminal can't be
/// written to.
pub(crate) fn show(session: Option<&str>, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    crate::log::spare_screen()?;
    let config = folders.config()?;
    let keymap = keymap(&config)?;
    let folder = std::env::current_dir().unwrap_or_default();
    let runtime = runtime()?;
    let left = runtime.block_on(async {
        let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
        let model = catalog.default_name();
        let me = Me { pid: std::process::id(), folder: folder.to_string_lossy().into_owned(), model };
        let sessions = of_daemon(folders, "tui", supplies(&config, &catalog)).await?;
        let session = match session {
            Some(what) => Some(sessions.get(what).await?),
            None => None,
        };
        let (mut link, words) = Link::new(sessions, folders, fresh(config.clone(), folder));
        let mut state = State::new(me, config.tui.clone(), keymap, Moment::now());
        begin(&mut state, &mut link, session);

        let tty = Arc::new(io::stdin().as_fd().try_clone_to_owned()?);
        let terminal = Terminal::new(io::stdout().as_fd().try_clone_to_owned()?);
        let (hear, heard) = mpsc::channel(HEARD);
        signals::watch(terminal.clone(), hear.clone())?;
        terminal.leave_on_panic();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let screen = Loop { state, link, words, terminal: terminal.clone(), tty, hear, heard, plain };
        let left = screen.run().await;
        terminal.leave_for_good();
        left
    });
    // A daemon that is being started is not waited for.
    runtime.shutdown_background();
    let state = left?;
    for Refused { id, text, why } in state.unsent() {
        ui.line(Style::Warning, &format!("{} has not taken this: {}", state.name_of(id), prose_line(why)))?;
        for line in text.lines() {
            ui.line(Style::Plain, &format!("  {}", prose_line(line)))?;
        }
    }
    if let Some(id) = &state.left {
        ui.line(Style::Dim, &format!("detached: the session goes on; `holdpoint attach {id}` comes back"))?;
    }
    ui.flush()?;
    Ok(0)
}

/// The keys, as the configuration has them.
fn keymap(config: &Config) -> Result<Keymap, CliError> {
    let wrong = |why: String| CliError::usage(why).hint("[tui.keys] in the configuration has the keys");
    Keymap::with(&config.tui.keys).map_err(wrong)
}

/// Whether the screen can be shown with this configuration.
///
/// # Errors
/// A key of it is none, or does nothing.
pub(crate) fn check(config: &Config) -> Result<(), CliError> {
    keymap(config).map(drop)
}

/// Shows this session first, if there is one.
fn begin(state: &mut State, link: &mut Link, session: Option<SessionHandle>) {
    let Some(session) = session else { return };
    state.attachments += 1;
    state.opening = Some(Opening { attachment: state.attachments, fresh: false, back: None });
    link.follow(session, state.attachments, PAST);
}

/// How fresh sessions are opened: in this folder, as the configuration says.
fn fresh(config: Config, folder: PathBuf) -> Fresh {
    Box::new(move || {
        let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
        let open = OpenSession::in_folder(&folder).model(catalog.default_name().name);
        let open = open.asks(config.asks.unwrap_or(AsksMode::Wait)).policy(config.policy);
        Ok(open.rules(config.rules.clone()).max_steps(config.max_steps).max_turn_tokens(config.max_turn_tokens))
    })
}
