//! What the keys of the table do, and what entering and leaving a session does.

use holdpoint_common::SessionId;

use super::super::keymap::Action;
use super::super::message::Command;
use super::super::session::PAST;
use super::super::state::{Opening, Overlay, State};
use super::super::style::Tone;

/// Does what a key of the table means.
pub(super) fn act(state: &mut State, action: Action) -> Vec<Command> {
    // What was asked before something ends is asked no longer.
    if matches!(state.overlay, Some(Overlay::Leave { .. } | Overlay::Delete { .. })) {
        state.overlay = None;
    }
    match action {
        Action::Hold => match &state.session {
            Some(session) if !session.closed => {
                vec![Command::ToggleHold { shown: session.snapshot.hold.shown() }]
            }
            _ => vec![],
        },
        Action::Steps => {
            if let Some(session) = &mut state.session {
                session.steps = !session.steps;
                let what = if session.steps { "steps are shown" } else { "steps are hidden" };
                state.tell(Tone::Plain, what);
            }
            vec![]
        }
        Action::Open => {
            state.session.iter_mut().for_each(|session| session.layouts.folds.turn());
            vec![]
        }
        Action::Earlier | Action::Later => {
            let steps = state.keymap.key(Action::Steps);
            let Some(session) = &mut state.session else { return vec![] };
            if session.steps {
                session.choose(action == Action::Earlier);
            } else {
                state.tell(Tone::Plain, format!("tool calls are hidden ({steps})"));
            }
            vec![]
        }
        Action::Detach => leave(state, true),
        Action::Quit => ask_to_leave(state, true),
        Action::Sessions => {
            state.begun.keep(state.hub.close_panel());
            ask_to_leave(state, false)
        }
        Action::Inbox => {
            state.begun.keep(state.hub.close_panel());
            state.hub.show_inbox();
            leave(state, false)
        }
        Action::New => {
            let mut commands = forget(state);
            commands.extend(open_new(state));
            commands
        }
        Action::Editor => {
            let text = state.session.as_ref().map(|session| session.prompt.text());
            if text.is_some() {
                state.hide_asks();
            }
            text.map(|text| Command::Edit { text }).into_iter().collect()
        }
        Action::Redraw => vec![Command::Redraw],
        Action::Suspend => {
            state.hide_asks();
            vec![Command::Suspend]
        }
        Action::Help => {
            state.hide_asks();
            state.overlay = Some(Overlay::Help { scroll: 0 });
            vec![]
        }
    }
}

/// Leaves the session, unless it runs: then it is asked what becomes of it.
fn ask_to_leave(state: &mut State, quit: bool) -> Vec<Command> {
    if state.session.as_ref().is_some_and(|session| session.runs() && !session.closed) {
        state.hide_asks();
        state.overlay = Some(Overlay::Leave { quit });
        return vec![];
    }
    leave(state, quit)
}

/// Leaves the session: for the hub, or for good.
pub(super) fn leave(state: &mut State, quit: bool) -> Vec<Command> {
    let mut commands = forget(state);
    let left = state.session.as_ref().filter(|session| quit && commands.is_empty() && !session.closed);
    state.left = left.map(|session| session.id.clone());
    state.put_away();
    state.opening = None;
    state.leaving = None;
    commands.push(if quit { Command::Quit } else { Command::Detach });
    commands
}

/// A session that was opened here and left untouched is nothing to come back to.
fn forget(state: &mut State) -> Vec<Command> {
    let untouched = state.session.as_ref().filter(|session| session.is_untouched() && !session.closed);
    untouched.map(|session| Command::Forget { id: session.id.clone() }).into_iter().collect()
}

pub(super) fn open(state: &mut State, id: SessionId) -> Vec<Command> {
    let attachment = about_to_open(state, false);
    vec![Command::Open { id, attachment, limit: PAST }]
}

pub(super) fn open_new(state: &mut State) -> Vec<Command> {
    let attachment = about_to_open(state, true);
    vec![Command::New { attachment, limit: PAST }]
}

/// Another session is about to be shown, by the attachment of this number.
fn about_to_open(state: &mut State, fresh: bool) -> u64 {
    state.attachments += 1;
    let back = state.put_away();
    state.opening = Some(Opening { attachment: state.attachments, fresh, back });
    state.attachments
}
