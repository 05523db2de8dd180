//! Characters that do not look like themselves on a screen.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Whether a character is not visible as itself: a terminal acts on it, or it is invisible,
/// reorders the text around it or breaks the line. This includes line feed and tab.
pub(super) fn is_unseen(character: char) -> bool {
    if matches!(character, ' '..='~') {
        return false;
    }
    match character {
        // Invisible letters and marks: joiners, fillers, variation selectors, blanks of scripts.
        '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{13441}'
        | '\u{13442}'
        | '\u{16fe4}'
        | '\u{1d159}'
        // Tags, and all characters that are reserved to be ignored.
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => matches!(
            character.general_category(),
            GeneralCategory::Control
                | GeneralCategory::Format
                | GeneralCategory::LineSeparator
                | GeneralCategory::ParagraphSeparator
        ),
    }
}

/// Whether the look of a character depends on the font, or it is a space other than U+0020.
pub(super) fn is_uncertain(character: char) -> bool {
    !character.is_ascii()
        && matches!(
            character.general_category(),
            GeneralCategory::SpaceSeparator
                | GeneralCategory::PrivateUse
                | GeneralCategory::Unassigned
        )
}

/// Whether a character is drawn onto the one before it.
pub(super) fn is_mark(character: char) -> bool {
    !character.is_ascii() && character.general_category_group() == GeneralCategoryGroup::Mark
}

/// Whether a character is a mark that combines with any letter. For most such combinations, there
/// is a single letter that looks the same.
pub(super) fn is_loose_mark(character: char) -> bool {
    matches!(
        character,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}'
    )
}

/// Whether a character is from a right-to-left script. Two words of such a script reverse the order
/// of the text between them.
pub(super) fn is_from_right(character: char) -> bool {
    // The ranges that Unicode reserves for these scripts.
    matches!(
        character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}'
    )
}
