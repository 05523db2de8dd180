//! The global object `JSON` of JavaScript.

use napi::bindgen_prelude::{Function, JsObjectValue, Object};
use napi::{Env, Unknown};

/// Parses JSON into a JavaScript value.
pub(crate) fn parse_json<'env>(env: &'env Env, text: &str) -> napi::Result<Unknown<'env>> {
    global_json(env)?.get_named_property::<Function<'_, &str, Unknown<'env>>>("parse")?.call(text)
}

pub(crate) fn global_json<'env>(env: &'env Env) -> napi::Result<Object<'env>> {
    env.get_global()?.get_named_property("JSON")
}
