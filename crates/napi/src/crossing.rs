//! Values and promises, on their way to JavaScript and back.
//!
//! What has a shape crosses as JSON text, which is written on another thread and read by the engine of JavaScript: for
//! both that is several times faster than setting property after property. No panic crosses.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;
use holdpoint_common::json;
use napi::bindgen_prelude::{Function, JsObjectValue, Object, PromiseRaw};
use napi::{Env, Unknown};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::failure::Failure;
use crate::given;

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

/// An argument of this name, read as ours.
pub(crate) fn read<T: DeserializeOwned>(env: &Env, name: &str, value: Unknown<'_>) -> Result<T, Failure> {
    let stringify =
        |env| global_json(env)?.get_named_property::<Function<'_, Unknown<'_>, Option<String>>>("stringify");
    let text = stringify(env).and_then(|stringify| stringify.call(value));
    let text = text.map_err(|error| Failure::argument(format!("`{name}` can't be read: {}", error.reason)))?;
    let value = text.map_or(Ok(Value::Null), |text| serde_json::from_str(&text));
    let value = value.map_err(|error| {
        // All else that JavaScript writes is JSON.
        let is_deep = json::fault(&error).starts_with("recursion limit");
        let words = if is_deep { "is nested too deep" } else { "has text that is not Unicode" };
        Failure::argument(format!("`{name}` {words}"))
    })?;
    given(name, value)
}

/// The same of a value that has crossed.
pub(crate) fn given<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, Failure> {
    given::read(name, value).map_err(Failure::argument)
}

fn global_json<'env>(env: &'env Env) -> napi::Result<Object<'env>> {
    env.get_global()?.get_named_property("JSON")
}
