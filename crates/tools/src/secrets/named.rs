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

/// Finds the values that are marked as secret by their names.
///
/// In a command, a name that occurs again may be used to run its value, so the value is shown,
/// unless the name is only passed on. Elsewhere, a value is shown only if its name follows a `$`
/// and the value is not random.
pub(super) fn find(text: &str, in_command: bool) -> Vec<Secret> {
    let used = LazyCell::new(|| used_names(text, in_command));
    let mut found = Vec::new();
    for field in FIELDS.iter().flat_map(|fields| fields.captures_iter(text)) {
        let named = Named::from_field(text, &field).filter(Named::is_secret);
        let is_used = |named: &Named<'_>| {
            used.contains(last_word(named.name)) && (in_command || !named.is_random())
        };
        found.extend(named.filter(|named| !is_used(named)).map(Named::into_secret));
    }
    for option in OPTIONS.iter().flat_map(|options| options.captures_iter(text)) {
        found.extend(
            Named::from_option(text, &option).filter(Named::is_secret).map(Named::into_secret),
        );
    }
    for header in HEADERS.iter().flat_map(|headers| headers.captures_iter(text)) {
        let Some(value) = header.get(2) else { continue };
        // `authorization=token` sets a variable, and the next word runs.
        if in_command && header.get(1).is_some_and(|name| name.as_str().contains('=')) {
            continue;
        }
        let is_sure =
            header.get(1).is_some() && value.len() >= MIN_SECRET_BYTES || is_random(value.as_str());
        if is_sure && is_complete(text, &value.range()) && !is_location(value.as_str()) {
            found.push(Secret::new(value.range()));
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
        if is_value && length >= MIN_SECRET_BYTES {
            found.push(Secret { range: value.start()..value.start() + length, visible: 0 });
        }
    }
    found
}

/// The positions of the values of options that are marked as secret by their names.
pub(super) fn options(text: &str) -> impl Iterator<Item = Range<usize>> {
    let captured = OPTIONS.iter().flat_map(move |options| options.captures_iter(text));
    captured.filter_map(|option| Named::from_option(text, &option)).map(|named| named.value)
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

/// Whether the variable after `before` is the value of a header, or of an option whose name marks
/// it as secret.
fn is_passed_on(before: &str) -> bool {
    // No name of a header or an option is longer.
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(96))..];
    PASSED_ON.as_ref().is_some_and(|passed_on| passed_on.is_match(near))
}

/// The length in bytes below which a value counts as a word.
const MIN_SECRET_BYTES: usize = 6;

/// The length in bytes from which a mixed value can't be a name.
const MIN_RANDOM_BYTES: usize = 16;

/// The length in bytes from which hexadecimal digits can't be a name.
const MIN_HEX_BYTES: usize = 24;

/// A value and its name.
struct Named<'a> {
    text: &'a str,
    name: &'a str,
    value: Range<usize>,
    /// Whether the value is certainly literal: it is quoted, or belongs to an option or a variable.
    literal: bool,
}

impl<'a> Named<'a> {
    fn from_field(text: &'a str, field: &Captures<'_>) -> Option<Self> {
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

    fn from_option(text: &'a str, option: &Captures<'a>) -> Option<Self> {
        let name = option.get(1)?.as_str();
        let value = option.get(2).or_else(|| option.get(3)).or_else(|| option.get(4))?;
        let first = name.trim_start_matches('-').split('-').next().unwrap_or_default();
        let has_value = !WITHOUT_VALUE.contains(&first) && !value.as_str().starts_with('-');
        has_value.then(|| Self { text, name, value: value.range(), literal: true })
    }

    fn into_secret(self) -> Secret {
        Secret::new(self.value)
    }

    fn value(&self) -> &'a str {
        &self.text[self.value.clone()]
    }

    fn is_random(&self) -> bool {
        is_random(self.value())
    }

    fn is_secret(&self) -> bool {
        let value = self.value();
        let has_letters = value.bytes().any(|byte| byte.is_ascii_alphabetic());
        let digit_count = value.bytes().filter(u8::is_ascii_digit).count();
        // An unquoted value may be the name of something.
        let is_likely =
            self.literal && has_letters || value.len() >= 8 && digit_count >= 3 && has_letters;
        value.len() >= MIN_SECRET_BYTES
            && (is_likely || self.is_random())
            && self.is_secret_name()
            && is_complete(self.text, &self.value)
            && !is_location(value)
    }

    fn is_secret_name(&self) -> bool {
        let name = self.name.to_ascii_lowercase().replace('-', "_");
        let last_part = name.rsplit('_').next().unwrap_or_default();
        let is_description =
            DESCRIBING_ENDINGS.iter().any(|ending| match name.strip_suffix(ending) {
                // `tokenId`, `token_id`, `tokens`.
                Some(rest) => {
                    last_part == *ending
                        || rest.ends_with("token")
                        || rest.ends_with("secret")
                        || rest.ends_with("password")
                }
                None => false,
            });
        !is_description
            && !name.contains("public")
            // Names such as `tokenizer` have nothing to do with secrets.
            && !name.contains("tokeni")
            && (self.is_key() || !name.ends_with("_key"))
    }

    /// Whether a name that ends in `_key` is the name of a secret: it has no lower-case letters, or
    /// it contains a word such as `api` or `private`.
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
    value.len() >= MIN_RANDOM_BYTES && mixed
        || value.len() >= MIN_HEX_BYTES && count(u8::is_ascii_hexdigit) == value.len()
}

/// Whether the value is complete: no text that a shell expands follows it directly.
fn is_complete(text: &str, value: &Range<usize>) -> bool {
    let next = text[value.end..].chars().next();
    next.is_none_or(|next| next.is_ascii_whitespace() || "\"';&|),}]<>".contains(next))
}

/// Whether a value is or contains a location: a path, an address, a host.
fn is_location(value: &str) -> bool {
    // The secret key of AWS has 40 characters, which may include `/`.
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
    last.bytes().all(|byte| byte.is_ascii_alphabetic())
        || last.starts_with("xn--")
        || part.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}
