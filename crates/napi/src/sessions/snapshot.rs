//! Functions that read a session's last snapshot at once.

use holdpoint_common::Ask;
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;

use super::Sessions;
use crate::convert::{run_sync, to_json};
use crate::globals::parse_json;

#[napi]
impl Sessions {
    /// Returns the status of a session, at once. The session must have been opened, found or
    /// attached in this program; it is named by its id.
    ///
    /// Throws `unknownSession`.
    #[napi(catch_unwind, ts_return_type = "SessionStatus")]
    pub fn session_get_status(&self, env: &Env, id: String) -> napi::Result<&'static str> {
        self.read_known(env, &id, |_, session| session.snapshot().status.as_str())
    }

    /// Returns the pause that clients should show, or `null` if no ask is open or a question comes
    /// first. Reads at once, like `sessionGetStatus`.
    ///
    /// The returned pause counts as shown: an answer without an id goes to it.
    #[napi(catch_unwind, ts_return_type = "PauseState | null")]
    pub fn session_get_pause_state<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<Unknown<'env>> {
        let pause = self.read_known(env, &id, |client, session| {
            let snapshot = session.snapshot();
            let first = snapshot.asks.first();
            let pause = first.and_then(Ask::pause);
            // A question that comes first is not shown by this function.
            if first.is_none() || pause.is_some() {
                client.known.show(session.id(), pause.as_ref().map(|pause| pause.id.clone()));
            }
            pause
        })?;
        parse_json(env, &run_sync(env, || to_json(&pause))?)
    }

    /// Returns the last snapshot of a session, at once. Each call returns a new object. The
    /// snapshot is replaced before the event that changed it reaches a callback, so read it when an
    /// event arrives.
    ///
    /// The first ask of the snapshot counts as shown: an answer without an id goes to it.
    #[napi(catch_unwind, ts_return_type = "Snapshot")]
    pub fn session_snapshot<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<Unknown<'env>> {
        let snapshot = self.read_known(env, &id, |client, session| {
            let snapshot = session.snapshot();
            client.known.show(session.id(), snapshot.asks.first().map(|ask| ask.id.clone()));
            snapshot
        })?;
        parse_json(env, &run_sync(env, || to_json(&snapshot))?)
    }
}
