//! The names of sessions that are opened for the first time or again.

use actix::prelude::*;
use holdpoint_common::{NameError, SessionId, check_name};

use super::Manager;
use crate::error::SessionError;
use crate::names::name_stem;
use crate::state::Refused;
use crate::store::SessionStore;

/// Refuses a name that is the id of a session, live or saved.
pub(super) async fn check_free(name: &str, store: &dyn SessionStore) -> Result<(), SessionError> {
    let Ok(id) = name.trim().parse::<SessionId>() else { return Ok(()) };
    match store.open(&id).await {
        Ok(_) => Err(Refused::Name(NameError::Id).into()),
        // A store that can't be read is reported when the session is saved.
        Err(_) => Ok(()),
    }
}

/// Chooses a name: the wanted one, or the folder's, with a number if that is taken.
#[derive(Message)]
#[rtype(result = "Result<String, SessionError>")]
pub(super) struct ChooseName(pub(super) Option<String>, pub(super) Option<String>);

impl Handler<ChooseName> for Manager {
    type Result = Result<String, SessionError>;

    fn handle(&mut self, ChooseName(wanted, folder): ChooseName, _: &mut Self::Context) -> Self::Result {
        let folder = folder.unwrap_or_else(|| "session".to_owned());
        if let Some(wanted) = &wanted {
            check_name(wanted).map_err(Refused::Name)?;
        }
        let name = match wanted {
            Some(name) if self.names.contains_key(&name) => return Err(SessionError::NameTaken { name }),
            Some(name) => name,
            None if !self.names.contains_key(&folder) => folder,
            None => self.with_number(&folder),
        };
        Ok(name)
    }
}

impl Manager {
    /// Appends the next number that makes the name unique among live sessions.
    fn with_number(&mut self, name: &str) -> String {
        let name = name_stem(name);
        let last = self.numbered.entry(name.to_owned()).or_insert(1);
        loop {
            *last += 1;
            let numbered = format!("{name}-{last}");
            if !self.names.contains_key(&numbered) {
                break numbered;
            }
        }
    }
}

/// Gives a session its name as it becomes live. If another live session has the name by now, a
/// number is appended. Replies with the name.
#[derive(Message)]
#[rtype(result = "String")]
pub(super) struct ClaimName {
    pub(super) id: SessionId,
    /// The name according to the session's log.
    pub(super) name: String,
}

impl Handler<ClaimName> for Manager {
    type Result = String;

    fn handle(&mut self, ClaimName { id, name }: ClaimName, _: &mut Self::Context) -> String {
        let is_taken = self.names.get(&name).is_some_and(|holder| *holder != id);
        let name = if is_taken { self.with_number(&name) } else { name };
        self.names.insert(name.clone(), id.clone());
        self.record_name(&id, &name);
        name
    }
}
