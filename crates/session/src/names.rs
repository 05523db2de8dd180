//! What sessions are called where nobody says: fresh ids, and names by their folder.

use std::path::Path;

use holdpoint_common::{MAX_SESSION_NAME, SessionId, check_name};

/// Characters of a fresh session id: 50 bits.
const ID_CHARACTERS: usize = 10;

/// Bytes that the number behind a name may take, and its hyphen.
const NUMBER: usize = 11;

/// A fresh id, at random.
pub(crate) fn fresh_id() -> SessionId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let text: String = (0..ID_CHARACTERS).map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())])).collect();
    // The alphabet is a part of what an id may have.
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a session id"))
}

/// The folder's name, if a session can be called that and still has room for a number.
pub(crate) fn folder_name(folder: &Path) -> Option<String> {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let fits = |name: &String| name.len() + 8 <= MAX_SESSION_NAME && check_name(name).is_ok();
    let undotted = |name: &String| name.replace('.', "-");
    let named = name.as_ref().map(undotted).filter(fits);
    name.filter(fits).or(named)
}

/// What of a name stands before its number.
pub(crate) fn numbered_of(name: &str) -> &str {
    &name[..name.floor_char_boundary(MAX_SESSION_NAME - NUMBER)]
}
