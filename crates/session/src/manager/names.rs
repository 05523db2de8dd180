//! What sessions are called: fresh ones, and those that come back.

use actix::prelude::*;
use holdpoint_common::{NameError, SessionId, check_name};

use super::Manager;
use crate::error::SessionError;
use crate::names::numbered_of;
use crate::state::Refused;
use crate::store::SessionStore;

/// Refuses a name that is the id of a session, live or saved.
pub(super) async fn check_free(name: &str, store: &dyn SessionStore) -> Result<(), SessionError> {
    let Ok(id) = name.trim().parse::<SessionId>() else { return Ok(()) };
    match store.open(&id).await {
        Ok(_) => Err(Refused::Name(NameError::Id).into()),
        // What can't be read is told when something is to be saved.
        Err(_) => Ok(()),
    }
}

/// A name: this one, or the folder's, numbered where taken.
#[derive(Message)]
#[rtype(result = "Result<String, SessionError>")]
pub(super) struct NameFor(pub(super) Option<String>, pub(super) Option<String>);

impl Handler<NameFor> for Manager {
    type Result = Result<String, SessionError>;

    fn handle(&mut self, NameFor(wanted, folder): NameFor, _: &mut Self::Context) -> Self::Result {
        let folder = folder.unwrap_or_else(|| "session".to_owned());
        if let Some(wanted) = &wanted {
            check_name(wanted).map_err(Refused::Name)?;
        }
        let name = match wanted {
            Some(name) if self.names.contains_key(&name) => return Err(SessionError::NameTaken { name }),
            Some(name) => name,
            None if !self.names.contains_key(&folder) => folder,
            None => self.numbered(&folder),
        };
        Ok(name)
    }
}

impl Manager {
    /// This name, with the next number behind it that makes one which no live session has.
    fn numbered(&mut self, name: &str) -> String {
        let name = numbered_of(name);
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

/// Gives a session its name as it becomes live: what it is called, or, if another live session has that name by now, that
/// with a number. Returns the name.
#[derive(Message)]
#[rtype(result = "String")]
pub(super) struct TakeName {
    pub(super) id: SessionId,
    /// What its log says that it is called.
    pub(super) name: String,
}

impl Handler<TakeName> for Manager {
    type Result = String;

    fn handle(&mut self, TakeName { id, name }: TakeName, _: &mut Self::Context) -> String {
        let is_taken = self.names.get(&name).is_some_and(|holder| *holder != id);
        let name = if is_taken { self.numbered(&name) } else { name };
        self.names.insert(name.clone(), id.clone());
        self.has_name(&id, &name);
        name
    }
}
