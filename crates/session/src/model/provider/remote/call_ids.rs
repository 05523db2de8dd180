//! The names of calls on a wire: the model's own, else nine letters and digits, which every provider takes.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use holdpoint_common::{CallId, ToolIds};

use super::{Endpoint, Provider};
use crate::model::Message;

/// Bytes of a provider's name for a call that are sent back. Some gateways put a signed thought into it.
const LONGEST: usize = 64 * 1024;

/// The names of a conversation's calls.
pub(crate) struct CallIds<'a>(HashMap<CallId, &'a str>);

impl<'a> CallIds<'a> {
    /// The names that this endpoint is sent: its own where its model made the call, and no two the same.
    pub(crate) fn of(endpoint: &Endpoint, messages: &'a [Message]) -> Self {
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
            let usable = !id.is_empty() && id.len() <= LONGEST && !is_ours(id) && is_legal(endpoint.provider, id);
            (usable && taken.insert(id)).then_some((call.id, id))
        });
        Self(named.collect())
    }

    /// The name of a call.
    pub(crate) fn get(&self, call: CallId) -> Cow<'a, str> {
        self.0.get(&call).map_or_else(|| Cow::Owned(ours(call)), |id| Cow::Borrowed(*id))
    }
}

/// Bytes of a name in Anthropic's protocol.
const ANTHROPIC_LONGEST: usize = 64;

/// Whether the protocol allows this name. Gateways give other ones in Anthropic's protocol, which Anthropic itself refuses
/// when the same model is reached without the gateway.
fn is_legal(provider: Provider, id: &str) -> bool {
    let of_anthropic = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    provider != Provider::Anthropic || id.len() <= ANTHROPIC_LONGEST && id.bytes().all(of_anthropic)
}

/// Our own name for a call: `c` and its number in base 36, with zeros before it. Mistral takes exactly nine letters and
/// digits; a number beyond them makes a longer name.
fn ours(CallId(mut number): CallId) -> String {
    let mut digits = Vec::with_capacity(DIGITS);
    while number > 0 || digits.len() < DIGITS {
        digits.push(char::from_digit((number % 36) as u32, 36).unwrap_or('0'));
        number /= 36;
    }
    digits.push('c');
    digits.iter().rev().collect()
}

const DIGITS: usize = 8;

/// Whether a provider's name could be one of ours.
fn is_ours(id: &str) -> bool {
    let digits = id.strip_prefix('c').unwrap_or_default();
    digits.len() >= DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_names_are_nine_letters_and_digits_and_are_known_again() {
        for (number, name) in [(0, "c00000000"), (35, "c0000000z"), (36, "c00000010"), (131_072, "c00002t4w")] {
            assert_eq!(ours(CallId(number)), name);
            assert!(is_ours(name));
        }
        assert!(is_ours(&ours(CallId(u64::MAX))));
        for theirs in ["", "c", "call_1", "c0000000", "toolu_01A", "C00000001", "functions.shell:0"] {
            assert!(!is_ours(theirs), "{theirs}");
        }
    }
}
