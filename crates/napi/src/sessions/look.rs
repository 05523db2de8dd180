//! What a session has last published, at once.

use holdpoint_common::Ask;
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;

use super::Sessions;
use crate::crossing::{now, parse, write};

#[napi]
impl Sessions {
    /// What a session is doing. Read at once, of a session that was opened, found or attached from here, by its id.
    ///
    /// Throws `unknownSession`.
    #[napi(catch_unwind, ts_return_type = "SessionStatus")]
    pub fn session_get_status(&self, env: &Env, id: String) -> napi::Result<&'static str> {
        self.glance(env, &id, |_, session| session.snapshot().status.as_str())
    }

    /// The open pause that is to be shown, or `null`: a question may be before it, or nothing waits. Read at once.
    ///
    /// What it gives counts as shown: an answer without an id goes to it.
    #[napi(catch_unwind, ts_return_type = "PauseState | null")]
    pub fn session_get_pause_state<'env>(&self, env: &'env Env, id: String) -> napi::Result<Unknown<'env>> {
        let pause = self.glance(env, &id, |place, session| {
            let snapshot = session.snapshot();
            let first = snapshot.asks.first();
            let pause = first.and_then(Ask::pause);
            // Of a question that is before it, nothing was said by this.
            if first.is_none() || pause.is_some() {
                place.known.show(session.id(), pause.as_ref().map(|pause| pause.id.clone()));
            }
            pause
        })?;
        parse(env, &now(env, || write(&pause))?)
    }

    /// The session as it has last published itself; it is replaced before the event that changed it reaches a callback.
    /// Read at once, and a new object each time: ask for it when an event says that something has changed.
    ///
    /// Its first ask counts as shown: an answer without an id goes to it.
    #[napi(catch_unwind, ts_return_type = "Snapshot")]
    pub fn session_snapshot<'env>(&self, env: &'env Env, id: String) -> napi::Result<Unknown<'env>> {
        let snapshot = self.glance(env, &id, |place, session| {
            let snapshot = session.snapshot();
            place.known.show(session.id(), snapshot.asks.first().map(|ask| ask.id.clone()));
            snapshot
        })?;
        parse(env, &now(env, || write(&snapshot))?)
    }
}
