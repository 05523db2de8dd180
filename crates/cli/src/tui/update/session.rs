//! Keys of a session: for what it asks, else for the prompt.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_common::SessionId;
use holdpoint_session::form::{Key, Pressed};

use super::super::layout::Scroll;
use super::super::message::Command;
use super::super::session::{Session, Told};
use super::super::state::{AGAIN, State};
use super::{leave, slash};
use crate::terminal::form_key;

/// Older facts that are asked for, each time as many times more.
const FURTHER: usize = 5;

pub(super) fn press(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    let now = state.now.instant;
    let Some(session) = &mut state.session else { return vec![] };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    // An ask that takes the whole screen is what is read.
    if session.asking.as_ref().is_some_and(|view| view.large) {
        return answer(state, key, now);
    }
    let page = session.shown.1.saturating_sub(2).max(1).cast_signed();
    let wants_older = match key.code {
        KeyCode::PageUp => Some(session.scroll(-page)),
        KeyCode::PageDown => Some(session.scroll(page)),
        KeyCode::Home if control => Some(session.scroll_to_first()),
        KeyCode::End if control => {
            session.scroll = Scroll::End;
            Some(false)
        }
        _ => None,
    };
    if let Some(wants_older) = wants_older {
        state.put_off_asks();
        return if wants_older { fetch_older(state) } else { vec![] };
    }
    if session.asking.is_some() {
        return answer(state, key, now);
    }
    if session.after.swallows(form_key(key), now) {
        return vec![];
    }
    let chosen = session.layouts.folds.chosen().is_some();
    match key.code {
        KeyCode::Enter if chosen && key.modifiers.is_empty() => {
            session.layouts.folds.turn();
            return vec![];
        }
        // What is typed, is typed into the prompt.
        _ => session.choose_none(),
    }
    match key.code {
        KeyCode::Esc if session.runs() => return interrupt(session),
        KeyCode::Esc if chosen => session.scroll = Scroll::End,
        KeyCode::Esc if !session.prompt.is_empty() => session.prompt.put_away(),
        KeyCode::Esc => return leave(state, false),
        KeyCode::Char('c') if control && session.runs() => return interrupt(session),
        KeyCode::Char('c') if control => {
            if session.leaving.is_some_and(|at| now.saturating_duration_since(at) <= AGAIN) {
                return leave(state, true);
            }
            session.prompt.put_away();
            session.leaving = Some(now);
            state.tell_leaving();
        }
        KeyCode::Char('d') if control && session.prompt.is_empty() => return leave(state, false),
        KeyCode::Enter if key.modifiers.is_empty() => return send(state),
        KeyCode::Tab if let Some(completed) = slash::completed(&session.prompt.text()) => {
            session.prompt.set(&completed)
        }
        _ => _ = session.prompt.press(key),
    }
    vec![]
}

/// The turn that is shown, and no later one.
fn interrupt(session: &Session) -> Vec<Command> {
    vec![Command::Interrupt { turn: session.snapshot.turn }]
}

/// The first line of what is here is shown: more of the past is fetched, and takes its place.
fn fetch_older(state: &mut State) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    state.attachments += 1;
    session.attachment = state.attachments;
    session.limit *= FURTHER;
    session.pending = Some(Told::new(state.me.pid));
    let (id, attachment, limit) = (session.id.clone(), session.attachment, session.limit);
    vec![Command::Open { id, attachment, limit }]
}

/// Opens the closed session that is shown, and shows it again: the user has asked for it.
fn reopen(state: &mut State) -> Vec<Command> {
    show_again(state, |id, attachment, limit| Command::Open { id, attachment, limit })
}

/// Shows the closed session again that another client has opened. If it was closed again since, it stays closed.
pub(super) fn show_reopened(state: &mut State) -> Vec<Command> {
    show_again(state, |id, attachment, limit| Command::Reach { id, attachment, limit })
}

fn show_again(state: &mut State, command: impl FnOnce(SessionId, u64, usize) -> Command) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    state.attachments += 1;
    session.attachment = state.attachments;
    session.pending = Some(Told::new(state.me.pid));
    // By its id: the handle that there is belongs to the closed session.
    vec![Command::Detach, command(session.id.clone(), session.attachment, session.limit)]
}

/// A key while something is asked: none of it reaches the prompt.
fn answer(state: &mut State, key: &KeyEvent, now: Instant) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    let turn = session.snapshot.turn;
    let Some(view) = &mut session.asking else { return vec![] };
    let ask = view.form.ask().id.clone();
    match view.press(key, now) {
        Pressed::Nothing | Pressed::Typed | Pressed::Turned | Pressed::Moved => vec![],
        Pressed::Answer(answer) => vec![Command::Answer { ask, answer }],
        Pressed::Interrupt => vec![Command::Interrupt { turn }],
    }
}

/// Pasted text: words for what is asked, else for the prompt.
pub(super) fn paste(session: &mut Session, text: &str, now: Instant) {
    match &mut session.asking {
        Some(view) => view.paste(text, now),
        None if session.after.swallows(Key::Other, now) => {}
        None => session.prompt.paste(text),
    }
}

/// Enter: what is typed is a command, or a prompt.
fn send(state: &mut State) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    let text = session.prompt.text();
    let command = text.strip_prefix('/').filter(|command| slash::is_command(command));
    if session.closed && !command.is_some_and(slash::is_of_screen) {
        // What is typed stays, and is sent by the next Enter.
        return reopen(state);
    }
    if text.trim().is_empty() {
        return vec![];
    }
    session.prompt.clear();
    session.scroll = Scroll::End;
    // What was told of what was sent before is read by now.
    state.notice = None;
    match command {
        Some(command) => slash::carry_out(state, command),
        None => {
            session.give();
            let id = session.id.clone();
            // What becomes of it now counts, not what became of the same text before.
            state.forget_refused(&id, &text);
            vec![Command::Prompt { text }]
        }
    }
}
