//! Functions that list, find, close and delete sessions.

use std::num::NonZeroUsize;

use holdpoint_common::api::{ListQuery, SessionCursor};
use holdpoint_session::SessionError;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use napi_derive::napi;
use serde::Deserialize;

use super::environment::Environment;
use super::{Sessions, refresh};
use crate::convert::{promise, promise_void, read_argument};

/// The options of `sessionClose`.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct CloseOptions {
    /// Close the session only if it is unused: it has no turn, run or queued prompt, and got none
    /// after the event with this number. Default: close in any case.
    #[napi(ts_type = "number")]
    pub unused_since: Option<u64>,
}

/// The options of `sessionListPage`.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ListOptions {
    /// Maximum number of sessions to list, at least 1. Default: all.
    #[napi(ts_type = "number")]
    pub limit: Option<NonZeroUsize>,
    /// The end of the previous page, from its `next`. Default: the list begins with its first
    /// session.
    #[napi(ts_type = "SessionCursor")]
    pub after: Option<SessionCursor>,
}

#[napi]
impl Sessions {
    /// Lists a page of the sessions: live ones first, then the newest first.
    ///
    /// Rejects with `invalidArgument` if `after` is not the `next` of a page.
    #[napi(
        catch_unwind,
        ts_args_type = "options?: ListOptions",
        ts_return_type = "Promise<SessionList>"
    )]
    pub fn session_list_page<'env>(
        &self,
        env: &'env Env,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let options = read_argument::<Option<ListOptions>>(env, "options", options);
        let client = self.client();
        promise(env, async move {
            let ListOptions { limit, after } = options?.unwrap_or_default();
            Ok(client.sessions()?.0.list_page(ListQuery { limit, after }).await?)
        })
    }

    /// Lists all sessions: live ones first, then the newest first.
    #[napi(catch_unwind, ts_return_type = "Promise<SessionSummary[]>")]
    pub fn session_list<'env>(
        &self,
        env: &'env Env,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let client = self.client();
        promise(env, async move { Ok(client.sessions()?.0.list().await?) })
    }

    /// Lists the open asks of all sessions, live and saved, the oldest first.
    #[napi(catch_unwind, ts_return_type = "Promise<InboxAsk[]>")]
    pub fn session_inbox<'env>(
        &self,
        env: &'env Env,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let client = self.client();
        promise(env, async move { Ok(client.sessions()?.0.inbox().await?) })
    }

    /// Finds a session by its id, a unique prefix of it with at least 4 characters, or its name,
    /// and resolves to its id. A saved session is opened, even if another client closed it.
    ///
    /// Rejects with `unknownSession`, or with `ambiguous` if several sessions match
    /// (`error.details.ids`).
    #[napi(catch_unwind, ts_return_type = "Promise<SessionId>")]
    pub fn session_find<'env>(
        &self,
        env: &'env Env,
        what: String,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let client = self.client();
        let environment = Environment::or_current(None);
        promise(env, async move {
            let session = client.find(&what, environment).await?;
            refresh(&session).await;
            Ok(session.id().clone())
        })
    }

    /// Closes a session: its turn is cut, its asks are closed, its processes end and its name
    /// becomes free. The session stays saved, and opens when it is used again. A saved session is
    /// closed without being opened.
    ///
    /// Rejects with `inexact` for a prefix of an id, `closed` if the session is closed already,
    /// `inUse` if `unusedSince` prevents the close, and `notSaving` if the session's events can't
    /// be saved at present.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, options?: CloseOptions",
        ts_return_type = "Promise<void>"
    )]
    pub fn session_close<'env>(
        &self,
        env: &'env Env,
        id: String,
        options: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let options = read_argument::<Option<CloseOptions>>(env, "options", options);
        let client = self.client();
        promise_void(env, async move {
            let CloseOptions { unused_since } = options?.unwrap_or_default();
            let given = id;
            let id = client.id(&given).await?;
            let sessions = client.sessions()?.0;
            if id.has_prefix(&given)
                && id.as_str() != given
                && sessions.look(id.as_str()).await?.settings.name != given
            {
                return Err(SessionError::Inexact { given, session: id }.into());
            }
            match unused_since {
                None => sessions.close(&id).await?,
                Some(since) => sessions.close_unused(&id, since).await?,
            }
            client.known.forget(&id);
            Ok(())
        })
    }

    /// Deletes a saved session and its log.
    ///
    /// Rejects with `live` if the session is live, with `inexact` for a prefix of an id, and with
    /// `ambiguous` if several sessions have the name.
    #[napi(catch_unwind, ts_return_type = "Promise<void>")]
    pub fn session_delete<'env>(
        &self,
        env: &'env Env,
        id: String,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let client = self.client();
        // A session that another client closed is still known here until it is deleted.
        let known = client.known.find(&id);
        promise_void(env, async move {
            client.sessions()?.0.delete(&id).await?;
            if let Ok(Some(id)) = known {
                client.known.forget(&id);
            }
            Ok(())
        })
    }
}
