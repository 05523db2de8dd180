//! Sequences of the terminal whose first byte came alone. An escape by itself is a key, and is read as that one; what
//! follows it at once is no keys, for nobody types so fast: it is the rest of a sequence, or of a paste, none of which may
//! act as if it had been typed. Nor does what follows a paste at once.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::super::message::{Message, Moment};

/// How long an escape waits for what belongs to it.
const TOGETHER: Duration = Duration::from_millis(5);
/// After how long without more a paste is over whose end was not seen.
const SILENCE: Duration = Duration::from_millis(100);
/// What stands between an escape and pasted text, and behind it.
const BEGIN: &str = "[200~";
const END: &str = "\u{1b}[201~";

/// Puts together again what has come in pieces.
#[derive(Debug, Default)]
pub(crate) struct Split {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Nothing,
    /// An escape, and keys that may be the rest of its sequence.
    Escape { keys: Vec<(KeyEvent, Moment)>, last: Instant },
    Paste {
        text: String,
        last: Instant,
        /// After how long without more it is over.
        silence: Duration,
    },
}

impl Split {
    /// What is to be done now that this has come.
    pub(crate) fn hear(&mut self, message: Message, at: Moment) -> Vec<(Message, Moment)> {
        let mut now = match self.due() {
            Some(due) if due <= at.instant => self.settle(at),
            _ => vec![],
        };
        let last = at.instant;
        match (&mut self.state, message) {
            (State::Nothing, Message::Key(key)) if is_escape(&key) => {
                self.state = State::Escape { keys: vec![(key, at)], last };
            }
            // What stands for its end may stand in it, too: then the rest comes as keys, at once.
            (State::Nothing, Message::Paste(text)) => self.state = State::Paste { text, last, silence: TOGETHER },
            (State::Nothing, message) => now.push((message, at)),
            (State::Escape { keys, last: before }, Message::Key(key)) if continues(keys, &key) => {
                keys.push((key, at));
                *before = last;
                let said = said(keys);
                if said == BEGIN {
                    self.state = State::Paste { text: String::new(), last, silence: SILENCE };
                } else if is_whole(&said) {
                    self.state = State::Nothing;
                    now.extend(arrow(&said).map(|code| (Message::Key(KeyEvent::new(code, KeyModifiers::NONE)), at)));
                }
            }
            (State::Escape { .. }, message) => {
                now.extend(self.settle(at));
                now.extend(self.hear(message, at));
            }
            (State::Paste { text, last: before, silence }, Message::Key(key)) => {
                text.extend(letter(&key));
                *before = last;
                if let Some(whole) = text.strip_suffix(END).map(str::len) {
                    text.truncate(whole);
                    *silence = TOGETHER;
                }
            }
            (State::Paste { text, last: before, .. }, Message::Paste(more)) => {
                text.push_str(&more);
                *before = last;
            }
            (State::Paste { .. }, message) => now.push((message, at)),
        }
        now
    }

    /// When what has come is all there is to come.
    pub(crate) fn due(&self) -> Option<Instant> {
        match &self.state {
            State::Nothing => None,
            State::Escape { last, .. } => Some(*last + TOGETHER),
            State::Paste { last, silence, .. } => Some(*last + *silence),
        }
    }

    /// Nothing more has come.
    pub(crate) fn settle(&mut self, at: Moment) -> Vec<(Message, Moment)> {
        match std::mem::take(&mut self.state) {
            State::Nothing => vec![],
            State::Escape { keys, .. } => keys.into_iter().map(|(key, at)| (Message::Key(key), at)).collect(),
            State::Paste { text, .. } => vec![(Message::Paste(text), at)],
        }
    }
}

fn is_escape(key: &KeyEvent) -> bool {
    key.code == KeyCode::Esc && key.modifiers.is_empty()
}

/// What has come behind the escape.
fn said(keys: &[(KeyEvent, Moment)]) -> String {
    keys.iter().skip(1).filter_map(|(key, _)| letter(key)).collect()
}

/// Whether the key may be a part of a control sequence: `[`, then numbers, then what ends it.
fn continues(keys: &[(KeyEvent, Moment)], key: &KeyEvent) -> bool {
    let modified = key.modifiers.difference(KeyModifiers::SHIFT);
    match key.code {
        KeyCode::Char(letter) if modified.is_empty() => {
            (letter == '[') == (keys.len() == 1) && letter.is_ascii_graphic()
        }
        _ => false,
    }
}

fn is_whole(sequence: &str) -> bool {
    sequence.chars().skip(1).last().is_some_and(|last| matches!(last, '@'..='~'))
}

/// The keys that are pressed most. What other sequences mean is not known here: they do nothing.
fn arrow(sequence: &str) -> Option<KeyCode> {
    match sequence {
        "[A" => Some(KeyCode::Up),
        "[B" => Some(KeyCode::Down),
        "[C" => Some(KeyCode::Right),
        "[D" => Some(KeyCode::Left),
        "[H" => Some(KeyCode::Home),
        "[F" => Some(KeyCode::End),
        _ => None,
    }
}

/// A key as the byte it was made of.
fn letter(key: &KeyEvent) -> Option<char> {
    match key.code {
        KeyCode::Char(letter) if key.modifiers.contains(KeyModifiers::CONTROL) => {
            u8::try_from(letter.to_ascii_lowercase()).ok().map(|letter| char::from(letter & 0x1f))
        }
        KeyCode::Char(letter) => Some(letter),
        KeyCode::Enter => Some('\r'),
        KeyCode::Tab => Some('\t'),
        KeyCode::Esc => Some('\u{1b}'),
        KeyCode::Backspace => Some('\u{7f}'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_common::Timestamp;

    use super::*;

    /// Bytes as they are read when each comes by itself.
    fn keys(text: &str) -> Vec<Message> {
        let code = |letter| match letter {
            '\u{1b}' => KeyCode::Esc,
            '\r' => KeyCode::Enter,
            letter => KeyCode::Char(letter),
        };
        text.chars().map(|letter| Message::Key(KeyEvent::new(code(letter), KeyModifiers::NONE))).collect()
    }

    fn later(at: Moment, millis: u64) -> Moment {
        Moment { instant: at.instant + Duration::from_millis(millis), ..at }
    }

    fn begin() -> Moment {
        Moment { instant: Instant::now(), time: Timestamp(0) }
    }

    /// What it comes to, with so many milliseconds between.
    fn comes_to(messages: Vec<Message>, between: u64) -> Vec<String> {
        let (mut split, mut at) = (Split::default(), begin());
        let mut told = Vec::new();
        for message in messages {
            at = later(at, between);
            told.extend(split.hear(message, at));
        }
        told.extend(split.settle(later(at, 1_000)));
        let shown = |message: &Message| match message {
            Message::Key(key) => format!("{}", key.code),
            Message::Paste(text) => format!("paste {text:?}"),
            other => format!("{other:?}"),
        };
        told.iter().map(|(message, _)| shown(message)).collect()
    }

    #[test]
    fn t_y6_a_paste_that_is_split_at_each_byte_is_one_paste() {
        let text = "/quit\rtwo \u{1b}[31m lines\r";
        let whole = comes_to(keys(&format!("\u{1b}{BEGIN}{text}{END}")), 1);
        assert_eq!(whole, [format!("paste {text:?}")]);
        // Its end may be read as nothing at all: then silence ends it.
        let (mut split, mut at) = (Split::default(), begin());
        for key in keys(&format!("\u{1b}{BEGIN}{text}")) {
            at = later(at, 1);
            assert_eq!(split.hear(key, at).len(), 0, "none of it is a key");
        }
        assert_eq!(split.due(), Some(at.instant + SILENCE));
        let told = split.hear(keys("y").remove(0), later(at, 200));
        assert!(matches!(&told[..], [(Message::Paste(pasted), _), (Message::Key(_), _)] if pasted == text), "{told:?}");
    }

    #[test]
    fn t_y6_what_comes_at_once_behind_a_paste_is_of_the_paste() {
        // As it is read where what ends it stands in the middle; the second end is read as nothing.
        let pasted = || std::iter::once(Message::Paste("say a".to_owned())).chain(keys("; evil\r")).collect();
        assert_eq!(comes_to(pasted(), 1), [r#"paste "say a; evil\r""#]);
        assert_eq!(comes_to(pasted(), 50), [r#"paste "say a""#, ";", "Space", "e", "v", "i", "l", "Enter"]);
        let twice = keys(&format!("\u{1b}{BEGIN}say a{END}; evil\r{END}"));
        assert_eq!(comes_to(twice, 1), [r#"paste "say a; evil\r""#]);
    }

    #[test]
    fn t_y6_an_escape_split_from_its_sequence_is_no_key() {
        for (sequence, comes) in [("[A", vec!["Up"]), ("[1;5A", vec![]), ("[I", vec![]), ("[15~", vec![])] {
            assert_eq!(comes_to(keys(&format!("\u{1b}{sequence}")), 1), comes, "{sequence}");
        }
    }

    #[test]
    fn an_escape_that_is_pressed_is_one_and_so_is_what_is_typed_behind_it() {
        assert_eq!(comes_to(keys("\u{1b}"), 0), ["Esc"]);
        assert_eq!(comes_to(keys("\u{1b}[A"), 50), ["Esc", "[", "A"]);
        assert_eq!(comes_to(keys("\u{1b}y"), 1), ["Esc", "y"]);
        assert_eq!(comes_to(keys("\u{1b}\u{1b}"), 1), ["Esc", "Esc"]);
        let (mut split, at) = (Split::default(), begin());
        assert!(split.hear(keys("\u{1b}").remove(0), at).is_empty());
        assert_eq!(split.due(), Some(at.instant + TOGETHER));
        assert!(split.hear(Message::Focus(true), later(at, 1)).len() == 2, "it keeps its place");
    }
}
