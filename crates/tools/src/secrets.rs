//! Secrets in what is shown: found by their shape or by the name they stand under, and masked.
//!
//! Only values that stand there literally are taken for secrets, never a path, an address or anything that a shell
//! would expand: a mask hides what something is, not what happens. In a command, what is in doubt is shown.

mod block;
mod command;
mod known;
mod named;

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::Range;

/// Characters of a secret that stay, so that it can be told which one it is.
const OPEN: usize = 4;

/// Characters from which so many may stay.
const LONG: usize = 12;

/// What a mask says behind the number of characters.
const MASKED: &str = " characters masked)";

/// A secret in a text. Always ASCII.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Secret {
    /// Where it stands, in bytes.
    pub(crate) range: Range<usize>,
    /// So many of its first bytes stay.
    pub(crate) open: usize,
}

impl Secret {
    fn masked(range: Range<usize>) -> Self {
        let open = if range.len() >= LONG { OPEN } else { 0 };
        Self { range, open }
    }
}

/// `text` with its secrets masked: of each, the first four characters (of short ones, none) and
/// `…(36 characters masked)`.
///
/// Known shapes (keys of well-known services, JSON Web Tokens, private keys), passwords in addresses and
/// `Authorization` headers, and values of options, variables and fields whose names say that they are secret.
#[must_use]
pub fn mask(text: &str) -> Cow<'_, str> {
    let secrets = find(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for Secret { range, open } in secrets {
        masked.push_str(&text[at..range.start + open]);
        put_mask(range.len() - open, &mut masked);
        at = range.end;
    }
    masked.push_str(&text[at..]);
    Cow::Owned(masked)
}

/// The secrets of a text, in their order; no two overlap.
pub(crate) fn find(text: &str) -> Vec<Secret> {
    let mut found = known::find(text);
    found.extend(named::find(text, false));
    found.extend(block::find(text));
    in_order(found)
}

/// The same for a command: only what can't be a program, a file or a host, whatever it looks like.
pub(crate) fn find_in_command(command: &str) -> Vec<Secret> {
    in_order(command::find(command))
}

fn in_order(mut found: Vec<Secret>) -> Vec<Secret> {
    found.sort_by_key(|secret| (secret.range.start, std::cmp::Reverse(secret.range.end)));
    let mut end = 0;
    found.retain(|secret| {
        let apart = secret.range.start >= end;
        end = end.max(secret.range.end);
        apart
    });
    found
}

/// Says that so many characters are not shown.
pub(crate) fn put_mask(characters: usize, shown: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(shown, "…({characters}{MASKED}");
}

/// Whether a text begins like a mask.
pub(crate) fn looks_masked(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("…(") else { return false };
    let number = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
    number > 0 && rest[number..].starts_with(MASKED)
}
