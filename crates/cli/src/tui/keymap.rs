//! The table of all keys that can be remapped. The help shows it, and the configuration changes it.

use std::collections::BTreeMap;
use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// An action that can be bound to keys, in every view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Hold,
    Steps,
    Open,
    Earlier,
    Later,
    Detach,
    Sessions,
    Inbox,
    New,
    Editor,
    Redraw,
    Suspend,
    Quit,
    Help,
}

/// One row of the table.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) action: Action,
    /// The name in the configuration.
    pub(crate) name: &'static str,
    pub(crate) chords: Vec<Chord>,
    pub(crate) description: &'static str,
}

const TABLE: [(Action, &str, &[&str], &str); 14] = [
    (Action::Hold, "hold", &["ctrl+x p"], "hold at the next boundary, or release"),
    (Action::Steps, "steps", &["ctrl+v", "ctrl+x v"], "show or hide tool calls and thoughts"),
    (
        Action::Open,
        "open",
        &["ctrl+o", "ctrl+x o"],
        "open or fold all tool calls, or the chosen one",
    ),
    (
        Action::Earlier,
        "earlier",
        &["ctrl+up", "alt+up"],
        "choose the previous tool call; Enter opens it",
    ),
    (Action::Later, "later", &["ctrl+down", "alt+down"], "choose the next tool call"),
    (Action::Detach, "detach", &["ctrl+x d"], "detach; the session keeps running"),
    (Action::Sessions, "sessions", &["ctrl+x s"], "show all sessions"),
    (Action::Inbox, "inbox", &["ctrl+x i"], "show the asks of all sessions"),
    (Action::New, "new", &["ctrl+x n"], "open a new session"),
    (Action::Editor, "editor", &["ctrl+x e"], "write the prompt in $EDITOR"),
    (Action::Redraw, "redraw", &["ctrl+l"], "redraw the screen"),
    (Action::Suspend, "suspend", &["ctrl+z"], "suspend to the shell; `fg` returns"),
    (Action::Quit, "quit", &["ctrl+x q"], "quit; sessions keep running"),
    (Action::Help, "help", &["ctrl+x ?"], "show this help"),
];

/// The keys that can't be remapped, for the help.
pub(crate) const FIXED: [(&str, &str); 15] = [
    ("Enter", "send the prompt; continue a waiting tool"),
    ("Shift+Enter, Ctrl+J", "insert a new line; also Alt+Enter"),
    ("Y / N", "approve / deny"),
    ("R", "deny and say why"),
    ("A A / D D", "approve / deny always in this session"),
    ("1-9, W, S", "a question: choose, type an answer, skip"),
    ("Tab, Shift+Tab", "several questions: next, previous"),
    ("Tab", "an ask: toggle full screen; the list: answer here"),
    ("Ctrl+D", "empty prompt: all sessions; the list: close, delete"),
    ("Esc", "interrupt; else clear the input; else back"),
    ("Ctrl+C", "like Esc while a turn runs; else clear; twice: leave"),
    ("↑ ↓", "earlier prompts; scroll an ask"),
    ("PgUp PgDn", "scroll"),
    ("Ctrl+Home/End", "scroll to the first line, to the last line"),
    ("/", "list commands while typing; Tab completes"),
];

/// Fixed keys and editor keys that the configuration can't bind to an action.
const RESERVED_KEYS: [&str; 3] = ["ctrl+c", "ctrl+d", "ctrl+j"];

/// One key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Press {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// One key, or two in sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chord {
    first: Press,
    second: Option<Press>,
}

/// The meaning of a key, given the key before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyMeaning {
    Action(Action),
    /// The first key of a two-key chord.
    Prefix(Press),
    Nothing,
}

/// The key bindings in force.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    bindings: Vec<Binding>,
}

impl Default for Keymap {
    fn default() -> Self {
        let chords = |keys: &[&str]| keys.iter().filter_map(|keys| Chord::parse(keys)).collect();
        let binding = |(action, name, keys, description)| Binding {
            action,
            name,
            chords: chords(keys),
            description,
        };
        Self { bindings: TABLE.into_iter().map(binding).collect() }
    }
}

impl Keymap {
    /// The default bindings, overridden by the configuration's.
    ///
    /// # Errors
    /// Returns a message for an unknown action, an invalid or reserved key, or two bindings that
    /// conflict.
    pub(crate) fn with_overrides(keys: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut map = Self::default();
        for (name, keys) in keys {
            let chord = Chord::parse(keys)
                .ok_or_else(|| format!("tui.keys.{name}: `{keys}` is not a valid key"))?;
            if RESERVED_KEYS.into_iter().any(|reserved| Press::parse(reserved) == Some(chord.first))
            {
                return Err(format!("tui.keys.{name}: {} is reserved", chord.first));
            }
            let names =
                || map.bindings.iter().map(|binding| binding.name).collect::<Vec<_>>().join(", ");
            if !map.bindings.iter().any(|binding| binding.name == name) {
                return Err(format!(
                    "tui.keys.{name}: unknown action; the actions are {}",
                    names()
                ));
            }
            for binding in &mut map.bindings {
                if binding.name == name {
                    binding.chords = vec![chord];
                }
            }
        }
        map.check().map(|()| map)
    }

    /// Checks that no chord hides another. Two chords that differ only by Ctrl on the second key
    /// conflict, because [`find`](Self::find) also accepts the plain one with Ctrl held down.
    fn check(&self) -> Result<(), String> {
        let all: Vec<_> = self
            .bindings
            .iter()
            .flat_map(|b| b.chords.iter().map(move |chord| (b.name, chord)))
            .collect();
        for (at, (name, chord)) in all.iter().enumerate() {
            for (other, taken) in &all[..at] {
                let is_hidden = chord.first == taken.first
                    && match (chord.second, taken.second) {
                        (Some(second), Some(other)) => {
                            second.without_ctrl() == other.without_ctrl()
                        }
                        _ => true,
                    };
                if is_hidden {
                    return Err(format!(
                        "tui.keys: {name} ({chord}) conflicts with {other} ({taken})"
                    ));
                }
            }
        }
        Ok(())
    }

    /// The meaning of a key after `prefix`, if one was pressed.
    pub(crate) fn find(&self, prefix: Option<Press>, key: &KeyEvent) -> KeyMeaning {
        let press = Press::from_event(key);
        for binding in &self.bindings {
            for chord in &binding.chords {
                match (prefix, chord.second) {
                    (None, None) if chord.first == press => {
                        return KeyMeaning::Action(binding.action);
                    }
                    (None, Some(_)) if chord.first == press => return KeyMeaning::Prefix(press),
                    // With or without Ctrl, because the user may still hold it down.
                    (Some(first), Some(second))
                        if chord.first == first
                            && (second == press || second == press.without_ctrl()) =>
                    {
                        return KeyMeaning::Action(binding.action);
                    }
                    _ => {}
                }
            }
        }
        KeyMeaning::Nothing
    }

    /// The first chord of an action, as the configuration writes it.
    pub(crate) fn key(&self, action: Action) -> String {
        let binding = self.bindings.iter().find(|binding| binding.action == action);
        binding
            .and_then(|binding| binding.chords.first())
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// The key that triggers `action` after `prefix`, if one does.
    pub(crate) fn key_after_prefix(&self, prefix: Press, action: Action) -> Option<String> {
        let binding = self.bindings.iter().find(|binding| binding.action == action)?;
        let chord =
            binding.chords.iter().find(|chord| chord.first == prefix && chord.second.is_some())?;
        chord.second.map(|second| second.to_string())
    }

    pub(crate) fn bindings(&self) -> &[Binding] {
        &self.bindings
    }
}

impl Press {
    fn from_event(key: &KeyEvent) -> Self {
        // The character already includes Shift.
        let ignored = if matches!(key.code, KeyCode::Char(_)) {
            KeyModifiers::SHIFT
        } else {
            KeyModifiers::NONE
        };
        Self { code: key.code, modifiers: key.modifiers.difference(ignored) }
    }

    fn without_ctrl(self) -> Self {
        Self { modifiers: self.modifiers.difference(KeyModifiers::CONTROL), ..self }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut modifiers = KeyModifiers::NONE;
        let mut rest = text;
        while let Some((modifier, key)) = rest.split_once('+').filter(|(_, key)| !key.is_empty()) {
            modifiers |= match modifier {
                "ctrl" => KeyModifiers::CONTROL,
                "alt" => KeyModifiers::ALT,
                _ => return None,
            };
            rest = key;
        }
        let mut characters = rest.chars();
        let code = match (characters.next(), characters.next()) {
            (Some(character), None) => KeyCode::Char(character),
            _ if rest == "up" => KeyCode::Up,
            _ if rest == "down" => KeyCode::Down,
            _ => KeyCode::F(
                rest.strip_prefix('f')?.parse().ok().filter(|number| (1..=12).contains(number))?,
            ),
        };
        // A lone character is typed, and a lone arrow moves the cursor.
        let typed = modifiers.is_empty() && !matches!(code, KeyCode::F(_));
        (!typed).then_some(Self { code, modifiers })
    }
}

impl Chord {
    fn parse(text: &str) -> Option<Self> {
        let mut keys = text.split_whitespace();
        let first = Press::parse(keys.next()?)?;
        let second = match keys.next() {
            Some(key) if key.chars().count() == 1 => Some(Press {
                code: KeyCode::Char(key.chars().next()?),
                modifiers: KeyModifiers::NONE,
            }),
            Some(key) => Some(Press::parse(key)?),
            None => None,
        };
        keys.next().is_none().then_some(Self { first, second })
    }
}

impl fmt::Display for Press {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.modifiers.contains(KeyModifiers::CONTROL) {
            f.write_str("ctrl+")?;
        }
        if self.modifiers.contains(KeyModifiers::ALT) {
            f.write_str("alt+")?;
        }
        match self.code {
            KeyCode::Char(character) => write!(f, "{character}"),
            code => write!(f, "{}", code.to_string().to_lowercase()),
        }
    }
}

impl fmt::Display for Chord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.second {
            Some(second) => write!(f, "{} {second}", self.first),
            None => self.first.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(character: char, modifiers: KeyModifiers) -> KeyEvent {
        KeyEvent::new(KeyCode::Char(character), modifiers)
    }

    #[test]
    fn default_bindings_do_not_conflict_and_print_as_written() {
        let map = Keymap::default();
        map.check().unwrap();
        for (binding, (_, _, keys, _)) in map.bindings().iter().zip(TABLE) {
            let printed: Vec<_> = binding.chords.iter().map(ToString::to_string).collect();
            assert_eq!(printed, keys, "{}", binding.name);
        }
    }

    #[test]
    fn m_d7_ctrl_x_awaits_a_key() {
        let map = Keymap::default();
        let KeyMeaning::Prefix(prefix) = map.find(None, &press('x', KeyModifiers::CONTROL)) else {
            panic!("no prefix")
        };
        for modifiers in [KeyModifiers::NONE, KeyModifiers::CONTROL] {
            assert_eq!(
                map.find(Some(prefix), &press('p', modifiers)),
                KeyMeaning::Action(Action::Hold)
            );
        }
        assert_eq!(map.find(Some(prefix), &press('z', KeyModifiers::NONE)), KeyMeaning::Nothing);
        assert_eq!(map.find(None, &press('p', KeyModifiers::NONE)), KeyMeaning::Nothing);
    }

    #[test]
    fn keys_are_remapped_and_invalid_bindings_are_refused() {
        let with = |name: &str, keys: &str| {
            Keymap::with_overrides(&BTreeMap::from([(name.to_owned(), keys.to_owned())]))
        };
        let map = with("hold", "f8").unwrap();
        assert_eq!(map.key(Action::Hold), "f8");
        assert_eq!(
            map.find(None, &KeyEvent::new(KeyCode::F(8), KeyModifiers::NONE)),
            KeyMeaning::Action(Action::Hold)
        );
        assert!(with("hold", "p").unwrap_err().contains("not a valid key"));
        assert!(with("hold", "shift+p").unwrap_err().contains("not a valid key"));
        assert!(with("held", "f8").unwrap_err().contains("the actions are hold, steps"));
        assert!(with("hold", "ctrl+x").unwrap_err().contains("conflicts with"));
        assert!(with("hold", "ctrl+v").unwrap_err().contains("conflicts with"));
        assert!(with("quit", "ctrl+x ctrl+d").unwrap_err().contains("(ctrl+x d)"));
        for reserved in RESERVED_KEYS {
            for keys in [reserved.to_owned(), format!("{reserved} p")] {
                assert!(with("quit", &keys).unwrap_err().contains("is reserved"), "{keys}");
            }
        }
    }
}
