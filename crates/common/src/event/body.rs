//! What an event says: a fact or a delta.

use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess};
use serde::{Deserialize, Serialize};

use super::kinds::{Kind, OfKinds, of_kinds};
use super::{Delta, Fact};

/// What an [`Event`](super::Event) says.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Body {
    /// Logged.
    Fact(Fact),
    /// Not logged.
    Delta(Delta),
}

/// The kinds that are deltas. All others are facts.
const DELTAS: [&str; 9] =
    ["text", "thought", "output", "status", "itemSoFar", "retrying", "gap", "notSaved", "savedAgain"];

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        of_kinds(deserializer)
    }
}

impl OfKinds for Body {
    fn of_kind<'de, M: MapAccess<'de>>(kind: Kind<'de, M>) -> Result<Self, M::Error> {
        if DELTAS.contains(&kind.name()) {
            Delta::of_kind(kind).map(Self::Delta)
        } else {
            Fact::of_kind(kind).map(Self::Fact)
        }
    }
}
