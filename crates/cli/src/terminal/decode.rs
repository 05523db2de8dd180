//! Decodes the bytes that a terminal sends into keys, pastes and focus changes.
//!
//! Every input sequence has a known first byte and a known end (ECMA-48, xterm's control sequences,
//! kitty's keyboard protocol). An unknown sequence is therefore skipped whole, and no byte in it is
//! taken for a key. A lone escape is a key, recognised by the silence after it.

use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// An escape followed by this much silence is a key: terminals write a sequence in one piece.
const ESCAPE: Duration = Duration::from_millis(5);
/// After this much silence, an incomplete sequence is over. If it has only its two introducing
/// bytes, they are a key with Alt.
const SEQUENCE: Duration = Duration::from_millis(100);
/// After this much silence, an unterminated paste or string is over and later input is typed. The
/// time is longer than a connection needs to retransmit a lost packet.
const UNTERMINATED: Duration = Duration::from_secs(2);
/// Input that follows a paste this soon belongs to it, because pasted text may contain the end
/// sequence.
const PASTE_SETTLE: Duration = Duration::from_millis(5);
/// How many bytes of a control sequence are kept; the rest are skipped.
const MAX_PARAMETERS: usize = 64;
/// How many bytes of a paste are collected; a longer one is passed on in parts.
const MAX_PASTE: usize = 64 << 20;
/// The bracketed-paste sequences.
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";
/// The byte of Ctrl+C.
const CANCEL: u8 = 0x03;

/// One decoded input.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Input {
    Key(KeyEvent),
    Paste(String),
    /// The terminal gained or lost the focus.
    Focus(bool),
    /// An unknown sequence, such as a reply of the terminal or a mouse report, or invalid UTF-8.
    Other,
    /// The process was stopped and has resumed (also reported by SIGCONT): the input that follows
    /// may have been typed meanwhile.
    Continued,
    /// The process is in the foreground again. Unlike a resume, this has no signal.
    Foreground,
}

#[derive(Debug)]
pub(crate) struct Decoder {
    state: State,
    /// When the last bytes were read.
    last: Instant,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Ground,
    /// An incomplete character of several bytes.
    Character {
        bytes: Vec<u8>,
        length: usize,
    },
    /// One escape or two: some terminals put an extra one before the sequence of a key with Alt.
    Escape {
        twice: bool,
    },
    /// `ESC [` or `ESC O`, and the parameters so far. There may be two escapes, or none if a C1
    /// control began the sequence.
    Sequence {
        kind: u8,
        parameters: Vec<u8>,
        escapes: u8,
    },
    /// How many of the three bytes after `ESC [ M` are missing.
    Mouse(usize),
    /// A string up to its terminator, begun with `ESC` and one of `]`, `P`, `X`, `^` and `_`.
    Text {
        kind: u8,
        length: usize,
        /// Whether the last byte was an escape.
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

    /// The deadline after which the pending input counts as complete, if any is pending.
    pub(crate) fn due(&self) -> Option<Instant> {
        let silence = match &self.state {
            State::Ground => return None,
            State::Escape { .. } => ESCAPE,
            State::Paste { ended: true, .. } => PASTE_SETTLE,
            State::Paste { .. } => UNTERMINATED,
            State::Text { length, .. } if *length > 0 => UNTERMINATED,
            _ => SEQUENCE,
        };
        Some(self.last + silence)
    }

    /// Completes the pending input after its deadline.
    pub(crate) fn flush_pending(&mut self, inputs: &mut Vec<Input>) {
        match std::mem::take(&mut self.state) {
            State::Ground => {}
            State::Escape { twice } => {
                (0..=usize::from(twice)).for_each(|_| inputs.push(plain(KeyCode::Esc)))
            }
            State::Sequence { kind, parameters, escapes: 1 } if parameters.is_empty() => {
                inputs.push(alt(kind))
            }
            State::Text { kind, length: 0, .. } => inputs.push(alt(kind)),
            State::Character { .. }
            | State::Sequence { .. }
            | State::Mouse(_)
            | State::Text { .. } => {
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
                    let character =
                        std::str::from_utf8(bytes).ok().and_then(|text| text.chars().next());
                    self.state = State::Ground;
                    match character {
                        Some(introducer @ '\u{80}'..='\u{9f}') => {
                            self.take_c1_control(introducer as u8, inputs)
                        }
                        Some(character) if !character.is_control() => {
                            inputs.push(plain(KeyCode::Char(character)))
                        }
                        _ => inputs.push(Input::Other),
                    }
                }
            }
            // Ctrl+C acts in the middle of any input but a paste and a mouse report.
            State::Sequence { .. } | State::Text { .. } if byte == CANCEL => {
                self.abandon(byte, inputs)
            }
            State::Character { .. } => self.abandon(byte, inputs),
            State::Escape { .. } if byte == CANCEL => {
                self.flush_pending(inputs);
                self.begin(byte, inputs);
            }
            State::Escape { twice } => {
                let twice = *twice;
                self.take_escaped(byte, twice, inputs);
            }
            State::Sequence { .. } if byte == 0x1b => self.abandon(byte, inputs),
            State::Sequence { kind, parameters, escapes } => match byte {
                // The function keys of the Linux console.
                b'[' if *kind == b'[' && parameters.is_empty() => parameters.push(byte),
                0x40..=0x7e => {
                    let (kind, parameters, alt) =
                        (*kind, std::mem::take(parameters), *escapes == 2);
                    self.state = State::Ground;
                    match (kind, &parameters[..], byte) {
                        (b'[', b"200", b'~') => {
                            self.state = State::Paste { text: Vec::new(), ended: false }
                        }
                        (b'[', b"", b'M') => self.state = State::Mouse(3),
                        _ => inputs.push(sequence(kind, &parameters, byte, alt)),
                    }
                }
                _ if parameters.len() < MAX_PARAMETERS => parameters.push(byte),
                _ => {}
            },
            State::Mouse(1) => {
                inputs.push(Input::Other);
                self.state = State::Ground;
            }
            State::Mouse(missing) => *missing -= 1,
            State::Text { kind, length, escape } => {
                let ends = match byte {
                    b'\\' => *escape,
                    0x07 => *kind == b']',
                    // CAN and SUB end a string of any kind.
                    0x18 | 0x1a => true,
                    _ => false,
                };
                *length = length.saturating_add(1);
                *escape = byte == 0x1b;
                if ends {
                    inputs.push(Input::Other);
                    self.state = State::Ground;
                }
            }
            State::Paste { text, ended } => inputs.extend(paste(byte, text, ended).map(pasted)),
        }
    }

    /// Drops the incomplete sequence and begins the next input with this byte.
    fn abandon(&mut self, byte: u8, inputs: &mut Vec<Input>) {
        inputs.push(Input::Other);
        self.begin(byte, inputs);
    }

    /// Takes the first byte of an input.
    fn begin(&mut self, byte: u8, inputs: &mut Vec<Input>) {
        let length = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => 1,
        };
        self.state = match byte {
            0x1b => State::Escape { twice: false },
            0x80..=0x9f => return self.take_c1_control(byte, inputs),
            _ if length > 1 => State::Character { bytes: vec![byte], length },
            _ => {
                inputs.push(single_byte(byte).map_or(Input::Other, Input::Key));
                State::Ground
            }
        };
    }

    /// Takes a C1 control, the short form of an escape and a letter: `0x9b` is `ESC [`.
    fn take_c1_control(&mut self, control: u8, inputs: &mut Vec<Input>) {
        self.state = match control - 0x40 {
            kind @ (b'[' | b'O') => State::Sequence { kind, parameters: Vec::new(), escapes: 0 },
            kind @ (b']' | b'P' | b'X' | b'^' | b'_') => {
                // The length of 1 keeps it from becoming a key with Alt: there was no escape.
                State::Text { kind, length: 1, escape: false }
            }
            _ => {
                inputs.push(Input::Other);
                State::Ground
            }
        };
    }

    /// Takes the byte after one or two escapes.
    fn take_escaped(&mut self, byte: u8, twice: bool, inputs: &mut Vec<Input>) {
        if twice && !matches!(byte, b'[' | b'O') {
            inputs.push(plain(KeyCode::Esc));
        }
        self.state = match byte {
            b'[' | b'O' => {
                State::Sequence { kind: byte, parameters: Vec::new(), escapes: 1 + u8::from(twice) }
            }
            b']' | b'P' | b'X' | b'^' | b'_' => {
                State::Text { kind: byte, length: 0, escape: false }
            }
            0x1b => State::Escape { twice: true },
            // Alt with a character of several bytes is never bound.
            0x80.. => return self.abandon(byte, inputs),
            _ => {
                inputs.push(
                    single_byte(byte).map_or(Input::Other, |key| with(key, KeyModifiers::ALT)),
                );
                State::Ground
            }
        };
    }
}

fn plain(code: KeyCode) -> Input {
    Input::Key(KeyEvent::new(code, KeyModifiers::NONE))
}

fn with(key: KeyEvent, modifiers: KeyModifiers) -> Input {
    Input::Key(KeyEvent::new(key.code, key.modifiers | modifiers))
}

fn alt(character: u8) -> Input {
    Input::Key(KeyEvent::new(KeyCode::Char(char::from(character)), KeyModifiers::ALT))
}

fn pasted(text: Vec<u8>) -> Input {
    Input::Paste(
        String::from_utf8(text)
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
    )
}

/// The key of a single byte.
fn single_byte(byte: u8) -> Option<KeyEvent> {
    let control =
        |letter: u8| KeyEvent::new(KeyCode::Char(char::from(letter)), KeyModifiers::CONTROL);
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

/// The input of `ESC [` or `ESC O`, its parameters and its last byte. `alt` means an extra escape
/// came first.
fn sequence(kind: u8, parameters: &[u8], last: u8, alt: bool) -> Input {
    let key = match (kind, parameters, last) {
        (b'[', b"", b'I') => return Input::Focus(true),
        (b'[', b"", b'O') => return Input::Focus(false),
        (b'[', b"[", b'A'..=b'E') => {
            Some(KeyEvent::new(KeyCode::F(last - b'A' + 1), KeyModifiers::NONE))
        }
        (b'[', ..) => csi_key(parameters, last),
        _ => ss3_key(parameters, last),
    };
    let alt = if alt { KeyModifiers::ALT } else { KeyModifiers::NONE };
    key.map_or(Input::Other, |key| with(key, alt))
}

/// The key of an `ESC O` sequence. The last parameter holds the modifiers.
fn ss3_key(parameters: &[u8], last: u8) -> Option<KeyEvent> {
    let number = std::str::from_utf8(parameters).ok()?.rsplit(';').next()?;
    let modifiers =
        if number.is_empty() { KeyModifiers::NONE } else { modifiers_of(number.parse().ok()?) };
    let code = match last {
        b'M' => KeyCode::Enter,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        // urxvt's arrows with Ctrl.
        b'a'..=b'd' => {
            return Some(KeyEvent::new(cursor(last.to_ascii_uppercase())?, KeyModifiers::CONTROL));
        }
        // The keypad in application mode.
        b'j'..=b'y' => KeyCode::Char(char::from(last - b'j' + b'*')),
        _ => cursor(last)?,
    };
    Some(KeyEvent::new(code, modifiers))
}

/// The cursor keys, which `ESC [` and `ESC O` share.
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

/// The key of a control sequence, if it is one. Parameters are separated by `;`: the first may name
/// the key, the second the modifiers. Sub-parameters follow a `:`; those of the key are the key
/// with Shift and the key on a Latin keyboard.
fn csi_key(parameters: &[u8], last: u8) -> Option<KeyEvent> {
    let text = std::str::from_utf8(parameters).ok()?;
    let mut numbers = Vec::new();
    for part in text.split(';') {
        let part = part.split(':').map(|number| {
            if number.is_empty() { Ok(None) } else { number.parse::<u32>().map(Some) }
        });
        numbers.push(part.collect::<Result<Vec<_>, _>>().ok()?);
    }
    let number =
        |at: usize, sub: usize| numbers.get(at).and_then(|part| part.get(sub)).copied().flatten();
    // Event type 3 is a key release.
    if number(1, 1) == Some(3) {
        return None;
    }
    let first = number(0, 0).unwrap_or(1);
    let modifiers = modifiers_of(number(1, 0).unwrap_or(1));
    let count = numbers.len();
    let code = match last {
        b'A'..=b'D' | b'F' | b'H' if first == 1 && count <= 2 => cursor(last)?,
        // `R` would be a cursor position report.
        b'P' | b'Q' | b'S' if first == 1 && count <= 2 => KeyCode::F(last - b'P' + 1),
        b'Z' if count <= 2 => return Some(KeyEvent::new(KeyCode::BackTab, KeyModifiers::SHIFT)),
        // urxvt's arrows with Shift.
        b'a'..=b'd' if text.is_empty() => {
            return Some(KeyEvent::new(cursor(last.to_ascii_uppercase())?, KeyModifiers::SHIFT));
        }
        // xterm's `modifyOtherKeys`.
        b'~' if first == 27 && count == 3 => code_point(number(2, 0)?)?,
        b'~' if count <= 2 => numbered(first)?,
        b'u' if !text.is_empty() => {
            // With Ctrl or Alt, the physical key counts, whatever the keyboard layout.
            let is_chord = modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
            let latin = number(0, 2).filter(|_| is_chord && first > 0x7f);
            code_point(latin.unwrap_or(first))?
        }
        _ => return None,
    };
    let code = match code {
        // Terminals have always sent these chords as the plain keys.
        KeyCode::Char('[') if modifiers == KeyModifiers::CONTROL => {
            return Some(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
        }
        KeyCode::Char('h') if modifiers == KeyModifiers::CONTROL => {
            return Some(KeyEvent::new(KeyCode::Backspace, KeyModifiers::NONE));
        }
        KeyCode::Char('i') if modifiers == KeyModifiers::CONTROL => {
            return Some(KeyEvent::new(KeyCode::Tab, KeyModifiers::NONE));
        }
        KeyCode::Char('m') if modifiers == KeyModifiers::CONTROL => {
            return Some(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE));
        }
        KeyCode::Tab if modifiers.contains(KeyModifiers::SHIFT) => KeyCode::BackTab,
        KeyCode::Char(letter) if modifiers.contains(KeyModifiers::SHIFT) => {
            let shifted = number(0, 1).and_then(char::from_u32).filter(|_| last == b'u');
            KeyCode::Char(shifted.unwrap_or(letter.to_ascii_uppercase()))
        }
        code => code,
    };
    Some(KeyEvent::new(code, modifiers))
}

/// Decodes modifiers, which are sent as a bit mask plus one. Bits of the lock keys are ignored.
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
    all.into_iter()
        .enumerate()
        .filter(|(bit, _)| bits & (1 << bit) != 0)
        .map(|(_, modifier)| modifier)
        .collect()
}

/// The keys that are numbered before a `~`.
fn numbered(number: u32) -> Option<KeyCode> {
    let function = |first: u32, first_key: u8| {
        u8::try_from(number - first).ok().map(|offset| KeyCode::F(first_key + offset))
    };
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

/// The key of a code point: a character, a control code with its own key, or a keypad key.
fn code_point(number: u32) -> Option<KeyCode> {
    Some(match number {
        13 | 57_414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        9 => KeyCode::Tab,
        8 | 127 => KeyCode::Backspace,
        57_399..=57_408 => KeyCode::Char(char::from_digit(number - 57_399, 10)?),
        57_409..=57_413 => {
            KeyCode::Char(char::from(*b"./*-+".get(usize::try_from(number - 57_409).ok()?)?))
        }
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
        // The rest of the private area is modifiers and media keys.
        57_344..=63_743 => return None,
        number => {
            KeyCode::Char(char::from_u32(number).filter(|character| !character.is_control())?)
        }
    })
}

/// Adds a byte to a paste, and notes its end. Returns the first part of a long paste.
fn paste(byte: u8, text: &mut Vec<u8>, ended: &mut bool) -> Option<Vec<u8>> {
    text.push(byte);
    if text.ends_with(PASTE_END) {
        text.truncate(text.len() - PASTE_END.len());
        *ended = true;
    } else if *ended && text.ends_with(PASTE_BEGIN) {
        // A second paste directly after the first.
        text.truncate(text.len() - PASTE_BEGIN.len());
        *ended = false;
    }
    (text.len() >= MAX_PASTE).then(|| {
        let next = text.split_off(part_length(text));
        std::mem::replace(text, next)
    })
}

/// The length of the part of a long paste that is passed on. The rest may be a sequence or a
/// character that has begun.
fn part_length(text: &[u8]) -> usize {
    let longest = text.len() - (PASTE_END.len() - 1);
    let is_start = |at: &usize| text[*at] & 0xc0 != 0x80;
    (longest - 3..=longest).rev().find(is_start).unwrap_or(longest)
}

#[cfg(test)]
mod tests;
