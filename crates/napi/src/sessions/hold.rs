//! Functions that hold and release sessions.

use holdpoint_common::HoldState;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;

use super::Sessions;
use crate::convert::{argument, promise};

#[napi]
impl Sessions {
    /// Holds a session at its next boundary, or at once if it is idle. Resolves to the new state of
    /// the hold.
    #[napi(catch_unwind, ts_return_type = "Promise<Hold>")]
    pub fn session_hold<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        promise(env, self.act(id, |session| async move { Ok(session.hold().await?) }))
    }

    /// Releases a held session, so that it continues. Resolves to the new state of the hold.
    #[napi(catch_unwind, ts_return_type = "Promise<Hold>")]
    pub fn session_release<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        self.act_and_keep_alive(env, id, |session| async move { Ok(session.release().await?) })
    }

    /// Releases a session that the user sees as held, or holds it otherwise. `shown` is the state
    /// that the user sees; its default is that of the current snapshot. If the session is in
    /// another state, nothing changes. Resolves to the new state of the hold.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, shown?: HoldState",
        ts_return_type = "Promise<Hold>"
    )]
    pub fn session_toggle_hold<'env>(
        &self,
        env: &'env Env,
        id: String,
        shown: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let shown = argument::<Option<HoldState>>(env, "shown", shown)?;
        self.act_and_keep_alive(env, id, move |session| async move {
            let shown = shown.unwrap_or_else(|| session.snapshot().hold.shown());
            Ok(session.toggle_hold(shown).await?)
        })
    }
}
