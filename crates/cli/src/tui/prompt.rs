//! The prompt being typed: several lines, with a history, and with long pastes kept aside.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_textarea::{CursorMove, Input, TextArea, WrapMode};
use unicode_segmentation::UnicodeSegmentation;

use super::style::Tone;

/// A paste with more lines than this is shown in a few words.
const PASTE_LINES: usize = 20;
/// The same, by its bytes.
const PASTE_BYTES: usize = 2 * 1024;
/// Prompts that are remembered.
const HISTORY: usize = 200;

/// What is typed, and what was.
#[derive(Debug)]
pub(crate) struct Prompt {
    area: TextArea<'static>,
    /// What stands for a long paste, and the paste.
    pastes: Vec<(String, String)>,
    history: Vec<String>,
    /// Which of the history is looked at, and what was being typed.
    looking: Option<(usize, String)>,
}

impl Default for Prompt {
    fn default() -> Self {
        Self { area: area(""), pastes: Vec::new(), history: Vec::new(), looking: None }
    }
}

fn area(text: &str) -> TextArea<'static> {
    let mut area = TextArea::new(text.split('\n').map(str::to_owned).collect());
    area.set_wrap_mode(WrapMode::WordOrGlyph);
    area.set_cursor_line_style(Tone::Plain.style());
    area.set_placeholder_text("Say what to do");
    area.set_placeholder_style(Tone::Dim.style());
    area.move_cursor(CursorMove::Bottom);
    area.move_cursor(CursorMove::End);
    area
}

/// Does it for each code point of the character before the cursor: what a person sees as one may be made of several.
fn back(area: &mut TextArea<'static>, each: impl Fn(&mut TextArea<'static>)) {
    let column = area.cursor().1;
    let begins = ends(area).take_while(|end| *end < column).last().unwrap_or_default();
    // The end of the line before is one, too.
    (0..(column - begins).max(1)).for_each(|_| each(area));
}

/// The same for the character behind it.
fn forward(area: &mut TextArea<'static>, each: impl Fn(&mut TextArea<'static>)) {
    let column = area.cursor().1;
    let ends = ends(area).find(|end| *end > column).unwrap_or(column + 1);
    (column..ends).for_each(|_| each(area));
}

/// The columns where the characters of the cursor's line end.
fn ends(area: &TextArea<'static>) -> impl Iterator<Item = usize> {
    let line = area.lines().get(area.cursor().0).map_or("", String::as_str);
    line.graphemes(true).scan(0, |end, character| {
        *end += character.chars().count();
        Some(*end)
    })
}

impl Prompt {
    /// As it is drawn.
    pub(crate) fn area(&self) -> &TextArea<'static> {
        &self.area
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.area.is_empty()
    }

    /// What is typed, pastes and all.
    pub(crate) fn text(&self) -> String {
        let mut text = self.area.lines().join("\n");
        for (mark, paste) in &self.pastes {
            text = text.replacen(mark.as_str(), paste, 1);
        }
        text
    }

    /// Puts this in its place.
    pub(crate) fn set(&mut self, text: &str) {
        (self.area, self.pastes, self.looking) = (area(""), Vec::new(), None);
        self.paste(text);
    }

    pub(crate) fn clear(&mut self) {
        self.set("");
    }

    /// Takes away what is typed. The history has it from now on.
    pub(crate) fn put_away(&mut self) {
        let typed = self.text();
        let (looked_at, draft) = match self.looking.take() {
            Some((place, draft)) => (self.history.get(place).cloned(), draft),
            None => Default::default(),
        };
        self.remember(&draft);
        if looked_at.as_ref() != Some(&typed) {
            self.remember(&typed);
        }
        self.clear();
    }

    /// Remembers a prompt for the history.
    pub(crate) fn remember(&mut self, text: &str) {
        if text.trim().is_empty() || self.history.last().is_some_and(|last| last == text) {
            return;
        }
        if self.history.len() == HISTORY {
            self.history.remove(0);
        }
        self.history.push(text.to_owned());
    }

    /// The same, of all that there were, of which some may be remembered.
    pub(crate) fn remember_anew(&mut self, texts: &[String]) {
        let before = self.history.len();
        self.history.clear();
        texts.iter().for_each(|text| self.remember(text));
        // What is looked at is as far from the newest as it was.
        if let Some((place, _)) = &mut self.looking {
            *place = (*place + self.history.len()).saturating_sub(before);
        }
    }

    /// Inserts a text as it is, whatever is in it; what a terminal would act on becomes visible, and nothing else: words
    /// of some languages have joiners and marks of direction in them.
    pub(crate) fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let acts = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
        let text: String = text
            .split_inclusive(acts)
            .map(|part| match part.chars().next_back() {
                Some(last) if acts(last) => {
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
        let size = match text.len() {
            bytes @ 0..1_048_576 => format!("{} KiB", bytes.div_ceil(1024)),
            bytes => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
        };
        let mark = format!("[paste {}: {lines} lines, {size}]", self.pastes.len() + 1);
        self.area.insert_str(&mark);
        self.pastes.push((mark, text));
    }

    /// A key of an editor. Whether it was one.
    pub(crate) fn press(&mut self, key: &KeyEvent) -> bool {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let alt = key.modifiers.contains(KeyModifiers::ALT);
        let area = &mut self.area;
        match key.code {
            KeyCode::Enter => area.insert_newline(),
            KeyCode::Char('j') if control => area.insert_newline(),
            KeyCode::Char('a') if control => area.move_cursor(CursorMove::Head),
            KeyCode::Char('e') if control => area.move_cursor(CursorMove::End),
            KeyCode::Char('b') if control => back(area, |area| area.move_cursor(CursorMove::Back)),
            KeyCode::Char('f') if control => forward(area, |area| area.move_cursor(CursorMove::Forward)),
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
            KeyCode::Backspace => back(area, |area| _ = area.delete_char()),
            KeyCode::Delete => forward(area, |area| _ = area.delete_next_char()),
            KeyCode::Left => back(area, |area| area.move_cursor(CursorMove::Back)),
            KeyCode::Right => forward(area, |area| area.move_cursor(CursorMove::Forward)),
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
        let place = self.looking.as_ref().map_or(self.history.len(), |(place, _)| *place);
        let Some(before) = place.checked_sub(1) else { return false };
        let draft = self.looking.take().map_or_else(|| self.text(), |(_, draft)| draft);
        self.look(before, draft);
        true
    }

    fn down(&mut self) -> bool {
        if self.area.cursor().0 + 1 < self.area.lines().len() {
            self.area.move_cursor(CursorMove::Down);
            return true;
        }
        let Some((place, draft)) = self.looking.take() else { return false };
        if place + 1 < self.history.len() {
            self.look(place + 1, draft);
        } else {
            self.set(&draft);
        }
        true
    }

    fn look(&mut self, place: usize, draft: String) {
        let text = self.history.get(place).cloned().unwrap_or_default();
        self.set(&text);
        self.looking = Some((place, draft));
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
    fn what_is_put_away_is_the_first_of_the_history() {
        let mut prompt = Prompt::default();
        prompt.remember("one");
        prompt.remember("two");
        prompt.paste("draft");
        prompt.put_away();
        assert!(prompt.is_empty());
        press(&mut prompt, KeyCode::Up);
        assert_eq!(prompt.text(), "draft");
        press(&mut prompt, KeyCode::Down);
        // Of the history that is looked at, nothing is new, but what was typed before is.
        prompt.paste("another");
        (0..2).for_each(|_| press(&mut prompt, KeyCode::Up));
        assert_eq!(prompt.text(), "two");
        prompt.put_away();
        assert_eq!(prompt.history, ["one", "two", "draft", "another"]);
        // Nor is there anything in blanks, or in the same again.
        prompt.paste("another");
        prompt.put_away();
        prompt.paste(" ");
        prompt.put_away();
        assert_eq!(prompt.history.len(), 4);
        // What was changed of it, is new.
        (0..4).for_each(|_| press(&mut prompt, KeyCode::Up));
        prompt.paste("!");
        prompt.put_away();
        assert_eq!(prompt.history.last().map(String::as_str), Some("one!"));
    }

    #[test]
    fn keys_take_what_a_person_sees_as_one_character() {
        // A family is five code points, this letter two.
        let (family, letter) = ("👨\u{200d}👩\u{200d}👧", "e\u{301}");
        let mut prompt = Prompt::default();
        prompt.set(&format!("a{family}{letter}\nb"));
        for left in [format!("a{family}{letter}\n"), format!("a{family}{letter}"), format!("a{family}"), "a".to_owned()]
        {
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
        assert_eq!(moves(&mut prompt, KeyCode::Left, 2), (0, 0), "there is nothing before the first one");
        assert_eq!(moves(&mut prompt, KeyCode::Right, 2), (0, 7));
        assert_eq!(moves(&mut prompt, KeyCode::Right, 3), (1, 1), "nor behind the last one");
        moves(&mut prompt, KeyCode::Left, 4);
        press(&mut prompt, KeyCode::Delete);
        assert_eq!(prompt.text(), format!("{family}\nb"));
        moves(&mut prompt, KeyCode::Delete, 2);
        assert_eq!(prompt.text(), "b");
    }

    #[test]
    fn t_y6_a_paste_is_literal_and_a_long_one_is_kept_aside() {
        let mut prompt = Prompt::default();
        prompt.paste("a\x1b[2J\r\nb\u{9b}c\rd");
        assert_eq!(prompt.text(), "a\\u{1b}[2J\nb\\u{9b}c\nd");
        // What it is made of stays what it is, also when it comes back from the history.
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
