//! The user's terminal: its modes, its input, and the screen on it.
//!
//! | file | contents |
//! | --- | --- |
//! | `modes` | the modes, which are restored however the program ends |
//! | `decode`, `reader` | the decoder of the input, and the thread that reads it |
//! | `keys` | the terminal of a program that prints lines |
//! | `screen` | the terminal as a full screen |

mod decode;
mod keys;
mod modes;
mod reader;
mod screen;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use holdpoint_session::form;

pub(crate) use self::decode::Input;
pub(crate) use self::keys::{KeyTerminal, Keys};
pub(crate) use self::reader::Reader;
pub(crate) use self::screen::{Frames, ScreenTerminal};

/// Converts a key event to a key of a form.
pub(crate) fn form_key(key: &KeyEvent) -> form::Key {
    let shift_at_most = key.modifiers.difference(KeyModifiers::SHIFT).is_empty();
    match key.code {
        KeyCode::Esc => form::Key::Esc,
        KeyCode::Char(character) if shift_at_most => form::Key::Char(character),
        KeyCode::Char(character) if key.modifiers == KeyModifiers::CONTROL => {
            form::Key::Ctrl(character)
        }
        KeyCode::BackTab if shift_at_most => form::Key::BackTab,
        _ if !key.modifiers.is_empty() => form::Key::Other,
        KeyCode::Enter => form::Key::Enter,
        KeyCode::Tab => form::Key::Tab,
        KeyCode::Left => form::Key::Left,
        KeyCode::Right => form::Key::Right,
        KeyCode::Home => form::Key::Home,
        KeyCode::End => form::Key::End,
        KeyCode::Backspace => form::Key::Backspace,
        KeyCode::Delete => form::Key::Delete,
        _ => form::Key::Other,
    }
}
