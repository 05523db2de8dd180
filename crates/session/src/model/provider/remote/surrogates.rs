//! Joins characters that a server has split over two frames, because it cuts its texts by UTF-16
//! units. In JSON, each half is an escape, such as `\ud83d` or `\ude00`, which alone is not a
//! character.
//!
//! A frame is parsed with marks in place of lone halves, so that each half stays in its own text:
//! that of the answer, of a thought or of a call. [`Halves`] joins the marks of one text; a half
//! that stays alone becomes a replacement character.

use std::borrow::Cow;

/// Begins a mark; a second character encodes the half. Unicode reserves this character for use
/// inside a program. If a server's text already contains a mark, the mark is read like an escape.
const MARK: char = '\u{fdd0}';

/// The second character of the mark for the lowest half, `\ud800`.
const LOWEST_MARK: u32 = 0x10_0000;

// The lowest UTF-16 unit of the first halves, that of the second halves, and the one after both.
const FIRST_HALVES: u16 = 0xd800;
const SECOND_HALVES: u16 = 0xdc00;
const AFTER_HALVES: u16 = 0xe000;

/// The length of an escape in bytes.
const ESCAPE_BYTES: usize = 6;

/// The frame with a mark in place of each half that is not next to its other half.
pub(super) fn marked(frame: &str) -> Cow<'_, str> {
    if !frame.contains("\\ud") && !frame.contains("\\uD") {
        return Cow::Borrowed(frame);
    }
    let bytes = frame.as_bytes();
    let mut result = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
        let escape = at + found;
        let Some(half) =
            unit(&bytes[escape..]).filter(|unit| (FIRST_HALVES..AFTER_HALVES).contains(unit))
        else {
            // Another escape, of which the first two bytes are skipped.
            at = (escape + 2).min(bytes.len());
            continue;
        };
        let after = escape + ESCAPE_BYTES;
        let next =
            unit(&bytes[after..]).filter(|next| (SECOND_HALVES..AFTER_HALVES).contains(next));
        if half < SECOND_HALVES && next.is_some() {
            at = after + ESCAPE_BYTES;
            continue;
        }
        result.push_str(&frame[copied..escape]);
        result.push(MARK);
        result.extend(char::from_u32(LOWEST_MARK + u32::from(half - FIRST_HALVES)));
        (copied, at) = (after, after);
    }
    if copied == 0 {
        return Cow::Borrowed(frame);
    }
    result.push_str(&frame[copied..]);
    Cow::Owned(result)
}

/// The UTF-16 unit of an escape at the beginning of these bytes.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes
        .strip_prefix(b"\\u")?
        .get(..4)
        .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// A whole text with its marks resolved.
pub(super) fn unmarked(text: &str) -> Cow<'_, str> {
    let mut halves = Halves::default();
    let mut whole = halves.join(text);
    if let Some(lone) = halves.end() {
        whole.to_mut().push(lone);
    }
    whole
}

/// Joins the halves of one text. Its pieces have to be added in order.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// A first half at the end of the last piece.
    first: Option<u16>,
}

impl Halves {
    /// The piece without marks. A first half at its end is kept for the next piece.
    pub(super) fn join<'a>(&mut self, piece: &'a str) -> Cow<'a, str> {
        if piece.is_empty() || (self.first.is_none() && !piece.contains(MARK)) {
            return Cow::Borrowed(piece);
        }
        let (mut joined, mut chars) = (String::with_capacity(piece.len()), piece.chars());
        while let Some(char) = chars.next() {
            let half = chars.clone().next().filter(|_| char == MARK).and_then(half);
            let first = self.first.take();
            let both = first
                .zip(half)
                .and_then(|(first, half)| char::decode_utf16([first, half]).next()?.ok());
            if half.is_some() {
                chars.next();
            }
            match (both, half) {
                (Some(both), _) => joined.push(both),
                (None, half) => {
                    joined.extend(first.map(|_| char::REPLACEMENT_CHARACTER));
                    match half {
                        Some(half) if half < SECOND_HALVES => self.first = Some(half),
                        Some(_) => joined.push(char::REPLACEMENT_CHARACTER),
                        None => joined.push(char),
                    }
                }
            }
        }
        Cow::Owned(joined)
    }

    /// Ends the text, and returns the replacement for a first half that is left.
    pub(super) fn end(&mut self) -> Option<char> {
        self.first.take().map(|_| char::REPLACEMENT_CHARACTER)
    }
}

/// The half that the second character of a mark encodes.
fn half(mark: char) -> Option<u16> {
    let offset = u32::from(mark).checked_sub(LOWEST_MARK)?;
    let offset = u16::try_from(offset).ok()?;
    (offset < AFTER_HALVES - FIRST_HALVES).then_some(FIRST_HALVES + offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of these pieces, each a JSON text from a server.
    fn joined(pieces: &[&str]) -> String {
        let mut halves = Halves::default();
        let read = |piece: &&str| {
            serde_json::from_str::<String>(&marked(&format!("\"{piece}\""))).unwrap()
        };
        let mut text: String =
            pieces.iter().map(read).map(|piece| halves.join(&piece).into_owned()).collect();
        text.extend(halves.end());
        assert_eq!(halves.end(), None);
        text
    }

    #[test]
    fn m_e6_halves_of_a_character_in_two_frames_are_one() {
        for (pieces, text) in [
            (vec![r"x\ud83d", r"\ude00y"], "x😀y"),
            (vec![r"\uD83D", "", r"\uDE00"], "😀"),
            (vec![r"\ud83d\ude00"], "😀"),
            (vec![r"\ud83d\ude00\ud83d", r"\ude00"], "😀😀"),
            // Text that only looks like an escape.
            (vec![r"\\ud83d", r"\\ude00"], r"\ud83d\ude00"),
            (vec![r"\ud7ff", r"\ue000"], "\u{d7ff}\u{e000}"),
            // Halves that never meet.
            (vec![r"\ude00x"], "\u{fffd}x"),
            (vec![r"x\ud83dy"], "x\u{fffd}y"),
            (vec![r"x\ude00"], "x\u{fffd}"),
            (vec![r"x\ud83d"], "x\u{fffd}"),
            (vec![r"x\ud83d", "y"], "x\u{fffd}y"),
            (vec![r"\ud83d", r"\ud83d", r"\ude00"], "\u{fffd}😀"),
            (vec![r"\ud83d\ud83d\ude00"], "\u{fffd}😀"),
            (vec![r"\ude00\ud83d"], "\u{fffd}\u{fffd}"),
            // The first character of a mark alone is text.
            (vec!["\u{fdd0}", "\u{100000}"], "\u{fdd0}\u{100000}"),
        ] {
            assert_eq!(joined(&pieces), text, "{pieces:?}");
        }
        for same in [r"\ude00", r#"{"a":"\ud8"#, "{}"] {
            assert_eq!(unmarked(&marked(same)), same.replace(r"\ude00", "\u{fffd}"));
        }
    }
}
