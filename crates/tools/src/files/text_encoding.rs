//! The encoding of a text file: detection, decoding and encoding.

use std::borrow::Cow;
use std::fmt;

use encoding_rs::{EncoderResult, Encoding, REPLACEMENT, UTF_8, UTF_16BE, UTF_16LE};

use crate::error::ToolError;

/// Byte order marks and their encodings.
const BYTE_ORDER_MARKS: [(&[u8], TextEncoding); 3] = [
    (b"\xef\xbb\xbf", TextEncoding::Utf8),
    (b"\xff\xfe", TextEncoding::Utf16Le),
    (b"\xfe\xff", TextEncoding::Utf16Be),
];

/// Labels of ISO 8859-1 proper, which browsers and `encoding_rs` read as windows-1252.
const LATIN_1: [&str; 7] =
    ["iso-8859-1", "iso8859-1", "iso_8859-1", "latin-1", "latin1", "l1", "cp819"];

/// The encoding of a text. It does not include the byte order mark, which is the text's first
/// character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum TextEncoding {
    #[default]
    Utf8,
    Utf16Le,
    Utf16Be,
    /// Each byte is the code point of a character.
    Latin1,
    Other(&'static Encoding),
}

/// A character that an encoding lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unmappable {
    character: char,
    encoding: TextEncoding,
}

impl TextEncoding {
    /// The encoding that a call names, if any.
    ///
    /// # Errors
    /// [`ToolError::Input`] if no encoding has this name.
    pub(crate) fn named(label: Option<&String>) -> Result<Option<Self>, ToolError> {
        let Some(label) = label else { return Ok(None) };
        if LATIN_1.contains(&&*label.trim().to_ascii_lowercase()) {
            return Ok(Some(Self::Latin1));
        }
        match Encoding::for_label(label.as_bytes()) {
            None => {}
            Some(encoding) if encoding == REPLACEMENT => {}
            Some(encoding) if encoding == UTF_8 => return Ok(Some(Self::Utf8)),
            Some(encoding) if encoding == UTF_16LE => return Ok(Some(Self::Utf16Le)),
            Some(encoding) if encoding == UTF_16BE => return Ok(Some(Self::Utf16Be)),
            Some(encoding) => return Ok(Some(Self::Other(encoding))),
        }
        Err(ToolError::input(format!(
            "unknown encoding `{label}`: use one such as utf-8, utf-16le, utf-16be, iso-8859-1, windows-1252, shift_jis"
        )))
    }

    /// The encoding of the byte order mark at the start of a file.
    pub(crate) fn of_bom(beginning: &[u8]) -> Option<Self> {
        BYTE_ORDER_MARKS
            .iter()
            .find(|(mark, _)| beginning.starts_with(mark))
            .map(|(_, encoding)| *encoding)
    }

    /// Whether text in this encoding may have zero bytes.
    pub(crate) fn has_zeros(self) -> bool {
        matches!(self, Self::Utf16Le | Self::Utf16Be)
    }

    /// Decodes bytes. `None` if they are invalid in this encoding, or if encoding the text would
    /// not give the same bytes.
    pub(crate) fn decode(self, bytes: Vec<u8>) -> Option<String> {
        match self {
            Self::Utf8 => String::from_utf8(bytes).ok(),
            Self::Utf16Le => from_utf16(&bytes, u16::from_le_bytes),
            Self::Utf16Be => from_utf16(&bytes, u16::from_be_bytes),
            Self::Latin1 => Some(bytes.iter().copied().map(char::from).collect()),
            Self::Other(encoding) => {
                let text = encoding.decode_without_bom_handling_and_without_replacement(&bytes)?;
                let is_same = self.encode(&text).is_ok_and(|again| *again == *bytes);
                is_same.then(|| text.into_owned())
            }
        }
    }

    /// Decodes bytes, with U+FFFD for each invalid part.
    pub(crate) fn decode_lossily(self, bytes: &[u8]) -> String {
        match self {
            Self::Utf8 => String::from_utf8_lossy(bytes).into_owned(),
            Self::Utf16Le => UTF_16LE.decode_without_bom_handling(bytes).0.into_owned(),
            Self::Utf16Be => UTF_16BE.decode_without_bom_handling(bytes).0.into_owned(),
            Self::Latin1 => bytes.iter().copied().map(char::from).collect(),
            Self::Other(encoding) => encoding.decode_without_bom_handling(bytes).0.into_owned(),
        }
    }

    /// Encodes a text.
    ///
    /// # Errors
    /// [`Unmappable`] if the encoding lacks a character of the text.
    pub(crate) fn encode(self, text: &str) -> Result<Cow<'_, [u8]>, Unmappable> {
        let unmappable = |character| Unmappable { character, encoding: self };
        Ok(match self {
            Self::Utf8 => text.as_bytes().into(),
            Self::Utf16Le => {
                text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>().into()
            }
            Self::Utf16Be => {
                text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<_>>().into()
            }
            Self::Latin1 => {
                let byte = |character| u8::try_from(character).map_err(|_| unmappable(character));
                text.chars().map(byte).collect::<Result<Vec<_>, _>>()?.into()
            }
            Self::Other(encoding) => {
                let mut encoder = encoding.new_encoder();
                let mut bytes = Vec::new();
                let mut rest = text;
                loop {
                    let most = encoder.max_buffer_length_from_utf8_without_replacement(rest.len());
                    bytes.reserve(most.unwrap_or(rest.len()));
                    let (result, read) =
                        encoder.encode_from_utf8_to_vec_without_replacement(rest, &mut bytes, true);
                    rest = &rest[read..];
                    match result {
                        EncoderResult::InputEmpty => break,
                        EncoderResult::OutputFull => {}
                        EncoderResult::Unmappable(character) => return Err(unmappable(character)),
                    }
                }
                // Some encodings write a character with the bytes of another one: Shift_JIS writes
                // `¥` as `\`.
                let (again, _) = encoding.decode_without_bom_handling(&bytes);
                let misread =
                    text.chars().zip(again.chars()).find(|(character, again)| character != again);
                match misread {
                    Some((character, _)) => return Err(unmappable(character)),
                    None => bytes.into(),
                }
            }
        })
    }
}

/// Decodes units of two bytes each. `None` if they are not valid UTF-16.
fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (units, rest) = bytes.as_chunks::<2>();
    let text =
        char::decode_utf16(units.iter().map(|bytes| unit(*bytes))).collect::<Result<_, _>>().ok();
    text.filter(|_| rest.is_empty())
}

impl fmt::Display for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Utf8 => "UTF-8",
            Self::Utf16Le => "UTF-16LE",
            Self::Utf16Be => "UTF-16BE",
            Self::Latin1 => "ISO-8859-1",
            Self::Other(encoding) => encoding.name(),
        })
    }
}

impl fmt::Display for Unmappable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { character, encoding } = self;
        write!(f, "`{character}` (U+{:04X}) can't be encoded in {encoding}", u32::from(*character))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LABELS: [&str; 9] = [
        "utf-8",
        "utf-16le",
        "utf-16be",
        "latin1",
        "windows-1252",
        "shift_jis",
        "gb18030",
        "iso-2022-jp",
        "big5",
    ];

    fn named(label: &str) -> Option<TextEncoding> {
        TextEncoding::named(Some(&label.to_owned())).ok().flatten()
    }

    #[test]
    fn encoding_labels_follow_the_encoding_standard() {
        for (label, encoding) in [
            ("UTF-8", Some(TextEncoding::Utf8)),
            ("utf-16", Some(TextEncoding::Utf16Le)),
            ("Latin-1", Some(TextEncoding::Latin1)),
            ("ISO-8859-1", Some(TextEncoding::Latin1)),
            ("cp1252", Some(TextEncoding::Other(encoding_rs::WINDOWS_1252))),
            ("sjis", Some(TextEncoding::Other(encoding_rs::SHIFT_JIS))),
            ("replacement", None),
            ("utf-9", None),
            ("", None),
        ] {
            assert_eq!(named(label), encoding, "{label}");
        }
        assert_eq!(TextEncoding::named(None).ok(), Some(None));
    }

    #[test]
    fn an_unmappable_character_is_named() {
        let error = |label: &str, text| named(label).unwrap().encode(text).unwrap_err().to_string();
        assert_eq!(error("latin1", "a€"), "`€` (U+20AC) can't be encoded in ISO-8859-1");
        assert_eq!(error("windows-1252", "漢"), "`漢` (U+6F22) can't be encoded in windows-1252");
        assert_eq!(error("shift_jis", "漢¥"), "`¥` (U+00A5) can't be encoded in Shift_JIS");
        assert_eq!(named("windows-1252").unwrap().encode("€").unwrap(), &b"\x80"[..]);
        assert_eq!(
            named("utf-16be").unwrap().encode("\u{feff}é😀").unwrap(),
            &b"\xfe\xff\0\xe9\xd8\x3d\xde\0"[..]
        );
    }

    proptest! {
        #[test]
        fn decoded_bytes_are_encoded_to_the_same_bytes(
            bytes in prop::collection::vec(prop_oneof![any::<u8>(), 0x20_u8..0x7f, Just(0x1b)], 0..40),
            label in prop::sample::select(LABELS.to_vec()),
        ) {
            let encoding = named(label).unwrap();
            if let Some(text) = encoding.decode(bytes.clone()) {
                prop_assert_eq!(&*encoding.encode(&text).unwrap(), &bytes[..]);
                prop_assert_eq!(encoding.decode_lossily(&bytes), text);
            }
        }

        #[test]
        fn an_encoded_text_is_decoded_to_the_same_text(text in ".{0,20}", label in prop::sample::select(LABELS.to_vec())) {
            let encoding = named(label).unwrap();
            if let Ok(bytes) = encoding.encode(&text).map(Cow::into_owned)
                && let Some(again) = encoding.decode(bytes)
            {
                prop_assert_eq!(again, text);
            }
        }
    }
}
