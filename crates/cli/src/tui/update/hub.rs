//! Keys of the hub.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::hub::Row;
use super::super::message::Command;
use super::super::state::{AGAIN, Overlay, State};
use super::{is_ctrl_c, leave, open, open_new, tell_unsent};
use crate::asking::Pressed;
use crate::terminal::take_back;

pub(super) fn press(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    if state.hub.asking.is_some() {
        return answer(state, key);
    }
    if !is_ctrl_c(key) && state.hub.bereft.takes(state.now.instant) {
        return vec![];
    }
    let control = key.modifiers.contains(KeyModifiers::CONTROL);
    if is_ctrl_c(key) {
        let again = state.leaving.is_some_and(|at| state.now.instant.saturating_duration_since(at) <= AGAIN);
        if again {
            return leave(state, true);
        }
        state.hub.filter.clear();
        state.leaving = Some(state.now.instant);
        state.tell_leaving();
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
        KeyCode::Delete => delete(state),
        KeyCode::Char('d') if control => delete(state),
        KeyCode::Esc => state.hub.filter.clear(),
        KeyCode::Backspace => _ = take_back(&mut state.hub.filter),
        KeyCode::Char(character) if !control && !key.modifiers.contains(KeyModifiers::ALT) => {
            state.hub.filter.push(character);
            state.hub.cursor = 0;
        }
        _ => {}
    }
    vec![]
}

/// Enter.
fn choose(state: &mut State) -> Vec<Command> {
    match state.hub.row() {
        Some(Row::Waiting(id) | Row::Resume(id) | Row::Session(id)) => open(state, id),
        Some(Row::New) => open_new(state),
        Some(Row::Quit) => leave(state, true),
        None => vec![],
    }
}

/// Takes keys as answers to what the session under the cursor asks.
fn answer_here(state: &mut State) {
    let row = state.hub.row();
    let asks = row.as_ref().and_then(Row::session).and_then(|id| state.hub.get(id)).and_then(|s| s.waits_for.clone());
    state.hub.asking = asks.map(|ask| state.begun.view(&ask, state.now.instant));
}

fn answer(state: &mut State, key: &KeyEvent) -> Vec<Command> {
    let now = state.now.instant;
    let Some(view) = &mut state.hub.asking else { return vec![] };
    if key.code == KeyCode::Tab {
        if view.over().is_some() {
            state.hub.bereft.begin(now);
        }
        state.begun.keep(state.hub.asking.take());
        return vec![];
    }
    let ask = view.asking.ask().id.clone();
    let over = view.over().map(str::to_owned);
    match view.press(key, now) {
        Pressed::Left => {
            state.hub.leave_words(&mut state.begun, now);
            tell_unsent(state, key, over);
            vec![]
        }
        Pressed::Nothing | Pressed::Typed | Pressed::Turned | Pressed::Next => vec![],
        Pressed::Answer(answer) => vec![Command::Answer { ask, answer }],
        Pressed::Interrupt => {
            state.begun.keep(state.hub.asking.take());
            vec![Command::InterruptOther { ask }]
        }
    }
}

/// Pasted text: words for what is answered from here, else for the filter.
pub(super) fn paste(state: &mut State, text: &str) {
    match &mut state.hub.asking {
        Some(view) => view.paste(text, state.now.instant),
        None if state.hub.bereft.takes(state.now.instant) => {}
        None => {
            state.hub.filter.extend(text.chars().filter(|character| !character.is_control()));
            state.hub.cursor = 0;
        }
    }
}

fn delete(state: &mut State) {
    let row = state.hub.row();
    if let Some(Row::Session(id)) = &row
        && let Some(session) = state.hub.get(id)
    {
        let name = session.name.clone();
        state.overlay = Some(Overlay::Delete { id: id.clone(), name, live: session.live });
    }
}
