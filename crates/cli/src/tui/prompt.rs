//! The prompt's editor: several lines, a history, and placeholders for long pastes.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::{CursorMove, Input, TextArea, WrapMode};
use unicode_segmentation::UnicodeSegmentation;

use crate::summaries::size_text;
use crate::tone::Tone;

/// A paste with more lines than this is shown as a placeholder.
const PASTE_LINES: usize = 20;
/// A paste with more bytes than this is shown as a placeholder.
const PASTE_BYTES: usize = 2 * 1024;
/// The most prompts in the history.
const HISTORY: usize = 200;

/// The editor's text and history.
#[derive(Debug)]
pub(crate) struct Prompt {
    area: TextArea<'static>,
    /// Each long paste's placeholder and its text.
    pastes: Vec<(String, String)>,
    history: Vec<String>,
    /// The index of the shown history entry, and the text typed before.
    history_cursor: Option<(usize, String)>,
}

impl Default for Prompt {
    fn default() -> Self {
        Self { area: new_area(""), pastes: Vec::new(), history: Vec::new(), history_cursor: None }
    }
}

fn new_area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Tone::Plain.style());
    area.set_placeholder_text("Type a prompt");
    area.set_placeholder_style(Tone::Dim.style());
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

/// Calls `each` for every code point of the grapheme before the cursor.
fn for_previous_grapheme(area: &mut TextArea<'static>, each: impl Fn(&mut TextArea<'static>)) {
    let column = area.cursor().1;
    let start = grapheme_ends(area).take_while(|end| *end < column).last().unwrap_or_default();
    // At the start of a line, this is the line break before it.
    (0..(column - start).max(1)).for_each(|_| each(area));
}

/// Calls `each` for every code point of the grapheme after the cursor.
fn for_next_grapheme(area: &mut TextArea<'static>, each: impl Fn(&mut TextArea<'static>)) {
    let column = area.cursor().1;
    let end = grapheme_ends(area).find(|end| *end > column).unwrap_or(column + 1);
    (column..end).for_each(|_| each(area));
}

/// The columns at which the graphemes of the cursor's line end.
fn grapheme_ends(area: &TextArea<'static>) -> impl Iterator<Item = usize> {
    let line = area.lines().get(area.cursor().0).map_or("", String::as_str);
    line.graphemes(true).scan(0, |end, character| {
        *end += character.chars().count();
        Some(*end)
    })
}

impl Prompt {
    /// The text area to draw.
    pub(crate) fn area(&self) -> &TextArea<'static> {
        &self.area
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// The typed text, with the full text of its pastes.
    pub(crate) fn text(&self) -> String {
        let typed = self.area.lines().join("\n");
        let found = self.pastes.iter().filter_map(|(placeholder, paste)| {
            Some((typed.find(placeholder)?, placeholder.len(), paste))
        });
        let mut found: Vec<_> = found.collect();
        found.sort_unstable();
        // Placeholders within a paste are a part of it.
        let (mut text, mut end) = (String::new(), 0);
        for (start, length, paste) in found {
            text.push_str(&typed[end..start]);
            text.push_str(paste);
            end = start + length;
        }
        text + &typed[end..]
    }

    /// Replaces the typed text.
    pub(crate) fn set(&mut self, text: &str) {
        self.area = new_area("");
        self.pastes.clear();
        self.history_cursor = None;
        self.paste(text);
    }

    pub(crate) fn clear(&mut self) {
        self.set("");
    }

    /// Clears the input and adds it to the history.
    pub(crate) fn move_to_history(&mut self) {
        let typed = self.text();
        let (shown, draft) = match self.history_cursor.take() {
            Some((index, draft)) => (self.history.get(index).cloned(), draft),
            None => Default::default(),
        };
        self.remember(&draft);
        if shown.as_ref() != Some(&typed) {
            self.remember(&typed);
        }
        self.clear();
    }

    /// Adds a prompt to the history.
    pub(crate) fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(text.to_owned());
    }

    /// Replaces the history with the prompts of a longer past.
    pub(crate) fn replace_history(&mut self, texts: &[String]) {
        let old_length = self.history.len();
        self.history.clear();
        texts.iter().for_each(|text| self.remember(text));
        // The shown entry keeps its distance from the newest one.
        if let Some((index, _)) = &mut self.history_cursor {
            *index = (*index + self.history.len()).saturating_sub(old_length);
        }
    }

    /// Inserts text literally. Control characters that a terminal would act on become visible.
    /// Joiners and direction marks stay, because some languages need them.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let is_escaped =
            |character: char| character.is_control() && !matches!(character, '\n' | '\t');
        let text: String = text
            .split_inclusive(is_escaped)
            .map(|part| match part.chars().next_back() {
                Some(last) if is_escaped(last) => {
                    format!("{}{}", &part[..part.len() - last.len_utf8()], last.escape_unicode())
                }
                _ => part.to_owned(),
            })
            .collect();
        let lines = text.split('\n').count();
        if lines <= PASTE_LINES && text.len() <= PASTE_BYTES {
            self.area.insert_str(text);
            return;
        }
        let size = size_text(text.len());
        let placeholder = format!("[paste {}: {lines} lines, {size}]", self.pastes.len() + 1);
        self.area.insert_str(&placeholder);
        self.pastes.push((placeholder, text));
    }

    /// Handles an editing key. Returns whether it was one.
    pub(crate) fn press(&mut self, key: &KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let area = &mut self.area;
        match key.code {
            KeyCode::Enter => area.insert_newline(),
            KeyCode::Char('j') if control => area.insert_newline(),
            KeyCode::Char('a') if control => area.move_cursor(CursorMove::Head),
            KeyCode::Char('e') if control => area.move_cursor(CursorMove::End),
            KeyCode::Char('b') if control => {
                for_previous_grapheme(area, |area| area.move_cursor(CursorMove::Back))
            }
            KeyCode::Char('f') if control => {
                for_next_grapheme(area, |area| area.move_cursor(CursorMove::Forward))
            }
            KeyCode::Char('b') if alt => area.move_cursor(CursorMove::WordBack),
            KeyCode::Char('f') if alt => area.move_cursor(CursorMove::WordForward),
            KeyCode::Left if control || alt => area.move_cursor(CursorMove::WordBack),
            KeyCode::Right if control || alt => area.move_cursor(CursorMove::WordForward),
            KeyCode::Char('u') if control => _ = area.delete_line_by_head(),
            KeyCode::Char('k') if control => _ = area.delete_line_by_end(),
            KeyCode::Char('w') if control => _ = area.delete_word(),
            KeyCode::Backspace if control || alt => _ = area.delete_word(),
            KeyCode::Char('y') if control => _ = area.paste(),
            KeyCode::Up => return self.up(),
            KeyCode::Down => return self.down(),
            KeyCode::Char(_) if control || alt => return false,
            KeyCode::Char(_) | KeyCode::Tab => _ = area.input_without_shortcuts(Input::from(*key)),
            KeyCode::Backspace => for_previous_grapheme(area, |area| _ = area.delete_char()),
            KeyCode::Delete => for_next_grapheme(area, |area| _ = area.delete_next_char()),
            KeyCode::Left => for_previous_grapheme(area, |area| area.move_cursor(CursorMove::Back)),
            KeyCode::Right => for_next_grapheme(area, |area| area.move_cursor(CursorMove::Forward)),
            KeyCode::Home => area.move_cursor(CursorMove::Head),
            KeyCode::End => area.move_cursor(CursorMove::End),
            _ => return false,
        }
        true
    }

    fn up(&mut self) -> bool {
        if self.area.cursor().0 > 0 {
            self.area.move_cursor(CursorMove::Up);
            return true;
        }
        let index = self.history_cursor.as_ref().map_or(self.history.len(), |(index, _)| *index);
        let Some(previous) = index.checked_sub(1) else { return false };
        let draft = self.history_cursor.take().map_or_else(|| self.text(), |(_, draft)| draft);
        self.show_history(previous, draft);
        true
    }

    fn down(&mut self) -> bool {
        if self.area.cursor().0 + 1 < self.area.lines().len() {
            self.area.move_cursor(CursorMove::Down);
            return true;
        }
        let Some((index, draft)) = self.history_cursor.take() else { return false };
        if index + 1 < self.history.len() {
            self.show_history(index + 1, draft);
        } else {
            self.set(&draft);
        }
        true
    }

    fn show_history(&mut self, index: usize, draft: String) {
        let text = self.history.get(index).cloned().unwrap_or_default();
        self.set(&text);
        self.history_cursor = Some((index, draft));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(prompt: &mut Prompt, code: KeyCode) {
        prompt.press(&KeyEvent::new(code, KeyModifiers::NONE));
    }

    #[test]
    fn the_history_keeps_what_was_being_typed() {
        let mut prompt = Prompt::default();
        prompt.remember("one");
        prompt.remember("two\nlines");
        prompt.paste("draft");
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "two\nlines");
        press(&mut prompt, KeyCode::Up);
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "one");
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "one");
        for _ in 0..3 {
            press(&mut prompt, KeyCode::Down);
        }
        assert_eq!(prompt.text(), "draft");
    }

    #[test]
    fn cleared_text_is_the_newest_history_entry() {
        let mut prompt = Prompt::default();
        prompt.remember("one");
        prompt.remember("two");
        prompt.paste("draft");
        prompt.move_to_history();
        assert!(prompt.is_empty());
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "draft");
        press(&mut prompt, KeyCode::Down);
        // An unchanged entry of the history is not added again, but the draft is.
        prompt.paste("another");
        (0..2).for_each(|_| press(&mut prompt, KeyCode::Up));
        assert_eq!(prompt.text(), "two");
        prompt.move_to_history();
        assert_eq!(prompt.history, ["one", "two", "draft", "another"]);
        // Neither blank text nor a repetition is added.
        prompt.paste("another");
        prompt.move_to_history();
        prompt.paste(" ");
        prompt.move_to_history();
        assert_eq!(prompt.history.len(), 4);
        // A changed entry of the history is added.
        (0..4).for_each(|_| press(&mut prompt, KeyCode::Up));
        prompt.paste("!");
        prompt.move_to_history();
        assert_eq!(prompt.history.last().map(String::as_str), Some("one!"));
    }

    #[test]
    fn editing_keys_treat_a_grapheme_as_one_character() {
        // A family is five code points, this letter two.
        let (family, letter) = ("👨\u{200d}👩\u{200d}👧", "e\u{301}");
        let mut prompt = Prompt::default();
        prompt.set(&format!("a{family}{letter}\nb"));
        for left in [
            format!("a{family}{letter}\n"),
            format!("a{family}{letter}"),
            format!("a{family}"),
            "a".to_owned(),
        ] {
            press(&mut prompt, KeyCode::Backspace);
            assert_eq!(prompt.text(), left);
        }
        prompt.set(&format!("{letter}{family}\nb"));
        let moves = |prompt: &mut Prompt, key, times| {
            (0..times).for_each(|_| press(prompt, key));
            let at = prompt.area().cursor();
            (at.0, at.1)
        };
        assert_eq!(moves(&mut prompt, KeyCode::Left, 2), (0, 7));
        assert_eq!(moves(&mut prompt, KeyCode::Left, 1), (0, 2));
        assert_eq!(
            moves(&mut prompt, KeyCode::Left, 2),
            (0, 0),
            "no character before the first one"
        );
        assert_eq!(moves(&mut prompt, KeyCode::Right, 2), (0, 7));
        assert_eq!(
            moves(&mut prompt, KeyCode::Right, 3),
            (1, 1),
            "no character after the last one"
        );
        moves(&mut prompt, KeyCode::Left, 4);
        press(&mut prompt, KeyCode::Delete);
        assert_eq!(prompt.text(), format!("{family}\nb"));
        moves(&mut prompt, KeyCode::Delete, 2);
        assert_eq!(prompt.text(), "b");
    }

    #[test]
    fn a_placeholder_within_a_paste_is_not_expanded() {
        let mut prompt = Prompt::default();
        let second = "two\n".repeat(30);
        let first = format!("[paste 2: 31 lines, 1 KiB]\n{}", "one\n".repeat(30));
        prompt.paste(&first);
        prompt.paste(" and ");
        prompt.paste(&second);
        assert_eq!(
            prompt.area().lines(),
            ["[paste 1: 32 lines, 1 KiB] and [paste 2: 31 lines, 1 KiB]"]
        );
        assert_eq!(prompt.text(), format!("{first} and {second}"));
    }

    #[test]
    fn t_y6_a_paste_is_literal_and_a_long_one_becomes_a_placeholder() {
        let mut prompt = Prompt::default();
        prompt.paste("a\x1b[2J\r\nb\u{9b}c\rd");
        assert_eq!(prompt.text(), "a\\u{1b}[2J\nb\\u{9b}c\nd");
        // Joiners and direction marks stay, also in text from the history.
        for text in ["👨\u{200d}👩\u{200d}👧", "می\u{200c}خواهم", "\u{200f}א\ta"] {
            prompt.set(text);
            assert_eq!(prompt.text(), text);
        }
        let long = "line\n".repeat(2_000_000);
        prompt.clear();
        prompt.paste("before ");
        prompt.paste(&long);
        press(&mut prompt, KeyCode::Char('x'));
        assert_eq!(prompt.area().lines(), ["before [paste 1: 2000001 lines, 9.5 MiB]x"]);
        assert_eq!(prompt.text(), format!("before {long}x"));
        prompt.clear();
        assert!(prompt.is_empty());
    }
}
