//! Lenient parsing of the JSON that providers and compatible servers write. A frame is parsed into
//! typed structs; the leaf types here accept the known deviations, and report broken JSON.

use std::fmt;

use serde::de::{DeserializeOwned, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::model::ModelError;

/// Parses a frame. Returns `None` for valid JSON that is not an object, which some gateways send to
/// keep a connection alive.
///
/// # Errors
/// [`ModelError::Malformed`] if the frame is not JSON, or does not have the structure of `T`.
pub(crate) fn parse_object<'a, T: Deserialize<'a>>(
    frame: &'a str,
) -> Result<Option<T>, ModelError> {
    let read = if frame.trim_start().starts_with('{') {
        serde_json::from_str(frame).map(Some)
    } else {
        serde_json::from_str::<IgnoredAny>(frame).map(|_| None)
    };
    read.map_err(malformed)
}

/// The error for a frame, or a part of one, that can't be parsed.
pub(crate) fn malformed(error: impl fmt::Display) -> ModelError {
    ModelError::Malformed { message: error.to_string() }
}

/// A field that counts as absent if its value is not a `T`. Broken JSON is an error.
#[derive(Debug)]
pub(crate) struct Lenient<T>(pub(crate) Option<T>);

impl<T> Default for Lenient<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        if raw == "null" {
            return Ok(Self(None));
        }
        match serde_json::from_str(raw) {
            Ok(value) => Ok(Self(Some(value))),
            Err(error) if error.is_data() => Ok(Self(None)),
            Err(error) => Err(D::Error::custom(error)),
        }
    }
}

/// A text that counts as absent if the value has another type. Broken text is an error.
#[derive(Debug, Default)]
pub(crate) struct Text(pub(crate) Option<String>);

impl Text {
    /// The text, unless it is absent or empty.
    pub(crate) fn filled(self) -> Option<String> {
        self.0.filter(|text| !text.is_empty())
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LeafVisitor(|leaf: Leaf<'_>| match leaf {
            Leaf::Text(text) => Self(Some(text.to_owned())),
            Leaf::Whole(_) | Leaf::Float(_) | Leaf::Other => Self(None),
        }))
    }
}

/// A count of tokens: a number, a whole number written as a float, or either as text. `None` for
/// anything else.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Count(pub(crate) Option<u64>);

/// Floats above this can't represent every whole number.
const MAX_EXACT_FLOAT: f64 = 9_007_199_254_740_992.0;

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn exact(float: f64) -> Option<u64> {
            (float.fract() == 0.0 && (0.0..MAX_EXACT_FLOAT).contains(&float))
                .then_some(float as u64)
        }
        deserializer.deserialize_any(LeafVisitor(|leaf: Leaf<'_>| match leaf {
            Leaf::Whole(number) => Self(Some(number)),
            Leaf::Float(float) => Self(exact(float)),
            Leaf::Text(text) => {
                Self(text.trim().parse().ok().or_else(|| exact(text.trim().parse().ok()?)))
            }
            Leaf::Other => Self(None),
        }))
    }
}

/// A value without values inside.
enum Leaf<'a> {
    Text(&'a str),
    Whole(u64),
    Float(f64),
    /// A value of another type, or one with values inside.
    Other,
}

/// Parses a leaf in one pass, because most frames are plain text.
struct LeafVisitor<F>(F);

impl<'de, T, F: FnOnce(Leaf<'_>) -> T> Visitor<'de> for LeafVisitor<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_str<E>(self, text: &str) -> Result<T, E> {
        Ok(self.0(Leaf::Text(text)))
    }

    fn visit_u64<E>(self, number: u64) -> Result<T, E> {
        Ok(self.0(Leaf::Whole(number)))
    }

    fn visit_f64<E>(self, number: f64) -> Result<T, E> {
        Ok(self.0(Leaf::Float(number)))
    }

    fn visit_i64<E>(self, _: i64) -> Result<T, E> {
        Ok(self.0(Leaf::Other))
    }

    fn visit_bool<E>(self, _: bool) -> Result<T, E> {
        Ok(self.0(Leaf::Other))
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(self.0(Leaf::Other))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<T, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.0(Leaf::Other))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<T, A::Error> {
        while entries.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(self.0(Leaf::Other))
    }
}

/// The arguments of a call as JSON text. A provider sends that text encoded in a string, or as a
/// plain value. It is kept as written, and the runner checks it.
#[derive(Debug, Default)]
pub(crate) struct Arguments(pub(crate) String);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        if raw.starts_with('"') {
            return serde_json::from_str(raw).map(Self).map_err(D::Error::custom);
        }
        Ok(Self(if raw == "null" { String::new() } else { raw.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_e6_counts_are_read_in_every_form() {
        for (json, count) in [
            ("7", Some(7)),
            ("7.0", Some(7)),
            ("\"7\"", Some(7)),
            ("\" 7 \"", Some(7)),
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("99999999999999999999", None),
            ("-1", None),
            ("7.5", None),
            ("null", None),
            ("[7]", None),
            ("\"many\"", None),
        ] {
            assert_eq!(serde_json::from_str::<Count>(json).unwrap().0, count, "{json}");
        }
    }

    #[test]
    fn m_e6_a_field_of_another_type_is_absent_and_broken_text_is_an_error() {
        let read = |json: &str| serde_json::from_str::<Text>(json).map(|text| text.0);
        assert_eq!(read("\"a\\n\"").unwrap().as_deref(), Some("a\n"));
        for absent in ["null", "true", "5", "-5", "5.5", "{\"a\":[\"b\"]}", "[\"a\",{}]"] {
            assert_eq!(read(absent).unwrap(), None, "{absent}");
        }
        let read = |json: &str| serde_json::from_str::<Lenient<Vec<u8>>>(json).map(|field| field.0);
        assert_eq!(read("[1,2]").unwrap(), Some(vec![1, 2]));
        for absent in ["null", "5", "{}", "[300]"] {
            assert_eq!(read(absent).unwrap(), None, "{absent}");
        }
        for broken in ["\"\\ud800\"", "\"\\x\"", "[\"a"] {
            assert!(serde_json::from_str::<Text>(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn m_e6_arguments_are_kept_as_they_were_written() {
        for (json, text) in [
            ("null", ""),
            ("\"\"", ""),
            ("{ \"a\": 1e999 }", "{ \"a\": 1e999 }"),
            ("{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"),
            ("\"{\\\"a\\\":1}\"", "{\"a\":1}"),
            ("[]", "[]"),
        ] {
            assert_eq!(serde_json::from_str::<Arguments>(json).unwrap().0, text, "{json}");
        }
    }

    #[test]
    fn m_e6_a_frame_that_is_not_an_object_is_ignored() {
        #[derive(Deserialize)]
        struct Frame {}
        for (frame, read) in [
            ("{}", Some(true)),
            (" {\"a\":1}", Some(true)),
            ("5", Some(false)),
            ("null", Some(false)),
        ] {
            assert_eq!(
                parse_object::<Frame>(frame).ok().map(|frame| frame.is_some()),
                read,
                "{frame}"
            );
        }
        for broken in ["{", "hello", "", "{} {}", "[1"] {
            assert!(
                matches!(parse_object::<Frame>(broken), Err(ModelError::Malformed { .. })),
                "{broken}"
            );
        }
    }
}
