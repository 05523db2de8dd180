//! Secrets that are recognised by the name of their option, variable, field or header.

use std::cell::LazyCell;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::Secret;

/// Parts of a name that mark its value as secret.
const WORDS: &str =
    "token|secret|passw(?:or)?d|passphrase|credential|apikey|authkey|accountkey|[_-]key";

/// A value, quoted or not, without blanks or characters that a shell expands or that end a word.
const VALUE: &str = r#"(?:"([!#%*+,./0-9:=?@A-Z^_a-z~\[\]{}-]+)"|'([!#%*+,./0-9:=?@A-Z^_a-z~\[\]{}-]+)'|([%+./0-9:=@A-Z^_a-z~-]+))"#;

/// `NAME=value`, `"name": "value"`, `name = 'value'`, `--name=value`, `Name: value`.
static FIELDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(
        r#"(?-u)(?i:{WORDS})([A-Za-z0-9_-]*)["']?([ \t]*(?:=>|:=|[:=])[ \t]*){VALUE}"#
    ))
    .ok()
});

/// `--name value`.
static OPTIONS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(&format!(r"(?-u)(--[A-Za-z0-9-]*?(?i:{WORDS}))[ \t]+{VALUE}")).ok()
});

/// `Authorization: Bearer value`, and `Bearer value` by itself.
static HEADERS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let named = r#"authorization["']?[ \t]*[:=][ \t]*["']?(?:bearer|basic|token|bot)"#;
    Regex::new(&format!(r"(?-u)(?:((?i:{named}))|\b[Bb]earer)[ \t]+([A-Za-z0-9._~+/=-]+)")).ok()
});

/// Anything after the name of a secret and a separator, or after `Bearer`.
static DOUBTFUL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let separator = r#"["']?[ \t]*(?:(?P<equals>=>?)|:)[ \t]*"#;
    Regex::new(&format!(r#"(?-u)(?:(?i:{WORDS})[A-Za-z0-9_-]*{separator}|\b(?i:bearer)[ \t]+)["']?(?P<value>[!-~]+)"#))
        .ok()
});

/// The text before a variable that is only passed on.
static PASSED_ON: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let header = r#"["'][A-Za-z0-9-]+:[ \t]+(?:(?i:bearer|basic|token|bot)[ \t]+)?"#;
    Regex::new(&format!(
        r#"(?-u)(?:{header}|--[A-Za-z0-9-]*?(?i:{WORDS})(?:=|[ \t]+)["']?)\$\{{?$"#
    ))
    .ok()
});

/// Endings of the name of a value that describes a secret but is not the secret.
const DESCRIBING_ENDINGS: [&str; 34] = [
    "backend", "cmd", "command", "count", "dir", "domain", "endpoint", "env", "expiry", "file",
    "helper", "hook", "host", "id", "kind", "len", "length", "limit", "name", "path", "policy",
    "program", "provider", "proxy", "ref", "s", "script", "server", "size", "source", "ttl",
    "type", "uri", "url",
];

/// First words of options that end like the name of a secret but take no value.
const WITHOUT_VALUE: [&str; 12] = [
    "no", "with", "without", "show", "use", "print", "enable", "ignore", "skip", "get", "list",
    "rotate",
];

/// The values with names that say that they are secret.
///
/// In a command, a name that occurs again may be used to run its value, so the value is shown,
/// unless the name is only passed on. Elsewhere, a value is shown only if its name follows a `$`
/// and the value is not random.
pub(super) fn find(text: &str, in_command: bool) -> Vec<Secret> {
    let used = LazyCell::new(|| used_names(text, in_command));
    let mut found = Vec::new();
    for field in FIELDS.iter().flat_map(|fields| fields.captures_iter(text)) {
        let named = Named::field(text, &field).filter(Named::is_secret);
        let is_used = |named: &Named<'_>| {
            used.contains(last_word(named.name)) && (in_command || !named.is_random())
        };
        found.extend(named.filter(|named| !is_used(named)).map(Named::masked));
    }
    for option in OPTIONS.iter().flat_map(|options| options.captures_iter(text)) {
        found.extend(Named::option(text, &option).filter(Named::is_secret).map(Named::masked));
    }
    for header in HEADERS.iter().flat_map(|headers| headers.captures_iter(text)) {
        let Some(value) = header.get(2) else { continue };
        // `authorization=token` sets a variable, and the next word runs.
        if in_command && header.get(1).is_some_and(|name| name.as_str().contains('=')) {
            continue;
        }
        let sure =
            header.get(1).is_some() && value.len() >= LONG_ENOUGH || is_random(value.as_str());
        if sure && is_literal(text, &value.range()) && !is_place(value.as_str()) {
            found.push(Secret::masked(value.range()));
        }
    }
    found
}

/// The values of fields and headers that may be secrets, and may be something else.
pub(super) fn find_doubtful(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    for field in DOUBTFUL.iter().flat_map(|doubtful| doubtful.captures_iter(text)) {
        let Some(value) = field.name("value") else { continue };
        let length = value.as_str().trim_end_matches(['"', '\'', ',', ';', '.', ')']).len();
        let is_word = value.as_str()[..length].bytes().all(|byte| byte.is_ascii_alphabetic());
        // `password: must be long` is prose.
        let is_value = field.name("equals").is_some() || !is_word;
        if is_value && length >= LONG_ENOUGH {
            found.push(Secret { range: value.start()..value.start() + length, open: 0 });
        }
    }
    found
}

/// The positions of the values of options with names that say that they are secret.
pub(super) fn options(text: &str) -> impl Iterator<Item = Range<usize>> {
    let captured = OPTIONS.iter().flat_map(move |options| options.captures_iter(text));
    captured.filter_map(|option| Named::option(text, &option)).map(|named| named.value)
}

/// The part of a name after the last dash, which could be the name of a variable.
pub(super) fn last_word(name: &str) -> &str {
    name.rsplit('-').next().unwrap_or_default()
}

/// The words of a text that may refer to a variable or field of the same name.
pub(super) fn used_names(text: &str, in_command: bool) -> HashSet<&str> {
    let is_word = |character: char| character == '_' || character.is_ascii_alphanumeric();
    let (mut seen, mut used) = (HashSet::new(), HashSet::new());
    let mut rest = text;
    while let Some(start) = rest.find(is_word) {
        let (between, from) = rest.split_at(start);
        let (word, after) =
            from.split_at(from.find(|character| !is_word(character)).unwrap_or(from.len()));
        // `$NAME`, `${NAME}`, `${!NAME}`, `${#NAME}`.
        let expanded = between.trim_end_matches(['{', '!', '#']).ends_with('$');
        let before = &text[..text.len() - from.len()];
        if in_command && expanded && is_passed_on(before) {
            seen.insert(word);
        } else if expanded || in_command && !seen.insert(word) {
            used.insert(word);
        }
        rest = after;
    }
    used
}

/// Whether the variable after `before` is the value of a header, or of an option that says it is
/// secret.
fn is_passed_on(before: &str) -> bool {
    // No name of a header or an option is longer.
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(96))..];
    PASSED_ON.as_ref().is_some_and(|passed_on| passed_on.is_match(near))
}

/// The length in bytes below which a value counts as a word.
const LONG_ENOUGH: usize = 6;

/// The length in bytes from which a mixed value can't be a name.
const RANDOM: usize = 16;

/// The length in bytes from which hexadecimal digits can't be a name.
const HEX: usize = 24;

/// A value and its name.
struct Named<'a> {
    text: &'a str,
    name: &'a str,
    value: Range<usize>,
    /// Whether the value is certainly literal: it is quoted, or belongs to an option or a variable.
    literal: bool,
}

impl<'a> Named<'a> {
    fn field(text: &'a str, field: &Captures<'_>) -> Option<Self> {
        let whole = field.get(0)?;
        // The name may have begun earlier.
        let before = text[..whole.start()]
            .trim_end_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let name_end = field.get(1)?.end();
        if before.ends_with(['$', '{']) && before.trim_end_matches('{').ends_with('$') {
            // `${NAME:="value"}` expands to the value.
            return None;
        }
        let name = &text[before.len()..name_end];
        let quoted = field.get(3).or_else(|| field.get(4));
        // `NAME=value` sets a variable, or is meant to.
        let variable =
            field.get(2)?.as_str() == "=" && !name.bytes().any(|byte| byte.is_ascii_lowercase());
        let literal = quoted.is_some() || variable || name.starts_with("--");
        Some(Self { text, name, value: quoted.or_else(|| field.get(5))?.range(), literal })
    }

    fn option(text: &'a str, option: &Captures<'a>) -> Option<Self> {
        let name = option.get(1)?.as_str();
        let value = option.get(2).or_else(|| option.get(3)).or_else(|| option.get(4))?;
        let first = name.trim_start_matches('-').split('-').next().unwrap_or_default();
        let has_value = !WITHOUT_VALUE.contains(&first) && !value.as_str().starts_with('-');
        has_value.then(|| Self { text, name, value: value.range(), literal: true })
    }

    fn masked(self) -> Secret {
        Secret::masked(self.value)
    }

    fn value(&self) -> &'a str {
        &self.text[self.value.clone()]
    }

    fn is_random(&self) -> bool {
        is_random(self.value())
    }

    fn is_secret(&self) -> bool {
        let value = self.value();
        let letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
        let digits = value.bytes().filter(u8::is_ascii_digit).count();
        // An unquoted value may be the name of something.
        let says_so = self.literal && letters || value.len() >= 8 && digits >= 3 && letters;
        value.len() >= LONG_ENOUGH
            && (says_so || self.is_random())
            && self.is_secret_name()
            && is_literal(self.text, &self.value)
            && !is_place(value)
    }

    fn is_secret_name(&self) -> bool {
        let name = self.name.to_ascii_lowercase().replace('-', "_");
        let end = name.rsplit('_').next().unwrap_or_default();
        let about = DESCRIBING_ENDINGS.iter().any(|about| match name.strip_suffix(about) {
            // `tokenId`, `token_id`, `tokens`.
            Some(rest) => {
                end == *about
                    || rest.ends_with("token")
                    || rest.ends_with("secret")
                    || rest.ends_with("password")
            }
            None => false,
        });
        !about
            && !name.contains("public")
            && !name.contains("tokeni")
            && (self.is_key() || !name.ends_with("_key"))
    }

    /// Whether a `…_key` opens something. The key of a variable does; other names must say so.
    fn is_key(&self) -> bool {
        let name = self.name.to_ascii_lowercase().replace('-', "_");
        let kinds = [
            "api",
            "secret",
            "access",
            "private",
            "auth",
            "encryption",
            "signing",
            "master",
            "account",
            "service",
        ];
        !self.name.bytes().any(|byte| byte.is_ascii_lowercase())
            || kinds.iter().any(|kind| name.contains(kind))
    }
}

/// Whether a value is too mixed for a name: letters of both cases with digits, or many hexadecimal
/// digits.
pub(super) fn is_random(value: &str) -> bool {
    let count = |kind: fn(&u8) -> bool| value.as_bytes().iter().filter(|byte| kind(byte)).count();
    let mixed = [u8::is_ascii_digit, u8::is_ascii_lowercase, u8::is_ascii_uppercase]
        .into_iter()
        .all(|kind| count(kind) >= 2);
    value.len() >= RANDOM && mixed
        || value.len() >= HEX && count(u8::is_ascii_hexdigit) == value.len()
}

/// Whether the value is complete, so that a shell expands nothing behind it.
fn is_literal(text: &str, value: &Range<usize>) -> bool {
    let next = text[value.end..].chars().next();
    next.is_none_or(|next| next.is_ascii_whitespace() || "\"';&|),}]<>".contains(next))
}

/// Whether a value is or contains a location: a path, an address, a host.
fn is_place(value: &str) -> bool {
    let base64 = value.len() == 40 || value.ends_with('=');
    let path = value.starts_with(['/', '.', '~'])
        || value.contains("://")
        || value.contains('/') && !base64;
    let number = value.starts_with("0x")
        || value.bytes().all(|byte| byte.is_ascii_digit() || b".:".contains(&byte));
    path || number
        || value
            .split(|part: char| !part.is_ascii_alphanumeric() && !"._-".contains(part))
            .any(is_host)
}

/// Whether `part` is a host: the last label of a name has only letters, and an address only
/// numbers.
fn is_host(part: &str) -> bool {
    let Some((_, last)) = part.trim_end_matches('.').rsplit_once('.') else { return false };
    let labels = |kind: fn(u8) -> bool| last.bytes().all(kind);
    labels(|byte| byte.is_ascii_alphabetic())
        || last.starts_with("xn--")
        || part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
