//! Log records as JSON text.

use std::time::SystemTime;

use holdpoint_common::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::Level;

/// A record as JavaScript receives it. Its TypeScript type is in `dts-header.d.ts`.
#[derive(Serialize)]
struct Record<'a> {
    at: Timestamp,
    level: &'static str,
    target: &'a str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Value>,
    fields: Map<String, Value>,
}

/// Returns a record that reports `count` dropped records, unless there are none.
pub(super) fn dropped_record(count: u64) -> Option<String> {
    let fields = Map::from_iter([("count".to_owned(), Value::from(count))]);
    let message = "records were dropped".to_owned();
    (count > 0).then(|| record_json(Level::WARN, module_path!(), message, None, fields)).flatten()
}

/// Returns a record as JSON.
pub(super) fn record_json(
    level: Level,
    target: &str,
    message: String,
    session: Option<Value>,
    fields: Map<String, Value>,
) -> Option<String> {
    let level = match level {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    let record = Record { at: SystemTime::now().into(), level, target, message, session, fields };
    // Texts and numbers can always be serialised.
    serde_json::to_string(&record).ok()
}
