//! Files in encodings other than UTF-8 are read, edited and written in their encoding, and never
//! lost.

use std::fs;

use holdpoint_common::{PolicyMode, PolicyRules};
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{EditFile, Policy, WriteFile};
use serde_json::{Value, json};

use super::support::{call, edit, intent, judge_and_call, read, replace, write};

fn bench(mode: PolicyMode) -> Bench {
    Bench::new().policy(Policy::new(mode, &PolicyRules::default(), None).unwrap())
}

fn utf16(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(unit).collect()
}

/// A text in several encodings, each with its name where the file itself does not identify it.
fn encoded(text: &str) -> Vec<(Vec<u8>, Option<&'static str>, &'static str)> {
    let marked = format!("\u{feff}{text}");
    let latin = text.chars().map(|character| u8::try_from(character).unwrap()).collect::<Vec<_>>();
    vec![
        (utf16(&marked, u16::to_le_bytes), None, "UTF-16LE"),
        (utf16(&marked, u16::to_be_bytes), None, "UTF-16BE"),
        (utf16(text, u16::to_le_bytes), Some("utf-16le"), "UTF-16LE"),
        (latin.clone(), Some("latin1"), "ISO-8859-1"),
        (latin, Some("windows-1252"), "windows-1252"),
    ]
}

fn with(input: Value, encoding: Option<&str>) -> Value {
    let Value::Object(mut input) = input else { panic!("{input}") };
    input.extend(encoding.map(|encoding| ("encoding".to_owned(), json!(encoding))));
    Value::Object(input)
}

#[test]
fn m_e7_an_edit_keeps_encoding_byte_order_mark_and_line_ends() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    let (before, after) = ("one é\r\ntwo\r\n", "one ü\r\n2\r\ntwo\r\n");
    for ((old, encoding, name), (new, ..)) in encoded(before).into_iter().zip(encoded(after)) {
        fs::write(&path, &old).unwrap();
        let shown = read(&bench, with(json!({"path": "a"}), encoding)).unwrap().output;
        let notes = format!("[these lines end in CRLF; the encoding is {name}]\n");
        assert_eq!(shown, format!("     1\tone é\n     2\ttwo\n{notes}"));
        let input = with(replace("a", "é\n", "ü\n2\n"), encoding);
        let details = intent(&bench, &EditFile::new(), &input).unwrap().details.unwrap();
        assert!(details.starts_with(&format!("Encoding: {name}\n\n--- a\n")), "{details}");
        let wrote = edit(&bench, input).unwrap().wrote;
        assert_eq!(
            (fs::read(&path).unwrap(), wrote[0].size),
            (new.clone(), new.len() as u64),
            "{name}"
        );

        // Replacing the whole file keeps its form.
        let input = with(json!({"path": "a", "content": "one é\ntwo\n"}), encoding);
        let output = judge_and_call(&bench, WriteFile::new(), input).unwrap().output;
        assert_eq!(
            output,
            format!("wrote a ({} bytes in {name}, CRLF line endings kept)", old.len())
        );
        assert_eq!(fs::read(&path).unwrap(), old, "{name}");
    }
    // A byte order mark of UTF-8 does not make another encoding.
    fs::write(&path, "\u{feff}one é\r\n").unwrap();
    read(&bench, json!({"path": "a"})).unwrap();
    edit(&bench, with(replace("a", "é", "ü"), Some("utf-8"))).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "\u{feff}one ü\r\n");
}

#[test]
fn m_e7_an_edit_keeps_all_other_bytes() {
    // In these encodings, every byte but zero is a character, even those that windows-1252 leaves
    // undefined.
    let bytes: Vec<u8> = (1..=255).collect();
    for encoding in ["latin1", "windows-1252"] {
        let bench = Bench::new();
        let path = bench.root().join("a");
        fs::write(&path, &bytes).unwrap();
        edit(&bench, with(replace("a", "abc", "ABCD"), Some(encoding))).unwrap();
        let expected = [&bytes[..0x60], b"ABCD", &bytes[0x63..]].concat();
        assert_eq!(fs::read(&path).unwrap(), expected, "{encoding}");
    }
}

#[test]
fn m_e7_the_error_for_a_non_text_file_has_a_hint() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    let odd = [&utf16("\u{feff}ab", u16::to_le_bytes)[..], b"c"].concat();
    for (bytes, encoding, expected) in [
        (
            &b"gr\xfc\xdfe"[..],
            None,
            "a: the file is not UTF-8 and has no byte order mark: set its encoding",
        ),
        (b"gr\xfc\xdfe", Some("utf-8"), "a: the file is not valid UTF-8: set another encoding"),
        (b"gr\xfc\xdfe", Some("utf-9"), "unknown encoding `utf-9`: use one such as"),
        (b"a\0b", None, "a: the file is binary (3 bytes"),
        (b"a\0b", Some("latin1"), "a: the file is binary (3 bytes"),
        (b"a\0b", Some("utf-16le"), "a: the file is not valid UTF-16LE"),
        (&odd, None, "a: the file is not valid UTF-16LE"),
        (
            &odd[..4],
            Some("utf-16be"),
            "a: the file has the byte order mark of UTF-16LE, not UTF-16BE: leave",
        ),
        (b"\xff\xfe\x00\xd8", None, "a: the file is not valid UTF-16LE"),
    ] {
        fs::write(&path, bytes).unwrap();
        let error =
            call(&bench, EditFile::new(), with(replace("a", "a", "b"), encoding)).unwrap_err();
        assert!(error.contains(expected), "{bytes:?} {encoding:?}: {error}");
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    // A character that the encoding lacks is not replaced by another one.
    for (encoding, character) in [("latin1", "€"), ("windows-1252", "漢"), ("shift_jis", "¥")] {
        fs::write(&path, b"abc").unwrap();
        let error = edit(&bench, with(replace("a", "b", character), Some(encoding))).unwrap_err();
        assert!(error.contains(&format!("`{character}` (U+")), "{error}");
        let content = with(json!({"path": "new", "content": character}), Some(encoding));
        assert_eq!(
            judge_and_call(&bench, WriteFile::new(), content).unwrap_err(),
            error.replacen('a', "new", 1)
        );
        assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 1);
    }
    // A text in UTF-8 is not mixed with another encoding.
    fs::write(&path, "é x").unwrap();
    let error = edit(&bench, with(replace("a", "x", "ü"), Some("latin1"))).unwrap_err();
    assert!(
        error.contains(
            "a: the file is UTF-8, and this edit in ISO-8859-1 would make it invalid: leave the encoding out"
        ),
        "{error}"
    );
    edit(&bench, with(replace("a", "x", "y"), Some("latin1"))).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "é y");
    fs::write(&path, b"gr\xfc\xdfe\n").unwrap();
    let shown = read(&bench, json!({"path": "a"})).unwrap().output;
    assert!(
        shown.contains("the file is not UTF-8") && shown.contains("set its encoding"),
        "{shown}"
    );
    let error = read(&bench, json!({"path": "a", "encoding": "utf-9"})).unwrap_err();
    assert!(error.contains("unknown encoding `utf-9`"), "{error}");
    fs::write(&path, &odd[..4]).unwrap();
    assert!(
        read(&bench, json!({"path": "a", "encoding": "latin1"}))
            .unwrap_err()
            .contains("byte order mark of UTF-16LE")
    );
}

#[test]
fn m_e7_a_new_file_is_in_the_named_encoding() {
    let bench = bench(PolicyMode::All);
    for (encoding, bytes) in [
        ("utf-16le", &b"\xff\xfe\xe9\0"[..]),
        ("utf-16be", b"\xfe\xff\0\xe9"),
        ("latin1", b"\xe9"),
        ("utf-8", "é".as_bytes()),
    ] {
        let input = json!({"path": encoding, "content": "é", "encoding": encoding});
        judge_and_call(&bench, WriteFile::new(), input).unwrap();
        assert_eq!(fs::read(bench.root().join(encoding)).unwrap(), bytes);
        let named = (encoding == "latin1").then_some(encoding);
        edit(&bench, with(replace(encoding, "é", "ü"), named)).unwrap();
    }
}

#[test]
fn m_e7_write_file_does_not_replace_a_file_that_can_not_be_shown() {
    let latin = b"gr\xfc\xdfe";
    for mode in [PolicyMode::Edits, PolicyMode::All] {
        let bench = bench(mode);
        let path = bench.root().join("a");
        for bytes in [&latin[..], b"\x7fELF\0\0"] {
            fs::write(&path, bytes).unwrap();
            let error = write(&bench, "a", "text").unwrap_err();
            assert!(error.starts_with("a: the file is ") && error.contains("set "), "{error}");
            assert!(
                error.ends_with("; to replace the file, remove it with a command first"),
                "{error}"
            );
            assert_eq!(fs::read(&path).unwrap(), bytes, "{mode}");
        }
        fs::File::create(&path).unwrap().set_len(64 * 1024 * 1024 + 1).unwrap();
        assert!(
            write(&bench, "a", "text")
                .unwrap_err()
                .contains("more than 64 MiB; to replace the file")
        );
        fs::write(&path, latin).unwrap();
        let input = json!({"path": "a", "content": "groß", "encoding": "windows-1252"});
        judge_and_call(&bench, WriteFile::new(), input).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"gro\xdf", "{mode}");
    }
    // Where writing asks, it asks every time.
    let bench = bench(PolicyMode::Ask);
    fs::write(bench.root().join("a"), latin).unwrap();
    let input = json!({"path": "a", "content": "text"});
    let asked = intent(&bench, &WriteFile::new(), &input).unwrap();
    assert!(
        asked
            .details
            .unwrap()
            .starts_with("The current content is not shown: the file is not UTF-8")
    );
    assert_eq!((asked.message.as_str(), asked.always), ("Replace this file?", None));
    judge_and_call(&bench, WriteFile::new(), input).unwrap();
    assert_eq!(fs::read(bench.root().join("a")).unwrap(), b"text");
}
