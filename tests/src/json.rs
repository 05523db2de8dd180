//! Strategies for JSON values: values that match a schema, and values with random mistakes.

use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};

/// The nesting depth to which a schema is followed.
const DEPTH: u32 = 5;

/// Texts that are likely to break parsers, paths, terminals and numbers.
const ODD: [&str; 22] = [
    "",
    " ",
    "\n",
    "\u{0}",
    "\u{1b}[2J",
    "\u{202e}txt.exe",
    "\u{feff}",
    "\u{1f468}\u{200d}\u{1f469}",
    "e\u{301}",
    ".",
    "..",
    "../../etc/passwd",
    "/",
    "/nowhere/at/all",
    "~",
    "-",
    "--help",
    "*",
    "[",
    "null",
    "18446744073709551616",
    "%00%ff",
];

/// Integers at the limits of common types.
const EDGES: [i64; 12] = [
    0,
    1,
    -1,
    2,
    7,
    255,
    u32::MAX as i64,
    u32::MAX as i64 + 1,
    1 << 48,
    (1 << 53) + 1,
    i64::MAX,
    i64::MIN,
];

/// A schema's root document, and preferred words for its strings.
#[derive(Clone, Copy)]
pub struct Described<'a> {
    /// The document in which `$ref` is resolved.
    pub root: &'a Value,
    /// Words that the code under test gives a meaning.
    pub words: &'a [&'a str],
}

/// A mistake in one part of a value.
#[derive(Debug, Clone)]
pub enum Mistake {
    /// The part is replaced by another value.
    Other(Index, Value),
    /// The part is missing.
    Removed(Index),
    /// The part is wrapped in an object if true, otherwise in an array.
    Wrapped(Index, bool),
    /// The second part is replaced by a copy of the first.
    Moved(Index, Index),
}

impl Described<'_> {
    /// Generates values that match `schema`.
    pub fn values(self, schema: &Value) -> BoxedStrategy<Value> {
        self.fitting(schema, DEPTH)
    }

    fn fitting(self, schema: &Value, depth: u32) -> BoxedStrategy<Value> {
        let Some(keywords) = schema.as_object() else { return anything() };
        if depth == 0 {
            return Just(Value::Null).boxed();
        }
        if let Some(reference) = keywords.get("$ref").and_then(Value::as_str) {
            let named =
                self.root.pointer(reference.trim_start_matches('#')).cloned().unwrap_or_default();
            return self.fitting(&named, depth - 1);
        }
        if let Some(value) = keywords.get("const") {
            return Just(value.clone()).boxed();
        }
        if let Some(values) = keywords.get("enum").and_then(Value::as_array) {
            return select(values.clone()).boxed();
        }
        let of_all = |name: &str| keywords.get(name).and_then(Value::as_array);
        let own = self.of_type(keywords, depth);
        let either = of_all("oneOf").or_else(|| of_all("anyOf"));
        if let Some(either) = either {
            let each: Vec<_> = either.iter().map(|schema| self.fitting(schema, depth)).collect();
            let one = (0..each.len()).prop_flat_map(move |n| each[n].clone()).boxed();
            return joined(own, one);
        }
        match of_all("allOf") {
            Some(all) => {
                all.iter().fold(own, |sum, schema| joined(sum, self.fitting(schema, depth)))
            }
            None => own,
        }
    }

    fn of_type(self, keywords: &Map<String, Value>, depth: u32) -> BoxedStrategy<Value> {
        match keywords.get("type") {
            Some(Value::String(kind)) => self.of_kind(kind, keywords, depth),
            Some(Value::Array(kinds)) => {
                let kinds = kinds.iter().filter_map(Value::as_str);
                let each: Vec<_> = kinds.map(|kind| self.of_kind(kind, keywords, depth)).collect();
                (0..each.len()).prop_flat_map(move |n| each[n].clone()).boxed()
            }
            _ if keywords.contains_key("properties") => self.of_kind("object", keywords, depth),
            _ if ["oneOf", "anyOf", "allOf"].iter().any(|name| keywords.contains_key(*name)) => {
                Just(json!({})).boxed()
            }
            _ => anything(),
        }
    }

    fn of_kind(
        self,
        kind: &str,
        keywords: &Map<String, Value>,
        depth: u32,
    ) -> BoxedStrategy<Value> {
        match kind {
            "object" => self.object(keywords, depth),
            "array" => {
                let item = keywords.get("items").cloned().unwrap_or_default();
                prop::collection::vec(self.fitting(&item, depth - 1), 0..4)
                    .prop_map(Value::Array)
                    .boxed()
            }
            "string" => self.text(),
            "integer" | "number" => numbers(),
            "boolean" => any::<bool>().prop_map(Value::Bool).boxed(),
            _ => Just(Value::Null).boxed(),
        }
    }

    fn object(self, keywords: &Map<String, Value>, depth: u32) -> BoxedStrategy<Value> {
        let required = keywords.get("required").and_then(Value::as_array);
        let is_required =
            |name: &str| required.is_some_and(|names| names.iter().any(|is| is == name));
        let properties = keywords.get("properties").and_then(Value::as_object);
        let known: Vec<_> = properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| {
                let value = self.fitting(schema, depth - 1);
                let value = match is_required(name) {
                    true => value.prop_map(Some).boxed(),
                    false => prop::option::weighted(0.4, value).boxed(),
                };
                (Just(name.clone()), value)
            })
            .collect();
        let others = match keywords.get("additionalProperties") {
            Some(schema @ Value::Object(_)) => {
                prop::collection::vec((self.text(), self.fitting(schema, depth - 1)), 0..3).boxed()
            }
            _ => Just(Vec::new()).boxed(),
        };
        (known, others)
            .prop_map(|(known, others)| {
                let known = known.into_iter().filter_map(|(name, value)| Some((name, value?)));
                let others = others
                    .into_iter()
                    .filter_map(|(name, value)| Some((name.as_str()?.to_owned(), value)));
                Value::Object(known.chain(others).collect())
            })
            .boxed()
    }

    fn text(self) -> BoxedStrategy<Value> {
        let words: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        match words.is_empty() {
            true => odd_texts().prop_map(Value::String).boxed(),
            false => {
                prop_oneof![4 => select(words), 1 => odd_texts()].prop_map(Value::String).boxed()
            }
        }
    }
}

/// Merges two objects; of other values, the second wins.
fn joined(one: BoxedStrategy<Value>, other: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    let join = |(one, other)| match (one, other) {
        (Value::Object(one), Value::Object(other)) => {
            Value::Object(one.into_iter().chain(other).collect())
        }
        (_, other) => other,
    };
    (one, other).prop_map(join).boxed()
}

/// Generates texts that are likely to break a program.
pub fn odd_texts() -> impl Strategy<Value = String> {
    let long = (select(vec!["x", "é", "\u{1f600}", "../", "\n"]), 60..3_000_usize);
    prop_oneof![
        4 => select(ODD.to_vec()).prop_map(str::to_owned),
        2 => "\\PC{0,12}",
        1 => long.prop_map(|(piece, times)| piece.repeat(times)),
    ]
}

fn numbers() -> BoxedStrategy<Value> {
    prop_oneof![
        3 => (0..20_i64).prop_map(Value::from),
        2 => select(EDGES.to_vec()).prop_map(Value::from),
        1 => Just(Value::from(u64::MAX)),
        1 => select(vec![0.5, -0.0, 1e308, 1e-308]).prop_map(Value::from),
    ]
    .boxed()
}

/// Generates arbitrary values.
pub fn anything() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        numbers(),
        odd_texts().prop_map(Value::String),
        Just((0..100).fold(Value::Null, |inner, _| json!([inner]))),
    ];
    let small: Range<usize> = 0..3;
    leaf.prop_recursive(2, 8, 3, move |inner| {
        let named = (odd_texts(), inner.clone());
        prop_oneof![
            prop::collection::vec(inner, small.clone()).prop_map(Value::Array),
            prop::collection::vec(named, small.clone())
                .prop_map(|entries| Value::Object(entries.into_iter().collect())),
        ]
    })
    .boxed()
}

/// Generates mistakes for [`Mistake::spoil`].
pub fn slip() -> impl Strategy<Value = Mistake> {
    let at = any::<Index>;
    prop_oneof![
        4 => (at(), anything()).prop_map(|(at, value)| Mistake::Other(at, value)),
        2 => at().prop_map(Mistake::Removed),
        1 => (at(), any::<bool>()).prop_map(|(at, object)| Mistake::Wrapped(at, object)),
        2 => (at(), at()).prop_map(|(from, to)| Mistake::Moved(from, to)),
    ]
}

impl Mistake {
    /// Applies the mistake to a value.
    pub fn spoil(&self, value: &mut Value) {
        let count = parts(value);
        match self {
            Self::Other(at, other) => {
                with_part(value, at.index(count), |part| *part = other.clone())
            }
            Self::Removed(at) => lose(value, at.index(count)),
            Self::Wrapped(at, object) => with_part(value, at.index(count), |part| {
                let inner = part.take();
                *part = if *object { json!({ "value": inner }) } else { json!([inner]) };
            }),
            Self::Moved(from, to) => {
                let mut moved = Value::Null;
                with_part(value, from.index(count), |part| moved = part.clone());
                with_part(value, to.index(count), |part| *part = moved);
            }
        }
    }
}

/// The number of parts of a value, including itself.
fn parts(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(parts).sum(),
        Value::Object(entries) => entries.values().map(parts).sum(),
        _ => 0,
    }
}

/// Calls `what` with the part at this index, in the order of the written value.
fn with_part(value: &mut Value, at: usize, what: impl FnOnce(&mut Value)) {
    let mut left = at;
    if let Some(part) = part_mut(value, &mut left) {
        what(part);
    }
}

fn part_mut<'a>(value: &'a mut Value, left: &mut usize) -> Option<&'a mut Value> {
    if *left == 0 {
        return Some(value);
    }
    *left -= 1;
    match value {
        Value::Array(items) => items.iter_mut().find_map(|item| part_mut(item, left)),
        Value::Object(entries) => entries.values_mut().find_map(|entry| part_mut(entry, left)),
        _ => None,
    }
}

/// Removes the part at this index from its array or object.
fn lose(value: &mut Value, at: usize) {
    let mut first = 1;
    match value {
        // The whole value has no parent.
        _ if at == 0 => {}
        Value::Array(items) => {
            for n in 0..items.len() {
                let size = parts(&items[n]);
                match at {
                    _ if at == first => return drop(items.remove(n)),
                    _ if at < first + size => return lose(&mut items[n], at - first),
                    _ => first += size,
                }
            }
        }
        Value::Object(entries) => {
            for name in entries.keys().cloned().collect::<Vec<_>>() {
                let size = parts(&entries[&name]);
                match at {
                    _ if at == first => return drop(entries.shift_remove(&name)),
                    _ if at < first + size => return lose(&mut entries[&name], at - first),
                    _ => first += size,
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_value_are_counted_found_and_lost_alike() {
        let whole = json!({"a": [1, {"b": 2}], "c": null});
        assert_eq!(parts(&whole), 6);
        let found: Vec<_> = (0..6)
            .map(|at| {
                let (mut value, mut found) = (whole.clone(), Value::Null);
                with_part(&mut value, at, |part| found = part.take());
                found
            })
            .collect();
        assert_eq!(
            found[1..],
            [json!([1, {"b": 2}]), json!(1), json!({"b": 2}), json!(2), json!(null)]
        );
        let lost = |at| {
            let mut value = whole.clone();
            lose(&mut value, at);
            value
        };
        assert_eq!(lost(1), json!({"c": null}));
        assert_eq!(lost(2), json!({"a": [{"b": 2}], "c": null}));
        assert_eq!(lost(4), json!({"a": [1, {}], "c": null}));
        assert_eq!(lost(5), json!({"a": [1, {"b": 2}]}));
        assert_eq!(lost(0), whole);
    }
}
