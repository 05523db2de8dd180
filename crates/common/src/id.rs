//! Names of things: sessions, asks, turns, prompts, calls.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// The most characters a session id may have.
pub const MAX_SESSION_ID: usize = 64;

/// Names one session for ever: 1 to [`MAX_SESSION_ID`] characters of `a-z`, `0-9` and `-`.
///
/// Cheap to clone. Unlike a session's name, an id is never given to another session.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Characters that a prefix of an id has at least, to name a session.
    pub const PREFIX: usize = 4;

    /// Whether `text` is a prefix of this id that is long enough to name the session.
    #[must_use]
    pub fn has_prefix(&self, text: &str) -> bool {
        text.len() >= Self::PREFIX && self.0.starts_with(text)
    }

    /// The id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = (1..=MAX_SESSION_ID).contains(&text.len())
            && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-');
        if fits { Ok(Self(text.into())) } else { Err(IdError::Session { text: text.to_owned() }) }
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names one ask for ever, across all sessions: the session and the number of the event that raised it.
///
/// Written `session.seq`, for example `k3v9x2m7qa.41`. Event numbers never repeat, so neither does this.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId {
    /// The session whose ask it is.
    pub session: SessionId,
    /// The number of the event that raised it.
    pub seq: u64,
}

impl FromStr for AskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let wrong = || IdError::Ask { text: text.to_owned() };
        let (session, seq) = text.rsplit_once('.').ok_or_else(wrong)?;
        Ok(Self { session: session.parse().map_err(|_| wrong())?, seq: seq.parse().map_err(|_| wrong())? })
    }
}

impl fmt::Display for AskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.session, self.seq)
    }
}

macro_rules! text_id {
    ($name:ident, $pattern:literal, $what:literal) => {
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{self}")
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "description": $what, "pattern": $pattern })
            }
        }
    };
}

text_id!(SessionId, "^[a-z0-9-]{1,64}$", "Names one session for ever.");
text_id!(AskId, "^[a-z0-9-]{1,64}\\.[0-9]+$", "Names one ask for ever: its session, and the number of its event.");

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The one after this.
            #[must_use]
            pub fn next(self) -> Self {
                Self(self.0.saturating_add(1))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }

        impl FromStr for $name {
            type Err = std::num::ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                text.parse().map(Self)
            }
        }
    };
}

number_id! {
    /// Names one turn within its session, counted from 1.
    TurnId
}
number_id! {
    /// Names one accepted prompt within its session, counted from 1.
    PromptId
}
number_id! {
    /// Names one item within its session: a block of text, of thought, or a tool call's output.
    ItemId
}
number_id! {
    /// Names one tool call within its session. Drawn from the same counter as [`ItemId`], for a call's
    /// output is the item of the same number.
    CallId
}

number_id! {
    /// Names one task within its session, counted from 1.
    TaskId
}

impl CallId {
    /// The item that this call's output is.
    #[must_use]
    pub fn item(self) -> ItemId {
        ItemId(self.0)
    }
}

/// A name that names nothing.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// Not a session id.
    #[error("`{text}` is no session id (1 to 64 of a-z, 0-9 and -)")]
    Session {
        /// What was given.
        text: String,
    },
    /// Not an ask id.
    #[error("`{text}` is no ask id (session.number)")]
    Ask {
        /// What was given.
        text: String,
    },
}
