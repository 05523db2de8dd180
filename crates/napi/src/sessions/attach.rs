//! Attaching: a session's events, given to a callback.

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

use super::{Place, Sessions};
use crate::batch::WAITING;
use crate::crossing::{Collected, caught, done, now, read, write};
use crate::failure::Failure;
use crate::stream::{Attached, Deliver, Delivery, Stream, Untaken};

/// What is received.
#[napi(object, object_from_js = false, object_to_js = false)]
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct AttachOptions {
    /// Only what comes after this number: the last event you have.
    #[napi(ts_type = "number")]
    pub after: Option<u64>,
    /// Of the past, at most so many facts: the newest.
    #[napi(ts_type = "number")]
    pub limit: Option<usize>,
    /// Whether Node stays for as long as this is attached, also while nothing happens: `false`.
    pub keep_alive: Option<bool>,
    /// Called once, when nothing more will come.
    #[napi(ts_type = "(end: StreamEnd) => void")]
    #[serde(skip)]
    pub on_end: Option<()>,
    /// Called with what the callback, or `onEnd`, has thrown, or rejected with if it is async. Without it, that is told by
    /// a warning of the process.
    #[napi(ts_type = "(error: unknown) => void")]
    #[serde(skip)]
    pub on_error: Option<()>,
}

/// What crosses: a list of events, or the end, as JSON.
type Crossing = FnArgs<(Option<String>, Option<String>)>;

/// The function of JavaScript that takes deliveries; `WEAK`: Node does not stay for it.
type Callback<const WEAK: bool> = ThreadsafeFunction<Delivery, Promise<()>, Crossing, Status, false, WEAK>;

/// What an attachment begins with, as it crosses. Its type is written down in the header of the declarations.
#[derive(Serialize)]
struct Beginning {
    attachment: u32,
    snapshot: Arc<Snapshot>,
}

#[napi]
impl Sessions {
    /// Calls back with a session's events: the past as `options` say, then what happens, in one stream of strictly rising
    /// numbers. Node stays for it while a turn is open, or always with `keepAlive`.
    ///
    /// The session never waits for the callback. What comes while it is busy waits here, up to 64 MiB, or 32 MiB of a
    /// daemon's session; beyond, facts still come all, and of text and output whose pieces are gone an `itemSoFar` says what
    /// they had come to.
    ///
    /// Rejects with `unknownSession`, `tooManyClients`, `unknownEvent` if it has not come to `after`, or what keeps a saved
    /// session from being opened.
    #[napi(
        catch_unwind,
        ts_args_type = "id: string, callback: (event: Event) => void, options?: AttachOptions",
        ts_return_type = "Promise<Attached>"
    )]
    pub fn session_attach<'env>(
        &self,
        env: &'env Env,
        id: String,
        deliver: Function<'_, Crossing, Promise<()>>,
        options: Unknown<'_>,
        is_loop: Option<bool>,
    ) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
        let options = now(env, || read::<Option<AttachOptions>>(env, "options", options))?.unwrap_or_default();
        let from =
            AttachFrom { limit: options.limit, ..AttachFrom::after(options.after.unwrap_or(0)) }.with_room(WAITING);
        let place = self.place();
        let deliver = match options.keep_alive {
            Some(true) => across(callback::<false>(&deliver, Arc::clone(&place))?),
            _ => across(callback::<true>(&deliver, Arc::clone(&place))?),
        };
        let session = self.session(id);
        self.place().promise_told_and_stay(env, async move {
            let session = session.await?;
            let attachment = session.attach(from).await?;
            let snapshot = Arc::clone(attachment.snapshot());
            let stream = Stream::new(session.clone(), attachment, from, deliver);
            let (begin, begins) = oneshot::channel();
            let number = place.known.attach(&session, |number| {
                let (place, id) = (Arc::downgrade(&place), session.id().clone());
                stream.start(begins, is_loop.unwrap_or(false), move || {
                    if let Some(place) = place.upgrade() {
                        place.known.detach(&id, Some(number));
                    }
                })
            });
            // Shown is what JavaScript has: not yet what it is about to have, and its events come behind that.
            let (id, first) = (session.id().clone(), snapshot.asks.first().map(|ask| ask.id.clone()));
            let told = move || {
                place.known.show(&id, first);
                drop(begin);
            };
            Ok((session, Beginning { attachment: number, snapshot }, told))
        })
    }

    /// Ends receiving: of one attachment, or of all that are attached to this session from here. When it resolves, nothing
    /// more is delivered; a loop ends with what it has in hand. The session goes on as before: nothing is answered or
    /// interrupted.
    #[napi(catch_unwind, ts_args_type = "id: string, attachment?: number", ts_return_type = "Promise<void>")]
    pub fn session_detach<'env>(
        &self,
        env: &'env Env,
        id: String,
        attachment: Unknown<'_>,
    ) -> napi::Result<PromiseRaw<'env, ()>> {
        let known = &self.place().known;
        let detach = |attachment| {
            let id = known.find(&id)?;
            Ok::<_, Failure>(id.map(|id| known.detach(&id, attachment)).unwrap_or_default())
        };
        let attached = read::<Option<u32>>(env, "attachment", attachment).and_then(detach);
        let detached = attached.map(|attached| join_all(attached.into_iter().map(Attached::detach)));
        done(env, async move {
            detached?.await;
            Ok(())
        })
    }
}

/// The function, to be called from other threads. What a delivery shows is shown as soon as it is called.
fn callback<const WEAK: bool>(
    deliver: &Function<'_, Crossing, Promise<()>>,
    place: Arc<Place>,
) -> napi::Result<Callback<WEAK>> {
    let place = Collected(place);
    deliver.build_threadsafe_function::<Delivery>().weak::<WEAK>().build_callback(
        move |ThreadsafeCallContext { value, .. }| {
            let crossing = caught(|| match value {
                Delivery::Events(batch) => {
                    if let Some((session, ask)) = &batch.shows {
                        place.0.known.show(session, ask.clone());
                    }
                    Ok((Some(batch.text()), None))
                }
                Delivery::End(end) => Ok((None, Some(write(&end)?))),
            });
            // An error here would end the process. Nothing is no delivery, and the function refuses it.
            Ok(FnArgs::from(crossing.unwrap_or((None, None))))
        },
    )
}

/// Takes deliveries to the function, and waits until they are taken.
fn across<const WEAK: bool>(callback: Callback<WEAK>) -> Deliver {
    let callback = Arc::new(callback);
    Box::new(move |delivery| -> BoxFuture<'static, Result<(), Untaken>> {
        let callback = Arc::clone(&callback);
        async move {
            let taken = callback.call_async_catch(delivery).await.map_err(|_| Untaken::Gone)?;
            taken.await.map_err(|_| Untaken::Failed)
        }
        .boxed()
    })
}
