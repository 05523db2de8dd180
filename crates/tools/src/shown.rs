//! Display of an action before the user approves it: exact, unambiguous, and without secrets.
//!
//! A character that controls a terminal, is invisible, reorders others or looks like another one is
//! escaped as `\u{1b}`. If the text itself has `\u{`, its backslash is escaped, too. The exact text
//! can therefore be restored from its display, except for its secrets: of each, only the first
//! characters and the number of masked ones are shown.

mod command;
mod diff;
mod hidden;
mod look_alike;

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

pub use command::{command, command_anywhere};
pub(crate) use diff::{CONTEXT, Hunk, diff_of, with_encoding};
pub use diff::{TooMuch, diff};

use crate::secrets::{self, Secret};

/// How strictly a text is checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Strictness {
    /// A command that is about to run. Look-alikes of ASCII and characters from right-to-left
    /// scripts are escaped.
    Command,
    /// Text in any language. Only words that mix scripts are escaped.
    Text,
}

/// The exact display of text in any language, with its line feeds and tabs.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    exact(text, &secrets::find(text), Strictness::Text, false)
}

/// The last 500 bytes of a program's error output, on one line and with secrets masked; `None` if it
/// has written nothing.
#[must_use]
pub fn last_lines(errors: &str) -> Option<String> {
    last_lines_without(errors, &[])
}

/// Like [`last_lines`], and also [without these values](without_values).
#[must_use]
pub fn last_lines_without(errors: &str, values: &[String]) -> Option<String> {
    const MAX: usize = 500;
    // Before the text is cut, because a part of a secret would not be found.
    let errors = without_values(errors.trim(), values);
    let errors = secrets::mask(&errors);
    let start = errors.ceil_char_boundary(errors.len().saturating_sub(MAX));
    let lines = errors[start..].lines().map(str::trim).filter(|line| !line.is_empty());
    let lines: Vec<_> = lines.collect();
    // A line whose beginning is missing is left out, unless it is the only one.
    let whole = if start > 0 && lines.len() > 1 { &lines[1..] } else { &lines[..] };
    (!whole.is_empty()).then(|| prose_line(&whole.join(" | ")).into_owned())
}

/// The least bytes of a value that is hidden. A shorter one is a part of many words.
const MIN_VALUE: usize = 6;

/// A text with `***` in the place of these values, such as those of a program's variables. If the
/// text begins with the rest of a value, because its beginning was cut off, the rest is hidden, too.
#[must_use]
pub fn without_values(text: &str, values: &[String]) -> String {
    let values = values.iter().map(|value| value.trim()).filter(|value| value.len() >= MIN_VALUE);
    let mut values: Vec<_> = values.collect();
    // One value may contain another.
    values.sort_unstable_by_key(|value| std::cmp::Reverse(value.len()));
    let rest = values.iter().filter_map(|value| rest_at_start(text, value)).max();
    let (mask, text) = rest.map_or(("", text), |rest| ("***", &text[rest..]));
    let mut hidden = text.to_owned();
    for value in values {
        // Most texts have none of them.
        if hidden.contains(value) {
            hidden = hidden.replace(value, "***");
        }
    }
    format!("{mask}{hidden}")
}

/// The bytes of the longest proper end of a value with which the text begins.
fn rest_at_start(text: &str, value: &str) -> Option<usize> {
    let rests = value.char_indices().skip(1).map(|(at, _)| &value[at..]);
    let mut rests = rests.take_while(|rest| rest.len() >= MIN_VALUE);
    rests.find(|rest| text.starts_with(rest)).map(str::len)
}

/// Like [`text`], but on one line: line feeds and tabs are escaped, too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    exact(text, &secrets::find(text), Strictness::Text, true)
}

/// The display of a message from a model or a tool, without characters that control a terminal, are
/// invisible or reorder others.
///
/// Such characters are escaped as in [`text`], but the display is not exact: a `\u{` in the text is
/// kept, as are look-alikes, odd spaces and the selectors that turn characters into emoji. Text
/// that was already escaped is left as it is, so text from any source can pass through this
/// function before it is written to a terminal.
#[must_use]
pub fn prose(text: &str) -> Cow<'_, str> {
    escape_if(text, is_hidden, push_escape)
}

/// JSON in which the characters that [`prose`] escapes are escaped in JSON syntax (`\u001b`), so
/// that all values stay equal. The text may be a piece of JSON, split between any characters.
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // In JSON, these characters occur only in strings, where any character may be escaped.
    escape_if(text, is_hidden, |character, shown| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    })
}

/// A word of a command for the user, quoted as a shell needs it, on one line. A word with characters
/// that [`line()`] escapes is shown, but not usable.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let quoted = shlex::try_quote(word).unwrap_or(Cow::Borrowed(word));
    line(&quoted).into_owned()
}

/// Whether [`prose`] escapes a character.
fn is_hidden(character: char) -> bool {
    hidden::is_unseen(character) && !matches!(character, '\n' | '\t' | '\u{fe0e}' | '\u{fe0f}')
}

/// Like [`prose`], but on one line: line feeds and tabs are escaped, too.
#[must_use]
pub fn prose_line(text: &str) -> Cow<'_, str> {
    let is_hidden =
        |character| hidden::is_unseen(character) && !matches!(character, '\u{fe0e}' | '\u{fe0f}');
    escape_if(text, is_hidden, push_escape)
}

fn escape_if(
    text: &str,
    is_hidden: impl Fn(char) -> bool,
    escape: impl Fn(char, &mut String),
) -> Cow<'_, str> {
    // Most text has no hidden characters.
    let Some(first) = text.find(&is_hidden) else { return Cow::Borrowed(text) };
    let (clean, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(clean);
    for character in rest.chars() {
        match is_hidden(character) {
            true => escape(character, &mut shown),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

fn exact<'a>(
    text: &'a str,
    secrets: &[Secret],
    strictness: Strictness,
    one_line: bool,
) -> Cow<'a, str> {
    let plain =
        |byte: u8| matches!(byte, b' '..=b'~') || !one_line && matches!(byte, b'\n' | b'\t');
    if secrets.is_empty() && text.bytes().all(plain) && !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    show(text, 0..text.len(), secrets, strictness, one_line, &mut shown);
    Cow::Owned(shown)
}

/// Appends a part of a text. `secrets` are those of the whole text, in order.
fn show(
    text: &str,
    part: Range<usize>,
    secrets: &[Secret],
    strictness: Strictness,
    one_line: bool,
    shown: &mut String,
) {
    let mut at = part.start;
    let first = secrets.partition_point(|secret| secret.range.end <= part.start);
    for secret in secrets[first..].iter().take_while(|secret| secret.range.start < part.end) {
        let (start, end) = (secret.range.start.max(part.start), secret.range.end.min(part.end));
        show_plain(&text[at..start], strictness, one_line, shown);
        // The visible start of a secret, unless the secret began before this part.
        let visible = if start == secret.range.start { secret.visible.min(end - start) } else { 0 };
        shown.push_str(&text[start..start + visible]);
        secrets::put_mask(end - start - visible, shown);
        at = end;
    }
    show_plain(&text[at..part.end], strictness, one_line, shown);
}

/// Appends text without secrets.
fn show_plain(text: &str, strictness: Strictness, one_line: bool, shown: &mut String) {
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if look_alike::is_of_word(character) {
            let end =
                rest.find(|character| !look_alike::is_of_word(character)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            show_word(word, strictness, shown);
            rest = after;
            continue;
        }
        let is_escaped = match character {
            '\n' | '\t' => one_line,
            // Escape text that looks like an escape or a mask.
            '\\' => rest.starts_with("\\u{"),
            '…' => secrets::looks_masked(rest),
            ' '..='~' => false,
            _ => {
                hidden::is_unseen(character)
                    || hidden::is_uncertain(character)
                    || strictness == Strictness::Command && look_alike::passes_for_ascii(character)
            }
        };
        match is_escaped {
            true => push_escape(character, shown),
            false => shown.push(character),
        }
        rest = &rest[character.len_utf8()..];
    }
}

fn show_word(word: &str, strictness: Strictness, shown: &mut String) {
    if word.is_ascii() {
        return shown.push_str(word);
    }
    let suspicious = look_alike::is_suspicious(word, strictness == Strictness::Command);
    let mut marks = 0;
    for (at, character) in word.char_indices() {
        marks = if hidden::is_mark(character) { marks + 1 } else { 0 };
        let is_escaped = !character.is_ascii()
            && (suspicious
                || hidden::is_unseen(character)
                || hidden::is_uncertain(character)
                // A mark needs a letter, and a pile of marks covers the lines above.
                || marks > 0 && (at == 0 || marks > MAX_MARKS)
                || strictness == Strictness::Command
                    && (hidden::is_from_right(character) || hidden::is_loose_mark(character)));
        match is_escaped {
            true => push_escape(character, shown),
            false => shown.push(character),
        }
    }
}

/// Marks shown on one letter, as many as any language needs. Further ones are escaped.
const MAX_MARKS: usize = 4;

fn push_escape(character: char, shown: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
}
