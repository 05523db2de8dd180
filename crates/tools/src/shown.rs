//! What a person reads of what would be done: exact, unambiguous, and without secrets.
//!
//! A character that a terminal acts on, that is not seen, that reorders others or that passes for another one is
//! written out as `\u{1b}`; where the text itself has `\u{`, its backslash is written out as well. So whatever is
//! shown can be turned back into the very text, but for the secrets in it: of these, the first characters and how
//! many more there are.

mod command;
mod diff;
mod hidden;
mod look_alike;

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

pub use command::command;
pub(crate) use diff::{CONTEXT, Hunk, TooMuch, diff, diff_of, with_coding};

use crate::secrets::{self, Secret};

/// How closely a text is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Care {
    /// It is going to run: whatever passes for ASCII and is none, and whatever reads from right to left, is written
    /// out.
    Command,
    /// It is text in some language: only words that mix scripts are written out.
    Text,
}

/// Text of any language as it is shown where it has to be exact, over as many lines as it has.
#[must_use]
pub fn text(text: &str) -> Cow<'_, str> {
    exact(text, &secrets::find(text), Care::Text, false)
}

/// The same on one line: line feeds and tabs are written out, too.
#[must_use]
pub fn line(text: &str) -> Cow<'_, str> {
    exact(text, &secrets::find(text), Care::Text, true)
}

/// What a model or a tool says, as it comes: nothing in it gives orders to a terminal, hides or reorders.
///
/// Written out like everywhere else, but not exact: a `\u{` that is in the text stays as it is, and so do look-alikes,
/// odd spaces and the selectors that make emoji of characters. Text that is already shown is left alone, so what
/// comes from others, shown or not, can go through this on its way to a terminal.
#[must_use]
pub fn prose(text: &str) -> Cow<'_, str> {
    written_out(text, is_hidden, write_out)
}

/// JSON, or a whole number of its characters, with the same values: what [`prose`] writes out is escaped as JSON has it
/// (`\u001b`).
#[must_use]
pub fn json(text: &str) -> Cow<'_, str> {
    // None of it is part of JSON but in strings, where any character may be escaped.
    written_out(text, is_hidden, |character, shown| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(shown, "\\u{unit:04x}");
        }
    })
}

/// What is written out of text that need not be exact.
fn is_hidden(character: char) -> bool {
    hidden::is_unseen(character) && !matches!(character, '\n' | '\t' | '\u{fe0e}' | '\u{fe0f}')
}

/// [`prose`] on one line: line feeds and tabs are written out, too.
#[must_use]
pub fn prose_line(text: &str) -> Cow<'_, str> {
    let is_hidden = |character| hidden::is_unseen(character) && !matches!(character, '\u{fe0e}' | '\u{fe0f}');
    written_out(text, is_hidden, write_out)
}

fn written_out(text: &str, is_hidden: impl Fn(char) -> bool, write_out: impl Fn(char, &mut String)) -> Cow<'_, str> {
    // Most text is plain ASCII, and most of the rest has nothing to hide.
    let Some(first) = text.find(&is_hidden) else { return Cow::Borrowed(text) };
    let (clean, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(clean);
    for character in rest.chars() {
        match is_hidden(character) {
            true => write_out(character, &mut shown),
            false => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

fn exact<'a>(text: &'a str, secrets: &[Secret], care: Care, one_line: bool) -> Cow<'a, str> {
    let plain = |byte: u8| matches!(byte, b' '..=b'~') || !one_line && matches!(byte, b'\n' | b'\t');
    if secrets.is_empty() && text.bytes().all(plain) && !text.contains("\\u{") {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    show(text, 0..text.len(), secrets, care, one_line, &mut shown);
    Cow::Owned(shown)
}

/// Shows a part of a text whose secrets are known, in their order.
fn show(text: &str, part: Range<usize>, secrets: &[Secret], care: Care, one_line: bool, shown: &mut String) {
    let mut at = part.start;
    let first = secrets.partition_point(|secret| secret.range.end <= part.start);
    for secret in secrets[first..].iter().take_while(|secret| secret.range.start < part.end) {
        let (start, end) = (secret.range.start.max(part.start), secret.range.end.min(part.end));
        show_open(&text[at..start], care, one_line, shown);
        // The beginning of what is masked, unless it began in a part before this one.
        let open = if start == secret.range.start { secret.open.min(end - start) } else { 0 };
        shown.push_str(&text[start..start + open]);
        secrets::put_mask(end - start - open, shown);
        at = end;
    }
    show_open(&text[at..part.end], care, one_line, shown);
}

/// Shows text without secrets.
fn show_open(text: &str, care: Care, one_line: bool, shown: &mut String) {
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if look_alike::is_of_word(character) {
            let end = rest.find(|character| !look_alike::is_of_word(character)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            show_word(word, care, shown);
            rest = after;
            continue;
        }
        let written_out = match character {
            '\n' | '\t' => one_line,
            // What is written out, or masked, looks like this.
            '\\' => rest.starts_with("\\u{"),
            '…' => secrets::looks_masked(rest),
            ' '..='~' => false,
            _ => {
                hidden::is_unseen(character)
                    || hidden::is_uncertain(character)
                    || care == Care::Command && look_alike::passes_for_ascii(character)
            }
        };
        match written_out {
            true => write_out(character, shown),
            false => shown.push(character),
        }
        rest = &rest[character.len_utf8()..];
    }
}

fn show_word(word: &str, care: Care, shown: &mut String) {
    if word.is_ascii() {
        return shown.push_str(word);
    }
    let suspicious = look_alike::is_suspicious(word, care == Care::Command);
    let mut marks = 0;
    for (at, character) in word.char_indices() {
        marks = if hidden::is_mark(character) { marks + 1 } else { 0 };
        let written_out = !character.is_ascii()
            && (suspicious
                || hidden::is_unseen(character)
                || hidden::is_uncertain(character)
                // Marks stand on a letter, and a heap of them covers the lines above.
                || marks > 0 && (at == 0 || marks > MARKS)
                || care == Care::Command && (hidden::is_from_right(character) || hidden::is_loose_mark(character)));
        match written_out {
            true => write_out(character, shown),
            false => shown.push(character),
        }
    }
}

/// Marks on one letter: more than any language needs are written out.
const MARKS: usize = 4;

fn write_out(character: char, shown: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
}
