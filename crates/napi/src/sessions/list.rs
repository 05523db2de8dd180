//! Which sessions there are, and what becomes of them as a whole: found, closed, deleted.

use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;

use super::Sessions;
use crate::crossing::{done, promise};

#[napi]
impl Sessions {
    /// Every session: live ones first, the newest first.
    #[napi(ts_return_type = "Promise<SessionSummary[]>")]
    pub fn session_list<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        promise(env, async move { Ok(place.sessions()?.0.list().await?) })
    }

    /// The open asks of all sessions, live and saved: the oldest first.
    #[napi(ts_return_type = "Promise<InboxAsk[]>")]
    pub fn session_inbox<'env>(&self, env: &'env Env) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        promise(env, async move { Ok(place.sessions()?.0.inbox().await?) })
    }

    /// Finds a session by its id, a unique beginning of it, or its name, and gives its id. One that is only saved is
    /// opened.
    ///
    /// Rejects with `unknownSession` or `ambiguous`.
    #[napi(ts_return_type = "Promise<SessionId>")]
    pub fn session_find<'env>(&self, env: &'env Env, what: String) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let place = self.place();
        promise(env, async move { Ok(place.session(&what).await?.id().clone()) })
    }

    /// Ends a session: its turn is cut, its asks are answered Interrupted, its processes end, its name is free. It stays
    /// saved, and opens when it is found again.
    #[napi]
    pub fn session_close<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let place = self.place();
        done(env, async move {
            let session = place.session(&id).await?;
            session.close().await?;
            place.known.remove(session.id());
            Ok(())
        })
    }

    /// Deletes a closed session, with all that was said in it.
    ///
    /// Rejects with `live` if it was not closed.
    #[napi]
    pub fn session_delete<'env>(&self, env: &'env Env, id: String) -> napi::Result<PromiseRaw<'env, ()>> {
        let place = self.place();
        done(env, async move { Ok(place.sessions()?.0.delete(&id).await?) })
    }
}
