//! Ids of sessions, asks, turns, prompts, items, calls and tasks.

use std::borrow::Cow;
use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

/// Maximum length of a session id in characters.
pub const MAX_SESSION_ID: usize = 64;

/// The permanent id of a session: 1 to [`MAX_SESSION_ID`] characters of `a-z`, `0-9` and `-`.
///
/// Cheap to clone. Unlike a name, an id is never given to another session.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Minimum length in characters of an id's prefix that identifies a session.
    pub const PREFIX: usize = 4;

    /// Whether `text` is a prefix of this id with at least [`PREFIX`](Self::PREFIX) characters.
    #[must_use]
    pub fn has_prefix(&self, text: &str) -> bool {
        text.len() >= Self::PREFIX && self.0.starts_with(text)
    }

    /// Returns the id as text.
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

/// The permanent id of an ask, unique among all sessions: its session and the number of the event
/// that raised it.
///
/// Written `session.seq`, for example `k3v9x2m7qa.41`. It never repeats, because event numbers
/// never repeat.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AskId {
    /// Session of the ask.
    pub session: SessionId,
    /// Number of the event that raised the ask.
    pub seq: u64,
}

impl FromStr for AskId {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let invalid = || IdError::Ask { text: text.to_owned() };
        let (session, seq) = text.rsplit_once('.').ok_or_else(invalid)?;
        Ok(Self {
            session: session.parse().map_err(|_| invalid())?,
            seq: parse_number(seq).map_err(|_| invalid())?,
        })
    }
}

/// Parses a number. Unlike `u64::from_str`, refuses a plus sign.
pub(crate) fn parse_number(text: &str) -> Result<u64, ParseIntError> {
    // A plus sign alone is an invalid digit.
    if text.starts_with('+') { "+" } else { text }.parse()
}

impl fmt::Display for AskId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.session, self.seq)
    }
}

/// Maximum length of an idempotency key in characters.
pub const MAX_IDEMPOTENCY_KEY: usize = 64;

/// A key that a client chooses for a request: 1 to [`MAX_IDEMPOTENCY_KEY`] visible ASCII characters. A
/// request that is sent again with the same key has no second effect.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdempotencyKey(Arc<str>);

impl FromStr for IdempotencyKey {
    type Err = IdError;

    fn from_str(text: &str) -> Result<Self, IdError> {
        let fits = (1..=MAX_IDEMPOTENCY_KEY).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_graphic());
        let invalid =
            || IdError::IdempotencyKey { text: text.chars().take(MAX_IDEMPOTENCY_KEY).collect() };
        if fits { Ok(Self(text.into())) } else { Err(invalid()) }
    }
}

impl fmt::Display for IdempotencyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

macro_rules! text_id {
    ($name:ident, $pattern:literal, $description:literal) => {
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
                json_schema!({ "type": "string", "description": $description, "pattern": $pattern })
            }
        }
    };
}

pub(crate) use text_id;

text_id!(SessionId, "^[a-z0-9-]{1,64}$", "Permanent id of a session.");
text_id!(
    AskId,
    "^[a-z0-9-]{1,64}\\.[0-9]+$",
    "Permanent id of an ask: its session and the number of its event."
);
text_id!(
    IdempotencyKey,
    "^[!-~]{1,64}$",
    "Key of a request, so that it has no second effect when it is sent again."
);

macro_rules! number_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// Returns the next id.
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
            type Err = ParseIntError;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                parse_number(text).map(Self)
            }
        }
    };
}

number_id! {
    /// Id of a turn within its session, counted from 1.
    TurnId
}
number_id! {
    /// Id of an accepted prompt within its session, counted from 1.
    PromptId
}
number_id! {
    /// Id of an item within its session: a block of text or thought, or the output of a tool call.
    ItemId
}
number_id! {
    /// Id of a tool call within its session. Calls and items share one counter: the output of a
    /// call is the item with the same number.
    CallId
}

number_id! {
    /// Id of a task within its session, counted from 1.
    TaskId
}

impl CallId {
    /// Returns the id of the call's output.
    #[must_use]
    pub fn item(self) -> ItemId {
        ItemId(self.0)
    }
}

/// The error for a text that is not an id.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdError {
    /// The text is not the id of a session.
    #[error("`{text}` is not a session id (1 to 64 characters of a-z, 0-9 and -)")]
    Session {
        /// The text that was given.
        text: String,
    },
    /// The text is not the id of an ask.
    #[error("`{text}` is not an ask id (session.number)")]
    Ask {
        /// The text that was given.
        text: String,
    },
    /// The text is not an idempotency key.
    #[error("`{text}` is not an idempotency key (1 to 64 visible ASCII characters)")]
    IdempotencyKey {
        /// The beginning of the text that was given.
        text: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_of_ids_have_no_plus_sign() {
        assert_eq!("a.5".parse::<AskId>().unwrap().seq, 5);
        for text in ["a.+5", "a.", "a.+", "a.-5"] {
            assert_eq!(text.parse::<AskId>(), Err(IdError::Ask { text: text.to_owned() }));
        }
        assert_eq!("5".parse(), Ok(TurnId(5)));
        for text in ["+5", "+", ""] {
            text.parse::<TurnId>().unwrap_err();
        }
    }
}
