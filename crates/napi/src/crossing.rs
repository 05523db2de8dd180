//! Values and promises, on their way to JavaScript and back.
//!
//! What has a shape crosses as JSON text, which is written on another thread and read by the engine of JavaScript: for
//! both that is several times faster than setting property after property. No panic crosses.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;
use holdpoint_common::{json, unknown};
use napi::bindgen_prelude::{Function, JsObjectValue, Object, PromiseRaw};
use napi::{Env, Unknown};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};

use crate::failure::Failure;

/// A promise of what `work` comes to.
pub(crate) fn promise<'env, T: Serialize>(
    env: &'env Env,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
    let text = async { write(&work.await?) };
    env.spawn_future_with_callback(settled(text), |env, text| parse(env, &text.map_err(|error| error.into_js(env))?))
}

/// A promise that `work` is done.
pub(crate) fn done<'env>(
    env: &'env Env,
    work: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, ()>> {
    env.spawn_future_with_callback(settled(work), |env, done| done.map_err(|error| error.into_js(env)))
}

/// What `work` comes to, also if it panics. The error of a promise is made where JavaScript runs: no error of napi's own.
pub(crate) async fn settled<T>(work: impl Future<Output = Result<T, Failure>>) -> napi::Result<Result<T, Failure>> {
    Ok(AssertUnwindSafe(work).catch_unwind().await.unwrap_or_else(|panic| Err(Failure::panicked(&*panic))))
}

/// What `work` comes to, at once: thrown, if it fails or panics.
pub(crate) fn now<T>(env: &Env, work: impl FnOnce() -> Result<T, Failure>) -> napi::Result<T> {
    caught(work).map_err(|failure| failure.into_js(env))
}

/// What `work` comes to, also if it panics.
pub(crate) fn caught<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::panicked(&*panic)))
}

/// What JavaScript has, and its collector drops: where that panics, the process goes on.
pub(crate) struct Collected<T: Default>(pub(crate) T);

impl<T: Default> Drop for Collected<T> {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.0);
        let dropped = caught(|| {
            drop(value);
            Ok(())
        });
        if dropped.is_err() {
            tracing::error!("what JavaScript had panicked when it was dropped");
        }
    }
}

/// A value as text.
pub(crate) fn write(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new("failed", error))
}

/// A value from text, as JavaScript reads it.
pub(crate) fn parse<'env>(env: &'env Env, text: &str) -> napi::Result<Unknown<'env>> {
    global_json(env)?.get_named_property::<Function<'_, &str, Unknown<'env>>>("parse")?.call(text)
}

/// An object of JavaScript, read as ours. `what` names it in the error.
pub(crate) fn read<T: DeserializeOwned>(env: &Env, what: &str, value: Unknown<'_>) -> Result<T, Failure> {
    let text = text(env, what, value)?;
    // It would be taken for the fields of an object, in their order.
    if text.starts_with('[') {
        return Err(Failure::argument(format!("{what}: this is an array, and not an object")));
    }
    known(what, &mut serde_json::Deserializer::from_str(&text))
}

/// The same of what may be an array.
pub(crate) fn read_list<T: DeserializeOwned>(env: &Env, what: &str, value: Unknown<'_>) -> Result<T, Failure> {
    known(what, &mut serde_json::Deserializer::from_str(&text(env, what, value)?))
}

fn text(env: &Env, what: &str, value: Unknown<'_>) -> Result<String, Failure> {
    let stringify =
        |env| global_json(env)?.get_named_property::<Function<'_, Unknown<'_>, Option<String>>>("stringify");
    let text = stringify(env).and_then(|stringify| stringify.call(value));
    let text = text.map_err(|error| Failure::argument(format!("{what}: {error}")))?;
    Ok(text.unwrap_or_else(|| "null".to_owned()))
}

/// A value of ours. What it was given that we know nothing of is an error: most likely a name is wrong.
pub(crate) fn known<'de, T: Deserialize<'de>>(
    what: &str,
    given: impl Deserializer<'de, Error = serde_json::Error>,
) -> Result<T, Failure> {
    match unknown::read(given) {
        Ok((value, None)) => Ok(value),
        Ok((_, Some(path))) => Err(Failure::argument(format!("{what}: there is no option `{path}`"))),
        Err(error) => Err(Failure::argument(format!("{what}: {}", json::fault(&error)))),
    }
}

fn global_json<'env>(env: &'env Env) -> napi::Result<Object<'env>> {
    env.get_global()?.get_named_property("JSON")
}
