//! Events: the numbered record of everything that happens to a session.
//!
//! A [`Fact`] is logged, and the state of a session is the fold of its facts. A [`Delta`] is not
//! logged: it is a piece of an item that a later fact carries as a whole, or a notice about the
//! stream itself.

mod delta;
mod fact;
mod kinds;
mod weight;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::delta::{Delta, ItemKind};
pub use self::fact::{
    AskFact, Fact, JobFact, PromptFact, RunFact, SessionFact, TaskFact, ToolFact, TurnFact,
};
use self::kinds::groups;
use crate::id::TurnId;
use crate::time::Timestamp;

/// An event of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// Number of the event. Numbers rise strictly, but not always by one, and are never used again.
    pub seq: u64,
    /// Time of the event.
    pub at: Timestamp,
    /// Turn that the event belongs to; absent if it belongs to no turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Step of the turn, counted from 1; absent if the event belongs to no step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Content of the event.
    pub body: Body,
}

impl Event {
    /// Returns the event's fact, or `None` for a delta.
    #[must_use]
    pub fn fact(&self) -> Option<&Fact> {
        match &self.body {
            Body::Fact(fact) => Some(fact),
            Body::Delta(_) => None,
        }
    }

    /// Returns the event's delta, or `None` for a fact.
    #[must_use]
    pub fn delta(&self) -> Option<&Delta> {
        match &self.body {
            Body::Delta(delta) => Some(delta),
            Body::Fact(_) => None,
        }
    }

    /// Estimates the memory that the event takes, in bytes. The output buffer is bounded by it.
    #[must_use]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match &self.body {
                Body::Delta(delta) => weight::delta_bytes(delta),
                Body::Fact(fact) => weight::fact_bytes(fact),
            }
    }
}

groups! {
    /// The content of an event: a fact or a delta.
    pub enum Body {
        /// An event that is logged.
        Fact(Fact),
        /// An event that is not logged.
        Delta(Delta),
    }
}
