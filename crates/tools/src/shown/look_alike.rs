//! Words that look like other words.

use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::skeleton;

use super::hidden;

/// Whether a character is part of a word.
pub(super) fn is_of_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric() || hidden::is_mark(character)
}

/// Whether a non-ASCII character looks like an ASCII one.
pub(super) fn passes_for_ascii(character: char) -> bool {
    !character.is_ascii() && looks_ascii(character.encode_utf8(&mut [0; 4]))
}

/// Whether a non-ASCII word can be mistaken for another one: it mixes scripts or, in a command,
/// looks like ASCII.
pub(super) fn is_suspicious(word: &str, in_command: bool) -> bool {
    mixes_scripts(word) || in_command && looks_ascii(word)
}

/// Whether the Unicode skeleton of a text, which all look-alikes share, is ASCII.
fn looks_ascii(text: &str) -> bool {
    skeleton(text).all(|character| character.is_ascii())
}

/// Whether a word has letters of scripts that no real word combines. East Asian scripts do not
/// count: they look like no others, and are written next to any script without a space.
fn mixes_scripts(word: &str) -> bool {
    let mut common = AugmentedScriptSet::default();
    for character in word.chars() {
        let scripts = AugmentedScriptSet::for_char(character);
        if scripts.is_all() || !(scripts.hanb || scripts.jpan || scripts.kore) {
            common.intersect_with(scripts);
        }
    }
    common.is_empty()
}
