//! Tests of every form of input: whole, in pieces, and directly before another key.

use proptest::prelude::*;

use super::*;

fn decoded(bytes: &[u8]) -> Vec<Input> {
    let (now, mut inputs) = (Instant::now(), Vec::new());
    let mut decoder = Decoder::new(now);
    decoder.feed(bytes, now, &mut inputs);
    decoder.flush_pending(&mut inputs);
    inputs
}

/// Formats keys as the help does, and other input as one word.
fn shown(inputs: &[Input]) -> String {
    let shown = |input: &Input| match input {
        Input::Key(key) => {
            let names = [
                (KeyModifiers::CONTROL, "ctrl+"),
                (KeyModifiers::ALT, "alt+"),
                (KeyModifiers::SHIFT, "shift+"),
            ];
            let held = names
                .iter()
                .filter(|(modifier, _)| key.modifiers.contains(*modifier))
                .map(|(_, name)| *name);
            format!("{}{}", held.collect::<String>(), key.code.to_string().to_lowercase())
        }
        Input::Paste(text) => format!("paste {text:?}"),
        Input::Focus(focused) => format!("focus {focused}"),
        Input::Other => "other".to_owned(),
        Input::Continued | Input::Foreground => unreachable!("not decoded from bytes"),
    };
    inputs.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Byte sequences of exactly one key.
const KEYS: &[(&str, &str)] = &[
    ("a", "a"),
    ("é", "é"),
    ("漢", "漢"),
    ("🦀", "🦀"),
    ("\r", "enter"),
    ("\n", "ctrl+j"),
    ("\t", "tab"),
    ("\x7f", "backspace"),
    ("\x08", "backspace"),
    ("\x03", "ctrl+c"),
    ("\x18", "ctrl+x"),
    ("\x1b", "esc"),
    ("\x1bx", "alt+x"),
    ("\x1b\r", "alt+enter"),
    ("\x1b[", "alt+["),
    ("\x1b]", "alt+]"),
    ("\x1bO", "alt+o"),
    ("\x1b[A", "up"),
    ("\x1bOA", "up"),
    ("\x1b[1;5A", "ctrl+up"),
    ("\x1b[1;3D", "alt+left"),
    ("\x1b[H", "home"),
    ("\x1b[1~", "home"),
    ("\x1bOF", "end"),
    ("\x1b[3~", "del"),
    ("\x1b[3;5~", "ctrl+del"),
    ("\x1b[5~", "page up"),
    ("\x1b[Z", "shift+back tab"),
    ("\x1bOP", "f1"),
    ("\x1b[[E", "f5"),
    ("\x1b[15~", "f5"),
    ("\x1b[24~", "f12"),
    ("\x1bOM", "enter"),
    ("\x1bO2P", "shift+f1"),
    ("\x1bO1;2P", "shift+f1"),
    ("\x1bOa", "ctrl+up"),
    ("\x1b[a", "shift+up"),
    ("\x1bOj", "*"),
    // Alt as an extra escape.
    ("\x1b\x1b[A", "alt+up"),
    ("\x1b\x1bOA", "alt+up"),
    // Shift+Enter, as kitty and as xterm report it.
    ("\x1b[13;2u", "shift+enter"),
    ("\x1b[27;2;13~", "shift+enter"),
    // Other keys, as kitty reports them.
    ("\x1b[27u", "esc"),
    ("\x1b[99;5u", "ctrl+c"),
    ("\x1b[97;4u", "alt+shift+a"),
    ("\x1b[97;69u", "ctrl+a"),
    ("\x1b[9;2u", "shift+back tab"),
    ("\x1b[57414u", "enter"),
    ("\x1b[57403u", "4"),
    ("\x1b[91;5u", "esc"),
    ("\x1b[109;5u", "enter"),
    // Ctrl+C on a Cyrillic keyboard, and its letter with Shift.
    ("\x1b[1089::99;5u", "ctrl+c"),
    ("\x1b[1089:1057;2u", "shift+с"),
];

/// Byte sequences that are not keys.
const OTHER: &[&[u8]] = &[
    b"\x1b]A",
    b"\x1b]10;rgb:ffff/ffff/ffff\x07",
    b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b]4;1;rgb:cdcd/0000/0000\x1b\\",
    b"\x1b]52;c;eQ==\x1b\\",
    b"\x1bP>|XTerm(370)\x1b\\",
    b"\x1bP1+r436f=3235360a\x1b\\",
    b"\x1bP1$r0m\x1b\\",
    b"\x1b_Gi=1;OK\x1b\\",
    b"\x1b^y\x1b\\",
    b"\x1bXy\x1b\\",
    b"\x1b]y\x18",
    b"\x1b[?1;2c",
    b"\x1b[>41;370;0c",
    b"\x1b[?2026;2$y",
    b"\x1b[24;80R",
    b"\x1b[8;24;80t",
    b"\x1b[?1u",
    b"\x1b[?997;1n",
    b"\x1b[M !!",
    b"\x1b[<0;10;10M",
    b"\x1b[<0;10;10m",
    b"\x1b[99;5:3u",
    b"\x1b[57441u",
    b"\x1b[999~",
    b"\x1b[1;2;3;4;5y",
    b"\x1b[\xff\x01y",
    b"\x1bOz",
    b"\x1b[0n",
    b"\xff",
    b"\x9b",
    b"\xc2\x9b",
    b"\xe6\xbc",
];

#[test]
fn every_form_of_a_key_is_decoded() {
    for (bytes, key) in KEYS {
        assert_eq!(shown(&decoded(bytes.as_bytes())), *key, "{bytes:?}");
    }
    assert_eq!(shown(&decoded(b"\x1b[I\x1b[O")), "focus true, focus false");
    assert_eq!(shown(&decoded(b"\x1b\x1b")), "esc, esc");
    assert_eq!(shown(&decoded(b"\x1b\x1bx")), "esc, alt+x");
    // Ctrl+C acts in the middle of a sequence; so does an escape, which begins another one.
    for begun in ["\x1b[1;", "\x1bO", "\x1b]52;c;", "\x1bP"] {
        assert_eq!(
            shown(&decoded(format!("{begun}\x03y").as_bytes())),
            "other, ctrl+c, y",
            "{begun:?}"
        );
    }
    assert_eq!(shown(&decoded(b"\x1b\x03")), "esc, ctrl+c");
    assert_eq!(shown(&decoded(b"\x1b[1;\x1b[A")), "other, up");
    assert_eq!(shown(&decoded(b"\x1bO\x1b[A")), "other, up");
    assert_eq!(shown(&decoded(b"\xe6\xbcy")), "other, y");
    // A C1 control is an escape and a letter in one character, in UTF-8 or as a single byte.
    for c1 in [&b"\xc2\x9b"[..], b"\x9b"] {
        assert_eq!(shown(&decoded(&[c1, b"15~y"].concat())), "f5, y");
        assert_eq!(shown(&decoded(&[c1, b"A"].concat())), "up");
    }
    assert_eq!(shown(&decoded(b"\xc2\x9d52;c;y\x07y")), "other, y");
    assert_eq!(shown(&decoded(b"\xc2\x90+q\x1b\\y\xc2\x85y")), "other, y, other, y");
}

#[test]
fn m_a10_a_sequence_ends_where_its_grammar_says_and_nothing_in_it_is_a_key() {
    for bytes in OTHER {
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(shown(&decoded(bytes)), "other", "{text:?}");
        // After a complete sequence, the next byte is a key; an unterminated one swallows it.
        let followed = shown(&decoded(&[bytes, &b"y"[..]].concat()));
        assert!(followed == "other, y" || followed == "other", "{text:?}: {followed}");
    }
}

#[test]
fn t_y6_a_paste_in_pieces_is_one_paste() {
    let text = "/quit\rtwo \x1b[31m lines\r漢y";
    for size in 1..9 {
        let (mut at, mut inputs) = (Instant::now(), Vec::new());
        let mut decoder = Decoder::new(at);
        for piece in format!("\x1b[200~{text}\x1b[201~").as_bytes().chunks(size) {
            at += Duration::from_millis(1);
            decoder.feed(piece, at, &mut inputs);
        }
        assert_eq!(inputs, []);
        assert_eq!(decoder.due(), Some(at + PASTE_SETTLE));
        decoder.flush_pending(&mut inputs);
        assert_eq!(inputs, [Input::Paste(text.to_owned())]);
    }
    // Two pastes without a pause between them are merged: the end sequence may be part of the text.
    assert_eq!(decoded(b"\x1b[200~a\x1b[201~\x1b[200~b\x1b[201~"), [Input::Paste("ab".to_owned())]);
    // A stalled connection delays the end of a paste; only a long silence ends a paste without its
    // end sequence.
    let (at, mut inputs) = (Instant::now(), Vec::new());
    let mut decoder = Decoder::new(at);
    decoder.feed(b"\x1b[200~y\r", at, &mut inputs);
    assert_eq!(decoder.due(), Some(at + UNTERMINATED));
    decoder.flush_pending(&mut inputs);
    assert_eq!(inputs, [Input::Paste("y\r".to_owned())]);
}

#[test]
fn t_y6_input_directly_after_a_paste_belongs_to_it() {
    assert_eq!(
        decoded(b"\x1b[200~say a\x1b[201~; evil\r\x1b[201~"),
        [Input::Paste("say a; evil\r".to_owned())]
    );
    let (at, mut inputs) = (Instant::now(), Vec::new());
    let mut decoder = Decoder::new(at);
    decoder.feed(b"\x1b[200~say a\x1b[201~", at, &mut inputs);
    decoder.flush_pending(&mut inputs);
    decoder.feed(b";\r", at + PASTE_SETTLE, &mut inputs);
    assert_eq!(shown(&inputs), "paste \"say a\", ;, enter");
}

#[test]
fn the_parts_of_a_long_paste_split_neither_its_end_nor_a_character() {
    let (at, input) = (Instant::now(), "漢é🦀\x1b[201~");
    for before in 0..=input.len() {
        let mut inputs = Vec::new();
        let text = vec![b'a'; MAX_PASTE - before];
        let mut decoder = Decoder { state: State::Paste { text, ended: false }, last: at };
        decoder.feed(input.as_bytes(), at, &mut inputs);
        assert_eq!(decoder.due(), Some(at + PASTE_SETTLE));
        decoder.flush_pending(&mut inputs);
        let text: String = inputs
            .iter()
            .map(|input| match input {
                Input::Paste(text) => text.rsplit('a').next().unwrap_or_default(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(text, "漢é🦀", "{before} bytes in the first part");
    }
}

#[test]
fn a_lone_escape_is_a_key_after_its_timeout() {
    let (at, mut inputs) = (Instant::now(), Vec::new());
    let mut decoder = Decoder::new(at);
    assert_eq!(decoder.due(), None);
    decoder.feed(b"\x1b", at, &mut inputs);
    assert_eq!((decoder.due(), inputs.len()), (Some(at + ESCAPE), 0));
    decoder.flush_pending(&mut inputs);
    decoder.feed(b"[A", at + ESCAPE, &mut inputs);
    assert_eq!(shown(&inputs), "esc, [, a");
    // A sequence has a longer deadline: the terminal may be far away.
    decoder.feed(b"\x1b[1;", at, &mut inputs);
    assert_eq!(decoder.due(), Some(at + SEQUENCE));
}

proptest! {
    /// Bytes decode to the same input, whatever the size of the pieces.
    #[test]
    fn t_y6_piecewise_decoding_equals_whole_decoding(
        parts in prop::collection::vec(
            prop_oneof![
                prop::sample::select(KEYS.iter().map(|(bytes, _)| bytes.as_bytes().to_vec()).collect::<Vec<_>>()),
                prop::sample::select(OTHER.iter().map(|bytes| bytes.to_vec()).collect::<Vec<_>>()),
                prop::collection::vec(any::<u8>(), 1..20),
            ],
            0..20,
        ),
        size in 1_usize..40,
    ) {
        let bytes = parts.concat();
        let (at, mut inputs) = (Instant::now(), Vec::new());
        let mut decoder = Decoder::new(at);
        bytes.chunks(size).for_each(|piece| decoder.feed(piece, at, &mut inputs));
        decoder.flush_pending(&mut inputs);
        prop_assert_eq!(&inputs, &decoded(&bytes));
        prop_assert!(inputs.len() <= bytes.len());
    }

    /// A key approves only after a pause without input. Every byte before it must therefore be
    /// reported as some input.
    #[test]
    fn m_a10_every_byte_is_reported_as_input(bytes in prop::collection::vec(any::<u8>(), 1..40)) {
        prop_assert!(!decoded(&bytes).is_empty());
    }
}
