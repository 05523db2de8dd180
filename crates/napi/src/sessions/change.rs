//! What of a session can be changed while it lives: its name, its model, how it is logged.

use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use super::{Sessions, read_again};
use crate::crossing::done;

#[napi]
impl Sessions {
    /// Gives a session another name, which is its title, too. One that is only saved stays so.
    ///
    /// Rejects with `nameTaken` or `badName`.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_rename<'env>(&self, env: &'env Env, id: String, name: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let place = self.place();
        done(env, async move {
            let id = place.id(&id).await?;
            place.sessions()?.0.rename(&id, name).await?;
            if let Ok(session) = place.known.get(id.as_str()) {
                read_again(&session).await;
            }
            Ok(())
        })
    }

    /// Gives a session another model, as `PROVIDER/NAME` or `PROVIDER`, from its next turn on.
    ///
    /// Rejects with `modelSetup`.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_set_model<'env>(
        &self,
        env: &'env Env,
        id: String,
        model: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        done(env, self.act(id, |session| async move { Ok(session.change_model(model).await?) }))
    }

    /// Has a session log at debug level, or not any more: to the `log` that was given to `start`, or to that of its daemon. Its
    /// snapshot's `isDebugEnabled` says what it is.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_set_debug<'env>(
        &self,
        env: &'env Env,
        id: String,
        enabled: bool,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        done(env, self.act(id, move |session| async move { Ok(session.change_debug(enabled).await?) }))
    }
}
