//! The calls of a chat completion, assembled from their fragments.
//!
//! Servers identify calls by an index, by an id, or only by their order. Some use one index for all
//! calls, and some send a new id with every fragment of the same call.

use holdpoint_common::limits::MAX_CALLS;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::EXTRA_PREFIX;
use crate::model::ModelError;
use crate::model::provider::remote::{
    Arguments, Count, HeldBytes, OpenCall, Pieces, Text, is_no_input,
};

/// A fragment of a call, or a whole one.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Fragment {
    index: Count,
    id: Id,
    function: Option<Function>,
    /// Gemini's own data, which are sent back with the call.
    extra_content: Option<Box<RawValue>>,
}

impl Fragment {
    /// The same fragment with this index.
    pub(super) fn with_index(self, index: u64) -> Self {
        Self { index: Count(Some(index)), ..self }
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Function {
    name: Text,
    arguments: Option<Arguments>,
}

/// The id of a call, as text or as a number. Some servers send an empty one or `"null"` if they
/// have none.
#[derive(Debug, Default)]
struct Id(Option<String>);

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&RawValue>::deserialize(deserializer)?.get();
        let id = match raw.as_bytes().first() {
            Some(b'"') => serde_json::from_str(raw).map_err(serde::de::Error::custom)?,
            Some(b'{' | b'[') => String::new(),
            _ => raw.to_owned(),
        };
        Ok(Self(Some(id).filter(|id| !matches!(id.as_str(), "" | "null"))))
    }
}

/// The calls of one answer, in the order in which they began.
#[derive(Debug, Default)]
pub(super) struct Calls {
    open: Vec<IdentifiedCall>,
    held: HeldBytes,
    /// Whether a call that ended names no tool.
    lost: bool,
}

/// A call, with the index and the id that identify its fragments.
#[derive(Debug, Default)]
struct IdentifiedCall {
    index: Option<u64>,
    id: Option<String>,
    call: OpenCall,
}

impl Calls {
    pub(super) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Adds a fragment to its call.
    ///
    /// # Errors
    /// [`ModelError::Malformed`] if too much data is held that no event has reported.
    pub(super) fn add(
        &mut self,
        fragment: Fragment,
        pieces: &mut Pieces,
    ) -> Result<(), ModelError> {
        let Fragment { index: Count(index), id: Id(id), function, extra_content } = fragment;
        let Function { name, arguments } = function.unwrap_or_default();
        let (name, arguments) = (name.filled(), arguments.unwrap_or_default().0);
        let extra = extra_content.filter(|extra| extra.get().starts_with('{'));
        let at =
            match self.find(index, id.as_deref(), name.as_deref(), !arguments.trim().is_empty()) {
                Some(at) => at,
                // An empty fragment begins no call; the finish reason says whether a call was
                // expected.
                None if id.is_none()
                    && name.is_none()
                    && extra.is_none()
                    && is_no_input(&arguments) =>
                {
                    return Ok(());
                }
                None => {
                    if self.open.len() >= MAX_CALLS {
                        return Err(ModelError::too_many_calls());
                    }
                    self.held.add(size_of::<IdentifiedCall>())?;
                    self.open.push(IdentifiedCall { index, ..IdentifiedCall::default() });
                    self.open.len() - 1
                }
            };
        let IdentifiedCall { id: known, call, .. } = &mut self.open[at];
        if let Some(id) = id.filter(|id| known.as_ref() != Some(id)) {
            self.held.add(id.len())?;
            call.set_id(id.clone(), &mut self.held)?;
            *known = Some(id);
        }
        if let Some(extra) = extra {
            call.set_signature(format!("{EXTRA_PREFIX}{}", extra.get()), &mut self.held)?;
        }
        if let Some(name) = name {
            call.add_name(&name, &mut self.held)?;
        }
        call.add_arguments(&arguments, pieces, &mut self.held)
    }

    /// The call that a fragment continues; `None` if it begins one.
    fn find(
        &self,
        index: Option<u64>,
        id: Option<&str>,
        name: Option<&str>,
        has_arguments: bool,
    ) -> Option<usize> {
        if index.is_some() {
            let at = self.open.iter().rposition(|open| open.index == index)?;
            let IdentifiedCall { id: known, call, .. } = &self.open[at];
            // A new id means a new call, except from a server that sends a new id with every
            // fragment.
            let is_other_id = id.is_some() && known.is_some() && id != known.as_deref();
            let begins_call = match name {
                _ if id.is_some() && id == known.as_deref() => false,
                Some(_) if is_other_id => true,
                // All calls may share one index and have no ids. A name then begins a call if the
                // one before is complete. A name without arguments may only repeat that of the call
                // before.
                Some(name) => {
                    !call.name.is_empty()
                        && call.is_complete()
                        && (has_arguments || name != call.name)
                }
                None => is_other_id && has_arguments && call.is_complete() && !call.has_no_input(),
            };
            return (!begins_call).then_some(at);
        }
        if id.is_some() {
            return self.open.iter().rposition(|open| open.id.as_deref() == id);
        }
        let IdentifiedCall { call, .. } = self.open.last()?;
        let begins_call = match name {
            Some(_) => call.is_complete() || !call.has_arguments(),
            None => has_arguments && call.is_complete() && !call.has_no_input(),
        };
        (!begins_call).then_some(self.open.len() - 1)
    }

    /// Ends all calls. Returns `true` if one of them names no tool.
    pub(super) fn end(&mut self, pieces: &mut Pieces) -> bool {
        for IdentifiedCall { call, .. } in std::mem::take(&mut self.open) {
            self.lost |= !call.end(String::new(), pieces);
        }
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One call too many is an error at once: the rest is not read.
    #[test]
    fn the_calls_of_an_answer_are_bounded_while_they_are_read() {
        for number in [
            |n: usize| format!(r#"{{"index":{n},"function":{{"name":"a","arguments":"{{}}"}}}}"#),
            |n: usize| format!(r#"{{"id":"c{n}","function":{{"name":"a","arguments":"{{}}"}}}}"#),
            |_| r#"{"function":{"name":"a","arguments":"{}"}}"#.to_owned(),
        ] {
            let (mut calls, mut pieces) = (Calls::default(), Pieces::default());
            let mut add = |n| calls.add(serde_json::from_str(&number(n)).unwrap(), &mut pieces);
            (0..MAX_CALLS).for_each(|n| add(n).unwrap());
            let error = add(MAX_CALLS).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the model's answer can't be read: it has more than 1000 calls"
            );
        }
    }
}
