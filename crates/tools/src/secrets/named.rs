//! Secrets that are known by the name they stand under: options, variables, fields, headers.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::Secret;

/// What says in a name that something is secret.
const WORDS: &str = "token|secret|passw(?:or)?d|passphrase|credential|apikey|authkey|accountkey|[_-]key";

/// A value: in quotes, or without. No blank, nothing that a shell expands or ends a word at.
const VALUE: &str =
    r#"(?:"([!#%*+,./0-9:=?@A-Z^_a-z~\[\]{}-]+)"|'([!#%*+,./0-9:=?@A-Z^_a-z~\[\]{}-]+)'|([%+./0-9:=@A-Z^_a-z~-]+))"#;

/// `NAME=value`, `"name": "value"`, `name = 'value'`, `--name=value`, `Name: value`.
static FIELDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r#"(?-u)(?i:{WORDS})([A-Za-z0-9_-]*)["']?([ \t]*(?:=>|:=|[:=])[ \t]*){VALUE}"#)).ok()
});

/// `--name value`.
static OPTIONS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r"(?-u)--[A-Za-z0-9-]*?(?:(?i:{WORDS})|api-key)([A-Za-z0-9-]*)[ \t]+{VALUE}")).ok()
});

/// `Authorization: Bearer value`, and `Bearer value` by itself.
static HEADERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let named = r#"authorization["']?[ \t]*[:=][ \t]*["']?(?:bearer|basic|token|bot)"#;
    Regex::new(&format!(r"(?-u)(?:((?i:{named}))|\b[Bb]earer)[ \t]+([A-Za-z0-9._~+/=-]+)")).ok()
});

/// What says in a name's end that the rest is not the secret itself but something about it.
const ABOUT: [&str; 22] = [
    "file", "path", "url", "uri", "host", "endpoint", "name", "id", "count", "type", "len", "length", "limit", "size",
    "dir", "expiry", "ttl", "policy", "env", "ref", "s", "kind",
];

/// The values under names that say they are secret.
pub(super) fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for field in FIELDS.iter().flat_map(|fields| fields.captures_iter(text)) {
        found.extend(Named::field(text, &field).and_then(Named::secret));
    }
    for option in OPTIONS.iter().flat_map(|options| options.captures_iter(text)) {
        found.extend(Named::option(text, &option).and_then(Named::secret));
    }
    for header in HEADERS.iter().flat_map(|headers| headers.captures_iter(text)) {
        let Some(value) = header.get(2) else { continue };
        let sure = header.get(1).is_some() && value.len() >= LONG_ENOUGH || is_random(value.as_str());
        if sure && is_literal(text, &value.range()) && !is_place(value.as_str()) {
            found.push(Secret::masked(value.range()));
        }
    }
    found
}

/// Bytes under which a value is taken for a word.
const LONG_ENOUGH: usize = 6;

/// Bytes from which letters and digits that are mixed are no name of anything.
const RANDOM: usize = 16;

/// A value and the name it stands under.
struct Named<'a> {
    text: &'a str,
    name: &'a str,
    value: Range<usize>,
    /// It can't be anything but itself: it is in quotes, an option's, or a variable's.
    literal: bool,
}

impl<'a> Named<'a> {
    fn field(text: &'a str, field: &Captures<'_>) -> Option<Self> {
        let whole = field.get(0)?;
        // The name may have begun earlier.
        let before =
            text[..whole.start()].trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let name_end = field.get(1)?.end();
        let name = &text[before.len()..name_end];
        let quoted = field.get(3).or_else(|| field.get(4));
        // `NAME=value` is a variable's, or meant for one.
        let variable = field.get(2)?.as_str() == "=" && !name.bytes().any(|byte| byte.is_ascii_lowercase());
        let literal = quoted.is_some() || variable || name.starts_with("--");
        Some(Self { text, name, value: quoted.or_else(|| field.get(5))?.range(), literal })
    }

    fn option(text: &'a str, option: &Captures<'_>) -> Option<Self> {
        let (start, end) = (option.get(0)?.start(), option.get(1)?.end());
        let value = option.get(2).or_else(|| option.get(3)).or_else(|| option.get(4))?;
        Some(Self { text, name: &text[start..end], value: value.range(), literal: !value.as_str().starts_with('-') })
    }

    fn secret(self) -> Option<Secret> {
        let value = &self.text[self.value.clone()];
        let letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
        let digits = value.bytes().filter(u8::is_ascii_digit).count();
        let random = is_random(value);
        // Elsewhere than in quotes, it may be the name of something.
        let says_so = random || self.literal && letters || value.len() >= 8 && digits >= 3 && letters;
        let secret = says_so
            && value.len() >= LONG_ENOUGH
            && self.is_secret_name()
            && (random || !self.is_used())
            && is_literal(self.text, &self.value)
            && !is_place(value);
        secret.then(|| Secret::masked(self.value))
    }

    fn is_secret_name(&self) -> bool {
        let name = self.name.to_ascii_lowercase().replace('-', "_");
        let end = name.rsplit('_').next().unwrap_or_default();
        let about = ABOUT.iter().any(|about| match name.strip_suffix(about) {
            // `tokenId`, `token_id`, `tokens`.
            Some(rest) => {
                end == *about || rest.ends_with("token") || rest.ends_with("secret") || rest.ends_with("password")
            }
            None => false,
        });
        !about && !name.contains("public") && (self.is_key() || !name.ends_with("_key"))
    }

    /// Whether a `…_key` is one that opens something: variables' are, others say so.
    fn is_key(&self) -> bool {
        let name = self.name.to_ascii_lowercase().replace('-', "_");
        let kinds =
            ["api", "secret", "access", "private", "auth", "encryption", "signing", "master", "account", "service"];
        !self.name.bytes().any(|byte| byte.is_ascii_lowercase()) || kinds.iter().any(|kind| name.contains(kind))
    }

    /// Whether the text has the name once more: then what it stands for may be part of what happens.
    fn is_used(&self) -> bool {
        self.text.matches(self.name).nth(1).is_some()
    }
}

/// Whether letters and digits are mixed as in no name.
fn is_random(value: &str) -> bool {
    let count = |kind: fn(&u8) -> bool| value.as_bytes().iter().filter(|byte| kind(byte)).count();
    value.len() >= RANDOM && count(u8::is_ascii_digit) >= 2 && count(u8::is_ascii_alphabetic) >= 2
}

/// Whether a value ends where it seems to: nothing that a shell would expand is part of it.
fn is_literal(text: &str, value: &Range<usize>) -> bool {
    let next = text[value.end..].chars().next();
    next.is_none_or(|next| next.is_ascii_whitespace() || "\"';&|),}]<>".contains(next))
}

/// Whether a value may be where something is: a path, an address, a host.
fn is_place(value: &str) -> bool {
    let base64 = value.len() == 40 || value.ends_with('=');
    if value.contains("://") || value.starts_with(['/', '.', '~']) || value.contains('/') && !base64 {
        return true;
    }
    // The last label of a host is letters, or the whole an IPv4 address.
    let host = value.split([':', '@']).next().unwrap_or_default();
    let last = host.rsplit('.').next().unwrap_or_default();
    let dotted = host.contains('.');
    dotted && (last.bytes().all(|byte| byte.is_ascii_alphabetic()) || last.starts_with("xn--"))
        || value.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b':'))
        || value.starts_with("0x")
}
