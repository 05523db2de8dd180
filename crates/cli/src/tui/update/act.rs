//! The actions of the key table, and entering and leaving a session.

use holdpoint_common::SessionId;

use super::super::keymap::Action;
use super::super::message::Command;
use super::super::session::INITIAL_FACTS;
use super::super::state::{Opening, Overlay, State};
use crate::tone::Tone;

/// Carries out an action of the key table.
pub(super) fn act(state: &mut State, action: Action) -> Vec<Command> {
    // The action replaces an open confirmation.
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
                let text = if session.steps { "steps are shown" } else { "steps are hidden" };
                state.show_notice(Tone::Plain, text);
            }
            vec![]
        }
        Action::Open => {
            state.session.iter_mut().for_each(|session| session.layouts.calls.toggle());
            vec![]
        }
        Action::Earlier | Action::Later => {
            let steps = state.keymap.key(Action::Steps);
            let Some(session) = &mut state.session else { return vec![] };
            if session.steps {
                session.choose(action == Action::Earlier);
            } else {
                state
                    .show_notice(Tone::Plain, format!("tool calls are hidden; {steps} shows them"));
            }
            vec![]
        }
        Action::Detach => quit(state),
        Action::Quit => leave_or_confirm(state, true),
        Action::Sessions => {
            state.started_forms.keep(state.hub.close_panel());
            leave_or_confirm(state, false)
        }
        Action::Inbox => {
            state.started_forms.keep(state.hub.close_panel());
            state.hub.show_inbox();
            leave_for_hub(state)
        }
        Action::New => {
            let mut commands = discard_untouched(state);
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

/// Leaves the session, but asks first if it is running.
fn leave_or_confirm(state: &mut State, quits: bool) -> Vec<Command> {
    if state.session.as_ref().is_some_and(|session| session.can_be_interrupted() && !session.closed)
    {
        state.hide_asks();
        state.overlay = Some(Overlay::Leave { quits });
        return vec![];
    }
    leave(state, quits)
}

pub(super) fn leave_for_hub(state: &mut State) -> Vec<Command> {
    leave(state, false)
}

pub(super) fn quit(state: &mut State) -> Vec<Command> {
    leave(state, true)
}

/// Leaves the session for the hub, or quits.
pub(super) fn leave(state: &mut State, quits: bool) -> Vec<Command> {
    let mut commands = discard_untouched(state);
    let detached =
        state.session.as_ref().filter(|session| quits && commands.is_empty() && !session.closed);
    state.detached = detached.map(|session| session.id.clone());
    state.leave_session();
    state.opening = None;
    state.leaving = None;
    commands.push(if quits { Command::Quit } else { Command::Detach });
    commands
}

/// Discards a new session that is left untouched.
fn discard_untouched(state: &mut State) -> Vec<Command> {
    let untouched =
        state.session.as_ref().filter(|session| session.is_untouched() && !session.closed);
    untouched.map(|session| Command::DiscardUnused { id: session.id.clone() }).into_iter().collect()
}

pub(super) fn open(state: &mut State, id: SessionId) -> Vec<Command> {
    let attachment = prepare_opening(state, false);
    vec![Command::Open { id, attachment, limit: INITIAL_FACTS }]
}

pub(super) fn open_new(state: &mut State) -> Vec<Command> {
    let attachment = prepare_opening(state, true);
    vec![Command::New { attachment, limit: INITIAL_FACTS }]
}

/// Prepares for showing another session. Returns the number of its attachment.
fn prepare_opening(state: &mut State, fresh: bool) -> u64 {
    state.attachments += 1;
    let back = state.leave_session();
    state.opening = Some(Opening { attachment: state.attachments, fresh, back });
    state.attachments
}
