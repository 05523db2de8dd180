//! Attaching callbacks to the events of a session.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use holdpoint_common::Snapshot;
use holdpoint_session::AttachFrom;
use napi::bindgen_prelude::{FnArgs, Function, Promise, PromiseRaw, Unknown};
use napi::threadsafe_function::{ThreadsafeCallContext, ThreadsafeFunction};
use napi::{Env, Status};
use napi_derive::napi;
use serde::{Deserialize, Serialize};
use tokio::sync::oneshot;

use super::{NodeClient, Sessions};
use crate::batch::MAX_WAITING_BYTES;
use crate::convert::{CatchDrop, argument, catch_panic, promise_void, read_argument, to_json};
use crate::failure::Failure;
use crate::stream::{Attached, Deliver, Delivery, DeliveryError, Stream};

/// The options of `sessionAttach`.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AttachOptions {
    /// Number of the last event that you have; only later events are delivered. Default: 0.
    #[napi(ts_type = "number")]
    pub after: Option<u64>,
    /// Maximum number of past facts to deliver; the newest ones are delivered. Default: all.
    #[napi(ts_type = "number")]
    pub limit: Option<usize>,
    /// Whether Node stays alive while the callback is attached, even if the session is idle.
    /// Default: `false`.
    pub keep_alive: Option<bool>,
    /// Called once, after the last event.
    #[napi(ts_type = "(end: StreamEnd) => void")]
    #[serde(skip)]
    pub on_end: Option<()>,
    /// Called with the errors that the callback or `onEnd` throws or, if it is async, rejects with.
    /// Default: the process emits a warning.
    #[napi(ts_type = "(error: unknown) => void")]
    #[serde(skip)]
    pub on_error: Option<()>,
}

/// The arguments of a delivery, as JSON: a list of events, or the end.
type DeliveryArgs = FnArgs<(Option<String>, Option<String>)>;

/// The JavaScript function that takes deliveries. If `WEAK`, it does not keep Node alive.
type Callback<const WEAK: bool> =
    ThreadsafeFunction<Delivery, Promise<()>, DeliveryArgs, Status, false, WEAK>;

/// The beginning of an attachment. Its TypeScript type is in `dts-header.d.ts`.
#[derive(Serialize)]
struct AttachResult {
    attachment: u32,
    snapshot: Arc<Snapshot>,
}

#[napi]
impl Sessions {
    /// Attaches a callback to a session's events: first the past ones that `options` select, then
    /// new ones, with strictly rising numbers. Node stays alive for it while a turn is open, or
    /// always with `keepAlive`.
    ///
    /// The session never waits for the callback. While it is busy, up to 64 MiB of events wait, or
    /// 32 MiB for a daemon's session. Beyond that, all facts are still delivered, but pieces of
    /// text and output may be replaced by an `itemSoFar` with the text so far.
    ///
    /// Rejects with `unknownSession`, `tooManyClients`, `unknownEvent` if the session has no event
    /// `after`, or the error that prevents a saved session from being opened.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, callback: (event: Event) => void, options?: AttachOptions",
        ts_return_type = "Promise<Attached>"
    )]
    pub fn session_attach<'env>(
        &self,
        env: &'env Env,
        id: String,
        deliver: Function<'_, DeliveryArgs, Promise<()>>,
        options: Unknown<'_>,
        is_loop: Option<bool>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        // `events.js` makes `deliver` from the callbacks, or from the loop over `sessionEvents`.
        let options =
            argument::<Option<AttachOptions>>(env, "options", options)?.unwrap_or_default();
        let from =
            AttachFrom { limit: options.limit, ..AttachFrom::after(options.after.unwrap_or(0)) }
                .with_room(MAX_WAITING_BYTES);
        let client = self.client();
        let deliver = match options.keep_alive {
            Some(true) => deliver_to_js(build_callback::<false>(&deliver, Arc::clone(&client))?),
            _ => deliver_to_js(build_callback::<true>(&deliver, Arc::clone(&client))?),
        };
        let session = self.session(id);
        self.client().promise_and_keep_alive_with(env, async move {
            let session = session.await?;
            let attachment = session.attach(from).await?;
            let snapshot = Arc::clone(attachment.snapshot());
            let stream = Stream::new(session.clone(), attachment, from, deliver);
            let (start, started) = oneshot::channel();
            let number = client.known.attach(&session, |number| {
                let client = Arc::downgrade(&client);
                let id = session.id().clone();
                stream.start(started, is_loop.unwrap_or(false), move || {
                    if let Some(client) = client.upgrade() {
                        client.known.detach(&id, Some(number));
                    }
                })
            });
            // An ask is shown when JavaScript has the snapshot, not before. The events follow the
            // snapshot.
            let id = session.id().clone();
            let first_ask = snapshot.asks.first().map(|ask| ask.id.clone());
            let on_resolved = move || {
                client.known.show(&id, first_ask);
                drop(start);
            };
            Ok((session, AttachResult { attachment: number, snapshot }, on_resolved))
        })
    }

    /// Detaches one attachment, or all attachments of this program to the session. When the promise
    /// resolves, no more events are delivered; a loop still gets the rest of its current batch. The
    /// session continues: no ask is answered and no turn is interrupted.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, attachment?: number",
        ts_return_type = "Promise<void>"
    )]
    pub fn session_detach<'env>(
        &self,
        env: &'env Env,
        id: String,
        attachment: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let known = &self.client().known;
        let remove = |attachment| {
            let id = known.find(&id)?;
            Ok::<_, Failure>(id.map(|id| known.detach(&id, attachment)).unwrap_or_default())
        };
        let removed = read_argument::<Option<u32>>(env, "attachment", attachment).and_then(remove);
        let detached = removed.map(|removed| join_all(removed.into_iter().map(Attached::detach)));
        promise_void(env, async move {
            detached?.await;
            Ok(())
        })
    }
}

/// Makes the function callable from other threads. The ask of a delivery counts as shown when the
/// function is called.
fn build_callback<const WEAK: bool>(
    deliver: &Function<'_, DeliveryArgs, Promise<()>>,
    client: Arc<NodeClient>,
) -> napi::Result<Callback<WEAK>> {
    let client = CatchDrop(client);
    deliver.build_threadsafe_function::<Delivery>().weak::<WEAK>().build_callback(
        move |ThreadsafeCallContext { value, .. }| {
            let args = catch_panic(|| match value {
                Delivery::Events(batch) => {
                    if let Some((session, ask)) = &batch.shown_ask {
                        client.0.known.show(session, ask.clone());
                    }
                    Ok((Some(batch.text()), None))
                }
                Delivery::End(end) => Ok((None, Some(to_json(&end)?))),
            });
            // An error here would end the process. Without arguments, the function itself refuses
            // the delivery.
            Ok(FnArgs::from(args.unwrap_or((None, None))))
        },
    )
}

/// Wraps the function, so that a delivery resolves when JavaScript has taken it.
fn deliver_to_js<const WEAK: bool>(callback: Callback<WEAK>) -> Deliver {
    let callback = Arc::new(callback);
    Box::new(move |delivery| -> BoxFuture<'static, Result<(), DeliveryError>> {
        let callback = Arc::clone(&callback);
        async move {
            let promise =
                callback.call_async_catch(delivery).await.map_err(|_| DeliveryError::Gone)?;
            promise.await.map_err(|_| DeliveryError::Failed)
        }
        .boxed()
    })
}
