//! What tests that look at their whole process share.

use std::fs;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use holdpoint_common::SessionId;
use holdpoint_session::store::{Memory, SessionLog, SessionStore, StoreError};

/// A store that forgets a session when nobody has it open: how much is saved is not what is looked at.
pub(crate) struct Forgetful;

impl SessionStore for Forgetful {
    fn create(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().create(session)
    }

    fn open(&self, session: &SessionId) -> BoxFuture<'static, Result<Arc<dyn SessionLog>, StoreError>> {
        Memory::default().open(session)
    }
}

/// KiB of memory this process has.
pub(crate) fn resident_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}
