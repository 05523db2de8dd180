//! Generated ids and names: random ids, and session names from folders.

use std::path::Path;

use holdpoint_common::{MAX_SESSION_NAME, SessionId, check_name};

/// How many characters a generated session id has. Together they hold 50 random bits.
const ID_CHARACTERS: usize = 10;

/// How many bytes are reserved for a hyphen and a number after a name.
const NUMBER_BYTES: usize = 11;

/// Generates a random id.
pub(crate) fn fresh_id() -> SessionId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let text: String = (0..ID_CHARACTERS)
        .map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())]))
        .collect();
    // The alphabet is a subset of the characters that an id may have.
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a session id"))
}

/// The folder's name, with dots replaced if necessary; `None` if it is not a valid session name or
/// leaves no room for a number.
pub(crate) fn folder_name(folder: &Path) -> Option<String> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let fits =
        |name: &String| name.len() + NUMBER_BYTES <= MAX_SESSION_NAME && check_name(name).is_ok();
    let without_dots = name.as_ref().map(|name| name.replace('.', "-")).filter(fits);
    name.filter(fits).or(without_dots)
}

/// The part of a name that a number is appended to.
pub(crate) fn name_stem(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_SESSION_NAME - NUMBER_BYTES)]
}
