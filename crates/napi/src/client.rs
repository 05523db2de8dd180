//! Descriptions of clients, for people.

use holdpoint_common::Who;
use napi::Env;
use napi::bindgen_prelude::Unknown;
use napi_derive::napi;

use crate::convert::{read_argument, run_sync};

/// Describes the client of an event by its name and process id, in words that follow a verb:
/// `from the command line (pid 7)`, `from the screen (pid 7)`, `from Node.js (pid 7)`,
/// `by curl/8.5.0`.
///
/// Throws `invalidArgument`.
#[napi(catch_unwind, ts_args_type = "name: string, pid?: number")]
pub fn client_origin(env: &Env, name: String, pid: Unknown<'_>) -> napi::Result<String> {
    run_sync(env, || Ok(Who { name, pid: read_argument(env, "pid", pid)? }.origin()))
}
