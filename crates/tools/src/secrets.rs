//! Finds and masks secrets in displayed text, by their shape or by the name before them.
//!
//! Only literal values count as secrets, never a path, an address or anything that a shell would
//! expand: a mask must not hide what a command does. In a command, a doubtful value is shown.

mod block;
mod command;
mod known;
mod named;

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

/// How many characters of a secret stay readable, so that a user can recognise it.
const VISIBLE_CHARS: usize = 4;

/// The length in characters from which a part of a secret stays readable.
const MIN_PARTLY_VISIBLE: usize = 12;

/// The text of a mask after the number of characters.
const MASKED: &str = " characters masked)";

/// A secret in a text. Its characters are always ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    /// Its position in the text, in bytes.
    pub(crate) range: Range<usize>,
    /// How many of its first bytes stay readable.
    pub(crate) visible: usize,
}

impl Secret {
    /// A secret whose first characters stay readable if it is long enough.
    fn new(range: Range<usize>) -> Self {
        let visible = if range.len() >= MIN_PARTLY_VISIBLE { VISIBLE_CHARS } else { 0 };
        Self { range, visible }
    }
}

/// Masks the secrets in a line of a list, where nothing depends on the exact text. In contrast to
/// [`mask`], doubtful values are masked as well: every value of a field with the name of a secret,
/// and every long word after `Bearer`.
#[must_use]
pub fn mask_in_list(line: &str) -> Cow<'_, str> {
    let mut found = find(line);
    found.extend(named::find_doubtful(line));
    apply_masks(line, sorted_without_overlaps(found))
}

/// Masks the secrets in `text`. Each keeps its first four characters, or none if it is short,
/// before `…(36 characters masked)`.
///
/// Secrets are known shapes (keys of well-known services, JSON Web Tokens, private keys), passwords
/// in addresses and `Authorization` headers, and values of options, variables and fields whose
/// names mark them as secret.
#[must_use]
pub fn mask(text: &str) -> Cow<'_, str> {
    apply_masks(text, find(text))
}

fn apply_masks(text: &str, secrets: Vec<Secret>) -> Cow<'_, str> {
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for Secret { range, visible } in secrets {
        masked.push_str(&text[at..range.start + visible]);
        put_mask(range.len() - visible, &mut masked);
        at = range.end;
    }
    masked.push_str(&text[at..]);
    Cow::Owned(masked)
}

/// The secrets of a text, in order and without overlaps.
pub(crate) fn find(text: &str) -> Vec<Secret> {
    let mut found = known::find(text);
    found.extend(named::find(text, false));
    found.extend(block::find(text));
    sorted_without_overlaps(found)
}

/// The secrets of a command: only values that can't be a program, a file or a host, whatever their
/// shape.
pub(crate) fn find_in_command(command: &str) -> Vec<Secret> {
    sorted_without_overlaps(command::find(command))
}

fn sorted_without_overlaps(mut found: Vec<Secret>) -> Vec<Secret> {
    found.sort_by_key(|secret| (secret.range.start, std::cmp::Reverse(secret.range.end)));
    let mut end = 0;
    found.retain_mut(|secret| {
        if secret.range.end <= end {
            return false;
        }
        if secret.range.start < end {
            *secret = Secret { range: end..secret.range.end, visible: 0 };
        }
        end = secret.range.end;
        true
    });
    found
}

/// Appends a mask for this number of characters.
pub(crate) fn put_mask(characters: usize, shown: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(shown, "…({characters}{MASKED}");
}

/// Whether a text begins like a mask.
pub(crate) fn looks_masked(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("…(") else { return false };
    let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    digits > 0 && rest[digits..].starts_with(MASKED)
}
