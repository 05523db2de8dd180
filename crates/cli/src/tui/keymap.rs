//! Every key that can be remapped, in one table: what the help shows and the configuration changes.

use std::collections::BTreeMap;
use std::fmt;

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key does, wherever one is.
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

/// One line of the table.
#[derive(Debug, Clone)]
pub(crate) struct Binding {
    pub(crate) action: Action,
    /// What the configuration calls it.
    pub(crate) name: &'static str,
    pub(crate) chords: Vec<Chord>,
    pub(crate) does: &'static str,
}

const TABLE: [(Action, &str, &[&str], &str); 14] = [
    (Action::Hold, "hold", &["ctrl+x p"], "hold at the next boundary, or release"),
    (Action::Steps, "steps", &["ctrl+v", "ctrl+x v"], "show or hide tool calls and thoughts"),
    (Action::Open, "open", &["ctrl+o", "ctrl+x o"], "open or fold tool calls: all, or the chosen one"),
    (Action::Earlier, "earlier", &["ctrl+up", "alt+up"], "choose the tool call before; Enter opens it"),
    (Action::Later, "later", &["ctrl+down", "alt+down"], "choose the one after"),
    (Action::Detach, "detach", &["ctrl+x d"], "leave; the session goes on"),
    (Action::Sessions, "sessions", &["ctrl+x s"], "all sessions"),
    (Action::Inbox, "inbox", &["ctrl+x i"], "what waits for you, in any session"),
    (Action::New, "new", &["ctrl+x n"], "a new session"),
    (Action::Editor, "editor", &["ctrl+x e"], "write the prompt in $EDITOR"),
    (Action::Redraw, "redraw", &["ctrl+l"], "draw the screen anew"),
    (Action::Suspend, "suspend", &["ctrl+z"], "back to the shell; `fg` comes back"),
    (Action::Quit, "quit", &["ctrl+x q"], "leave; sessions go on"),
    (Action::Help, "help", &["ctrl+x ?"], "this help"),
];

/// What the keys mean that are always the same, for the help.
pub(crate) const FIXED: [(&str, &str); 14] = [
    ("Enter", "send the prompt; go on"),
    ("Shift+Enter, Ctrl+J", "a new line; also Alt+Enter"),
    ("Y / N", "approve / deny"),
    ("R / A A", "deny and say why / approve always in this session"),
    ("1-9, W, S", "a question: choose, your own words, skip"),
    ("Tab, Shift+Tab", "several questions: the next, the previous"),
    ("Tab", "an ask: full screen, or back; the list: answer there"),
    ("Ctrl+D", "nothing typed: all sessions; the list: close, delete"),
    ("Esc", "interrupt; else clear the input; else back"),
    ("Ctrl+C", "as Esc while it works; else clear; twice: leave"),
    ("↑ ↓", "prompts sent or cleared; lines of an ask"),
    ("PgUp PgDn", "scroll"),
    ("Ctrl+Home/End", "to the first line, to the last"),
    ("/", "commands: a list as they are typed, Tab completes"),
];

/// Keys of these and of the editor that a line of the table can't take.
const KEPT: [&str; 3] = ["ctrl+c", "ctrl+d", "ctrl+j"];

/// One key with its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Press {
    code: KeyCode,
    modifiers: KeyModifiers,
}

/// One key, or two in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chord {
    first: Press,
    second: Option<Press>,
}

/// What a key is, with what was pressed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Found {
    Action(Action),
    /// The first of two.
    Prefix(Press),
    Nothing,
}

/// The table as it holds.
#[derive(Debug, Clone)]
pub(crate) struct Keymap {
    bindings: Vec<Binding>,
}

impl Default for Keymap {
    fn default() -> Self {
        let chords = |keys: &[&str]| keys.iter().filter_map(|keys| Chord::parse(keys)).collect();
        let binding = |(action, name, keys, does)| Binding { action, name, chords: chords(keys), does };
        Self { bindings: TABLE.into_iter().map(binding).collect() }
    }
}

impl Keymap {
    /// The table with what the configuration says.
    ///
    /// # Errors
    /// A name or a key that means nothing, or a key that does something else, here or always: in words.
    pub(crate) fn with(keys: &BTreeMap<String, String>) -> Result<Self, String> {
        let mut map = Self::default();
        for (name, keys) in keys {
            let chord = Chord::parse(keys).ok_or_else(|| format!("tui.keys.{name}: `{keys}` is no key"))?;
            if KEPT.into_iter().any(|kept| Press::parse(kept) == Some(chord.first)) {
                return Err(format!("tui.keys.{name}: {} is always the same", chord.first));
            }
            let names = || map.bindings.iter().map(|binding| binding.name).collect::<Vec<_>>().join(", ");
            if !map.bindings.iter().any(|binding| binding.name == name) {
                return Err(format!("tui.keys.{name} means nothing; there are {}", names()));
            }
            for binding in &mut map.bindings {
                if binding.name == name {
                    binding.chords = vec![chord];
                }
            }
        }
        map.check().map(|()| map)
    }

    /// Whether no key hides another one.
    fn check(&self) -> Result<(), String> {
        let all: Vec<_> =
            self.bindings.iter().flat_map(|b| b.chords.iter().map(move |chord| (b.name, chord))).collect();
        for (at, (name, chord)) in all.iter().enumerate() {
            for (other, taken) in &all[..at] {
                let hidden = chord.first == taken.first && (chord.second.is_none() || taken.second.is_none());
                if chord == taken || hidden {
                    return Err(format!("tui.keys: {name} ({chord}) and {other} ({taken}) can't be told apart"));
                }
            }
        }
        Ok(())
    }

    /// What a key means after `prefix`, if one was pressed.
    pub(crate) fn find(&self, prefix: Option<Press>, key: &KeyEvent) -> Found {
        let press = Press::of(key);
        for binding in &self.bindings {
            for chord in &binding.chords {
                match (prefix, chord.second) {
                    (None, None) if chord.first == press => return Found::Action(binding.action),
                    (None, Some(_)) if chord.first == press => return Found::Prefix(press),
                    // With or without Ctrl: who holds it down a little longer means the same.
                    (Some(first), Some(second))
                        if chord.first == first && (second == press || second == press.plain()) =>
                    {
                        return Found::Action(binding.action);
                    }
                    _ => {}
                }
            }
        }
        Found::Nothing
    }

    /// The first key of an action, as it is written.
    pub(crate) fn key(&self, action: Action) -> String {
        let binding = self.bindings.iter().find(|binding| binding.action == action);
        binding.and_then(|binding| binding.chords.first()).map(ToString::to_string).unwrap_or_default()
    }

    /// The key that leads to an action behind this one, if one does.
    pub(crate) fn behind(&self, prefix: Press, action: Action) -> Option<String> {
        let binding = self.bindings.iter().find(|binding| binding.action == action)?;
        let chord = binding.chords.iter().find(|chord| chord.first == prefix && chord.second.is_some())?;
        chord.second.map(|second| second.to_string())
    }

    pub(crate) fn bindings(&self) -> &[Binding] {
        &self.bindings
    }
}

impl Press {
    fn of(key: &KeyEvent) -> Self {
        // Shift is in the character.
        let kept = if matches!(key.code, KeyCode::Char(_)) { KeyModifiers::SHIFT } else { KeyModifiers::NONE };
        Self { code: key.code, modifiers: key.modifiers.difference(kept) }
    }

    fn plain(self) -> Self {
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
            _ => KeyCode::F(rest.strip_prefix('f')?.parse().ok().filter(|number| (1..=12).contains(number))?),
        };
        // A letter alone is typed, an arrow alone moves.
        let typed = modifiers.is_empty() && !matches!(code, KeyCode::F(_));
        (!typed).then_some(Self { code, modifiers })
    }
}

impl Chord {
    fn parse(text: &str) -> Option<Self> {
        let mut keys = text.split_whitespace();
        let first = Press::parse(keys.next()?)?;
        let second = match keys.next() {
            Some(key) if key.chars().count() == 1 => {
                Some(Press { code: KeyCode::Char(key.chars().next()?), modifiers: KeyModifiers::NONE })
            }
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
    fn the_table_is_sound_and_says_itself() {
        let map = Keymap::default();
        map.check().unwrap();
        for (binding, (_, _, keys, _)) in map.bindings().iter().zip(TABLE) {
            let said: Vec<_> = binding.chords.iter().map(ToString::to_string).collect();
            assert_eq!(said, keys, "{}", binding.name);
        }
    }

    #[test]
    fn m_d7_ctrl_x_awaits_a_key() {
        let map = Keymap::default();
        let Found::Prefix(prefix) = map.find(None, &press('x', KeyModifiers::CONTROL)) else { panic!("no prefix") };
        for modifiers in [KeyModifiers::NONE, KeyModifiers::CONTROL] {
            assert_eq!(map.find(Some(prefix), &press('p', modifiers)), Found::Action(Action::Hold));
        }
        assert_eq!(map.find(Some(prefix), &press('z', KeyModifiers::NONE)), Found::Nothing);
        assert_eq!(map.find(None, &press('p', KeyModifiers::NONE)), Found::Nothing);
    }

    #[test]
    fn keys_are_remapped_and_what_makes_no_sense_is_refused() {
        let with = |name: &str, keys: &str| Keymap::with(&BTreeMap::from([(name.to_owned(), keys.to_owned())]));
        let map = with("hold", "f8").unwrap();
        assert_eq!(map.key(Action::Hold), "f8");
        assert_eq!(map.find(None, &KeyEvent::new(KeyCode::F(8), KeyModifiers::NONE)), Found::Action(Action::Hold));
        assert!(with("hold", "p").unwrap_err().contains("no key"));
        assert!(with("hold", "shift+p").unwrap_err().contains("no key"));
        assert!(with("held", "f8").unwrap_err().contains("there are hold, steps"));
        assert!(with("hold", "ctrl+x").unwrap_err().contains("told apart"));
        assert!(with("hold", "ctrl+v").unwrap_err().contains("told apart"));
        for kept in KEPT {
            for keys in [kept.to_owned(), format!("{kept} p")] {
                assert!(with("quit", &keys).unwrap_err().contains("always the same"), "{keys}");
            }
        }
    }
}
