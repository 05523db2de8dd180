//! The `reasoning_details` of a chat completion: thoughts as OpenRouter sends them, some of them
//! encrypted or signed, which the model expects back unchanged.

use serde_json::{Map, Value};

use crate::model::ModelError;
use crate::model::provider::remote::HeldBytes;

/// A detail, or the next piece of one.
pub(super) type Detail = Map<String, Value>;

/// The fields of a detail that streams in pieces. Its other fields are whole.
const STREAMED: [&str; 2] = ["text", "summary"];

/// The details of one answer, in order.
#[derive(Debug, Default)]
pub(super) struct ThoughtDetails {
    details: Vec<Detail>,
    held: HeldBytes,
}

impl ThoughtDetails {
    /// Adds a piece to the detail that it continues, or as a new one.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] if too much data is held.
    pub(super) fn add(&mut self, piece: Detail) -> Result<(), ModelError> {
        let bytes = match self.details.last_mut().filter(|last| continues(last, &piece)) {
            Some(last) => piece.into_iter().map(|(key, value)| extend(last, key, value)).sum(),
            None => {
                let bytes = piece.iter().map(|(key, value)| key.len() + value_bytes(value)).sum();
                self.details.push(piece);
                bytes
            }
        };
        self.held.add(bytes)
    }

    /// Takes the details as JSON; `None` if there are none.
    pub(super) fn take(&mut self) -> Option<String> {
        let details = std::mem::take(&mut self.details);
        (!details.is_empty()).then(|| Value::from_iter(details).to_string())
    }
}

/// The readable text of a piece.
pub(super) fn text(piece: &Detail) -> &str {
    STREAMED.iter().find_map(|field| piece.get(*field)?.as_str()).unwrap_or_default()
}

/// Whether a piece continues the detail before it: both have the same type and index, the detail
/// has text, and the piece has text or a signature.
fn continues(last: &Detail, piece: &Detail) -> bool {
    let same = |field| last.get(field) == piece.get(field);
    let has_text = |detail: &Detail| STREAMED.iter().any(|field| detail.contains_key(*field));
    let has_signature = piece.contains_key("signature");
    same("type") && same("index") && has_text(last) && (has_text(piece) || has_signature)
}

/// Adds a field of a piece to the detail that it continues. Returns by how many bytes the detail
/// has grown.
fn extend(detail: &mut Detail, key: String, value: Value) -> usize {
    match (detail.get_mut(&key), value) {
        (Some(_), Value::Null) => 0,
        (Some(Value::String(whole)), Value::String(more)) if STREAMED.contains(&key.as_str()) => {
            whole.push_str(&more);
            more.len()
        }
        (Some(old), value) => {
            let bytes = value_bytes(&value).saturating_sub(value_bytes(old));
            *old = value;
            bytes
        }
        (None, value) => {
            let bytes = key.len() + value_bytes(&value);
            detail.insert(key, value);
            bytes
        }
    }
}

/// The size of a value in memory, at least.
fn value_bytes(value: &Value) -> usize {
    size_of::<Value>()
        + match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(value_bytes).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| key.len() + value_bytes(value)).sum()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        }
}
