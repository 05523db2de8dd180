//! Secrets that are recognised by their shape alone: keys and tokens of services, JSON Web Tokens,
//! passwords in addresses.

use std::sync::LazyLock;

use regex::Regex;

use super::Secret;

/// The shapes of the keys of well-known services.
static KEYS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let shapes = [
        // OpenAI, Anthropic and compatible services.
        "sk-[A-Za-z0-9_-]{20,}",
        // GitHub.
        "gh[oprsu]_[A-Za-z0-9]{36,}",
        "github_pat_[A-Za-z0-9_]{22,}",
        // GitLab.
        r"glpat-[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?",
        // AWS: the id of a key. The key itself has no shape and is recognised by its name.
        "A(?:KIA|SIA)[A-Z0-9]{16}",
        // Google.
        "AIza[A-Za-z0-9_-]{35}",
        r"ya29\.[A-Za-z0-9_-]{20,}",
        "GOCSPX-[A-Za-z0-9_-]{28}",
        // Slack.
        "xox[abeoprs]-[A-Za-z0-9-]{10,}",
        // npm, PyPI, Hugging Face.
        "npm_[A-Za-z0-9]{36}",
        "pypi-[A-Za-z0-9_-]{50,}",
        "hf_[A-Za-z0-9]{30,}",
        // Stripe.
        "[rs]k_(?:live|test)_[A-Za-z0-9]{16,}",
    ];
    Regex::new(&format!("(?-u)(?:{})", shapes.join("|"))).ok()
});

/// JSON Web Tokens: the first part encodes `{"`, and the others are too long for the suffixes of a
/// file.
///
/// Not one of [`KEYS`]: in a common pattern, a word that only begins like a token would make the
/// search for each key in it scan to the end of the word.
static WEB_TOKENS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?-u)eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]{16,}){1,3}").ok()
});

/// The password of an address: `scheme://user:password@host`.
static ADDRESSES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?-u)[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._~%+-]*:([A-Za-z0-9._~%+!*=,^-]+)@[A-Za-z0-9\[]").ok()
});

/// The secrets of known shapes.
///
/// A match inside a longer word, such as a path, a host or text that a shell expands, does not
/// count.
pub(super) fn find(text: &str) -> Vec<Secret> {
    let mut found = Vec::new();
    let shapes = KEYS.iter().chain(WEB_TOKENS.iter());
    for key in shapes.flat_map(|shape| shape.find_iter(text)) {
        let (before, after) = (&text[..key.start()], &text[key.end()..]);
        // In `https://KEY@host`, the key is the user.
        let is_user = before.ends_with("://") && after.starts_with('@');
        if is_user || !(joins_before(before) || joins_after(after)) {
            found.push(Secret::new(key.range()));
        }
    }
    for address in ADDRESSES.iter().flat_map(|addresses| addresses.captures_iter(text)) {
        found.extend(address.get(1).map(|password| Secret::new(password.range())));
    }
    found
}

fn joins_before(before: &str) -> bool {
    before.chars().next_back().is_some_and(|last| joins(last) || last == '.')
}

fn joins_after(after: &str) -> bool {
    let mut next = after.chars();
    match next.next() {
        // The end of a sentence, or the beginning of a suffix or of the next label of a host.
        Some('.') => next.next().is_some_and(joins),
        Some(first) => joins(first),
        None => false,
    }
}

/// Whether a character joins the text on its two sides to one word.
fn joins(character: char) -> bool {
    character.is_alphanumeric() || !character.is_ascii() || "_-/\\@$`~%*?{[".contains(character)
}
