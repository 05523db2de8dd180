//! Checks arguments against the schema of their tool, and reports where they do not fit.
//!
//! The schemas of our own tools need little of JSON Schema, but those of an embedder's tools may
//! use all of it.

use jsonschema::error::ValidationErrorKind;
use jsonschema::{PatternOptions, ValidationError};
use serde_json::Value;

/// Checks whether `value` fits `schema`. A schema that can't be used accepts every value, and the
/// tool checks its input itself.
///
/// # Errors
/// A description for the model of where and why `value` does not fit.
pub(super) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    // Patterns are matched in linear time.
    match jsonschema::options().with_pattern_options(PatternOptions::regex()).build(schema) {
        Ok(validator) => validator.validate(value).map_err(|error| describe(&error)),
        Err(error) => {
            tracing::debug!(%error, "the schema of a tool can't be used");
            Ok(())
        }
    }
}

/// Describes an error and its place, without the value, which may be long.
fn describe(error: &ValidationError<'_>) -> String {
    let path = error.instance_path().as_str();
    let at = path.strip_prefix('/').map_or("the arguments".to_owned(), |path| format!("`{path}`"));
    let (ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context }) =
        error.kind()
    else {
        // The path stands in for the value in the message. It is put before a message that names
        // no value.
        let message = error.masked_with(&at).to_string();
        return if message.contains(&at) { message } else { format!("{at}: {message}") };
    };
    let mut alternatives: Vec<_> =
        context.iter().filter_map(|errors| errors.first()).map(describe).collect();
    alternatives.dedup();
    alternatives.join(", or ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t_l7_arguments_must_fit_their_schema() {
        let schema = json!({
            "type": "object",
            "required": ["path"],
            "additionalProperties": false,
            "$defs": {"line": {"type": "integer", "minimum": 1, "maximum": 9}},
            "properties": {
                "path": {"type": "string", "minLength": 1, "maxLength": 5},
                "from": {"$ref": "#/$defs/line"},
                "mode": {"enum": ["a", "b"]},
                "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
                "limit": {"type": ["integer", "null"]},
                "how": {"anyOf": [{"const": "fast"}, {"type": "object", "required": ["x"]}]},
                "ratio": {"type": "number"},
                "word": {"oneOf": [{"const": "go", "description": "on"}, {"const": "stop"}]},
            },
        });
        for fits in [
            json!({"path": "a"}),
            json!({"path": "a", "from": 1, "mode": "b", "tags": ["x", "y"], "limit": null, "ratio": 1}),
            json!({"path": "a", "limit": 2.0, "how": "fast"}),
            json!({"path": "a", "how": {"x": 1}}),
        ] {
            assert_eq!(check(&schema, &fits), Ok(()), "{fits}");
        }
        for (wrong, why) in [
            (json!({}), "\"path\" is a required property"),
            (json!({"path": 3}), "`path` is not of type \"string\""),
            (json!({"path": null}), "`path` is not of type \"string\""),
            (json!({"path": ""}), "`path` is shorter than 1 character"),
            (json!({"path": "aaaaaa"}), "`path` is longer than 5 characters"),
            (
                json!({"path": "a", "form": 1}),
                "Additional properties are not allowed ('form' was unexpected)",
            ),
            (json!({"path": "a", "from": 0}), "`from` is less than the minimum of 1"),
            (json!({"path": "a", "from": 10}), "`from` is greater than the maximum of 9"),
            (json!({"path": "a", "from": 1.5}), "`from` is not of type \"integer\""),
            (json!({"path": "a", "mode": "c"}), r#"`mode` is not one of "a" or "b""#),
            (
                json!({"path": "a", "word": "halt"}),
                r#"`word`: "go" was expected, or `word`: "stop" was expected"#,
            ),
            (json!({"path": "a", "tags": ["x", 1]}), "`tags/1` is not of type \"string\""),
            (json!({"path": "a", "tags": ["x", "y", "z"]}), "`tags` has more than 2 items"),
            (json!({"path": "a", "limit": "x"}), "`limit` is not of types \"null\", \"integer\""),
            (
                json!({"path": "a", "how": "slow"}),
                r#"`how`: "fast" was expected, or `how` is not of type "object""#,
            ),
        ] {
            let error = check(&schema, &wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let endless = json!({"$ref": "#"});
        assert_eq!(check(&endless, &json!({})), Ok(()));
    }

    #[test]
    fn t_l7_an_error_is_short_whatever_the_arguments_are() {
        let schema = json!({
            "additionalProperties": false,
            "properties": {"word": {"type": "string", "pattern": "^(a+)+$"}},
        });
        let many: Value = (0..10_000).map(|n| (format!("k{n}"), json!(1))).collect();
        // A pattern that takes a backtracking matcher forever.
        let long = json!({"word": format!("{}b", "a".repeat(100_000))});
        for wrong in [many, long] {
            let error = check(&schema, &wrong).unwrap_err();
            assert!(error.len() < 200, "{error}");
        }
    }

    #[test]
    fn a_schema_that_cannot_be_used_accepts_everything() {
        for schema in [json!({"type": 5}), json!({"$ref": "http://127.0.0.1:9/schema"}), json!(5)] {
            assert_eq!(check(&schema, &json!({"x": 1})), Ok(()), "{schema}");
        }
    }
}
