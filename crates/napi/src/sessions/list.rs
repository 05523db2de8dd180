//! Which sessions there are, and what becomes of them as a whole: found, closed, deleted.

use holdpoint_session::SessionError;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use super::supplies::Environment;
use super::{Sessions, read_again};
use crate::crossing::{done, promise, read};

/// When a session is closed.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CloseOptions {
    /// Only if it has nothing to do, and nobody has given it a prompt or a run, and no turn began, behind the event of this
    /// number.
    #[napi(ts_type = "number")]
    pub unused_since: Option<u64>,
}

#[napi]
impl Sessions {
    /// Every session: live ones first, the newest first.
    #[napi(catch_unwind, ts_return_type = "Promise<SessionSummary[]>")]
    pub fn session_list<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        promise(env, async move { Ok(place.sessions()?.0.list().await?) })
    }

    /// The open asks of all sessions, live and saved: the oldest first.
    #[napi(catch_unwind, ts_return_type = "Promise<InboxAsk[]>")]
    pub fn session_inbox<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        promise(env, async move { Ok(place.sessions()?.0.inbox().await?) })
    }

    /// Finds a session by its id, a unique prefix of it (4 characters or more), or its name, and gives its id. One that
    /// is only saved is opened, also if it was closed by another.
    ///
    /// Rejects with `unknownSession` or `ambiguous` (`error.ids` says which may be meant).
    #[napi(catch_unwind, ts_return_type = "Promise<SessionId>")]
    pub fn session_find<'env>(&self, env: &'env Env, what: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        let environment = Environment::or_ours(None);
        promise(env, async move {
            let session = place.find(&what, environment).await?;
            read_again(&session).await;
            Ok(session.id().clone())
        })
    }

    /// Ends a session: its turn is cut, its asks are answered Interrupted, its processes end, its name is free. It stays
    /// saved, and opens when it is used again. One that is only saved is not opened for this.
    ///
    /// Rejects with `inexact` for a prefix of an id, with `closed` if it is that already, with `inUse` if it is not closed because of `unusedSince`, with
    /// `notSaving` if what it has done can't be saved at present.
    #[napi(catch_unwind, ts_args_type = "id: string, options?: CloseOptions", ts_return_type = "Promise<void>")]
    pub fn session_close<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let options = read::<Option<CloseOptions>>(env, "options", options);
        let place = self.place();
        done(env, async move {
            let CloseOptions { unused_since } = options?.unwrap_or_default();
            let what = id;
            let id = place.id(&what).await?;
            let sessions = place.sessions()?.0;
            if id.has_prefix(&what) && id.as_str() != what && sessions.look(id.as_str()).await?.settings.name != what {
                return Err(SessionError::Inexact { what, session: id }.into());
            }
            match unused_since {
                None => sessions.close(&id).await?,
                Some(since) => sessions.close_unused(&id, since).await?,
            }
            place.known.forget(&id);
            Ok(())
        })
    }

    /// Deletes a closed session, with all that was said in it.
    ///
    /// Rejects with `live` if it was not closed, with `inexact` for a prefix of an id.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_delete<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let place = self.place();
        // It may have been closed by another.
        let known = place.known.find(&id);
        done(env, async move {
            place.sessions()?.0.delete(&id).await?;
            if let Ok(Some(id)) = known {
                place.known.forget(&id);
            }
            Ok(())
        })
    }
}
