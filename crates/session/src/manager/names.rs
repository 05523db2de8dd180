//! What fresh sessions are called.

use actix::prelude::*;
use holdpoint_common::{MAX_SESSION_NAME, SessionId, check_name};

use super::Manager;
use crate::error::SessionError;
use crate::state::Refused;

/// Characters of a fresh session id: 50 bits.
const ID_CHARACTERS: usize = 10;

pub(crate) fn fresh_id() -> SessionId {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let text: String = (0..ID_CHARACTERS).map(|_| char::from(ALPHABET[fastrand::usize(..ALPHABET.len())])).collect();
    // The alphabet is a part of what an id may have.
    text.parse().unwrap_or_else(|_| unreachable!("{text} is a session id"))
}

pub(super) fn folder_name(folder: &std::path::Path) -> String {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    // With room for a number.
    let fits = |name: &String| name.len() + 8 <= MAX_SESSION_NAME && check_name(name).is_ok();
    name.filter(fits).unwrap_or_else(|| "session".to_owned())
}

/// A name: this one, or the folder's, numbered where taken.
#[derive(Message)]
#[rtype(result = "Result<String, SessionError>")]
pub(super) struct NameFor(pub(super) Option<String>, pub(super) String);

impl Handler<NameFor> for Manager {
    type Result = Result<String, SessionError>;

    fn handle(&mut self, NameFor(wanted, folder): NameFor, _: &mut Self::Context) -> Self::Result {
        if let Some(wanted) = &wanted {
            check_name(wanted).map_err(Refused::Name)?;
        }
        let name = match wanted {
            Some(name) if self.names.contains_key(&name) => return Err(SessionError::NameTaken { name }),
            Some(name) => name,
            None if !self.names.contains_key(&folder) => folder,
            None => {
                let last = self.numbered.entry(folder.clone()).or_insert(1);
                loop {
                    *last += 1;
                    let name = format!("{folder}-{last}");
                    if !self.names.contains_key(&name) {
                        break name;
                    }
                }
            }
        };
        Ok(name)
    }
}
