//! The list of sessions, which can be read in pages.

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use crate::id::{SessionId, parse_number, text_id};
use crate::session::SessionSummary;
use crate::time::Timestamp;

/// The query parameters of the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ListQuery {
    /// Maximum number of sessions to list, at least 1. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<NonZeroUsize>,
    /// The end of the previous page, from its `next`. Default: the list begins with its first
    /// session.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub after: Option<SessionCursor>,
}

/// A page of the list of sessions: live ones first, then the newest first.
///
/// A session that becomes live or stops being live between two pages may be in both or in neither.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    /// Summaries of the sessions.
    pub sessions: Vec<SessionSummary>,
    /// The value of `after` that lists the following sessions. Absent if there are none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub next: Option<SessionCursor>,
}

/// A position in the list of sessions, which need not be that of a session that still exists. Later
/// positions are less.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionCursor {
    /// Whether the session is live.
    pub live: bool,
    /// When the session was first opened or, if it is only saved, when it was added to the store.
    pub opened: Timestamp,
    /// The id of the session.
    pub id: SessionId,
}

/// The text is not a position in the list of sessions.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a position in the list of sessions: use the value of `next` in the previous page")]
pub struct CursorError;

/// Written `live.opened.id` or `saved.opened.id`, with the time in milliseconds.
impl fmt::Display for SessionCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { live, opened, id } = self;
        write!(f, "{}.{}.{id}", if *live { "live" } else { "saved" }, opened.0)
    }
}

impl FromStr for SessionCursor {
    type Err = CursorError;

    fn from_str(text: &str) -> Result<Self, CursorError> {
        let mut parts = text.splitn(3, '.');
        let mut part = || parts.next().ok_or(CursorError);
        let live = match part()? {
            "live" => true,
            "saved" => false,
            _ => return Err(CursorError),
        };
        let opened = Timestamp(parse_number(part()?).map_err(|_| CursorError)?);
        let id = part()?.parse().map_err(|_| CursorError)?;
        Ok(Self { live, opened, id })
    }
}

text_id!(
    SessionCursor,
    "^(live|saved)\\.[0-9]+\\.[a-z0-9-]{1,64}$",
    "Position in the list of sessions."
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_written_read_and_ordered() {
        let texts = ["live.7.b", "live.7.a", "live.6.c", "saved.10.d-1", "saved.9.e"];
        let read: Vec<SessionCursor> = texts.iter().map(|text| text.parse().unwrap()).collect();
        assert!(read.is_sorted_by(|one, next| one > next), "{read:?}");
        assert_eq!(read.iter().map(ToString::to_string).collect::<Vec<_>>(), texts);
        for text in
            ["", "live", "live.7", "live.7.", "saved.x.a", "saved.+7.a", "saved.7.A", "other.7.a"]
        {
            assert_eq!(text.parse::<SessionCursor>(), Err(CursorError), "{text}");
        }
    }
}
