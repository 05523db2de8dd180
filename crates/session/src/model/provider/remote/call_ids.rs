//! The ids of tool calls in requests: the provider's own, or else nine letters and digits, which
//! every provider accepts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use holdpoint_common::{CallId, ToolIds};

use super::{Endpoint, Provider};
use crate::model::Message;

/// The most bytes of a provider's id that are sent back. Some gateways put a signed thought into
/// it.
const LONGEST: usize = 64 * 1024;

/// The ids of a conversation's calls.
pub(crate) struct CallIds<'a>(HashMap<CallId, &'a str>);

impl<'a> CallIds<'a> {
    /// The ids for requests to this endpoint: the provider's own where its model made the call, and
    /// no two the same.
    pub(crate) fn new(endpoint: &Endpoint, messages: &'a [Message]) -> Self {
        if endpoint.settings.tool_ids == Some(ToolIds::Own) {
            return Self(HashMap::new());
        }
        let answers = messages.iter().filter_map(|message| match message {
            Message::Assistant(answer) if endpoint.answered(answer) => Some(&answer.calls),
            _ => None,
        });
        let mut taken = HashSet::new();
        let named = answers.flatten().filter_map(|call| {
            let id = call.provider_id.as_deref()?;
            let usable = !id.is_empty()
                && id.len() <= LONGEST
                && !is_own_id(id)
                && is_legal(endpoint.provider, id);
            (usable && taken.insert(id)).then_some((call.id, id))
        });
        Self(named.collect())
    }

    /// The id of a call in requests.
    pub(crate) fn get(&self, call: CallId) -> Cow<'a, str> {
        self.0.get(&call).map_or_else(|| Cow::Owned(own_id(call)), |id| Cow::Borrowed(*id))
    }
}

/// The most bytes of an id in Anthropic's protocol.
const ANTHROPIC_LONGEST: usize = 64;

/// Whether the protocol allows this id. In Anthropic's protocol, gateways use ids that Anthropic
/// itself refuses when the same model is later reached without the gateway.
fn is_legal(provider: Provider, id: &str) -> bool {
    let of_anthropic = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    provider != Provider::Anthropic || id.len() <= ANTHROPIC_LONGEST && id.bytes().all(of_anthropic)
}

/// Our own id of a call: `c` and its number in base 36, padded with zeros. Mistral accepts exactly
/// nine letters and digits; a number that does not fit makes a longer id.
fn own_id(CallId(mut number): CallId) -> String {
    let mut digits = Vec::with_capacity(DIGITS);
    while number > 0 || digits.len() < DIGITS {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
    }
    digits.push('c');
    digits.iter().rev().collect()
}

const DIGITS: usize = 8;

/// Whether a provider's id could be one of ours.
fn is_own_id(id: &str) -> bool {
    let digits = id.strip_prefix('c').unwrap_or_default();
    digits.len() >= DIGITS
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_are_nine_letters_and_digits_and_are_known_again() {
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
