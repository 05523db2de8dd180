//! Inputs of tools: their JSON Schema, and parsing with errors that the model can act on.

use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
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
            settings.transforms.push(Box::new(RecursiveTransform(join_lines)));
        })
        .into_generator()
        .into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// Joins the lines of each paragraph of a description, because a doc comment wraps them.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs: Vec<_> =
            text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *text = paragraphs.join("\n\n");
    }
}

/// The given path, or that of the workspace folder.
pub(crate) fn or_workspace(path: Option<&String>) -> &str {
    path.map_or(".", String::as_str)
}

/// Parses the input of a call.
///
/// # Errors
/// [`ToolError::Input`] with a description of the problem, for the model.
pub fn parse<T: DeserializeOwned>(input: &Value) -> Result<T, ToolError> {
    T::deserialize(input).map_err(|error| ToolError::input(format!("invalid input: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_has_one_line_per_paragraph() {
        #[derive(JsonSchema)]
        struct Input {
            /// A sentence that is wrapped
            /// in the source.
            ///
            /// Another paragraph.
            #[expect(dead_code, reason = "only its description is read")]
            path: String,
        }
        let description = &schema_of::<Input>()["properties"]["path"]["description"];
        assert_eq!(description, "A sentence that is wrapped in the source.\n\nAnother paragraph.");
    }
}
