//! Values from JavaScript, read as ours. An error says in the words of JavaScript which part of which argument is wrong.

use std::fmt::{self, Display};

use holdpoint_common::unknown;
use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Expected, MapAccess, SeqAccess, Unexpected,
    VariantAccess, Visitor,
};
use serde_json::{Map, Value};

/// Reads the argument of this name. A field that has no meaning is an error: most likely its name is wrong.
pub(crate) fn read<T: DeserializeOwned>(name: &str, value: Value) -> Result<T, String> {
    match unknown::read(Given(value)) {
        Ok((value, None)) => Ok(value),
        Ok((_, Some(path))) => {
            // `?` is the inside of an option.
            let steps = path.split('.').filter(|step| *step != "?").map(|step| match step.parse() {
                Ok(item) => Step::Item(item),
                Err(_) => Step::Field(step.to_owned()),
            });
            Err(Wrong { path: steps.collect(), words: "is not known".to_owned() }.of(name))
        }
        Err(wrong) => Err(wrong.of(name)),
    }
}

/// A value of JavaScript, as JSON has it.
struct Given(Value);

/// What is wrong with a value.
#[derive(Debug)]
pub(crate) struct Wrong {
    /// The part of the value, from the outermost name on.
    path: Vec<Step>,
    /// Follows the name of the part.
    words: String,
}

#[derive(Debug)]
enum Step {
    Field(String),
    Item(usize),
}

impl Wrong {
    fn new(words: String) -> Self {
        Self { path: Vec::new(), words }
    }

    /// The same, as an error of what this part belongs to.
    fn within(mut self, step: Step) -> Self {
        self.path.insert(0, step);
        self
    }

    /// The whole message about the argument of this name.
    fn of(self, name: &str) -> String {
        let mut path = name.to_owned();
        for step in self.path {
            match step {
                Step::Field(field) => path = format!("{path}.{field}"),
                Step::Item(item) => path = format!("{path}[{item}]"),
            }
        }
        format!("`{path}` {}", self.words)
    }
}

impl Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for Wrong {}

impl de::Error for Wrong {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(format!("can't be read: {message}"))
    }

    fn invalid_type(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let expected = wanted(&expected.to_string());
        let got = match unexpected {
            // The number itself says more where one is wanted.
            Unexpected::Unsigned(number) if expected.is_number => number.to_string(),
            Unexpected::Signed(number) if expected.is_number => number.to_string(),
            Unexpected::Float(number) if expected.is_number => format!("{number:?}"),
            other => kind(other).to_owned(),
        };
        Self::new(format!("must be {}, got {got}", expected.words))
    }

    fn invalid_value(unexpected: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match unexpected {
            Unexpected::Str(text) => {
                Self::new(format!("must be {}, got {text:?}", wanted(&expected.to_string()).words))
            }
            other => Self::invalid_type(other, expected),
        }
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        Self::new(format!("must have {}, got {length}", wanted(&expected.to_string()).words))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("must be {}, got {variant:?}", one_of(expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let known = if expected.is_empty() { String::new() } else { format!("; it can be {}", one_of(expected)) };
        Self::new(format!("is not known{known}")).within(Step::Field(field.to_owned()))
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new("is missing".to_owned()).within(Step::Field(field.to_owned()))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new("is there twice".to_owned()).within(Step::Field(field.to_owned()))
    }
}

/// A type, in the words of JavaScript.
struct Wanted {
    words: String,
    is_number: bool,
}

/// Reads serde's words for a type.
fn wanted(expected: &str) -> Wanted {
    let number = |words: String| Wanted { words, is_number: true };
    let between = |first: i128, last: i128| number(format!("a whole number from {first} to {last}"));
    let other = |words: &str| Wanted { words: words.to_owned(), is_number: false };
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
        _ if expected.starts_with("tuple struct ") || expected.starts_with("a tuple") => other("an array"),
        // A word of an enum.
        _ if expected.starts_with("enum ") || expected.contains("variant identifier") => other("a string"),
        _ => other(expected),
    }
}

/// A value's type, as `typeof` would say.
fn kind(unexpected: Unexpected<'_>) -> &'static str {
    match unexpected {
        Unexpected::Bool(_) => "boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) | Unexpected::Float(_) => "number",
        Unexpected::Char(_) | Unexpected::Str(_) | Unexpected::Bytes(_) => "string",
        Unexpected::Unit | Unexpected::Option => "null",
        Unexpected::Seq => "array",
        _ => "object",
    }
}

/// `a`, or one of `a`, `b` and `c`.
fn one_of(words: &[&str]) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match &quoted[..] {
        [] => "left out".to_owned(),
        [one] => one.clone(),
        [most @ .., last] => format!("one of {} and {last}", most.join(", ")),
    }
}

impl Given {
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

impl<'de> Deserializer<'de> for Given {
    type Error = Wrong;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
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
            Value::Object(fields) => visitor.visit_map(Fields { fields: fields.into_iter(), next: None }),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Wrong> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Wrong> {
        visitor.visit_newtype_struct(self)
    }

    /// An array would be taken for the fields in their order.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Wrong> {
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
    ) -> Result<V::Value, Wrong> {
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
    type Error = Wrong;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Wrong> {
        let Some((item, value)) = self.0.next() else { return Ok(None) };
        seed.deserialize(Given(value)).map(Some).map_err(|wrong| wrong.within(Step::Item(item)))
    }
}

struct Fields {
    fields: <Map<String, Value> as IntoIterator>::IntoIter,
    next: Option<(String, Value)>,
}

impl<'de> MapAccess<'de> for Fields {
    type Error = Wrong;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Wrong> {
        self.next = self.fields.next();
        // An unknown name is put in by its error.
        self.next.as_ref().map(|(name, _)| seed.deserialize(StrDeserializer::new(name))).transpose()
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Wrong> {
        let (name, value) = self.next.take().unwrap_or_default();
        seed.deserialize(Given(value)).map_err(|wrong| wrong.within(Step::Field(name)))
    }
}

/// A word of an enum whose variants have no fields.
struct Word<'a>(&'a str);

impl<'de> EnumAccess<'de> for Word<'_> {
    type Error = Wrong;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Wrong> {
        seed.deserialize(StrDeserializer::new(self.0)).map(|value| (value, self))
    }
}

impl<'de> VariantAccess<'de> for Word<'_> {
    type Error = Wrong;

    fn unit_variant(self) -> Result<(), Wrong> {
        Ok(())
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Wrong> {
        Err(de::Error::custom(format!("`{}` has more to it", self.0)))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Wrong> {
        Err(de::Error::custom(format!("`{}` has more to it", self.0)))
    }

    fn struct_variant<V: Visitor<'de>>(self, _: &'static [&'static str], _: V) -> Result<V::Value, Wrong> {
        Err(de::Error::custom(format!("`{}` has more to it", self.0)))
    }
}
