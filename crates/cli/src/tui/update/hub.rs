//! Keys of the hub.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_session::form::{Key, Pressed};
use unicode_segmentation::UnicodeSegmentation;

use super::super::hub::Row;
use super::super::message::Command;
use super::super::state::{DOUBLE_PRESS, Overlay, State};
use super::{is_ctrl_c, open, open_new, quit};
use crate::terminal::form_key;

pub(super) fn press(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    if state.hub.panel_ask.is_some() {
        return answer(state, key);
    }
    if state.hub.followed_session.is_some() {
        if key.code == KeyCode::Tab || form_key(key).interrupts() {
            state.hub.close_panel();
        }
        return vec![];
    }
    if state.hub.after_ask.swallows(form_key(key), state.now.instant) {
        return vec![];
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if is_ctrl_c(key) {
        let is_second_press = state
            .leaving
            .is_some_and(|at| state.now.instant.saturating_duration_since(at) <= DOUBLE_PRESS);
        if is_second_press {
            return quit(state);
        }
        state.hub.filter.clear();
        state.leaving = Some(state.now.instant);
        state.show_leave_hint();
        return vec![];
    }
    match key.code {
        KeyCode::Up => state.hub.move_by(-1),
        KeyCode::Down => state.hub.move_by(1),
        KeyCode::PageUp => state.hub.move_by(-10),
        KeyCode::PageDown => state.hub.move_by(10),
        KeyCode::Home => state.hub.cursor = 0,
        KeyCode::End => state.hub.move_by(isize::MAX),
        KeyCode::Enter => return choose(state),
        KeyCode::Tab => answer_here(state),
        KeyCode::Delete => confirm_delete(state),
        KeyCode::Char('d') if control => confirm_delete(state),
        KeyCode::Esc => state.hub.filter.clear(),
        KeyCode::Backspace => {
            let filter = &mut state.hub.filter;
            let last = filter.graphemes(true).next_back().map_or(0, str::len);
            filter.truncate(filter.len() - last);
        }
        KeyCode::Char(character) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
            state.hub.filter.push(character);
            state.hub.cursor = 0;
        }
        _ => {}
    }
    vec![]
}

/// Opens the row under the cursor.
fn choose(state: &mut State) -> Vec<Command> {
    match state.hub.row() {
        Some(Row::Waiting(id) | Row::Resume(id) | Row::Session(id)) => open(state, id),
        Some(Row::New) => open_new(state),
        Some(Row::Quit) => quit(state),
        None => vec![],
    }
}

/// Shows the ask of the session under the cursor in the panel, which then takes the keys.
fn answer_here(state: &mut State) {
    let row = state.hub.row();
    let ask = row
        .as_ref()
        .and_then(Row::session)
        .and_then(|id| state.hub.get(id))
        .and_then(|s| s.waits_for.clone());
    state.hub.panel_ask = ask.map(|ask| state.started_forms.view(&ask, state.now.instant));
}

fn answer(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    let now = state.now.instant;
    let meant_to_leave = form_key(key).interrupts() && state.hub.next_ask_just_appeared(now);
    let Some(view) = &mut state.hub.panel_ask else { return vec![] };
    if meant_to_leave || key.code == KeyCode::Tab && !view.has_several_questions() {
        state.started_forms.keep(state.hub.close_panel());
        return vec![];
    }
    let ask = view.form.ask().id.clone();
    match view.press(key, now) {
        Pressed::Nothing | Pressed::Typed | Pressed::ModeChanged | Pressed::Moved => vec![],
        Pressed::Answer(answer) => vec![Command::Answer { ask, answer }],
        Pressed::Interrupt => vec![Command::InterruptOther { ask }],
    }
}

/// Pastes into the answer in the panel, else into the filter.
pub(super) fn paste(state: &mut State, text: &str) {
    match &mut state.hub.panel_ask {
        Some(view) => view.paste(text, state.now.instant),
        None if state.hub.followed_session.is_some() => {}
        None if state.hub.after_ask.swallows(Key::Other, state.now.instant) => {}
        None => {
            state.hub.filter.extend(text.chars().filter(|character| !character.is_control()));
            state.hub.cursor = 0;
        }
    }
}

fn confirm_delete(state: &mut State) {
    let row = state.hub.row();
    if let Some(Row::Session(id)) = &row
        && let Some(session) = state.hub.get(id)
    {
        let name = session.name.clone();
        state.overlay = Some(Overlay::Delete { id: id.clone(), name, live: session.live });
    }
}
