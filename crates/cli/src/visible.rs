//! Makes visible what a terminal would act on or hide, so that what is read is what is there.

use std::borrow::Cow;

/// `text` with every control character but line feed and tab, and every character that is not seen or that
/// reorders others, written out.
///
/// Control characters become their pictures (`␛` for ESC), the rest `<U+202E>`. Nothing that comes from a
/// model or a tool is written to a terminal any other way.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    shown(text, is_hidden)
}

/// The same for what has to stay on one line: line feed and tab are written out too.
pub(crate) fn visible_line(text: &str) -> Cow<'_, str> {
    shown(text, |character| matches!(character, '\n' | '\t') || is_hidden(character))
}

fn shown(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    // Most text is plain ASCII, and most of the rest has nothing to hide.
    let Some(first) = text.find(&is_hidden) else { return Cow::Borrowed(text) };
    let (clean, rest) = text.split_at(first);
    let mut shown = String::with_capacity(text.len() + 16);
    shown.push_str(clean);
    for character in rest.chars() {
        match u32::from(character) {
            _ if !is_hidden(character) => shown.push(character),
            code @ 0..0x20 => shown.extend(char::from_u32(0x2400 + code)),
            0x7f => shown.push('␡'),
            code => shown.push_str(&format!("<U+{code:04X}>")),
        }
    }
    Cow::Owned(shown)
}

fn is_hidden(character: char) -> bool {
    match character {
        '\n' | '\t' | ' '..='~' => false,
        // C0, DEL and C1: what terminals take orders by.
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Not seen: soft hyphen, joiners, fillers, zero-width spaces, the byte order mark.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}'
        | '\u{2060}'..='\u{2065}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}' => true,
        // Reorders what is around it: marks, embeddings, overrides, isolates.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => true,
        // Breaks a line where no line feed is.
        '\u{2028}' | '\u{2029}' => true,
        // Not seen, and able to carry a whole text: tags and the variation selectors beyond the first 16.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_is_left_alone() {
        for text in ["", "ls -la\n\tfoo", "héllo wörld 漢字 🙂 ❤\u{fe0f}"] {
            assert!(matches!(visible(text), Cow::Borrowed(same) if same == text), "{text:?}");
        }
    }

    #[test]
    fn orders_to_a_terminal_are_seen() {
        assert_eq!(visible("a\u{1b}[2Jb\rc\u{7}\u{0}\u{7f}"), "a␛[2Jb␍c␇␀␡");
        assert_eq!(visible("\u{9b}31m\u{85}"), "<U+009B>31m<U+0085>");
    }

    #[test]
    fn what_hides_or_reorders_is_seen() {
        assert_eq!(visible("rm \u{202e}txt.\u{2066}x\u{200b}y\u{feff}"), "rm <U+202E>txt.<U+2066>x<U+200B>y<U+FEFF>");
        assert_eq!(visible("a\u{2028}b\u{ad}\u{e0041}\u{3164}"), "a<U+2028>b<U+00AD><U+E0041><U+3164>");
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(visible_line("a\nb\tc"), "a␊b␉c");
        assert_eq!(visible("a\nb\tc"), "a\nb\tc");
    }

    #[test]
    fn no_order_survives() {
        for character in '\0'..=char::MAX {
            let text = character.to_string();
            let shown = visible(&text);
            let orders = shown.chars().filter(|c| c.is_control() && !matches!(c, '\n' | '\t')).count();
            assert_eq!(orders, 0, "{:x}", u32::from(character));
        }
    }
}
