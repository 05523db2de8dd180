//! Keys of the overlays: the help and the confirmations.

use crossterm::event::{KeyCode, KeyEvent};
use holdpoint_session::form::Guard;

use super::super::message::Command;
use super::super::state::{Overlay, State};
use super::{is_ctrl_c, leave, quit};

/// Handles a key in an overlay.
pub(super) fn press(state: &mut State, overlay: Overlay, key: &KeyEvent) -> Vec<Command> {
    let is_cancel = is_ctrl_c(key) || key.code == KeyCode::Esc;
    match overlay {
        Overlay::Help { .. }
            if is_cancel || matches!(key.code, KeyCode::Char('q') | KeyCode::Enter) =>
        {
            vec![]
        }
        Overlay::Help { scroll } => {
            let scroll = match key.code {
                KeyCode::Up => scroll.saturating_sub(1),
                KeyCode::Down => scroll + 1,
                KeyCode::PageUp => scroll.saturating_sub(10),
                KeyCode::PageDown => scroll + 10,
                _ => scroll,
            };
            state.overlay = Some(Overlay::Help { scroll });
            vec![]
        }
        Overlay::Leave { .. } | Overlay::Delete { .. } if is_cancel => vec![],
        Overlay::Stopped { guard } => {
            // The panel appears by itself, possibly while the user is typing.
            let is_guard_over = guard.is_over(state.now.instant);
            match key.code {
                KeyCode::Char('q' | 'Q') if is_guard_over => quit_stopped(state),
                _ if is_cancel => quit_stopped(state),
                KeyCode::Enter if is_guard_over => {
                    state.daemon = false;
                    vec![Command::StartDaemon]
                }
                _ => {
                    state.overlay = Some(Overlay::Stopped { guard: Guard::new(state.now.instant) });
                    vec![]
                }
            }
        }
        Overlay::Leave { quits } => match (key.code, &mut state.session) {
            (KeyCode::Enter | KeyCode::Char('d' | 'D'), _) => leave(state, quits),
            (KeyCode::Char('c' | 'C'), Some(session)) => {
                // Leaving a closed session does not discard it or name it as detached.
                session.closed = true;
                let mut commands = vec![Command::Close { id: session.id.clone() }];
                commands.extend(leave(state, quits));
                commands
            }
            _ => {
                state.overlay = Some(Overlay::Leave { quits });
                vec![]
            }
        },
        Overlay::Delete { id, name, live } => match key.code {
            KeyCode::Char('y' | 'Y') if live => vec![Command::Close { id }],
            KeyCode::Char('y' | 'Y') => vec![Command::Delete { id }],
            KeyCode::Char('n' | 'N') => vec![],
            _ => {
                state.overlay = Some(Overlay::Delete { id, name, live });
                vec![]
            }
        },
    }
}

/// Quits without naming a session to return to, because its daemon was stopped.
fn quit_stopped(state: &mut State) -> Vec<Command> {
    let commands = quit(state);
    state.detached = None;
    commands
}
