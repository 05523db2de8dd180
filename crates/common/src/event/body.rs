//! What an event says. Its kind is read first, so that nothing has to be kept until it is known what it is.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::de::value::{BorrowedStrDeserializer, CowStrDeserializer, MapAccessDeserializer, MapDeserializer};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Delta, Fact};
use crate::message::{AssistantMessage, ToolResult};

/// What an [`Event`](super::Event) says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Body {
    /// Logged.
    Fact(Fact),
    /// Not logged.
    Delta(Delta),
}

/// The field that says the kind. It is written first.
const KIND: &str = "type";

/// The kinds that are deltas. All others are facts.
const DELTAS: [&str; 10] =
    ["text", "thought", "output", "status", "itemSoFar", "retrying", "historyCut", "gap", "notSaved", "savedAgain"];

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(BodyVisitor)
    }
}

struct BodyVisitor;

impl<'de> Visitor<'de> for BodyVisitor {
    type Value = Body;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a fact or a delta")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Body, M::Error> {
        let Some(Word(first)) = map.next_key()? else { return Err(Error::missing_field(KIND)) };
        if first == KIND {
            let Word(kind) = map.next_value()?;
            return read(kind, map);
        }
        // Somebody else has written it: all of it is needed to find the kind.
        let mut fields = Map::new();
        fields.insert(first.into_owned(), map.next_value()?);
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            fields.insert(name, value);
        }
        let kind = match fields.remove(KIND) {
            Some(Value::String(kind)) => kind,
            _ => return Err(Error::missing_field(KIND)),
        };
        read(kind.into(), MapDeserializer::<_, serde_json::Error>::new(fields.into_iter())).map_err(Error::custom)
    }
}

/// Reads the fields of this kind.
fn read<'de, M: MapAccess<'de>>(kind: Cow<'de, str>, map: M) -> Result<Body, M::Error> {
    let fields = MapAccessDeserializer::new;
    Ok(match &*kind {
        // The largest, and of a type of their own: these need not be told their kind.
        "assistantMessage" => Body::Fact(Fact::AssistantMessage(AssistantMessage::deserialize(fields(map))?)),
        "toolFinished" => Body::Fact(Fact::ToolFinished(ToolResult::deserialize(fields(map))?)),
        delta if DELTAS.contains(&delta) => {
            Body::Delta(Delta::deserialize(MapAccessDeserializer::new(Again::new(kind, map)))?)
        }
        _ => Body::Fact(Fact::deserialize(MapAccessDeserializer::new(Again::new(kind, map)))?),
    })
}

/// The name of a field, or a kind: as it stands in the text, where it can be.
struct Word<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Word<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WordVisitor;

        impl<'de> Visitor<'de> for WordVisitor {
            type Value = Word<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_borrowed_str<E: Error>(self, word: &'de str) -> Result<Word<'de>, E> {
                Ok(Word(word.into()))
            }

            fn visit_str<E: Error>(self, word: &str) -> Result<Word<'de>, E> {
                Ok(Word(word.to_owned().into()))
            }
        }

        deserializer.deserialize_str(WordVisitor)
    }
}

/// A map of which the kind was read: it comes once more, before the rest.
struct Again<'de, M> {
    kind: Option<Cow<'de, str>>,
    /// Its name was given, and it is due.
    due: Option<Cow<'de, str>>,
    rest: M,
}

impl<'de, M> Again<'de, M> {
    fn new(kind: Cow<'de, str>, rest: M) -> Self {
        Self { kind: Some(kind), due: None, rest }
    }
}

impl<'de, M: MapAccess<'de>> MapAccess<'de> for Again<'de, M> {
    type Error = M::Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, M::Error> {
        match self.kind.take() {
            Some(kind) => {
                self.due = Some(kind);
                seed.deserialize(BorrowedStrDeserializer::new(KIND)).map(Some)
            }
            None => self.rest.next_key_seed(seed),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, M::Error> {
        match self.due.take() {
            Some(kind) => seed.deserialize(CowStrDeserializer::new(kind)),
            None => self.rest.next_value_seed(seed),
        }
    }
}
