//! The ids of tool calls in requests: those of the provider, or else ours, which have nine letters
//! and digits and which every provider accepts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use holdpoint_common::{CallId, ToolIds};

use super::{Endpoint, Provider};
use crate::model::Message;

/// The most bytes of a provider's id that are sent back. Some gateways put a signed thought into
/// it.
const MAX_ID_BYTES: usize = 64 * 1024;

/// The ids of a conversation's calls.
pub(crate) struct CallIds<'a>(HashMap<CallId, &'a str>);

impl<'a> CallIds<'a> {
    /// The ids for requests to this endpoint. A call of the endpoint's own model keeps the
    /// provider's id, if that is usable. No two ids are the same.
    pub(crate) fn new(endpoint: &Endpoint, messages: &'a [Message]) -> Self {
        if endpoint.settings.tool_ids == Some(ToolIds::Own) {
            return Self(HashMap::new());
        }
        let answers = messages.iter().filter_map(|message| match message {
            Message::Assistant(answer) if endpoint.answered(answer) => Some(&answer.calls),
            _ => None,
        });
        let mut taken = HashSet::new();
        let provider_ids = answers.flatten().filter_map(|call| {
            let id = call.provider_id.as_deref()?;
            let is_usable = !id.is_empty()
                && id.len() <= MAX_ID_BYTES
                && !is_own_id(id)
                && is_legal(endpoint.provider, id);
            (is_usable && taken.insert(id)).then_some((call.id, id))
        });
        Self(provider_ids.collect())
    }

    /// The id of a call in requests.
    pub(crate) fn get(&self, call: CallId) -> Cow<'a, str> {
        self.0.get(&call).map_or_else(|| Cow::Owned(own_id(call)), |id| Cow::Borrowed(*id))
    }
}

/// The most bytes of an id in Anthropic's protocol.
const MAX_ANTHROPIC_ID_BYTES: usize = 64;

/// Whether the protocol allows this id. In Anthropic's protocol, gateways use ids that Anthropic
/// itself refuses when the same model is later reached without the gateway.
fn is_legal(provider: Provider, id: &str) -> bool {
    let is_legal_byte = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    provider != Provider::Anthropic
        || id.len() <= MAX_ANTHROPIC_ID_BYTES && id.bytes().all(is_legal_byte)
}

/// Our own id of a call: `c` and its number in base 36, padded with zeros. Mistral accepts exactly
/// nine letters and digits; a number that does not fit makes a longer id.
fn own_id(CallId(mut number): CallId) -> String {
    let mut digits = Vec::with_capacity(OWN_ID_DIGITS);
    while number > 0 || digits.len() < OWN_ID_DIGITS {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
    }
    digits.push('c');
    digits.iter().rev().collect()
}

const OWN_ID_DIGITS: usize = 8;

/// Whether a provider's id could be one of ours.
fn is_own_id(id: &str) -> bool {
    let digits = id.strip_prefix('c').unwrap_or_default();
    digits.len() >= OWN_ID_DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_ids_are_nine_letters_and_digits_and_are_recognised() {
        for (number, name) in
            [(0, "c00000000"), (35, "c0000000z"), (36, "c00000010"), (131_072, "c00002t4w")]
        {
            assert_eq!(own_id(CallId(number)), name);
            assert!(is_own_id(name));
        }
        assert!(is_own_id(&own_id(CallId(u64::MAX))));
        for theirs in ["", "c", "call_1", "c0000000", "toolu_01A", "C00000001", "functions.shell:0"]
        {
            assert!(!is_own_id(theirs), "{theirs}");
        }
    }
}
