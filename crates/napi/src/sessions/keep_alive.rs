//! Keeps Node alive while a turn runs in this process, or in a daemon's session to which a callback
//! is attached, until all events are delivered.
//!
//! A callback alone does not keep Node alive: an idle session would keep it forever.

use std::future::Future;
use std::sync::Arc;

use holdpoint_session::SessionHandle;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use serde::Serialize;

use super::{NodeClient, Sessions};
use crate::convert::{catch_async_panic, to_json};
use crate::failure::Failure;
use crate::globals::parse_json;

impl Sessions {
    /// Returns a promise of an action on a session. Once it is done, Node stays alive until the
    /// session has settled.
    pub(super) fn act_and_keep_alive<'env, T, Acting>(
        &self,
        env: &'env Env,
        given: String,
        act: impl FnOnce(SessionHandle) -> Acting + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>>
    where
        T: Serialize + Send + 'static,
        Acting: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let act =
            |session: SessionHandle| async move { Ok((session.clone(), act(session).await?)) };
        self.client().promise_and_keep_alive(env, self.act(given, act))
    }
}

impl NodeClient {
    /// Returns a promise of the result of `work`. Once it is done, Node stays alive until the
    /// session has settled.
    pub(super) fn promise_and_keep_alive<'env, T: Serialize>(
        self: Arc<Self>,
        env: &'env Env,
        work: impl Future<Output = Result<(SessionHandle, T), Failure>> + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let work = async {
            let (session, value) = work.await?;
            Ok((session, value, || ()))
        };
        self.promise_and_keep_alive_with(env, work)
    }

    /// Like `promise_and_keep_alive`, and calls `on_resolved` when JavaScript gets the result, not
    /// before.
    pub(super) fn promise_and_keep_alive_with<'env, T: Serialize>(
        self: Arc<Self>,
        env: &'env Env,
        work: impl Future<Output = Result<(SessionHandle, T, impl FnOnce() + Send + 'static), Failure>>
        + Send
        + 'static,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let work = catch_async_panic(async {
            let (session, value, on_resolved) = work.await?;
            Ok((session, to_json(&value)?, on_resolved))
        });
        env.spawn_future_with_callback(work, move |env, done| {
            let (session, text, on_resolved) = done.map_err(|failure| failure.into_js(env))?;
            on_resolved();
            if self.is_local() || self.known.is_attached(session.id()) {
                // An open promise keeps Node alive, even if no code holds it.
                env.spawn_future(async move {
                    match session.settled().await {
                        Ok(snapshot) => self.known.wait_delivered(session.id(), snapshot.seq).await,
                        Err(error) => tracing::debug!(%error, "a session is gone"),
                    }
                    Ok(())
                })?;
            }
            parse_json(env, &text)
        })
    }
}
