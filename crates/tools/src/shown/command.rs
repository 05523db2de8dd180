//! What would run: the command, where, and what it sets for itself.

use std::path::Path;

use super::{Care, exact, line};
use crate::secrets;

/// A command as it is shown before it runs: all of it, then a blank line, then the folder, and the variables it
/// begins by setting.
///
/// ```
/// use std::path::Path;
///
/// let shown = holdpoint_tools::shown::command("PATH=. mаke", Path::new("/work"));
/// assert_eq!(shown, "PATH=. m\\u{430}ke\n\nin /work\nsets PATH for it");
/// ```
#[must_use]
pub fn command(command: &str, folder: &Path) -> String {
    let mut shown = exact(command, &secrets::find_in_command(command), Care::Command, false).into_owned();
    shown.push_str("\n\nin ");
    shown.push_str(&line(&folder.to_string_lossy()));
    let variables = variables(command);
    if !variables.is_empty() {
        shown.push_str(&format!("\nsets {} for it", variables.join(", ")));
    }
    shown
}

/// The variables that a command begins by setting.
fn variables(command: &str) -> Vec<&str> {
    let mut variables = Vec::new();
    let mut rest = command.trim_start();
    while let Some((name, value)) = rest.split_once('=') {
        let name = name.strip_suffix('+').unwrap_or(name);
        let is_name = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
        if name.is_empty() || !name.bytes().all(is_name) || name.starts_with(|first: char| first.is_ascii_digit()) {
            break;
        }
        if !variables.contains(&name) {
            variables.push(name);
        }
        let Some(after) = after_word(value) else { break };
        rest = after.trim_start_matches([' ', '\t']);
    }
    variables
}

/// What follows the word that a text begins with. None if the word ends the command, or is not plain.
fn after_word(text: &str) -> Option<&str> {
    let mut quote = None;
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => drop(characters.next()),
            ('\'' | '"', None) => quote = Some(character),
            (_, Some(open)) if character == open => quote = None,
            (' ' | '\t', None) => return Some(&text[at..]),
            // What is substituted may have blanks of its own.
            ('`', None | Some('"')) => return None,
            ('$', None | Some('"')) if text[at + 1..].starts_with(['(', '{']) => return None,
            ('\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')', None) => return None,
            _ => {}
        }
    }
    None
}
