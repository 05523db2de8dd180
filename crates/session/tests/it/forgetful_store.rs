//! A store for tests that measure the memory of their whole process.

use std::sync::Arc;

use holdpoint_common::SessionId;
use holdpoint_session::store::{
    Memory, NewLog, SavedPage, SavedSession, SessionLog, SessionPast, SessionStore,
};
use holdpoint_session::testing::Stored;

/// A store that forgets a session when its last handle is gone, so that saved facts do not count.
pub(crate) struct Forgetful;

impl SessionStore for Forgetful {
    fn create(&self, session: &SessionId, contents: NewLog) -> Stored<Arc<dyn SessionLog>> {
        Memory::default().create(session, contents)
    }

    fn open(&self, session: &SessionId) -> Stored<Arc<dyn SessionPast>> {
        Memory::default().open(session)
    }

    fn own(&self, session: &SessionId) -> Stored<Arc<dyn SessionLog>> {
        Memory::default().own(session)
    }

    fn list_page(&self, page: SavedPage) -> Stored<Vec<SavedSession>> {
        Memory::default().list_page(page)
    }

    fn delete(&self, session: &SessionId) -> Stored<()> {
        Memory::default().delete(session)
    }
}
