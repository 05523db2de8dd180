//! The arguments of a call as the model wrote them: accepted in full or rejected, but never
//! repaired.

use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// How deep arguments may be nested. They become part of requests and logs, in which JSON readers,
/// including serde_json, accept 128 levels.
const MAX_ARGUMENT_DEPTH: usize = 64;

/// Reads arguments: a JSON object without duplicate keys. Empty text is an empty object.
///
/// # Errors
/// The fault, as a message for the model.
pub(super) fn read(text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let mut json = serde_json::Deserializer::from_str(text);
    let value = Strict { levels: MAX_ARGUMENT_DEPTH }
        .deserialize(&mut json)
        .and_then(|value| json.end().map(|()| value));
    match value {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err("the arguments are not a JSON object".to_owned()),
        Err(error) => Err(format!("the arguments are not JSON: {error}")),
    }
}

/// Reads a JSON value without duplicate keys: of two values, the intended one is unknown.
#[derive(Clone, Copy)]
struct Strict {
    /// How many more levels are allowed.
    levels: usize,
}

impl Strict {
    /// The reader for the next level.
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        let levels = self.levels.checked_sub(1);
        let levels = levels.ok_or_else(|| {
            E::custom(format_args!("nested deeper than {MAX_ARGUMENT_DEPTH} levels"))
        })?;
        Ok(Self { levels })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let (mut values, inner) = (Vec::new(), self.inner()?);
        while let Some(value) = items.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let (mut map, inner) = (Map::new(), self.inner()?);
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(inner)?;
            if map.contains_key(&key) {
                return Err(serde::de::Error::custom(format_args!("duplicate key `{key}`")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn t_l7_arguments_are_accepted_whole_or_refused() {
        assert_eq!(read(""), Ok(json!({})));
        let all = r#"{"a":[1,-2,3.5,null,true],"b":{"c":"é\n\ud83d\ude00"}}"#;
        assert_eq!(read(all), Ok(serde_json::from_str(all).unwrap()));
        for (wrong, why) in [
            (r#"{"command": "l"#, "EOF"),
            (r#"{"command": ls}"#, "expected value"),
            (r#"{"command": "ls"} and then"#, "trailing"),
            (r#"{"command": "ls"}{"command": "rm"}"#, "trailing"),
            (r#"["ls"]"#, "not a JSON object"),
            (r#""{\"command\":\"ls\"}""#, "not a JSON object"),
            ("null", "not a JSON object"),
            (r#"{"command": "ls", "command": "rm"}"#, "duplicate key `command`"),
            (r#"{"a": {"b": 1, "b": 2}}"#, "duplicate key `b`"),
            (r#"{"command": "\ud800"}"#, "hex escape"),
            (r#"{"command": "\x41"}"#, "escape"),
            ("{'command': 'ls'}", "key must be a string"),
            (r#"{"n": NaN}"#, "expected value"),
        ] {
            let error = read(wrong).unwrap_err();
            assert!(error.contains(why), "{wrong}: {error}");
        }
        let nested = |levels: usize| {
            format!(r#"{{"a":{}{}}}"#, "[".repeat(levels - 1), "]".repeat(levels - 1))
        };
        assert!(read(&nested(MAX_ARGUMENT_DEPTH)).is_ok());
        for levels in [MAX_ARGUMENT_DEPTH + 1, 127, 100_000] {
            assert!(
                read(&nested(levels)).unwrap_err().contains("nested deeper than 64 levels"),
                "{levels}"
            );
        }
    }
}
