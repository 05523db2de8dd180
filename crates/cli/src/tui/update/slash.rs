//! Commands that are typed: `/help` and the like.

use std::path::PathBuf;

use holdpoint_common::HoldShown;
use holdpoint_tools::shown::prose_line;

use super::super::keymap::Action;
use super::super::message::Command;
use super::super::state::State;
use super::super::style::Tone;
use super::{act, leave};

/// What can be typed, and what it does.
pub(crate) const COMMANDS: [(&str, &str); 12] = [
    ("/help", "keys and commands"),
    ("/steps", "show or hide tool calls and thoughts"),
    ("/hold", "hold at the next boundary"),
    ("/release", "go on"),
    ("/interrupt", "end what it does now"),
    ("/model [NAME]", "which model it has; another one, from the next turn on"),
    ("/debug", "log this session in more detail, or no longer"),
    ("/clear", "clear the screen; nothing is forgotten"),
    ("/rename NAME", "give the session another name"),
    ("/export [FILE]", "write all that was said to a file"),
    ("/close", "end the session; it stays saved"),
    ("/quit", "leave; the session goes on"),
];

/// The commands that this may become while it is typed.
pub(crate) fn candidates(typed: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    COMMANDS.into_iter().filter(move |(command, _)| typed.starts_with('/') && name_of(command).starts_with(typed))
}

/// It, without what comes behind it.
fn name_of(command: &'static str) -> &'static str {
    command.split(' ').next().unwrap_or(command)
}

/// What this becomes as far as all that it may become agree; with a space behind it, if it is one that takes more.
pub(super) fn completed(typed: &str) -> Option<String> {
    let (first, _) = candidates(typed).next()?;
    let name = name_of(first);
    let agree = |length: &usize| candidates(typed).all(|(command, _)| command.starts_with(&name[..*length]));
    let length = (typed.len()..=name.len()).rev().find(agree)?;
    let takes_more = length == name.len() && first.len() > length && candidates(typed).count() == 1;
    Some(if takes_more { format!("{name} ") } else { name[..length].to_owned() })
}

/// Whether this is one, or looks like a slip in one: a path begins with a slash, too, but has more of them.
pub(super) fn is_command(text: &str) -> bool {
    let word = text.split_whitespace().next().unwrap_or_default();
    !text.contains('\n') && !word.is_empty() && word.chars().all(|character| character.is_ascii_alphabetic())
}

/// Whether it concerns the screen alone, whatever has become of the session.
pub(super) fn is_of_screen(text: &str) -> bool {
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
            HoldShown::Off => vec![Command::Hold],
            HoldShown::Requested => is_so(state, "it is held at the next boundary already"),
            HoldShown::Standing => is_so(state, "it is held already; /release lets it go on"),
        },
        "release" | "play" if session.snapshot.hold.shown() == HoldShown::Off => is_so(state, "it is not held"),
        "release" | "play" => vec![Command::Release],
        "interrupt" if !session.runs() => is_so(state, "nothing runs"),
        "interrupt" => vec![Command::Interrupt { turn: session.snapshot.turn }],
        "model" if rest.is_empty() => {
            let model = prose_line(&session.snapshot.settings.model).into_owned();
            state.tell(Tone::Plain, format!("model: {model}; /model PROVIDER/NAME gives it another"));
            vec![]
        }
        "model" if rest == session.snapshot.settings.model => {
            is_so(state, format!("{} is its model", prose_line(rest)))
        }
        "model" => vec![Command::Model { name: rest.to_owned() }],
        "debug" => vec![Command::Debug { enabled: !session.snapshot.is_debug_enabled }],
        "clear" => {
            session.told.transcript.clear();
            vec![]
        }
        "rename" if rest.is_empty() => {
            state.tell(Tone::Warning, "/rename NAME");
            vec![]
        }
        "rename" => vec![Command::Rename { name: rest.to_owned() }],
        "export" => {
            let named = |character: char| if character.is_alphanumeric() { character } else { '-' };
            let name: String = session.snapshot.settings.name.chars().map(named).collect();
            let path = if rest.is_empty() { format!("{name}.md") } else { rest.to_owned() };
            vec![Command::Export { path: PathBuf::from(path) }]
        }
        "close" => {
            let mut commands = vec![Command::Close { id: session.id.clone() }];
            session.closed = true;
            commands.extend(leave(state, false));
            commands
        }
        "quit" | "exit" => act(state, Action::Quit),
        other => {
            session.prompt.set(&format!("/{text}"));
            state.tell(Tone::Warning, format!("there is no /{other}: /help has them all"));
            vec![]
        }
    }
}

/// What was wanted is so already.
fn is_so(state: &mut State, text: impl Into<String>) -> Vec<Command> {
    state.tell(Tone::Plain, text);
    vec![]
}
