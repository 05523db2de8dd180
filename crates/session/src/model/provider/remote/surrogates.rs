//! Characters of which a server sends one half in one frame and the other half in the next, as one does that cuts its
//! texts by UTF-16 units. JSON has each half as an escape, `\ud83d` and `\ude00`, which alone is no character.

use std::borrow::Cow;

/// Joins halves of characters.
#[derive(Debug, Default)]
pub(super) struct Surrogates {
    /// A first half at the end of a text, until its second half arrives.
    first: Option<u16>,
}

/// Bytes of an escape.
const ESCAPE: usize = 6;

impl Surrogates {
    /// The frame with whole characters: a first half at the end of a text moves to the second half that begins a later
    /// one, and any other half is a replacement character.
    pub(super) fn join<'a>(&mut self, frame: &'a str) -> Cow<'a, str> {
        if !frame.contains("\\ud") && !frame.contains("\\uD") {
            return Cow::Borrowed(frame);
        }
        let bytes = frame.as_bytes();
        let (mut joined, mut copied, mut at) = (String::new(), 0, 0);
        // Some servers send the same text under two keys: each of its second halves belongs to the first one.
        let first = self.first.take();
        let mut has_second = false;
        while let Some(found) = memchr::memchr(b'\\', &bytes[at..]) {
            let escape = at + found;
            let Some(half) = unit(&bytes[escape..]).filter(|unit| (0xd800..0xe000).contains(unit)) else {
                // An escape of one character, or the beginning of another one.
                at = (escape + 2).min(bytes.len());
                continue;
            };
            let after = escape + ESCAPE;
            let is_first = half < 0xdc00;
            if is_first && unit(&bytes[after..]).is_some_and(|next| (0xdc00..0xe000).contains(&next)) {
                at = after + ESCAPE;
                continue;
            }
            let instead = if is_first && bytes.get(after) == Some(&b'"') {
                self.first = Some(half);
                String::new()
            } else {
                has_second |= !is_first;
                let begins = escape.checked_sub(1).is_some_and(|before| bytes[before] == b'"');
                let first = first.filter(|_| !is_first && begins);
                let char = first.and_then(|first| char::decode_utf16([first, half]).next()?.ok());
                char.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()
            };
            joined.push_str(&frame[copied..escape]);
            joined.push_str(&instead);
            (copied, at) = (after, after);
        }
        if !has_second && self.first.is_none() {
            self.first = first;
        }
        if copied == 0 {
            return Cow::Borrowed(frame);
        }
        joined.push_str(&frame[copied..]);
        Cow::Owned(joined)
    }
}

/// The UTF-16 unit of an escape at the beginning of these bytes.
fn unit(bytes: &[u8]) -> Option<u16> {
    let digits = bytes.strip_prefix(b"\\u")?.get(..4).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e6_halves_of_a_character_in_two_frames_are_one() {
        for (frames, joined) in [
            (vec![r#"{"a":"x\ud83d"}"#, r#"{"a":"\ude00y"}"#], vec![r#"{"a":"x"}"#, r#"{"a":"😀y"}"#]),
            (
                vec![r#"{"a":"\uD83D"}"#, r#"{"b":1}"#, r#"{"a":"\uDE00"}"#],
                vec![r#"{"a":""}"#, r#"{"b":1}"#, r#"{"a":"😀"}"#],
            ),
            // Pairs, and text that only looks like an escape.
            (vec![r#"{"a":"\ud83d\ude00"}"#], vec![r#"{"a":"\ud83d\ude00"}"#]),
            (vec![r#"{"a":"\\ud83d"}"#], vec![r#"{"a":"\\ud83d"}"#]),
            (vec![r#"{"a":"\ud8"#, r#"{"a":"\ud7ff"}"#], vec![r#"{"a":"\ud8"#, r#"{"a":"\ud7ff"}"#]),
            // Halves that never meet.
            (vec![r#"{"a":"\ude00x"}"#], vec!["{\"a\":\"\u{fffd}x\"}"]),
            (vec![r#"{"a":"x\ud83dy"}"#], vec!["{\"a\":\"x\u{fffd}y\"}"]),
            (vec![r#"{"a":"x\ude00"}"#], vec!["{\"a\":\"x\u{fffd}\"}"]),
            // The same text under two keys, and no frame at all.
            (
                vec![r#"{"a":"\ud83d","b":"\ud83d"}"#, r#"{"a":"\ude00","b":"\ude00"}"#],
                vec![r#"{"a":"","b":""}"#, r#"{"a":"😀","b":"😀"}"#],
            ),
            (vec![r#"{"a":"\ud83d"}"#, r"\ude00"], vec![r#"{"a":""}"#, "\u{fffd}"]),
            // A first half twice, then a second.
            (vec![r#"{"a":"\ud83d\ud83d\ude00"}"#], vec!["{\"a\":\"\u{fffd}\\ud83d\\ude00\"}"]),
        ] {
            let mut surrogates = Surrogates::default();
            let said: Vec<_> = frames.iter().map(|frame| surrogates.join(frame)).collect();
            assert_eq!(said, joined, "{frames:?}");
        }
    }
}
