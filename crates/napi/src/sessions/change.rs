//! Functions that change a session's name, model, asks mode or debug log.

use holdpoint_common::{AsksMode, PolicyMode};
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;

use super::{Sessions, refresh};
use crate::convert::{argument, promise_void};

#[napi]
impl Sessions {
    /// Renames a session. The name also becomes its title. A saved session stays saved.
    ///
    /// Rejects with `nameTaken`, or with `badName` if the name is not allowed.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_rename<'env>(
        &self,
        env: &'env Env,
        id: String,
        name: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let client = self.client();
        promise_void(env, async move {
            let id = client.id(&id).await?;
            client.sessions()?.0.rename(&id, name).await?;
            if let Ok(session) = client.known.get(id.as_str()) {
                refresh(&session).await;
            }
            Ok(())
        })
    }

    /// Changes the model of a session, as `PROVIDER/NAME` or `PROVIDER`, from its next turn on.
    ///
    /// Rejects with `modelSetup`.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_set_model<'env>(
        &self,
        env: &'env Env,
        id: String,
        model: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        promise_void(
            env,
            self.act(id, |session| async move { Ok(session.change_model(model).await?) }),
        )
    }

    /// Turns the debug log of a session on or off. The lines go to the `log` callback of `start`,
    /// or to the daemon's log. The snapshot has the setting as `isDebugEnabled`.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_set_debug<'env>(
        &self,
        env: &'env Env,
        id: String,
        enabled: bool,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        promise_void(
            env,
            self.act(id, move |session| async move { Ok(session.change_debug(enabled).await?) }),
        )
    }

    /// Changes the asks mode of a session. The new mode also answers the open asks.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, asks: AsksMode",
        ts_return_type = "Promise<void>"
    )]
    pub fn session_set_asks<'env>(
        &self,
        env: &'env Env,
        id: String,
        asks: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let asks = argument::<AsksMode>(env, "asks", asks)?;
        promise_void(
            env,
            self.act(id, move |session| async move { Ok(session.change_asks(asks).await?) }),
        )
    }

    /// Changes the policy mode of a session, for the calls that follow. Open asks stay open.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, policy: PolicyMode",
        ts_return_type = "Promise<void>"
    )]
    pub fn session_set_policy<'env>(
        &self,
        env: &'env Env,
        id: String,
        policy: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let policy = argument::<PolicyMode>(env, "policy", policy)?;
        promise_void(
            env,
            self.act(id, move |session| async move { Ok(session.change_policy(policy).await?) }),
        )
    }
}
