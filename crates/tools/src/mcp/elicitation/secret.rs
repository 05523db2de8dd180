//! Words by which a form asks for a secret.

/// Secrets, as words without the spaces between them.
const SECRETS: [&str; 24] = [
    "password",
    "passwd",
    "passphrase",
    "passcode",
    "pin",
    "pincode",
    "otp",
    "onetimecode",
    "verificationcode",
    "securitycode",
    "secret",
    "credential",
    "apikey",
    "accesskey",
    "secretkey",
    "privatekey",
    "sshkey",
    "authkey",
    "cvv",
    "cvc",
    "accesstoken",
    "authtoken",
    "apitoken",
    "refreshtoken",
];

/// The most words of one secret.
const MAX_WORDS: usize = 3;

/// Words beside `token` that show that tokens are counted.
const COUNTS: [&str; 14] = [
    "max", "maximum", "min", "minimum", "count", "number", "limit", "budget", "usage", "length",
    "size", "total", "per", "of",
];

/// Verbs after `not` or `never` by which a text warns of a secret instead of asking for it.
const GIVES: [&str; 9] =
    ["give", "share", "enter", "include", "provide", "send", "type", "use", "submit"];

/// Words at which a warning ends.
const ENDS: [&str; 5] = ["and", "but", "then", "instead", "please"];

/// The secret that a text asks for, if any of its whole words do. `maxTokens`, `max_tokens` and
/// `token count` are not secrets, and `do not enter your PIN` does not ask for one.
pub(super) fn word(text: &str) -> Option<&'static str> {
    let sentences = text.split(['\n', ')', ';', '!', '?']).flat_map(|part| part.split(". "));
    sentences.map(|sentence| without_warning(words(sentence))).find_map(|words| found(&words))
}

/// A sentence without its first warning.
fn without_warning(mut words: Vec<String>) -> Vec<String> {
    let warns = |pair: &[String]| {
        matches!(pair[0].as_str(), "not" | "never") && GIVES.contains(&pair[1].as_str())
    };
    if let Some(start) = words.windows(2).position(warns) {
        let ends = words[start..].iter().position(|word| ENDS.contains(&word.as_str()));
        words.drain(start..ends.map_or(words.len(), |end| start + end));
    }
    words
}

fn found(words: &[String]) -> Option<&'static str> {
    let word = |index: usize| words.get(index).map(String::as_str);
    for start in 0..words.len() {
        let mut joined = String::new();
        for next in &words[start..words.len().min(start + MAX_WORDS)] {
            joined.push_str(next);
            let single = joined.strip_suffix('s').unwrap_or(&joined);
            let found = SECRETS.into_iter().find(|secret| *secret == joined || *secret == single);
            if found.is_some() {
                return found;
            }
        }
        let beside = [start.checked_sub(1).and_then(word), word(start + 1)];
        let is_counted = beside.into_iter().flatten().any(|word| COUNTS.contains(&word));
        if words[start] == "token" && !is_counted {
            return Some("token");
        }
    }
    None
}

/// The words of a text in lower case. `apiKey`, `API_KEY` and `api-key` have two.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let after = chars.peek().copied().unwrap_or(' ');
        let begins = c.is_uppercase() && (before.is_lowercase() || after.is_lowercase());
        if !c.is_alphabetic() || begins {
            words.push(String::new());
        }
        if c.is_alphabetic()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_whole_words_ask_for_secrets() {
        for text in [
            "password",
            "Passwords",
            "userPIN",
            "PIN code",
            "the one-time code",
            "OTP",
            "passcode",
            "pass\u{200b}word",
            "apiKey",
            "API_KEY",
            "APIKey",
            "an access key",
            "private  key",
            "Security code",
            "CVV",
            "token",
            "Your GitHub token, please",
            "accessToken",
            "access tokens",
            "do not hesitate to enter your PIN",
            "do not use spaces and enter your PIN",
            "Never share it. Your password",
        ] {
            assert!(word(text).is_some(), "{text}");
        }
        for text in [
            "max_tokens",
            "maxTokens",
            "token_count",
            "number of tokens",
            "pinned",
            "spin",
            "opinion",
            "secretary",
            "keyboard",
            "the key",
            "monkey",
            "tokenizer",
            "a number (do not give us your phone number, pin, or other sensitive info)",
            "shipping code",
            "",
        ] {
            assert_eq!(word(text), None, "{text}");
        }
    }
}
