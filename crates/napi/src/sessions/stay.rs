//! What Node stays for: a turn that runs in its process, or that one of its callbacks follows, until all of it came.
//!
//! A callback alone is no reason: an idle session would keep Node for ever.

use std::future::Future;
use std::sync::Arc;

use holdpoint_session::SessionHandle;
use napi::Env;
use napi::bindgen_prelude::{PromiseRaw, Unknown};
use serde::Serialize;

use super::{Place, Sessions};
use crate::crossing::{parse, settled, write};
use crate::failure::Failure;

impl Sessions {
    /// A promise of what is done with a session; from then on, Node stays until the session has settled.
    pub(super) fn act_and_stay<'env, T, Acting>(
        &self,
        env: &'env Env,
        what: String,
        act: impl FnOnce(SessionHandle) -> Acting + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>>
    where
        T: Serialize + Send + 'static,
        Acting: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let act = |session: SessionHandle| async move { Ok((session.clone(), act(session).await?)) };
        self.place().promise_and_stay(env, self.act(what, act))
    }
}

impl Place {
    /// A promise of what `work` comes to; from then on, Node stays until its session has settled.
    pub(super) fn promise_and_stay<'env, T: Serialize>(
        self: Arc<Self>,
        env: &'env Env,
        work: impl Future<Output = Result<(SessionHandle, T), Failure>> + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let work = async {
            let (session, value) = work.await?;
            Ok((session, value, || ()))
        };
        self.promise_told_and_stay(env, work)
    }

    /// The same. When JavaScript has what it comes to, and not before, `told` is called.
    pub(super) fn promise_told_and_stay<'env, T: Serialize>(
        self: Arc<Self>,
        env: &'env Env,
        work: impl Future<Output = Result<(SessionHandle, T, impl FnOnce() + Send + 'static), Failure>> + Send + 'static,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let work = settled(async {
            let (session, value, told) = work.await?;
            Ok((session, write(&value)?, told))
        });
        env.spawn_future_with_callback(work, move |env, done| {
            let (session, text, told) = done.map_err(|failure| failure.into_js(env))?;
            told();
            if self.is_here() || self.known.is_attached(session.id()) {
                // A promise keeps Node for as long as it is open, also if nobody has it.
                env.spawn_future(async move {
                    match session.settled().await {
                        Ok(snapshot) => self.known.reach(session.id(), snapshot.seq).await,
                        Err(error) => tracing::debug!(%error, "a session is gone"),
                    }
                    Ok(())
                })?;
            }
            parse(env, &text)
        })
    }
}
