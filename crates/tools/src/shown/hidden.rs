//! Which characters are not what they seem on a screen.

use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory};

/// Whether it is not seen as itself: terminals act on it, or it shows nothing, moves what is around it or breaks
/// the line. Line feed and tab are among them.
pub(super) fn is_unseen(character: char) -> bool {
    if matches!(character, ' '..='~') {
        return false;
    }
    match character {
        // Letters and marks that show nothing: joiners, fillers, variation selectors, blanks of scripts.
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
        // Tags, and all that is reserved to be ignored.
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

/// Whether what it looks like depends on the font, or is a space that is not the space.
pub(super) fn is_uncertain(character: char) -> bool {
    !character.is_ascii()
        && matches!(
            character.general_category(),
            GeneralCategory::SpaceSeparator | GeneralCategory::PrivateUse | GeneralCategory::Unassigned
        )
}

/// Whether it is drawn onto the character before it.
pub(super) fn is_mark(character: char) -> bool {
    !character.is_ascii() && character.general_category_group() == GeneralCategoryGroup::Mark
}

/// Whether it is a mark that goes with any letter: with most of them, there is a letter that looks the same.
pub(super) fn is_loose_mark(character: char) -> bool {
    matches!(
        character,
        '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}' | '\u{20d0}'..='\u{20ff}'
        | '\u{fe20}'..='\u{fe2f}'
    )
}

/// Whether it is of a script that is written from right to left, which turns the order of what is between two
/// such words around.
pub(super) fn is_from_right(character: char) -> bool {
    // All that Unicode sets aside for these scripts.
    matches!(
        character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{feff}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}'
    )
}
