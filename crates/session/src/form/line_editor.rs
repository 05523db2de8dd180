//! A line editor for typed text.

use unicode_segmentation::UnicodeSegmentation;

use super::Key;

/// A line of text with a cursor. Keys move and delete by characters as people see them, each of one
/// or more code points.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LineEditor {
    text: String,
    /// The position in bytes, at the start of a character.
    cursor: usize,
}

impl LineEditor {
    /// The text of the line.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The cursor, as the number of bytes before it.
    #[must_use]
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Inserts text at the cursor.
    pub fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    /// Applies a key as a line editor does. Returns whether the text or the cursor has changed.
    pub fn press(&mut self, key: Key) -> bool {
        let (len, cursor) = (self.text.len(), self.cursor);
        match key {
            Key::Char(character) => self.insert(character.encode_utf8(&mut [0; 4])),
            Key::Left | Key::Ctrl('b') => self.cursor = self.previous_start(),
            Key::Right | Key::Ctrl('f') => self.cursor = self.next_end(),
            Key::Home | Key::Ctrl('a') => self.cursor = 0,
            Key::End | Key::Ctrl('e') => self.cursor = len,
            Key::Backspace => self.delete(self.previous_start(), cursor),
            Key::Delete => self.delete(cursor, self.next_end()),
            Key::Ctrl('w') => self.delete(self.word_start(), cursor),
            Key::Ctrl('u') => self.delete(0, cursor),
            Key::Ctrl('k') => self.delete(cursor, len),
            _ => {}
        }
        (len, cursor) != (self.text.len(), self.cursor)
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    /// The start of the character before the cursor.
    fn previous_start(&self) -> usize {
        let last = self.text[..self.cursor].graphemes(true).next_back();
        self.cursor - last.map_or(0, str::len)
    }

    /// The end of the character after the cursor.
    fn next_end(&self) -> usize {
        let next = self.text[self.cursor..].graphemes(true).next();
        self.cursor + next.map_or(0, str::len)
    }

    /// The start of the word before the cursor.
    fn word_start(&self) -> usize {
        let typed = self.text[..self.cursor].trim_end();
        typed
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + typed[at..].chars().next().map_or(0, char::len_utf8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_take_characters_as_people_see_them() {
        // A letter with a combining accent, and a family of five code points.
        let (letter, family) = ("e\u{301}", "👨\u{200d}👩\u{200d}👧");
        let mut words = LineEditor::default();
        words.insert(&format!("a{letter}{family}"));
        for left in [format!("a{letter}"), "a".to_owned(), String::new()] {
            assert!(words.press(Key::Backspace));
            assert_eq!(words.text(), left);
        }
        assert!(!words.press(Key::Backspace));
        words.insert(&format!("{letter}{family}"));
        assert!(words.press(Key::Left) && words.press(Key::Left) && !words.press(Key::Left));
        assert!(words.press(Key::Delete) && words.press(Key::End) && !words.press(Key::Right));
        assert_eq!((words.text(), words.cursor()), (family, family.len()));
    }

    #[test]
    fn a_cursor_moves_and_deletes_as_in_a_shell() {
        let mut words = LineEditor::default();
        words.insert("not the\u{3000}big one");
        for (key, text, cursor) in [
            (Key::Ctrl('w'), "not the\u{3000}big ", 14),
            (Key::Ctrl('w'), "not the\u{3000}", 10),
            (Key::Ctrl('a'), "not the\u{3000}", 0),
            (Key::Right, "not the\u{3000}", 1),
            (Key::Char('o'), "noot the\u{3000}", 2),
            (Key::Ctrl('u'), "ot the\u{3000}", 0),
            (Key::Ctrl('f'), "ot the\u{3000}", 1),
            (Key::Ctrl('k'), "o", 1),
            (Key::Home, "o", 0),
            (Key::Delete, "", 0),
        ] {
            assert!(words.press(key), "{key:?}");
            assert_eq!((words.text(), words.cursor()), (text, cursor), "{key:?}");
        }
    }
}
