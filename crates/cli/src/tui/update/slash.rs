//! Slash commands, such as `/help`.

use std::path::PathBuf;

use clap::ValueEnum;
use holdpoint_common::{AsksMode, HoldState};
use holdpoint_tools::shown::prose_line;

use super::super::keymap::Action;
use super::super::message::Command;
use super::super::state::State;
use super::{act, leave_for_hub};
use crate::open::AsksArg;
use crate::summaries::asks_mode;
use crate::tone::Tone;

/// The commands with their arguments, and their descriptions.
pub(crate) const COMMANDS: [(&str, &str); 13] = [
    ("/help", "show keys and commands"),
    ("/steps", "show or hide tool calls and thoughts"),
    ("/hold", "hold at the next boundary"),
    ("/release", "release the hold"),
    ("/interrupt", "interrupt the current turn or run"),
    ("/model [NAME]", "show the model, or change it from the next turn on"),
    ("/asks [MODE]", "show the asks mode, or change it: wait, deny or approve"),
    ("/debug", "turn debug logging of this session on or off"),
    ("/clear", "clear the screen; the history is kept"),
    ("/rename NAME", "rename the session"),
    ("/export [FILE]", "export the conversation to a file"),
    ("/close", "close the session; it stays saved"),
    ("/quit", "detach; the session keeps running"),
];

/// The commands that begin with the typed text.
pub(crate) fn candidates(typed: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    COMMANDS
        .into_iter()
        .filter(move |(command, _)| typed.starts_with('/') && name_of(command).starts_with(typed))
}

/// The command without its arguments.
fn name_of(command: &'static str) -> &'static str {
    command.split(' ').next().unwrap_or(command)
}

/// The longest common completion of the typed text. A single command with arguments gets a trailing
/// space.
pub(super) fn completion(typed: &str) -> Option<String> {
    let (first, _) = candidates(typed).next()?;
    let name = name_of(first);
    let is_common = |length: &usize| {
        candidates(typed).all(|(command, _)| command.starts_with(&name[..*length]))
    };
    let length = (typed.len()..=name.len()).rev().find(is_common)?;
    let takes_argument =
        length == name.len() && first.len() > length && candidates(typed).count() == 1;
    Some(if takes_argument { format!("{name} ") } else { name[..length].to_owned() })
}

/// Whether the text is meant as a command, even a misspelled one. A path has more slashes.
pub(super) fn is_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    !text.contains('\n')
        && !word.is_empty()
        && word.chars().all(|character| character.is_ascii_alphabetic())
}

/// Whether the command concerns only the screen, and so also works in a closed session.
pub(super) fn concerns_only_screen(text: &str) -> bool {
    matches!(text.split_whitespace().next(), Some("help" | "steps" | "clear" | "quit" | "exit"))
}

pub(super) fn carry_out(state: &mut State, text: &str) -> Vec<Command> {
    let (command, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let Some(session) = &mut state.session else { return vec![] };
    match command {
        "help" => act(state, Action::Help),
        "steps" => act(state, Action::Steps),
        "hold" | "pause" => match session.snapshot.hold.shown() {
            HoldState::Off => vec![Command::Hold],
            HoldState::Requested => {
                report_unchanged(state, "a hold at the next boundary is already requested")
            }
            HoldState::Standing => {
                report_unchanged(state, "the session is already held; use /release to continue")
            }
        },
        "release" | "play" if session.snapshot.hold.shown() == HoldState::Off => {
            report_unchanged(state, "the session is not held")
        }
        "release" | "play" => vec![Command::Release],
        "interrupt" if session.can_be_interrupted() => {
            vec![Command::Interrupt { turn: session.snapshot.turn }]
        }
        "interrupt" => report_unchanged(state, "nothing is running"),
        "model" if rest.is_empty() => {
            let model = prose_line(&session.snapshot.settings.model);
            let text = format!("model: {model}; use /model PROVIDER/NAME to change it");
            state.show_notice(Tone::Plain, text);
            vec![]
        }
        "model" if rest == session.snapshot.settings.model => {
            report_unchanged(state, format!("the model is already {}", prose_line(rest)))
        }
        "model" => vec![Command::Model { name: rest.to_owned() }],
        "asks" if rest.is_empty() => {
            let asks = asks_mode(session.snapshot.settings.asks);
            let text = format!("{asks}; use /asks wait, deny or approve to change it");
            state.show_notice(Tone::Plain, text);
            vec![]
        }
        "asks" => match AsksArg::from_str(rest, false).map(AsksMode::from) {
            Ok(asks) if asks == session.snapshot.settings.asks => {
                report_unchanged(state, format!("the asks mode is already {asks}"))
            }
            Ok(asks) => vec![Command::Asks { asks }],
            Err(_) => {
                state.show_notice(Tone::Warning, "usage: /asks wait, deny or approve");
                vec![]
            }
        },
        "debug" => vec![Command::Debug { enabled: !session.snapshot.is_debug_enabled }],
        "clear" => {
            session.received.transcript.clear();
            vec![]
        }
        "rename" if rest.is_empty() => {
            state.show_notice(Tone::Warning, "usage: /rename NAME");
            vec![]
        }
        "rename" => vec![Command::Rename { name: rest.to_owned() }],
        "export" => {
            let file = match rest {
                "" => export_file(&session.snapshot.settings.name),
                file => PathBuf::from(file),
            };
            vec![Command::Export { path: file }]
        }
        "close" => {
            let mut commands = vec![Command::Close { id: session.id.clone() }];
            // Leaving a closed session does not discard it.
            session.closed = true;
            commands.extend(leave_for_hub(state));
            commands
        }
        "quit" | "exit" => act(state, Action::Quit),
        other => {
            session.prompt.set(&format!("/{text}"));
            state.show_notice(Tone::Warning, format!("unknown command /{other}; see /help"));
            vec![]
        }
    }
}

/// The default file for the text of the session with this name.
fn export_file(session: &str) -> PathBuf {
    format!("{}.md", session.replace(|character: char| !character.is_alphanumeric(), "-")).into()
}

/// Reports that a command changes nothing.
fn report_unchanged(state: &mut State, text: impl Into<String>) -> Vec<Command> {
    state.show_notice(Tone::Plain, text);
    vec![]
}
