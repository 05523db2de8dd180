//! The call that asks the user to let a hosted agent start with more than the sandbox of its session
//! allows.

use serde_json::{Value, json};

/// The name of the field of the call's arguments that has the id of the agent's needs.
const FIELD: &str = "start";

/// The arguments of the call for an agent with this name and the needs with this id.
pub(crate) fn request(agent: &str, needs: &str) -> Value {
    json!({ "title": format!("start {agent}"), FIELD: needs })
}

/// The id of the needs, if these are the arguments of such a call.
pub(crate) fn requested(arguments: &Value) -> Option<&str> {
    arguments.get(FIELD)?.as_str()
}
