//! API keys of model providers.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// An API key. Clones share one copy, which is overwritten with zeros when the last clone is
/// dropped. `Debug` hides the key; serializing it does not.
///
/// ```
/// let key = holdpoint_common::ApiKey::from(" sk-1\n");
/// assert_eq!(key.expose(), "sk-1");
/// assert_eq!(format!("{key:?}"), "***");
/// ```
#[derive(Clone, PartialEq, Eq, Default)]
pub struct ApiKey(Arc<Zeroizing<String>>);

impl ApiKey {
    /// The key itself, as in the header of a request.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is no key, as for a server that needs none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Leaves out surrounding white space.
impl From<String> for ApiKey {
    fn from(text: String) -> Self {
        let text = Zeroizing::new(text);
        let trimmed = text.trim();
        let is_trimmed = trimmed.len() == text.len();
        Self(Arc::new(if is_trimmed { text } else { Zeroizing::new(trimmed.to_owned()) }))
    }
}

/// Leaves out surrounding white space.
impl From<&str> for ApiKey {
    fn from(text: &str) -> Self {
        Self::from(text.trim().to_owned())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Serialize for ApiKey {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.expose())
    }
}

impl<'de> Deserialize<'de> for ApiKey {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for ApiKey {
    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }

    fn inline_schema() -> bool {
        true
    }
}
