//! Escapes the characters in JSON output that a terminal would act on, or that hide or reorder
//! text.

use std::io::{self, Write};

use holdpoint_tools::shown;

/// Passes JSON on with these characters escaped, without changing its values. `serde_json` itself
/// escapes only some of the characters that a terminal acts on.
pub(crate) struct Json<W> {
    writer: W,
    /// The first bytes of a character that is still incomplete.
    part: Vec<u8>,
}

impl<W: Write> Json<W> {
    pub(crate) fn new(writer: W) -> Self {
        Self { writer, part: Vec::new() }
    }
}

impl<W: Write> Write for Json<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined;
        let mut rest = bytes;
        if !self.part.is_empty() {
            joined = [&std::mem::take(&mut self.part), bytes].concat();
            rest = &joined;
        }
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(text) => {
                    self.writer.write_all(shown::json(text).as_bytes())?;
                    return Ok(bytes.len());
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            self.writer.write_all(shown::json(&String::from_utf8_lossy(valid)).as_bytes())?;
            let Some(invalid_len) = error.error_len() else {
                self.part = after.to_vec();
                return Ok(bytes.len());
            };
            // JSON can't contain these bytes.
            self.writer.write_all("\u{fffd}".as_bytes())?;
            rest = &after[invalid_len..];
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_does_not_depend_on_the_pieces_written() {
        let original = "漢字 \u{1b}[m\u{9b}31m \u{7f}\u{202e}\u{e0041} 👩‍👩‍👧 \\u{9b} \"\n\tæ";
        let text = serde_json::to_string_pretty(&[original]).unwrap();
        let mut whole = String::new();
        for size in 1..=text.len() {
            let mut written = Vec::new();
            let mut json = Json::new(&mut written);
            text.as_bytes().chunks(size).for_each(|piece| json.write_all(piece).unwrap());
            whole = String::from_utf8(written).unwrap();
            assert_eq!(serde_json::from_str::<[String; 1]>(&whole).unwrap(), [original], "{whole}");
            assert!(!whole.contains(['\u{9b}', '\u{7f}', '\u{202e}', '\u{e0041}']), "{whole:?}");
        }
        assert!(whole.contains(r"\u009b31m \u007f\u202e\udb40\udc41"), "{whole}");
        let mut written = Vec::new();
        Json::new(&mut written).write_all(b"\"a\xffb\"").unwrap();
        assert_eq!(written, "\"a\u{fffd}b\"".as_bytes());
    }
}
