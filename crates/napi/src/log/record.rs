//! One record of the log: what it says, of which session, and where in its turn.

use std::time::SystemTime;

use holdpoint_common::Timestamp;
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::Level;

/// A record, as it crosses. Its type is written down in the header of the declarations.
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

/// Says that this many records were left out.
pub(super) fn left_out(count: u64) -> Option<String> {
    let fields = Map::from_iter([("count".to_owned(), Value::from(count))]);
    let message = "records were left out".to_owned();
    (count > 0).then(|| write(Level::WARN, module_path!(), message, None, fields)).flatten()
}

/// A record, as JSON.
pub(super) fn write(
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
    // Of text and numbers: it is always written.
    serde_json::to_string(&record).ok()
}
