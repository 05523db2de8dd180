//! The full-screen terminal interface: the hub with all sessions, and one session at a time.
//!
//! | file | contents |
//! | --- | --- |
//! | `state`, `hub`, `session`, `ask`, `prompt` | the state of the screen |
//! | `transcript` | a session's events as entries, in the words of the narrator |
//! | `message`, `update` | the messages to the screen and their pure handler |
//! | `keymap` | the key bindings |
//! | `view`, `layout`, `markdown`, `code`, `wrap`, `style` | drawing the state as a frame |
//! | `link` | I/O with sessions, through their handles |
//! | `run`, `editor` | the event loop and the editor of a prompt |

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
mod state;
mod style;
mod transcript;
mod update;
mod view;
mod wrap;

use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::Config;
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_session::{OpenSession, SessionHandle};
use holdpoint_tools::shown::prose_line;
use tokio::sync::mpsc;

use self::keymap::Keymap;
#[cfg(test)]
pub(crate) use self::layout::lines_of_transcript;
use self::link::{Link, NewSession};
use self::message::EventTime;
use self::run::{EVENT_CAPACITY, Loop};
use self::session::INITIAL_FACTS;
use self::state::{Opening, OwnProcess, RefusedPrompt, State};
use crate::error::CliError;
use crate::runtime::runtime;
use crate::sessions::{daemon_sessions, supplies};
use crate::signals;
use crate::terminal::ScreenTerminal;
use crate::tone::Tone;
use crate::ui::Ui;

/// Whether the terminal can show the screen: standard input and output are terminals, and `TERM` is
/// set and not `dumb`.
pub(crate) fn can_be_shown() -> bool {
    let dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !dumb && io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Shows the hub, or the session with this name or id, until the user leaves.
///
/// # Errors
/// Fails if the program's own log would go to the terminal, the daemon can't be reached, the
/// session can't be opened, or the terminal can't be written to.
pub(crate) fn show(session: Option<&str>, folders: &Folders, ui: &mut Ui) -> Result<i32, CliError> {
    crate::log::check_not_on_screen()?;
    let config = folders.config()?;
    let keymap = keymap(&config)?;
    let folder = std::env::current_dir().unwrap_or_default();
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
        let model = catalog.default_name();
        let process = OwnProcess {
            pid: std::process::id(),
            folder: folder.to_string_lossy().into_owned(),
            model,
        };
        let sessions = daemon_sessions(folders, "tui", supplies(&config, &catalog)).await?;
        let session = match session {
            Some(given) => Some(sessions.get(given).await?),
            None => None,
        };
        let (mut link, link_messages) =
            Link::new(sessions, folders, new_session(config.clone(), folder));
        let mut state = State::new(process, config.tui.clone(), keymap, EventTime::now());
        attach_given(&mut state, &mut link, session);

        let tty = Arc::new(io::stdin().as_fd().try_clone_to_owned()?);
        let terminal = ScreenTerminal::new(io::stdout().as_fd().try_clone_to_owned()?);
        let (event_sender, events) = mpsc::channel(EVENT_CAPACITY);
        let signal_sender = event_sender.clone();
        signals::screen::watch(terminal.clone(), move |signal| {
            // If the channel is full, another frame is due anyway and uses the new size.
            _ = signal_sender.try_send(signal.into());
        })?;
        terminal.leave_on_panic();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let screen = Loop {
            state,
            link,
            link_messages,
            terminal: terminal.clone(),
            tty,
            event_sender,
            events,
            plain,
        };
        let result = screen.run().await;
        terminal.leave_for_good();
        result
    });
    // Dropping the runtime would wait for a daemon that is still starting.
    runtime.shutdown_background();
    let state = result?;
    for RefusedPrompt { id, text, why } in state.refused_prompts() {
        ui.line(
            Tone::Warning,
            &format!("{} has not accepted this prompt: {}", state.name_of(id), prose_line(why)),
        )?;
        for line in text.lines() {
            ui.line(Tone::Plain, &format!("  {}", prose_line(line)))?;
        }
    }
    if let Some(id) = &state.detached {
        let text =
            format!("detached; the session keeps running. Return with `holdpoint attach {id}`");
        ui.line(Tone::Dim, &text)?;
    }
    ui.flush()?;
    Ok(0)
}

fn keymap(config: &Config) -> Result<Keymap, CliError> {
    let wrong = |why: String| CliError::usage(why).hint("check [tui.keys] in the configuration");
    Keymap::with_overrides(&config.tui.keys).map_err(wrong)
}

/// Checks that the screen can be shown with this configuration.
///
/// # Errors
/// Fails if the configuration binds an invalid or reserved key, names an unknown action, or has
/// bindings that conflict.
pub(crate) fn check(config: &Config) -> Result<(), CliError> {
    keymap(config).map(drop)
}

/// Attaches to the session given on the command line, if any.
fn attach_given(state: &mut State, link: &mut Link, session: Option<SessionHandle>) {
    let Some(session) = session else { return };
    state.attachments += 1;
    state.opening = Some(Opening { attachment: state.attachments, fresh: false, back: None });
    link.follow(session, state.attachments, INITIAL_FACTS);
}

/// Returns the function that makes the settings of new sessions, which work in `folder`.
fn new_session(config: Config, folder: PathBuf) -> NewSession {
    Box::new(move || {
        let catalog = Catalog::new(&config, |name| std::env::var(name).ok());
        Ok(OpenSession::in_folder(&folder).model(catalog.default_name().name).configured(&config))
    })
}
