//! Keys of a session, for its ask or else for its prompt.

use std::time::Instant;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_common::SessionId;
use holdpoint_session::form::{Key, Pressed};

use super::super::layout::Scroll;
use super::super::message::Command;
use super::super::session::{ReceivedEvents, Session};
use super::super::state::{DOUBLE_PRESS, State};
use super::{leave_for_hub, quit, slash};
use crate::terminal::form_key;

/// The factor by which each fetch of older facts raises the limit.
const LIMIT_FACTOR: usize = 5;

pub(super) fn press(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    let now = state.now.instant;
    let Some(session) = &mut state.session else { return vec![] };
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    // An ask in full screen takes all keys.
    if session.open_ask.as_ref().is_some_and(|view| view.large) {
        return answer(state, key, now);
    }
    let page = session.drawn_size.1.saturating_sub(2).max(1).cast_signed();
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
        state.delay_asks();
        return if wants_older { fetch_older(state) } else { vec![] };
    }
    if session.open_ask.is_some() {
        return answer(state, key, now);
    }
    if session.after_ask.swallows(form_key(key), now) {
        return vec![];
    }
    let chosen = session.layouts.calls.chosen().is_some();
    match key.code {
        KeyCode::Enter if chosen && key.modifiers.is_empty() => {
            session.layouts.calls.toggle();
            return vec![];
        }
        // Any other key is for the prompt.
        _ => session.choose_none(),
    }
    match key.code {
        KeyCode::Esc if session.can_be_interrupted() => return interrupt(session),
        KeyCode::Esc if chosen => session.scroll = Scroll::End,
        KeyCode::Esc if !session.prompt.is_empty() => session.prompt.move_to_history(),
        KeyCode::Esc => return leave_for_hub(state),
        KeyCode::Char('c') if control && session.can_be_interrupted() => return interrupt(session),
        KeyCode::Char('c') if control => {
            if session.leaving.is_some_and(|at| now.saturating_duration_since(at) <= DOUBLE_PRESS) {
                return quit(state);
            }
            session.prompt.move_to_history();
            session.leaving = Some(now);
            state.show_leave_hint();
        }
        KeyCode::Char('d') if control && session.prompt.is_empty() => return leave_for_hub(state),
        KeyCode::Enter if key.modifiers.is_empty() => return send(state),
        KeyCode::Tab if let Some(completion) = slash::completion(&session.prompt.text()) => {
            session.prompt.set(&completion)
        }
        _ => _ = session.prompt.press(key),
    }
    vec![]
}

/// Interrupts the turn that is shown, and no later one.
fn interrupt(session: &Session) -> Vec<Command> {
    vec![Command::Interrupt { turn: session.snapshot.turn }]
}

/// Fetches more of the past after scrolling to the first line. The longer past replaces the shown
/// one.
fn fetch_older(state: &mut State) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    state.attachments += 1;
    session.attachment = state.attachments;
    session.limit *= LIMIT_FACTOR;
    session.pending = Some(ReceivedEvents::new(state.process.pid));
    let (id, attachment, limit) = (session.id.clone(), session.attachment, session.limit);
    vec![Command::Open { id, attachment, limit }]
}

/// Opens the closed session that is shown, at the user's request.
fn reopen(state: &mut State) -> Vec<Command> {
    show_again(state, |id, attachment, limit| Command::Open { id, attachment, limit })
}

/// Shows a closed session that another client has opened again. If it was closed since, it stays
/// closed.
pub(super) fn show_reopened(state: &mut State) -> Vec<Command> {
    show_again(state, |id, attachment, limit| Command::ShowLive { id, attachment, limit })
}

fn show_again(
    state: &mut State,
    command: impl FnOnce(SessionId, u64, usize) -> Command,
) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    state.attachments += 1;
    session.attachment = state.attachments;
    session.pending = Some(ReceivedEvents::new(state.process.pid));
    // Opened by id, because the current handle belongs to the closed session.
    vec![Command::Detach, command(session.id.clone(), session.attachment, session.limit)]
}

/// Handles a key while an ask is open: no key reaches the prompt.
fn answer(state: &mut State, key: &KeyEvent, now: Instant) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    let turn = session.snapshot.turn;
    let Some(view) = &mut session.open_ask else { return vec![] };
    let ask = view.form.ask().id.clone();
    match view.press(key, now) {
        Pressed::Nothing | Pressed::Typed | Pressed::ModeChanged | Pressed::Moved => vec![],
        Pressed::Answer(answer) => vec![Command::Answer { ask, answer }],
        Pressed::Interrupt => vec![Command::Interrupt { turn }],
    }
}

/// Pastes into the open ask, else into the prompt.
pub(super) fn paste(session: &mut Session, text: &str, now: Instant) {
    match &mut session.open_ask {
        Some(view) => view.paste(text, now),
        None if session.after_ask.swallows(Key::Other, now) => {}
        None => session.prompt.paste(text),
    }
}

/// Handles Enter: carries out a typed command or sends the prompt.
fn send(state: &mut State) -> Vec<Command> {
    let Some(session) = &mut state.session else { return vec![] };
    let text = session.prompt.text();
    let command = text.strip_prefix('/').filter(|command| slash::is_command(command));
    if session.closed && !command.is_some_and(slash::concerns_only_screen) {
        // The input stays, and the next Enter sends it.
        return reopen(state);
    }
    if text.trim().is_empty() {
        return vec![];
    }
    session.prompt.clear();
    session.scroll = Scroll::End;
    // A notice about earlier input has been read by now.
    state.notice = None;
    match command {
        Some(command) => slash::carry_out(state, command),
        None => {
            session.count_sent();
            let id = session.id.clone();
            // An earlier refusal of the same text no longer counts.
            state.forget_refused(&id, &text);
            vec![Command::Prompt { text }]
        }
    }
}
