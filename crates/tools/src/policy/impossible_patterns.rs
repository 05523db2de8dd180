//! Rejects patterns in shell syntax, which can't match anything, and says how to write them
//! instead.

/// Checks the pattern of a command. A rule matches the words of one command after bash has parsed
/// them.
pub(super) fn check_command(pattern: &str) -> Result<(), String> {
    let words: Vec<_> = pattern.split_whitespace().collect();
    let assignments = words.iter().take_while(|word| sets_a_variable(word)).count();
    if assignments > 0 {
        return Err(format!(
            "a rule does not include the variables set before a program: write `{}`",
            words[assignments..].join(" ")
        ));
    }
    if words.first() == Some(&"!") {
        return Err(format!("`!` is not part of a command: write `{}`", words[1..].join(" ")));
    }
    let mut escaped = false;
    for (at, character) in pattern.char_indices() {
        let (before, rest) = pattern.split_at(at);
        let why = match character {
            _ if std::mem::take(&mut escaped) => continue,
            '\\' => {
                escaped = true;
                continue;
            }
            '<' | '>' => redirection_error(),
            '&' if rest.starts_with("&>") => redirection_error(),
            ';' | '&' | '|' => {
                let joint: String = rest.chars().take_while(|c| matches!(c, ';' | '&' | '|')).collect();
                format!(
                    "`{joint}` ends a command, and a rule covers one command: write `{}`, and one rule for each other \
                     command",
                    before.trim()
                )
            }
            '(' | ')' => {
                format!("a rule covers one command, without parentheses: write `{}`", without(pattern, &['(', ')']))
            }
            '\'' | '"' | '`' => {
                format!("words are compared without quotes: write `{}`", without(pattern, &['\'', '"', '`']))
            }
            '$' if rest[1..].starts_with(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '{' | '(')) => {
                "the value of a `$` expansion is known only at run time: write the value itself, or `*`".to_owned()
            }
            _ => continue,
        };
        return Err(format!("{why} (for a literal `{character}`, write `\\{character}`)"));
    }
    Ok(())
}

/// Checks the pattern of a path.
pub(super) fn check_path(pattern: &str) -> Result<(), String> {
    let first = pattern.split('/').next().unwrap_or_default();
    let variable =
        first.strip_prefix('$').map(|name| name.trim_start_matches('{').trim_end_matches('}'));
    let is_name = |name: &&str| {
        name.starts_with(|c: char| !c.is_ascii_digit())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
    };
    if let Some(name) = variable.filter(is_name) {
        return Err(match name {
            "HOME" => format!("variables are not expanded: write `~{}`", &pattern[first.len()..]),
            _ => "variables are not expanded: write the folder itself".to_owned(),
        });
    }
    for quote in ['"', '\''] {
        if pattern.len() > 1 && pattern.starts_with(quote) && pattern.ends_with(quote) {
            return Err(format!(
                "paths are compared without quotes: write `{}`",
                pattern.trim_matches(quote)
            ));
        }
    }
    Ok(())
}

fn redirection_error() -> String {
    "a redirection is not part of a command: write a separate rule for its path, `read(PATH)` or `write(PATH)`"
        .to_owned()
}

fn without(pattern: &str, characters: &[char]) -> String {
    pattern.replace(characters, "").trim().to_owned()
}

/// Whether a word is `NAME=…` or `NAME+=…`.
fn sets_a_variable(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name.strip_suffix('+').unwrap_or(name));
    name.is_some_and(|name| {
        name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}
