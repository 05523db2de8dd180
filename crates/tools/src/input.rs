//! Inputs of tools: their JSON Schema, and reading one with a message the model can act on.

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::ToolError;

/// The JSON Schema of an input, for [`Tool::schema`](crate::Tool::schema).
#[must_use]
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator()
        .into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// The folder that is meant: that of the workspace if none is given.
pub(crate) fn or_workspace(path: Option<&String>) -> &str {
    path.map_or(".", String::as_str)
}

/// Reads an input.
///
/// # Errors
/// [`ToolError::Input`] with what is wrong, for the model.
pub fn parse<T: DeserializeOwned>(input: &Value) -> Result<T, ToolError> {
    T::deserialize(input).map_err(|error| ToolError::input(format!("the input does not fit: {error}")))
}
