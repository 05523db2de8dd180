//! Generated ids and names: random ids, and session names from folders.

use std::path::Path;

use holdpoint_common::{MAX_SESSION_NAME, SessionId, check_name};

/// The characters of a generated session id, which have 50 bits.
const ID_CHARACTERS: usize = 10;

/// The bytes that are reserved for a hyphen and a number behind a name.
const NUMBER: usize = 11;

/// Generates a random id.
pub(crate) fn fresh_id() -> SessionId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let text: String = (0..ID_CHARACTERS)
        .map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())]))
        .collect();
    // The alphabet is a subset of the characters that an id may have.
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a session id"))
}

/// The folder's name, with dots replaced if necessary, if it is a valid session name and leaves
/// room for a number.
pub(crate) fn folder_name(folder: &Path) -> Option<String> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let fits = |name: &String| name.len() + 8 <= MAX_SESSION_NAME && check_name(name).is_ok();
    let undotted = |name: &String| name.replace('.', "-");
    let named = name.as_ref().map(undotted).filter(fits);
    name.filter(fits).or(named)
}

/// The part of a name that a number is appended to.
pub(crate) fn name_stem(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_SESSION_NAME - NUMBER)]
}
