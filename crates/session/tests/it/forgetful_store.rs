//! A store for tests that measure the memory of their whole process.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdpoint_common::SessionId;
use holdpoint_session::store::{
    Memory, NewLog, SavedSession, SessionLog, SessionStore, StoreError,
};

/// A store that forgets a session when its last handle is gone, so that saved facts do not count.
pub(crate) struct Forgetful;

impl SessionStore for Forgetful {
    fn create(
        &self,
        session: &SessionId,
        contents: NewLog,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().create(session, contents)
    }

    fn open(
        &self,
        session: &SessionId,
    ) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().open(session)
    }

    fn list(&self) -> BoxFuture<'static, Result<Vec<SavedSession>, StoreError>> {
        Memory::default().list()
    }

    fn delete(&self, session: &SessionId) -> BoxFuture<'static, Result<(), StoreError>> {
        Memory::default().delete(session)
    }
}
