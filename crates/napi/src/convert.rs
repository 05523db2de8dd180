//! Conversion of values and promises between Rust and JavaScript.
//!
//! Structured values cross as JSON text. For both sides this is several times faster than setting
//! one property after the other. The text of a promise's result is written on another thread. No
//! panic crosses.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;
use holdpoint_common::json;
use napi::bindgen_prelude::{Function, JsObjectValue, PromiseRaw};
use napi::{Env, Unknown};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::arguments;
use crate::failure::Failure;
use crate::globals::{global_json, parse_json};

/// Returns a promise of the result of `work`.
pub(crate) fn promise<'env, T: Serialize>(
    env: &'env Env,
    work: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, Unknown<'env>>> {
    let text = async { to_json(&work.await?) };
    env.spawn_future_with_callback(catch_async_panic(text), |env, text| {
        parse_json(env, &text.map_err(|error| error.into_js(env))?)
    })
}

/// Returns a promise that resolves when `work` is done.
pub(crate) fn promise_void<'env>(
    env: &'env Env,
    work: impl Future<Output = Result<(), Failure>> + Send + 'static,
) -> napi::Result<PromiseRaw<'env, ()>> {
    env.spawn_future_with_callback(catch_async_panic(work), |env, done| {
        done.map_err(|error| error.into_js(env))
    })
}

/// Runs `work` and catches its panics. The inner error becomes the promise's error on the
/// JavaScript thread; napi's own error is not used.
pub(crate) async fn catch_async_panic<T>(
    work: impl Future<Output = Result<T, Failure>>,
) -> napi::Result<Result<T, Failure>> {
    Ok(AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(Failure::panicked(&*panic))))
}

/// Runs `work` at once. Throws if it fails or panics.
pub(crate) fn run_sync<T>(env: &Env, work: impl FnOnce() -> Result<T, Failure>) -> napi::Result<T> {
    catch_panic(work).map_err(|failure| failure.into_js(env))
}

/// Reads an argument at once. Throws if it is wrong.
pub(crate) fn argument<T: DeserializeOwned>(
    env: &Env,
    name: &str,
    value: Unknown<'_>,
) -> napi::Result<T> {
    run_sync(env, || read_argument(env, name, value))
}

/// Runs `work` and turns a panic into a failure.
pub(crate) fn catch_panic<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(Failure::panicked(&*panic)))
}

/// A value that JavaScript owns and its garbage collector drops. A panic in the drop does not end
/// the process.
pub(crate) struct CatchDrop<T: Default>(pub(crate) T);

impl<T: Default> Drop for CatchDrop<T> {
    fn drop(&mut self) {
        let value = std::mem::take(&mut self.0);
        let dropped = catch_panic(|| {
            drop(value);
            Ok(())
        });
        if dropped.is_err() {
            tracing::error!("a value owned by JavaScript panicked when it was dropped");
        }
    }
}

/// Serialises a value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::new("failed", error))
}

/// Deserialises the argument with this name.
pub(crate) fn read_argument<T: DeserializeOwned>(
    env: &Env,
    name: &str,
    value: Unknown<'_>,
) -> Result<T, Failure> {
    let stringify = |env| {
        global_json(env)?
            .get_named_property::<Function<'_, Unknown<'_>, Option<String>>>("stringify")
    };
    let text = stringify(env).and_then(|stringify| stringify.call(value));
    let text = text
        .map_err(|error| Failure::argument(format!("`{name}` can't be read: {}", error.reason)))?;
    let value = text.map_or(Ok(Value::Null), |text| serde_json::from_str(&text));
    let value = value.map_err(|error| {
        // JavaScript writes valid JSON apart from these two cases.
        let is_deep = json::describe(&error).starts_with("recursion limit");
        let problem = if is_deep { "is nested too deeply" } else { "has text that is not Unicode" };
        Failure::argument(format!("`{name}` {problem}"))
    })?;
    read_value(name, value)
}

/// Like [`read_argument`], for a value that has already crossed.
pub(crate) fn read_value<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, Failure> {
    arguments::read(name, value).map_err(Failure::argument)
}
