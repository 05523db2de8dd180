//! Deserialization of JavaScript values. Errors name the wrong part of the argument, in JavaScript
//! terms.

use std::fmt::{self, Display};

use holdpoint_common::unknown::{self, FieldPath, Step};
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess,
    SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde_json::{Map, Value};

/// Deserialises the argument with this name. An unknown field is an error, because its name is most
/// likely misspelt.
pub(crate) fn read<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, String> {
    match unknown::deserialize(JsonArgument(value)) {
        Ok((value, None)) => Ok(value),
        Ok((_, Some(path))) => {
            Err(ArgumentError { path, problem: "is unknown".to_owned() }.message_for(name))
        }
        Err(error) => Err(error.message_for(name)),
    }
}

/// A JavaScript value in its JSON form.
struct JsonArgument(Value);

/// An error in an argument.
#[derive(Debug)]
pub(crate) struct ArgumentError {
    /// Path of the wrong part, from the outermost name inwards.
    path: FieldPath,
    /// Description that follows the path.
    problem: String,
}

impl ArgumentError {
    fn new(problem: String) -> Self {
        Self { path: FieldPath::default(), problem }
    }

    /// Adds an outer step to the path.
    fn within(mut self, step: Step) -> Self {
        self.path.0.insert(0, step);
        self
    }

    /// Returns the whole message for the argument with this name.
    fn message_for(self, name: &str) -> String {
        let Self { path, problem } = self.within(Step::Field(name.to_owned()));
        format!("`{path}` {problem}")
    }
}

impl Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for ArgumentError {}

impl de::Error for ArgumentError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(format!("can't be read: {message}"))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = expected_type(&expected.to_string());
        let got = match unexpected {
            // If a number is expected, the number itself says more than its type.
            Unexpected::Unsigned(number) if expected.is_number => number.to_string(),
            Unexpected::Signed(number) if expected.is_number => number.to_string(),
            Unexpected::Float(number) if expected.is_number => format!("{number:?}"),
            other => type_name(other).to_owned(),
        };
        Self::new(format!("must be {}, got {got}", expected.words))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match unexpected {
            Unexpected::Str(text) => Self::new(format!(
                "must be {}, got {text:?}",
                expected_type(&expected.to_string()).words
            )),
            other => Self::invalid_type(other, expected),
        }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("must have {}, got {length}", expected_type(&expected.to_string()).words))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be {}, got {variant:?}", one_of(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = if expected.is_empty() {
            String::new()
        } else {
            format!("; it can be {}", one_of(expected))
        };
        Self::new(format!("is unknown{known}")).within(Step::Field(field.to_owned()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is missing".to_owned()).within(Step::Field(field.to_owned()))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new("occurs twice".to_owned()).within(Step::Field(field.to_owned()))
    }
}

/// An expected type, in JavaScript terms.
struct ExpectedType {
    words: String,
    is_number: bool,
}

/// Translates serde's description of a type.
fn expected_type(expected: &str) -> ExpectedType {
    let number = |words: String| ExpectedType { words, is_number: true };
    let between =
        |first: i128, last: i128| number(format!("a whole number from {first} to {last}"));
    let other = |words: &str| ExpectedType { words: words.to_owned(), is_number: false };
    match expected {
        "u8" => between(0, u8::MAX.into()),
        "u16" => between(0, u16::MAX.into()),
        "u32" => between(0, u32::MAX.into()),
        "u64" | "usize" => between(0, u64::MAX.into()),
        "i32" => between(i32::MIN.into(), i32::MAX.into()),
        "i64" | "isize" => between(i64::MIN.into(), i64::MAX.into()),
        "a nonzero u32" => between(1, u32::MAX.into()),
        "a nonzero u64" | "a nonzero usize" => between(1, u64::MAX.into()),
        "f32" | "f64" => number("a number".to_owned()),
        "a string" | "a borrowed string" | "a character" | "a word" => other("a string"),
        "a boolean" => other("a boolean"),
        "a sequence" | "an array" => other("an array"),
        _ if expected.starts_with("a map")
            || expected.starts_with("struct ")
            || expected.contains("tagged enum")
            || expected.starts_with("an object") =>
        {
            other("an object")
        }
        _ if expected.starts_with("tuple struct ") || expected.starts_with("a tuple") => {
            other("an array")
        }
        // The name of an enum's variant.
        _ if expected.starts_with("enum ") || expected.contains("variant identifier") => {
            other("a string")
        }
        _ => other(expected),
    }
}

/// Returns the name of a value's type, in JavaScript terms.
fn type_name(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "number",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "array",
        _ => "object",
    }
}

/// Formats a list of words: `a`, or one of `a`, `b` and `c`.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &quoted[..] {
        [] => "left out".to_owned(),
        [one] => one.clone(),
        [others @ .., last] => format!("one of {} and {last}", others.join(", ")),
    }
}

impl JsonArgument {
    fn unexpected(&self) -> Unexpected<'_> {
        match &self.0 {
            Value::Null => Unexpected::Unit,
            Value::Bool(value) => Unexpected::Bool(*value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => Unexpected::Unsigned(number),
                (_, Some(number)) => Unexpected::Signed(number),
                _ => Unexpected::Float(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => Unexpected::Str(text),
            Value::Array(_) => Unexpected::Seq,
            Value::Object(_) => Unexpected::Map,
        }
    }
}

impl<'de> Deserializer<'de> for JsonArgument {
    type Error = ArgumentError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(value) => visitor.visit_bool(value),
            Value::Number(number) => match (number.as_u64(), number.as_i64()) {
                (Some(number), _) => visitor.visit_u64(number),
                (_, Some(number)) => visitor.visit_i64(number),
                _ => visitor.visit_f64(number.as_f64().unwrap_or_default()),
            },
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter().enumerate())),
            Value::Object(fields) => {
                visitor.visit_map(Fields { fields: fields.into_iter(), current: None })
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ArgumentError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        visitor.visit_newtype_struct(self)
    }

    /// Refuses arrays, which serde would take for the fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        match &self.0 {
            Value::Object(_) => self.deserialize_any(visitor),
            _ => Err(de::Error::invalid_type(self.unexpected(), &"an object")),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ArgumentError> {
        match &self.0 {
            Value::String(word) => visitor.visit_enum(Word(word)),
            _ => Err(de::Error::invalid_type(self.unexpected(), &"a string")),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map identifier ignored_any
    }
}

struct Items(std::iter::Enumerate<std::vec::IntoIter<Value>>);

impl<'de> SeqAccess<'de> for Items {
    type Error = ArgumentError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ArgumentError> {
        let Some((index, value)) = self.0.next() else { return Ok(None) };
        seed.deserialize(JsonArgument(value))
            .map(Some)
            .map_err(|error| error.within(Step::Item(index)))
    }
}

struct Fields {
    fields: <Map<String, Value> as IntoIterator>::IntoIter,
    /// Field whose name has been read, and whose value has not.
    current: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = ArgumentError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ArgumentError> {
        self.current = self.fields.next();
        // The error for an unknown field adds its name itself.
        let current = self.current.as_ref();
        current.map(|(name, _)| seed.deserialize(StrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ArgumentError> {
        let (name, value) = self.current.take().unwrap_or_default();
        seed.deserialize(JsonArgument(value)).map_err(|error| error.within(Step::Field(name)))
    }
}

/// The name of a variant without fields.
struct Word<'a>(&'a str);

impl<'de> EnumAccess<'de> for Word<'_> {
    type Error = ArgumentError;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Self), ArgumentError> {
        seed.deserialize(StrDeserializer::new(self.0)).map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = ArgumentError;

    fn unit_variant(self) -> Result<(), ArgumentError> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        _: T,
    ) -> Result<T::Value, ArgumentError> {
        Err(de::Error::custom(format!("`{}` needs more fields", self.0)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, ArgumentError> {
        Err(de::Error::custom(format!("`{}` needs more fields", self.0)))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, ArgumentError> {
        Err(de::Error::custom(format!("`{}` needs more fields", self.0)))
    }
}
