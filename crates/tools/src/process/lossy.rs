//! Text from bytes that arrive in pieces, even if a character is split between two pieces.

/// Decodes UTF-8 and replaces invalid bytes by U+FFFD. The text does not depend on the pieces.
#[derive(Debug, Default)]
pub(crate) struct Lossy {
    /// The beginning of an incomplete character: at most three bytes.
    incomplete: Vec<u8>,
}

impl Lossy {
    /// Decodes `bytes`, together with the incomplete character before them.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> String {
        let joined;
        let mut rest = match self.incomplete.is_empty() {
            true => bytes,
            false => {
                joined = [&std::mem::take(&mut self.incomplete), bytes].concat();
                &joined
            }
        };
        let mut text = String::with_capacity(rest.len());
        loop {
            match str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, invalid) = rest.split_at(error.valid_up_to());
                    text.push_str(str::from_utf8(valid).unwrap_or_default());
                    let Some(length) = error.error_len() else {
                        self.incomplete = invalid.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = &invalid[length..];
                }
            }
        }
    }

    /// The text of an incomplete character at the end.
    pub(crate) fn finish(&mut self) -> String {
        let incomplete = std::mem::take(&mut self.incomplete);
        String::from_utf8_lossy(&incomplete).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_in_pieces_equals_decoding_the_whole() {
        let bytes =
            [b"a\xc3\xa9\xe6\xbc\xa2\xf0\x9f\xa6\x80\xff\xc3(\xe6\xbc".as_slice(), b"z\xf0\x9f"]
                .concat();
        let whole = String::from_utf8_lossy(&bytes);
        for size in 1..bytes.len() {
            let mut lossy = Lossy::default();
            let mut text: String = bytes.chunks(size).map(|piece| lossy.push(piece)).collect();
            text.push_str(&lossy.finish());
            assert_eq!(text, whole, "in pieces of {size}");
        }
    }
}
