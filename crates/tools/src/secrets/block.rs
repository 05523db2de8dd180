//! Private keys in files: the lines between `-----BEGIN … PRIVATE KEY-----` and its end.

use std::ops::Range;

use super::Secret;

/// The length in characters from which a line can only belong to a key.
const MIN_KEY_LINE: usize = 40;

pub(super) const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// The lines of private keys. Other lines between the markers are left out.
pub(super) fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(BEGIN) {
        at += begin + BEGIN.len();
        let Some((title, rest)) = text[at..].split_once(DASHES) else { break };
        let body = rest.find(DASHES).map_or(rest, |end| &rest[..end]);
        if title.contains("PRIVATE KEY") && !title.contains('\n') {
            at += title.len() + DASHES.len();
            push_key_lines(body, at, &mut found);
            at += body.len();
        }
    }
    found
}

/// The lines of complete private keys: with an end, with no other text between their lines, and
/// with all lines but the last of equal length.
pub(super) fn find_whole(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(begin) = text[at..].find(BEGIN) {
        at += begin + BEGIN.len();
        let Some((title, rest)) = text[at..].split_once(DASHES) else { break };
        let body = rest.find(DASHES).map_or("", |end| &rest[..end]);
        let has_end = || rest[body.len()..].starts_with(&format!("-----END {title}-----"));
        if title.ends_with("PRIVATE KEY") && !title.contains('\n') && has_end() {
            let start = at + title.len() + DASHES.len();
            found.extend(
                whole_key_lines(body)
                    .unwrap_or_default()
                    .into_iter()
                    .map(|line| Secret { range: start + line.start..start + line.end, visible: 0 }),
            );
        }
    }
    found
}

/// The lines of a body that is only a key. In a string literal, `\n` separates them.
fn whole_key_lines(body: &str) -> Option<Vec<Range<usize>>> {
    let feed = ["\n", "\\n"].into_iter().find(|feed| body.starts_with(feed))?;
    let lines = body.strip_prefix(feed)?.strip_suffix(feed)?;
    let mut start = feed.len();
    let ranges: Vec<_> = lines
        .split(feed)
        .map(|line| {
            let range = start..start + line.len();
            start = range.end + feed.len();
            range
        })
        .collect();
    let length = ranges.first()?.len();
    let is_line =
        |line: &Range<usize>| !line.is_empty() && body[line.clone()].chars().all(is_base64);
    let (last, others) = ranges.split_last()?;
    let even = others.iter().all(|line| line.len() == length)
        && last.len() <= length
        && length >= MIN_KEY_LINE;
    (even && ranges.iter().all(is_line)).then_some(ranges)
}

/// Adds the lines of `body` that can only belong to a key to `found`. `at` is the position of
/// `body`.
fn push_key_lines(body: &str, at: usize, found: &mut Vec<Secret>) {
    let mut start = 0;
    while start < body.len() {
        let line = &body[start..];
        let end = line.find(|character| !is_base64(character)).unwrap_or(line.len());
        // In a string literal, `\n` separates lines.
        let skip = usize::from(body[..start].ends_with('\\') && line.starts_with(['n', 'r']));
        if end > skip && is_of_key(&line[skip..end]) {
            found.push(Secret { range: at + start + skip..at + start + end, visible: 0 });
        }
        start += end + line[end..].chars().next().map_or(0, char::len_utf8);
    }
}

fn is_base64(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '+' | '/' | '=')
}

/// Whether a line can only belong to a key: it mixes cases, is not an absolute path, and is long or
/// ends in `=`. Commands and other paths are hardly ever like this.
fn is_of_key(line: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| line.as_bytes().iter().any(kind);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    mixed && !line.starts_with('/') && (line.len() >= MIN_KEY_LINE || line.ends_with('='))
}
