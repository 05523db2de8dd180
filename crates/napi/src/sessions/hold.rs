//! Holding a session at its next boundary, and letting it go on.

use holdpoint_common::HoldShown;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;

use super::Sessions;
use crate::crossing::{promise, read};

#[napi]
impl Sessions {
    /// Stops a session at its next boundary; an idle one at once. Gives what the hold is now.
    #[napi(catch_unwind, ts_return_type = "Promise<Hold>")]
    pub fn session_hold<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        promise(env, self.act(id, |session| async move { Ok(session.hold().await?) }))
    }

    /// Lets a session go on. Gives what the hold is now.
    #[napi(catch_unwind, ts_return_type = "Promise<Hold>")]
    pub fn session_release<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        self.act_and_stay(env, id, |session| async move { Ok(session.release().await?) })
    }

    /// Holds or releases: the other of what the client was showing, which without `shown` is what the session has last
    /// published. If that is no longer so, nothing changes. Gives what the hold is now.
    #[napi(catch_unwind, ts_args_type = "id: string, shown?: HoldShown", ts_return_type = "Promise<Hold>")]
    pub fn session_toggle_hold<'env>(
        &self,
        env: &'env Env,
        id: String,
        shown: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let shown = read::<Option<HoldShown>>(env, "shown", shown);
        self.act_and_stay(env, id, |session| async move {
            let shown = shown?.unwrap_or_else(|| session.snapshot().hold.shown());
            Ok(session.toggle_hold(shown).await?)
        })
    }
}
