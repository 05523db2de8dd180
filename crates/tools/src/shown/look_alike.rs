//! Words that pass for other words.

use unicode_security::mixed_script::AugmentedScriptSet;
use unicode_security::skeleton;

use super::hidden;

/// Whether a character is part of a word.
pub(super) fn is_of_word(character: char) -> bool {
    character == '_' || character.is_alphanumeric() || hidden::is_mark(character)
}

/// Whether a character that is no ASCII looks as if it were.
pub(super) fn passes_for_ascii(character: char) -> bool {
    !character.is_ascii() && looks_ascii(character.encode_utf8(&mut [0; 4]))
}

/// Whether a word that is not ASCII may pass for another: it mixes scripts or, in a command, looks like ASCII.
pub(super) fn is_suspicious(word: &str, in_command: bool) -> bool {
    mixes_scripts(word) || in_command && looks_ascii(word)
}

/// Whether what Unicode holds for the same on the screen is nothing but ASCII.
fn looks_ascii(text: &str) -> bool {
    skeleton(text).all(|character| character.is_ascii())
}

/// Whether letters of scripts stand in it that have no word in common. Those of East Asia look like no others, and
/// stand next to any without a space.
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
