//! Checks arguments against the schema of their tool, and reports where they do not fit.
//!
//! Supports the part of JSON Schema that the schemas of tools use. Unknown keywords are ignored,
//! and the tool checks its input itself. A complete validator would bring thirty packages,
//! including ones for large numbers and addresses.

use serde_json::Value;

/// How many references are followed, one inside the other.
const MOST_REFERENCES: usize = 32;

/// Checks whether `value` fits `schema`.
///
/// # Errors
/// Where it does not fit and why, for the model.
pub(super) fn check(schema: &Value, value: &Value) -> Result<(), String> {
    Check { root: schema, references: 0 }.value(schema, value, "the arguments")
}

#[derive(Clone, Copy)]
struct Check<'a> {
    root: &'a Value,
    references: usize,
}

impl Check<'_> {
    fn value(self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let Value::Object(keywords) = schema else {
            return if *schema == Value::Bool(false) { Err(format!("{at} must not be given")) } else { Ok(()) };
        };
        let keyword = |name: &str| keywords.get(name);
        if let Some(pointer) = keyword("$ref").and_then(Value::as_str).and_then(|path| path.strip_prefix('#'))
            && let Some(target) = self.root.pointer(pointer)
            && self.references < MOST_REFERENCES
        {
            Self { references: self.references + 1, ..self }.value(target, value, at)?;
        }
        if let Some(kinds) = keyword("type")
            && !is_any(kinds, value)
        {
            return Err(format!("{at} must be {}, not {}", names(kinds), kind(value)));
        }
        if let Some(Value::Array(allowed)) = keyword("enum")
            && !allowed.contains(value)
        {
            let allowed: Vec<_> = allowed.iter().map(Value::to_string).collect();
            return Err(format!("{at} must be one of {}", allowed.join(", ")));
        }
        if let Some(only) = keyword("const").filter(|only| *only != value) {
            return Err(format!("{at} must be {only}"));
        }
        for alternatives in ["anyOf", "oneOf"].into_iter().filter_map(|name| keyword(name)?.as_array()) {
            // Alternatives that are single values, each with a description, are like an `enum`.
            let words: Option<Vec<_>> = alternatives.iter().map(|form| form.get("const")).collect();
            if let Some(words) = words.filter(|words| words.len() > 1 && !words.contains(&value)) {
                let words: Vec<_> = words.into_iter().map(Value::to_string).collect();
                return Err(format!("{at} must be one of {}", words.join(", ")));
            }
            let mut tried = alternatives.iter().map(|schema| self.value(schema, value, at)).peekable();
            // The error of the first alternative is most likely the useful one.
            let first = tried.peek().cloned().unwrap_or(Ok(()));
            if !tried.any(|tried| tried.is_ok()) {
                first?;
            }
        }
        for schema in keyword("allOf").and_then(Value::as_array).into_iter().flatten() {
            self.value(schema, value, at)?;
        }
        match value {
            Value::Object(entries) => self.object(keywords, entries, at),
            Value::Array(items) => self.array(keywords, items, at),
            Value::String(text) => size(keywords, ["minLength", "maxLength"], text.chars().count(), "characters", at),
            Value::Number(number) => range(keywords, number.as_f64(), at),
            Value::Null | Value::Bool(_) => Ok(()),
        }
    }

    fn object(self, keywords: &Keywords, entries: &Keywords, at: &str) -> Result<(), String> {
        for name in keywords.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            if !entries.contains_key(name) {
                return Err(format!("`{name}` is missing"));
            }
        }
        let known = keywords.get("properties").and_then(Value::as_object);
        for (name, value) in entries {
            match (known.and_then(|known| known.get(name)), keywords.get("additionalProperties")) {
                (Some(schema), _) => self.value(schema, value, &format!("`{name}`"))?,
                (None, Some(Value::Bool(false))) => {
                    let known: Vec<_> = known.into_iter().flat_map(|known| known.keys().map(String::as_str)).collect();
                    return Err(format!("{at} must not have `{name}`; available: {}", known.join(", ")));
                }
                (None, Some(schema)) => self.value(schema, value, &format!("`{name}`"))?,
                (None, None) => {}
            }
        }
        Ok(())
    }

    fn array(self, keywords: &Keywords, items: &[Value], at: &str) -> Result<(), String> {
        size(keywords, ["minItems", "maxItems"], items.len(), "items", at)?;
        let Some(schema) = keywords.get("items") else { return Ok(()) };
        items.iter().enumerate().try_for_each(|(n, item)| self.value(schema, item, &format!("item {n} of {at}")))
    }
}

type Keywords = serde_json::Map<String, Value>;

fn size(keywords: &Keywords, [least, most]: [&str; 2], is: usize, of: &str, at: &str) -> Result<(), String> {
    let bound = |name: &str| keywords.get(name).and_then(Value::as_u64);
    match (bound(least), bound(most)) {
        (Some(least), _) if (is as u64) < least => Err(format!("{at} must have at least {least} {of}")),
        (_, Some(most)) if is as u64 > most => Err(format!("{at} must have at most {most} {of}")),
        _ => Ok(()),
    }
}

fn range(keywords: &Keywords, number: Option<f64>, at: &str) -> Result<(), String> {
    let bound = |name: &str| keywords.get(name).and_then(Value::as_f64);
    let Some(number) = number else { return Ok(()) };
    match (bound("minimum"), bound("maximum")) {
        (Some(least), _) if number < least => Err(format!("{at} must be at least {least}")),
        (_, Some(most)) if number > most => Err(format!("{at} must be at most {most}")),
        _ => Ok(()),
    }
}

fn is_any(kinds: &Value, value: &Value) -> bool {
    match kinds {
        Value::String(kind) => is(kind, value),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).any(|kind| is(kind, value)),
        _ => true,
    }
}

fn is(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        _ => true,
    }
}

fn names(kinds: &Value) -> String {
    let named = |kind: &str| match kind {
        "object" | "array" | "integer" => format!("an {kind}"),
        "null" => kind.to_owned(),
        _ => format!("a {kind}"),
    };
    match kinds {
        Value::String(kind) => named(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).map(named).collect::<Vec<_>>().join(" or "),
        _ => String::new(),
    }
}

fn kind(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(_) => "a string".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
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
            (json!({}), "`path` is missing"),
            (json!({"path": 3}), "`path` must be a string, not 3"),
            (json!({"path": null}), "`path` must be a string, not null"),
            (json!({"path": ""}), "`path` must have at least 1 characters"),
            (json!({"path": "aaaaaa"}), "`path` must have at most 5 characters"),
            (json!({"path": "a", "form": 1}), "the arguments must not have `form`; available: path, from,"),
            (json!({"path": "a", "from": 0}), "`from` must be at least 1"),
            (json!({"path": "a", "from": 10}), "`from` must be at most 9"),
            (json!({"path": "a", "from": 1.5}), "`from` must be an integer, not 1.5"),
            (json!({"path": "a", "mode": "c"}), r#"`mode` must be one of "a", "b""#),
            (json!({"path": "a", "word": "halt"}), r#"`word` must be one of "go", "stop""#),
            (json!({"path": "a", "tags": ["x", 1]}), "item 1 of `tags` must be a string, not 1"),
            (json!({"path": "a", "tags": ["x", "y", "z"]}), "`tags` must have at most 2 items"),
            (json!({"path": "a", "limit": "x"}), "`limit` must be an integer or null, not a string"),
            (json!({"path": "a", "how": "slow"}), r#"`how` must be "fast""#),
        ] {
            let error = check(&schema, &wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let endless = json!({"$ref": "#"});
        assert_eq!(check(&endless, &json!({})), Ok(()));
    }
}
