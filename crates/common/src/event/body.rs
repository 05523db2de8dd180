//! The content of an event, a fact or a delta, and its deserialization.

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize};

use super::kinds::{FromKind, Kind, deserialize_kind};
use super::{Delta, Fact};

/// The content of an event: a fact or a delta.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Body {
    /// An event that is logged.
    Fact(Fact),
    /// An event that is not logged.
    Delta(Delta),
}

/// Kinds that are deltas. All other kinds are facts.
const DELTAS: [&str; 9] = [
    "text",
    "thought",
    "output",
    "status",
    "itemSoFar",
    "retrying",
    "gap",
    "notSaved",
    "savedAgain",
];

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_kind(deserializer)
    }
}

impl FromKind for Body {
    fn from_kind<'de, M: MapAccess<'de>>(kind: Kind<'de, M>) -> Result<Self, M::Error> {
        if DELTAS.contains(&kind.name()) {
            Delta::from_kind(kind).map(Self::Delta)
        } else {
            Fact::from_kind(kind).map(Self::Fact)
        }
    }
}
