//! `edit_file`: exact replacements that leave all other bytes as they are.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use holdpoint_tools::testing::{Bench, rounds};
use holdpoint_tools::{EditFile, WriteFile};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::support::{call, edit, intent, judge_and_call, read, replace};

/// A bench with one file, `a`.
fn with(text: &str) -> Bench {
    let bench = Bench::new();
    fs::write(bench.root().join("a"), text).unwrap();
    bench
}

fn text(bench: &Bench) -> String {
    fs::read_to_string(bench.root().join("a")).unwrap()
}

/// The text after an edit.
fn edited(before: &str, old: &str, new: &str) -> String {
    let bench = with(before);
    edit(&bench, replace("a", old, new)).unwrap();
    text(&bench)
}

fn edits(edits: &[(&str, &str)]) -> Value {
    let edits: Vec<_> =
        edits.iter().map(|(old, new)| json!({ "old_string": old, "new_string": new })).collect();
    json!({ "path": "a", "edits": edits })
}

#[test]
fn m_e7_several_edits_are_made_one_after_the_other() {
    let bench = with("one\ntwo\nthree\n");
    let outcome =
        edit(&bench, edits(&[("one", "1"), ("1\ntwo", "1\n2"), ("three\n", "3")])).unwrap();
    assert_eq!(text(&bench), "1\n2\n3");
    assert_eq!(outcome.output, "edited a: lines 1 to 3");
    assert_eq!((outcome.wrote[0].path.as_str(), outcome.wrote[0].size), ("a", 5));

    let outcome = edit(&bench, replace("a", "2", "zwei")).unwrap();
    assert_eq!(outcome.output, "edited a: line 2");
    let all = json!({"path": "a", "old_string": "\n", "new_string": "\n\n", "replace_all": true});
    edit(&bench, all).unwrap();
    assert_eq!(text(&bench), "1\n\nzwei\n\n3");
    let each = json!({"path": "a", "edits": [
        {"old_string": "\n\n", "new_string": "-", "replace_all": true},
        {"old_string": "1-zwei-3", "new_string": "aaa"},
        {"old_string": "aa", "new_string": "b", "replace_all": true},
    ]});
    edit(&bench, each).unwrap();
    assert_eq!(text(&bench), "ba", "the first of two overlapping matches is replaced");
}

#[test]
fn m_e7_edits_apply_all_or_none_with_a_reason() {
    let before = "fn a() {\n    one();\n}\n\nfn b() {\n    one();\n}\n";
    let bench = with(before);
    for (input, expected) in [
        (
            replace("a", "one();", "two();"),
            "old_string occurs 2 times, on lines 2, 6: add surrounding lines",
        ),
        (replace("a", "three", "3"), "a: old_string was not found"),
        (
            replace("a", "fn b() {\n\tone();\n}", ""),
            "; lines 5 to 7 differ only in white space:\nfn b() {\n    one();\n}\n",
        ),
        (replace("a", "fn  b", ""), "; line 5 differs only in white space:\nfn b() {\n"),
        (edits(&[("fn a", "fn A"), ("fn a", "fn A")]), "a: edit 2 of 2: old_string was not found"),
        (edits(&[("fn a", "fn A"), ("fn A", "fn a")]), "cancel each other out"),
        (replace("a", "", "x"), "old_string is empty"),
        (edits(&[("fn a", "fn A"), ("", "x")]), "edit 2 of 2: old_string is empty"),
        (replace("a", "x", "x"), "the same"),
        (json!({"path": "a"}), ", or edits"),
        (json!({"path": "a", "old_string": "x"}), ", or edits"),
        (
            json!({"path": "a", "old_string": "x", "new_string": "y", "edits": [{"old_string": "x", "new_string": "y"}]}),
            ", or edits",
        ),
        (json!({"path": "a", "old": "x", "new": "y"}), "unknown field `old`"),
        (replace("missing", "x", "y"), "missing: no such file"),
        (replace("no/folder", "x", "y"), "No such file"),
        (replace(".", "x", "y"), "it is a folder"),
    ] {
        let error = edit(&bench, input.clone()).unwrap_err();
        assert!(error.contains(expected), "{input}: {error}");
        assert_eq!(text(&bench), before);
    }
    let many = with(&"x\n".repeat(100));
    let error = edit(&many, replace("a", "x", "y")).unwrap_err();
    assert!(
        error.contains("more than 10 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10:"),
        "{error}"
    );
    let overlapping = with("aaa");
    assert!(edit(&overlapping, replace("a", "aa", "b")).unwrap_err().contains("2 times"));
}

#[test]
fn an_edit_over_the_limits_is_refused_without_an_ask() {
    let all =
        |old: &str, new: &str| json!({ "old_string": old, "new_string": new, "replace_all": true });
    let bench = with(&"x".repeat(20_000));
    let error =
        edit(&bench, json!({ "path": "a", "edits": [all("x", &"x".repeat(4_096))] })).unwrap_err();
    assert!(error.contains("a: the result would be larger than 64 MiB"), "{error}");
    // Also with the line ends of the text.
    let bench = with(&"x\r\n".repeat(20_000));
    let error =
        edit(&bench, json!({ "path": "a", "edits": [all("x", &"\n".repeat(2_048))] })).unwrap_err();
    assert!(error.contains("a: the result would be larger than 64 MiB"), "{error}");
    let bench = with(&"x".repeat(250_001));
    let error = edit(&bench, json!({ "path": "a", "edits": [all("x", "y")] })).unwrap_err();
    assert!(
        error.contains("a: old_string occurs more than 250000 times: split the edit"),
        "{error}"
    );
    let bench = with(&"x".repeat(250_000));
    edit(&bench, json!({ "path": "a", "edits": [all("x", "y")] })).unwrap();
    assert_eq!(text(&bench), "y".repeat(250_000));
}

/// Each of these takes minutes if the work grows with the square of the size.
#[test]
fn an_edit_of_long_or_repeated_lines_takes_linear_time() {
    let long = "a".repeat(1_000_000);
    let old = format!("c\n{}", &long[..100_000]);
    assert_eq!(
        edited(&format!("c\r\n{long}\r\n"), &old, "d"),
        format!("d{}\r\n", &long[100_000..])
    );
    let error = edit(&with(&format!("b\r\n{long}\r\n")), replace("a", &old, "d")).unwrap_err();
    assert!(error.contains("old_string was not found"), "{error}");
    let lines = "a\r\n".repeat(300_000);
    let old = format!("{}b", "a\n".repeat(100_000));
    assert_eq!(edited(&format!("{lines}b\r\n"), &old, "d"), format!("{}d\r\n", &lines[300_000..]));
    // Many new line ends, far from the next one in the text.
    let bench = with(&format!("{}{}\r\n", "b".repeat(200_000), "c".repeat(20_000_000)));
    let input = json!({"path": "a", "old_string": "b", "new_string": "\n", "replace_all": true});
    call(&bench, EditFile::new(), input).unwrap();
    assert_eq!(text(&bench).matches("\r\n").count(), 200_001);
}

#[test]
fn the_work_of_many_edits_is_bounded_by_the_size_of_the_text() {
    let texts: Vec<_> = (0..=1_001).map(|number| number.to_string()).collect();
    let steps: Vec<_> = texts.windows(2).map(|step| (&*step[0], &*step[1])).collect();
    let bench = with("0");
    edit(&bench, edits(&steps)).unwrap();
    assert_eq!(text(&bench), "1001");
    let large = format!("0\n{}", "a".repeat(60 << 20));
    let bench = with(&large);
    let error = edit(&bench, edits(&steps)).unwrap_err();
    assert!(error.contains("a: 1001 edits are too many for a text of this size"), "{error}");
    assert!(text(&bench) == large);
}

#[test]
fn multiplying_edits_stop_at_the_largest_file_size() {
    let bench = with("x");
    let by_4096 =
        json!({ "old_string": "x", "new_string": "x".repeat(4_096), "replace_all": true });
    let error =
        edit(&bench, json!({ "path": "a", "edits": [by_4096, by_4096, by_4096] })).unwrap_err();
    assert!(error.contains("a: edit 3 of 3: the result would be larger than 64 MiB"), "{error}");
    assert_eq!(text(&bench), "x");
}

#[test]
fn m_e7_line_ends_byte_order_mark_and_mode_are_kept() {
    assert_eq!(edited("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz"), "x\r\ny\r\nz\r\nc\r\n");
    assert_eq!(edited("a\r\nb", "b", "b\n"), "a\r\nb\r\n");
    assert_eq!(edited("\u{feff}a\r\nb\r\n", "a\n", "A\nB\n"), "\u{feff}A\r\nB\r\nb\r\n");
    // In a text with mixed line ends, each line keeps its own.
    assert_eq!(edited("a\nb\r\nc\nd\r\n", "a\nb\nc\nd\n", "a\nB\nC\nd\n"), "a\nB\r\nC\nd\r\n");
    assert_eq!(edited("a\nb\r\nc\n", "a", "a\na"), "a\na\nb\r\nc\n");
    assert_eq!(edited("a\nb\r\nc\n", "b", "b\nb"), "a\nb\r\nb\r\nc\n");
    // A string with carriage returns is taken literally.
    assert_eq!(edited("a\r\nb\r\n", "a\r\n", "a\n"), "a\nb\r\n");
    assert_eq!(edited("a\nb\n", "a\n", "a\r\n"), "a\r\nb\n");
    assert!(
        edit(&with("a\nb\n"), replace("a", "a\r\nb", "x"))
            .unwrap_err()
            .contains("only in white space")
    );

    for (mode, kept) in
        [(0o640, 0o640), (0o755, 0o755), (0o600, 0o600), (0o1644, 0o1644), (0o666, 0o666)]
    {
        let bench = with("text");
        let path = bench.root().join("a");
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        edit(&bench, replace("a", "text", "other")).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, kept, "{mode:o}");
        assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 1, "no draft is left");
    }
}

#[test]
fn m_e7_a_file_that_runs_with_its_owners_rights_is_not_edited() {
    for mode in [0o4755, 0o2755, 0o6755] {
        let bench = with("text");
        let path = bench.root().join("a");
        fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let error = edit(&bench, replace("a", "text", "other")).unwrap_err();
        assert!(error.contains("set-user-ID or set-group-ID"), "{error}");
        let file = fs::metadata(&path).unwrap();
        assert_eq!(
            (fs::read_to_string(&path).unwrap().as_str(), file.mode() & 0o7777),
            ("text", mode)
        );
    }
}

#[test]
#[cfg(target_os = "linux")]
fn m_e7_a_file_with_capabilities_is_not_edited() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    const CAPABILITY: &str = "security.capability";
    // CAP_NET_BIND_SERVICE, permitted and effective, in the kernel's format.
    let value: Vec<u8> =
        [0x0200_0001_u32, 1 << 10, 0, 0, 0].into_iter().flat_map(u32::to_le_bytes).collect();
    let bench = with("text");
    let path = bench.root().join("a");
    if let Err(error) = setxattr(&path, CAPABILITY, &value, XattrFlags::empty()) {
        println!("skipped: a file can't be given capabilities here: {error}");
        return;
    }
    let written =
        judge_and_call(&bench, WriteFile::new(), json!({"path": "a", "content": "other"}));
    for error in [edit(&bench, replace("a", "text", "other")), written].map(Result::unwrap_err) {
        assert!(error.contains("it has capabilities") && error.contains("setcap -r"), "{error}");
    }
    let mut there = [0; 64];
    let length = getxattr(&path, CAPABILITY, &mut there[..]).unwrap();
    assert_eq!((&there[..length], text(&bench).as_str()), (&value[..], "text"));
}

#[test]
fn a_file_that_is_not_text_is_not_edited() {
    let bench = Bench::new();
    fs::write(bench.root().join("latin"), b"gr\xfc\xdfe\n").unwrap();
    fs::write(bench.root().join("zero"), "a\0b").unwrap();
    fs::File::create(bench.root().join("huge")).unwrap().set_len(1 << 40).unwrap();
    assert!(
        edit(&bench, replace("latin", "gr", "GR"))
            .unwrap_err()
            .contains("latin: the file is not UTF-8")
    );
    assert!(edit(&bench, replace("zero", "a", "b")).unwrap_err().contains("binary"));
    assert!(edit(&bench, replace("huge", "a", "b")).unwrap_err().contains("more than 64 MiB"));
    assert_eq!(fs::read(bench.root().join("latin")).unwrap(), b"gr\xfc\xdfe\n");
}

#[test]
fn m_e7_a_confirm_shows_the_diff() {
    let bench = with("one\r\ntwo\nthree\n");
    let shown = intent(&bench, &EditFile::new(), &replace("a", "two", "2\u{202e}")).unwrap();
    assert_eq!(shown.message, "Edit this file?");
    assert_eq!(shown.always.unwrap(), format!("edit {}", bench.root().join("a").display()));
    let diff = "--- a\n+++ a\n@@ -1,3 +1,3 @@\n one\\u{d}\n-two\n+2\\u{202e}\n three\n";
    assert_eq!(shown.details.unwrap(), diff);
    assert_eq!(text(&bench), "one\r\ntwo\nthree\n");
}

#[test]
fn m_e7_protected_files_ask_every_time() {
    let bench = Bench::new();
    for path in [".envrc", ".git/hooks/pre-commit"] {
        let file = bench.root().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "one\n").unwrap();
        assert_eq!(
            intent(&bench, &EditFile::new(), &replace(path, "one", "two")).unwrap().always,
            None,
            "{path}"
        );
        let written = json!({ "path": path, "content": "two" });
        assert_eq!(intent(&bench, &WriteFile::new(), &written).unwrap().always, None, "{path}");
    }
}

/// Lines of a text, each with its own end, sometimes with a byte order mark and without a last line
/// end.
fn any_text() -> impl Strategy<Value = String> {
    let words = || prop::sample::select(vec!["", "a", "b", "a b", "é", "\tx", "漢字"]);
    let ends = prop_oneof![
        Just(vec!["\n"]),
        Just(vec!["\r\n"]),
        Just(vec!["\n", "\r\n"]),
        Just(vec!["\r\n", "\n", "\n", "\r"]),
    ];
    (prop::collection::vec(words(), 1..12), ends, any::<bool>(), any::<bool>()).prop_map(
        |(words, ends, mark, open)| {
            let ends = ends.into_iter().cycle();
            let mut text: String =
                words.into_iter().zip(ends).flat_map(|(word, end)| [word, end]).collect();
            if open {
                text.push('z');
            }
            if mark { format!("\u{feff}{text}") } else { text }
        },
    )
}

/// The text as `read_file` shows it to a model.
fn plain(text: &str) -> String {
    text.trim_start_matches('\u{feff}').replace("\r\n", "\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(300, 20_000)))]

    #[test]
    fn m_e7_an_edit_and_its_reverse_give_the_same_bytes(
        before in any_text(),
        from in 0_usize..60,
        length in 1_usize..20,
        new in prop::collection::vec(prop::sample::select(vec!["q", "Q", "\n", "漢"]), 0..8),
    ) {
        let seen = plain(&before);
        let start = seen.ceil_char_boundary(from.min(seen.len()));
        let end = seen.ceil_char_boundary((start + length).min(seen.len()));
        let (old, new) = (&seen[start..end], new.concat());
        let ends = |text: &str| (text.matches("\r\n").count(), text.replace("\r\n", "").matches('\n').count());
        let (long, short) = ends(&before);
        // Removed line ends can be restored only if all line ends of the text are alike and some
        // remain, and strings without carriage returns do not say which ones they mean.
        let breaks = |text: &str| text.matches('\n').count();
        if old.contains('\r') || old.is_empty() || *old == new {
            return Ok(());
        }
        let places = seen.char_indices().filter(|(at, _)| seen[*at..].starts_with(old)).count();
        let bench = with(&before);
        if edit(&bench, replace("a", old, &new)).is_err() {
            prop_assert!(places > 1);
            prop_assert_eq!(text(&bench), before);
            return Ok(());
        }
        prop_assert_eq!(places, 1);
        let between = text(&bench);
        let (start_seen, rest) = (&seen[..start], &seen[end..]);
        if start_seen.ends_with('\r') && format!("{new}{rest}").starts_with('\n') {
            // The two characters now form one line end.
            return Ok(());
        }
        prop_assert_eq!(plain(&between), format!("{start_seen}{new}{rest}"));
        prop_assert_eq!(between.starts_with('\u{feff}'), before.starts_with('\u{feff}'));
        let kept = ends(&between);
        let mixed = long > 0 && short > 0;
        if mixed && breaks(old) <= breaks(&new) || !mixed && kept.0 + kept.1 > 0 || breaks(old) == 0 {
            let back = edit(&bench, replace("a", &new, old));
            // The new string may also occur elsewhere; if it is empty, it can't be found.
            if back.is_ok() {
                prop_assert_eq!(text(&bench), before);
            }
        }
    }
}

#[test]
fn t_d10_a_reader_sees_the_text_before_or_after() {
    let (one, other) = ("a".repeat(200_000), "b".repeat(200_000));
    let bench = with(&one);
    let path = bench.root().join("a");
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..rounds(10, 200) {
                call(&bench, EditFile::new(), replace("a", &one, &other)).unwrap();
                call(&bench, EditFile::new(), replace("a", &other, &one)).unwrap();
            }
        });
        while !writer.is_finished() {
            let seen = fs::read(&path).unwrap();
            assert!(
                seen == one.as_bytes() || seen == other.as_bytes(),
                "a part of {} bytes",
                seen.len()
            );
        }
    });
    assert!(read(&bench, json!({"path": "a"})).unwrap().output.contains("longer than"));
}

#[test]
fn m_e7_an_edit_with_a_too_large_diff_is_refused_if_it_asks() {
    let bench = with(&"a line of some length, forty bytes of it\n".repeat(110_000));
    let all = json!({"path": "a", "old_string": "some", "new_string": "any", "replace_all": true});
    let error = intent(&bench, &EditFile::new(), &all).unwrap_err();
    assert_eq!(error, "a: the diff is larger than 4 MiB: split the change");
    call(&bench, EditFile::new(), all).unwrap();
}

#[test]
fn t_d1_an_edit_whose_diff_was_not_shown_is_not_applied() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap().join("a");
    fs::write(&path, "one\n").unwrap();
    let (tool, input) = (EditFile::new(), replace(path.to_str().unwrap(), "two", "2"));
    let details = intent(&bench, &tool, &input).unwrap().details.unwrap();
    assert!(details.contains("This call will fail: "), "{details}");
    // Now the edit would match.
    fs::write(&path, "two\n").unwrap();
    assert!(call(&bench, tool, input).unwrap_err().contains("old_string was not found"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
}
