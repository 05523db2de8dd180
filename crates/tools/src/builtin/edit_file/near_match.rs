//! The hint for an old string that was not found: lines that differ only in white space.

use std::ops::Range;

use memchr::{memchr_iter, memmem};

/// The most lines that a hint shows.
const MAX_LINES: usize = 20;

/// The most bytes that a hint shows.
const MAX_BYTES: usize = 2_000;

/// A suffix for an error: the lines that match `wanted` except for white space. Empty if there are
/// none.
pub(super) fn hint(text: &str, wanted: &str) -> String {
    let Some(range) = find_squeezed(text, wanted) else { return String::new() };
    let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
    let end = text[range.end..].find('\n').map_or(text.len(), |at| range.end + at);
    let first = 1 + memchr_iter(b'\n', &text.as_bytes()[..start]).count();
    let last = first + memchr_iter(b'\n', &text.as_bytes()[start..end]).count();
    let difference = match first == last {
        true => format!("line {first} differs"),
        false => format!("lines {first} to {last} differ"),
    };
    let shown: String =
        text[start..end].lines().take(MAX_LINES).flat_map(|line| [line, "\n"]).collect();
    let cut = shown.floor_char_boundary(MAX_BYTES);
    format!("; {difference} only in white space:\n{}", &shown[..cut])
}

/// The first range that matches `wanted` if white space is ignored.
fn find_squeezed(text: &str, wanted: &str) -> Option<Range<usize>> {
    let squeezed = squeeze(wanted);
    if squeezed.is_empty() {
        return None;
    }
    let squeezed_at = memmem::find(squeeze(text).as_bytes(), squeezed.as_bytes())?;
    // Find the same characters in the original text.
    let mut passed = 0;
    let mut start = None;
    for (index, character) in
        text.char_indices().filter(|(_, character)| !character.is_whitespace())
    {
        if passed == squeezed_at {
            start = Some(index);
        }
        passed += character.len_utf8();
        if passed == squeezed_at + squeezed.len() {
            return start.map(|start| start..index + character.len_utf8());
        }
    }
    None
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect()
}
