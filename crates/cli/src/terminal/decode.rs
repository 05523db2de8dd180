//! The bytes that a terminal sends, decoded to keys, pastes and changes of focus.
//!
//! Whatever a terminal sends begins with a known byte and has a known end (ECMA-48, xterm's control sequences, kitty's
//! keyboard protocol), so a sequence that means nothing here is skipped whole: nothing in it is taken for a key. A lone
//! escape is a key, recognised by the silence after it.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// After this long without more, an escape is a key: terminals write a sequence in one piece.
const ESCAPE: Duration = Duration::from_millis(5);
/// After this long without more, a sequence or a paste whose end has not come is over.
const SEQUENCE: Duration = Duration::from_millis(100);
/// Input this soon after a paste is part of it: pasted text may contain the sequence that ends a paste.
const TOGETHER: Duration = Duration::from_millis(5);
/// Bytes of a control sequence that are looked at; longer ones are skipped.
const MOST_PARAMETERS: usize = 64;
/// Bytes of a paste that are kept; a longer one is passed on in parts.
const MOST_PASTED: usize = 64 << 20;
/// The sequence behind a paste.
const PASTE_END: &[u8] = b"\x1b[201~";

/// One thing that the user, or the terminal, has done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Key(KeyEvent),
    Paste(String),
    /// The terminal has become, or is no longer, the one in use.
    Focus(bool),
    /// A sequence without a meaning here, for example a reply of the terminal or a report of the mouse; or no UTF-8.
    Other,
}

/// Decodes bytes as they are read.
#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    /// When the last byte was read.
    last: Instant,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// A character of more than one byte.
    Character {
        bytes: Vec<u8>,
        length: usize,
    },
    Escape,
    /// `ESC O`.
    Single,
    /// `ESC [`, and what has come of the sequence.
    Control(Vec<u8>),
    /// The three bytes behind `ESC [ M`, as far as they are still to come.
    Mouse(usize),
    /// A string, up to its terminator: `ESC ]`, `P`, `X`, `^` or `_`.
    Text {
        kind: u8,
        length: usize,
        escape: bool,
    },
    Paste {
        text: Vec<u8>,
        ended: bool,
    },
}

impl Decoder {
    pub(crate) fn new(now: Instant) -> Self {
        Self { state: State::Ground, last: now }
    }

    /// Decodes bytes that were read at `at`.
    pub(crate) fn feed(&mut self, bytes: &[u8], at: Instant, inputs: &mut Vec<Input>) {
        self.last = at;
        for byte in bytes {
            self.take(*byte, inputs);
        }
    }

    /// When the silence since the last byte means that no more follows, if one does.
    pub(crate) fn due(&self) -> Option<Instant> {
        let silence = match self.state {
            State::Ground => return None,
            State::Escape => ESCAPE,
            State::Paste { ended: true, .. } => TOGETHER,
            _ => SEQUENCE,
        };
        Some(self.last + silence)
    }

    /// No more has followed.
    pub(crate) fn settle(&mut self, inputs: &mut Vec<Input>) {
        match std::mem::take(&mut self.state) {
            State::Ground => {}
            State::Escape => inputs.push(plain(KeyCode::Esc)),
            State::Single => inputs.push(alt('O')),
            State::Control(parameters) if parameters.is_empty() => inputs.push(alt('[')),
            State::Text { kind, length: 0, escape: false } => inputs.push(alt(char::from(kind))),
            State::Character { .. } | State::Control(_) | State::Mouse(_) | State::Text { .. } => {
                inputs.push(Input::Other);
            }
            State::Paste { text, .. } => inputs.push(pasted(text)),
        }
    }

    fn take(&mut self, byte: u8, inputs: &mut Vec<Input>) {
        match &mut self.state {
            State::Ground => self.begin(byte, inputs),
            State::Character { bytes, length } if byte & 0xc0 == 0x80 => {
                bytes.push(byte);
                if bytes.len() == *length {
                    let character = std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
                    self.state = State::Ground;
                    inputs
                        .push(character.filter(|c| !c.is_control()).map_or(Input::Other, |c| plain(KeyCode::Char(c))));
                }
            }
            State::Character { .. } => {
                inputs.push(Input::Other);
                self.begin(byte, inputs);
            }
            State::Escape => self.escaped(byte, inputs),
            State::Single => {
                self.state = State::Ground;
                inputs.push(single(byte));
            }
            State::Control(parameters) => match byte {
                0x1b => {
                    inputs.push(Input::Other);
                    self.state = State::Escape;
                }
                // The function keys of the Linux console.
                b'[' if parameters.is_empty() => parameters.push(byte),
                0x40..=0x7e => {
                    let parameters = std::mem::take(parameters);
                    self.state = match (&parameters[..], byte) {
                        (b"200", b'~') => State::Paste { text: Vec::new(), ended: false },
                        (b"", b'M') => State::Mouse(3),
                        _ => {
                            inputs.push(control(&parameters, byte));
                            State::Ground
                        }
                    };
                }
                _ if parameters.len() < MOST_PARAMETERS => parameters.push(byte),
                _ => {}
            },
            State::Mouse(1) => {
                inputs.push(Input::Other);
                self.state = State::Ground;
            }
            State::Mouse(left) => *left -= 1,
            State::Text { kind, length, escape } => {
                let ends = match byte {
                    b'\\' => *escape,
                    0x07 => *kind == b']',
                    // Cancel and substitute end whatever has begun.
                    0x18 | 0x1a => true,
                    _ => false,
                };
                (*length, *escape) = (length.saturating_add(1), byte == 0x1b);
                if ends {
                    inputs.push(Input::Other);
                    self.state = State::Ground;
                }
            }
            State::Paste { text, ended } => {
                text.push(byte);
                if text.ends_with(PASTE_END) {
                    text.truncate(text.len() - PASTE_END.len());
                    *ended = true;
                }
                if text.len() >= MOST_PASTED {
                    inputs.push(pasted(std::mem::take(text)));
                }
            }
        }
    }

    /// The first byte of something.
    fn begin(&mut self, byte: u8, inputs: &mut Vec<Input>) {
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        self.state = match byte {
            0x1b => State::Escape,
            _ if length > 1 => State::Character { bytes: vec![byte], length },
            _ => {
                inputs.push(single_byte(byte).map_or(Input::Other, Input::Key));
                State::Ground
            }
        };
    }

    /// The byte behind an escape.
    fn escaped(&mut self, byte: u8, inputs: &mut Vec<Input>) {
        self.state = match byte {
            b'[' => State::Control(Vec::new()),
            b'O' => State::Single,
            b']' | b'P' | b'X' | b'^' | b'_' => State::Text { kind: byte, length: 0, escape: false },
            0x1b => {
                inputs.push(plain(KeyCode::Esc));
                State::Escape
            }
            0x80.. => {
                // Alt with a character of more than one byte: no such key is bound to anything.
                inputs.push(Input::Other);
                return self.begin(byte, inputs);
            }
            _ => {
                let key = single_byte(byte);
                inputs.push(key.map_or(Input::Other, |key| {
                    Input::Key(KeyEvent::new(key.code, key.modifiers | KeyModifiers::ALT))
                }));
                State::Ground
            }
        };
    }
}

fn plain(code: KeyCode) -> Input {
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn alt(character: char) -> Input {
    Input::Key(KeyEvent::new(KeyCode::Char(character), KeyModifiers::ALT))
}

fn pasted(text: Vec<u8>) -> Input {
    Input::Paste(String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The key of a byte that is whole by itself.
fn single_byte(byte: u8) -> Option<KeyEvent> {
    let control = |letter: u8| KeyEvent::new(KeyCode::Char(char::from(letter)), KeyModifiers::CONTROL);
    let plain = |code| KeyEvent::new(code, KeyModifiers::NONE);
    Some(match byte {
        b'\r' => plain(KeyCode::Enter),
        b'\t' => plain(KeyCode::Tab),
        0x7f | 0x08 => plain(KeyCode::Backspace),
        0x00 => control(b' '),
        0x01..=0x1a => control(byte - 1 + b'a'),
        0x1c..=0x1f => control(byte - 0x1c + b'4'),
        0x20..=0x7e => plain(KeyCode::Char(char::from(byte))),
        _ => return None,
    })
}

/// The key of `ESC O` and this byte.
fn single(byte: u8) -> Input {
    let code = match byte {
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(byte - b'P' + 1),
        // The keypad in application mode.
        b'j'..=b'y' => KeyCode::Char(char::from(byte - b'j' + b'*')),
        _ => match cursor(byte) {
            Some(code) => code,
            None => return Input::Other,
        },
    };
    plain(code)
}

/// The cursor keys, in both of their forms.
fn cursor(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        _ => return None,
    })
}

/// A control sequence: `ESC [`, these parameters, this last byte.
fn control(parameters: &[u8], last: u8) -> Input {
    match (parameters, last) {
        (b"", b'I') => return Input::Focus(true),
        (b"", b'O') => return Input::Focus(false),
        (b"[", b'A'..=b'E') => return plain(KeyCode::F(last - b'A' + 1)),
        _ => {}
    }
    key(parameters, last).map_or(Input::Other, Input::Key)
}

/// The key of a control sequence, if it is one: numbers between `;`, of which the first may say which key, and the second
/// with which modifiers. Behind a `:` there may be more of each.
fn key(parameters: &[u8], last: u8) -> Option<KeyEvent> {
    let text = std::str::from_utf8(parameters).ok()?;
    let mut numbers = Vec::new();
    for part in text.split(';') {
        let mut parts = part.split(':');
        let first = parts.next().unwrap_or_default();
        numbers.push(if first.is_empty() { 1 } else { first.parse::<u32>().ok()? });
        // An event of its own says that a key was released.
        if numbers.len() == 2 && parts.next() == Some("3") {
            return None;
        }
    }
    let (first, second) = (numbers[0], numbers.get(1).copied().unwrap_or(1));
    let shape = numbers.len();
    let (code, modifiers) = match last {
        b'A'..=b'D' | b'F' | b'H' if first == 1 && shape <= 2 => (cursor(last)?, second),
        b'P' | b'Q' | b'S' if first == 1 && shape <= 2 => (KeyCode::F(last - b'P' + 1), second),
        b'Z' if shape <= 2 => return Some(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT)),
        b'~' if first == 27 && shape == 3 => (code_point(numbers[2])?, second),
        b'~' if shape <= 2 => (numbered(first)?, second),
        b'u' if !text.is_empty() => (code_point(first)?, second),
        _ => return None,
    };
    let modifiers = modifiers_of(modifiers);
    Some(match code {
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => KeyEvent::new(KeyCode::BackTab, modifiers),
        KeyCode::Char(letter) if modifiers.contains(KeyModifiers::SHIFT) => {
            KeyEvent::new(KeyCode::Char(letter.to_ascii_uppercase()), modifiers)
        }
        code => KeyEvent::new(code, modifiers),
    })
}

/// Modifiers are a sum of bits, and one more. Those of the locks change nothing.
fn modifiers_of(number: u32) -> KeyModifiers {
    let bits = number.saturating_sub(1);
    let all = [
        KeyModifiers::SHIFT,
        KeyModifiers::ALT,
        KeyModifiers::CONTROL,
        KeyModifiers::SUPER,
        KeyModifiers::HYPER,
        KeyModifiers::META,
    ];
    all.into_iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0).map(|(_, modifier)| modifier).collect()
}

/// The keys that are numbered before a `~`.
fn numbered(number: u32) -> Option<KeyCode> {
    let function = |first: u32, of: u8| u8::try_from(number - first).ok().map(|place| KeyCode::F(of + place));
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => function(11, 1),
        17..=21 => function(17, 6),
        23..=24 => function(23, 11),
        _ => None,
    }
}

/// The key of a code point: of a character, of a control code that a key has, or of the keypad.
fn code_point(number: u32) -> Option<KeyCode> {
    Some(match number {
        13 | 57_414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        9 => KeyCode::Tab,
        8 | 127 => KeyCode::Backspace,
        57_399..=57_408 => KeyCode::Char(char::from_digit(number - 57_399, 10)?),
        57_409..=57_413 => KeyCode::Char(char::from(*b"./*-+".get(usize::try_from(number - 57_409).ok()?)?)),
        57_415 => KeyCode::Char('='),
        57_417 => KeyCode::Left,
        57_418 => KeyCode::Right,
        57_419 => KeyCode::Up,
        57_420 => KeyCode::Down,
        57_421 => KeyCode::PageUp,
        57_422 => KeyCode::PageDown,
        57_423 => KeyCode::Home,
        57_424 => KeyCode::End,
        57_425 => KeyCode::Insert,
        57_426 => KeyCode::Delete,
        // The rest of a private area is keys by themselves: modifiers, media keys.
        57_344..=63_743 => return None,
        number => KeyCode::Char(char::from_u32(number).filter(|character| !character.is_control())?),
    })
}

#[cfg(test)]
mod tests;
