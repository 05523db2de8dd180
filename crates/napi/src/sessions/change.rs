//! What of a session can be changed while it lives: its name, its model, how it is logged.

use napi::Env;
use napi::bindgen_prelude::PromiseRaw;
use napi_derive::napi;

use super::Sessions;
use crate::crossing::done;

#[napi]
impl Sessions {
    /// Gives a session another name, which is its title, too.
    ///
    /// Rejects with `nameTaken` or `badName`.
    #[napi]
    pub fn session_rename<'env>(&self, env: &'env Env, id: String, name: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let place = self.place();
        done(env, async move {
            let session = place.session(&id).await?;
            session.rename(name).await?;
            Ok(session.refresh().await?)
        })
    }

    /// Gives a session another model, as `PROVIDER/NAME` or `PROVIDER`, from its next turn on.
    ///
    /// Rejects with `modelSetup`.
    #[napi]
    pub fn session_set_model<'env>(
        &self,
        env: &'env Env,
        id: String,
        model: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let place = self.place();
        done(env, async move {
            let session = place.session(&id).await?;
            session.change_model(model).await?;
            Ok(session.refresh().await?)
        })
    }

    /// Has a session logged at debug level, or not any more. Its snapshot's `isDebugEnabled` says what it is.
    #[napi]
    pub fn session_set_debug<'env>(
        &self,
        env: &'env Env,
        id: String,
        enabled: bool,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let place = self.place();
        done(env, async move {
            let session = place.session(&id).await?;
            session.change_debug(enabled).await?;
            Ok(session.refresh().await?)
        })
    }
}
