//! Holding a session at its next boundary, and letting it go on.

use holdpoint_common::HoldShown;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;

use super::Sessions;
use crate::crossing::{promise, word};

#[napi]
impl Sessions {
    /// Stops a session at its next boundary; an idle one at once. Gives what the hold is now.
    #[napi(ts_return_type = "Promise<Hold>")]
    pub fn session_hold<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        promise(env, async move {
            let session = place.session(&id).await?;
            let hold = session.hold().await?;
            session.refresh().await?;
            Ok(hold)
        })
    }

    /// Lets a session go on. Gives what the hold is now.
    #[napi(ts_return_type = "Promise<Hold>")]
    pub fn session_release<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        self.place().promise_and_stay(env, async move {
            let session = place.session(&id).await?;
            let hold = session.release().await?;
            session.refresh().await?;
            Ok((session, hold))
        })
    }

    /// Holds or releases: the other of what the client was showing, which without `shown` is what the session has last
    /// published. If that is no longer so, nothing changes. Gives what the hold is now.
    #[napi(ts_args_type = "id: string, shown?: HoldShown", ts_return_type = "Promise<Hold>")]
    pub fn session_toggle_hold<'env>(
        &self,
        env: &'env Env,
        id: String,
        shown: Option<String>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        self.place().promise_and_stay(env, async move {
            let shown: Option<HoldShown> = word("shown", shown)?;
            let session = place.session(&id).await?;
            let hold = session.toggle_hold(shown.unwrap_or_else(|| session.snapshot().hold.shown())).await?;
            session.refresh().await?;
            Ok((session, hold))
        })
    }
}
