//! A store for tests that look at the memory of their whole process.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdpoint_common::SessionId;
use holdpoint_session::store::{Memory, SavedSession, SessionLog, SessionStore, StoreError};

/// A store that forgets a session when nobody has it open: how much is saved is not what is looked at.
pub(crate) struct Forgetful;

impl SessionStore for Forgetful {
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().create(session)
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().open(session)
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        Memory::default().list()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        Memory::default().delete(session)
    }
}
