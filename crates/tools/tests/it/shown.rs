//! The text that a user reads before an approval: exact, unambiguous, and without effect on a
//! terminal.

use std::borrow::Cow;
use std::path::Path;

use holdpoint_tools::testing::{Bench, rounds};
use holdpoint_tools::{ReadFile, Tool, shown};
use proptest::prelude::*;
use serde_json::json;

/// The text that is displayed as `shown`.
fn unshown(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some((before, escape)) = rest.split_once("\\u{") {
        let (code, after) = escape.split_once('}').expect("an escape ends");
        text.push_str(before);
        text.push(char::from_u32(u32::from_str_radix(code, 16).unwrap()).unwrap());
        rest = after;
    }
    text + rest
}

/// Characters of all kinds, the difficult ones often.
fn any_text() -> impl Strategy<Value = String> {
    let awkward = prop::sample::select(
        "\\u{}…(36 characters masked) abz09_\n\t\r\u{0}\u{1b}\u{7f}\u{9b}\u{202e}\u{200b}\u{a0}\u{ad}\u{301}\u{e0041}\u{feff}аеоαеＡ；א漢ー\u{fe0f}🙂"
            .chars()
            .collect::<Vec<_>>(),
    );
    prop::collection::vec(prop_oneof![4 => awkward, 1 => any::<char>()], 0..60)
        .prop_map(String::from_iter)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: rounds(500, 20_000),
        failure_persistence: None,
        max_shrink_iters: 1_000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn t_c1_the_shown_text_can_be_converted_back(text in any_text()) {
        for (shown, breaks) in [(shown::text(&text), true), (shown::line(&text), false)] {
            prop_assert_eq!(unshown(&shown), &*text);
            let order = shown.chars().find(|c| c.is_control() && !(breaks && matches!(c, '\n' | '\t')));
            prop_assert_eq!(order, None);
        }
        let shown = shown::command(&text, Path::new("/w"));
        let command = &shown[..shown.rfind("\n\nin /w").unwrap()];
        prop_assert_eq!(unshown(command), text);
    }

    #[test]
    fn prose_keeps_text_that_was_already_escaped(text in any_text()) {
        let once = shown::text(&text);
        prop_assert_eq!(shown::prose(&once), once.as_ref());
    }
}

#[test]
fn plain_text_is_unchanged() {
    for text in ["", "ls -la\n\tfoo", "a \\u and {b} \\x{41}"] {
        assert!(matches!(shown::text(text), Cow::Borrowed(same) if same == text), "{text:?}");
    }
    for text in [
        "héllo wörld",
        "漢字とかな混じり",
        "使用Rust语言",
        "Привет, мир",
        "שלום",
        "ไทย",
        "🙂",
        "“so” – …",
    ] {
        assert_eq!(shown::text(text), text);
        assert_eq!(shown::prose(text), text);
    }
    assert_eq!(shown::prose("❤\u{fe0f} fmt \\u{41} \u{3000}"), "❤\u{fe0f} fmt \\u{41} \u{3000}");
}

#[test]
fn text_that_looks_like_an_escape_or_a_mask_is_escaped() {
    assert_eq!(
        shown::text("\\u{41} …(36 characters masked) …(x) …"),
        "\\u{5c}u{41} \\u{2026}(36 characters masked) …(x) …"
    );
}

#[test]
fn one_line_stays_one_line() {
    assert_eq!(shown::line("a\nb\tc\r"), "a\\u{a}b\\u{9}c\\u{d}");
    assert_eq!(shown::prose_line("a\nb\tc\r"), "a\\u{a}b\\u{9}c\\u{d}");
    assert_eq!(shown::prose("a\nb\tc\r"), "a\nb\tc\\u{d}");
}

#[test]
fn words_that_mix_scripts_are_escaped() {
    assert_eq!(
        shown::text("p\u{430}ypal раураl"),
        "p\\u{430}ypal \\u{440}\\u{430}\\u{443}\\u{440}\\u{430}l"
    );
}

#[test]
fn loose_and_stacked_marks_are_escaped() {
    assert_eq!(shown::text("\u{301}a\u{301}"), "\\u{301}a\u{301}");
    assert_eq!(
        shown::text(&format!("a{}", "\u{301}".repeat(6))),
        format!("a{}{}", "\u{301}".repeat(4), "\\u{301}".repeat(2))
    );
}

#[test]
fn a_command_is_shown_with_its_folder_and_what_it_sets() {
    let shown = |command: &str| shown::command(command, Path::new("/w"));
    assert_eq!(shown("make\n\ttest "), "make\n\ttest \n\nin /w");
    assert_eq!(shown::command("ls", Path::new("/a\nb\u{202e}")), "ls\n\nin /a\\u{a}b\\u{202e}");
    for (command, variables) in [
        ("PATH=. ls", Some("PATH")),
        (" A=1 B+='x y' C=\"$D e\"\\ f A=2 make G=1", Some("A, B, C")),
        ("LD_PRELOAD=x.so", Some("LD_PRELOAD")),
        ("A=$(echo x) B=1 make", Some("A, B")),
        ("A=$(x) LD_PRELOAD=./e.so ls", Some("A, LD_PRELOAD")),
        ("A=1; B=2 make", Some("A, B")),
        ("env -i LD_PRELOAD=x.so A=1 ls", Some("LD_PRELOAD, A")),
        ("ls; sudo nice /usr/bin/env PATH=. ls", Some("PATH")),
        ("export A B=1; make", Some("B")),
        ("bash -c 'PATH=. ls'", Some("PATH")),
        ("for PATH in a b; do ls; done", Some("PATH")),
        ("A=1 env B=$x ls", Some("A, B")),
        ("A=1; eval \"$x\"", Some("A and other variables")),
        ("A=1; f() { B=2; }; f", Some("A, B and other variables")),
        ("A=1 env -S'ls B=2'", Some("A and other variables")),
        ("A=1; read PATH < x", Some("A and other variables")),
        ("grep local A=1", None),
        ("export A=1 \"$x\"", Some("A and other variables")),
        ("x=(1) ", Some("x and other variables")),
        ("if [[ a == b ]]; then PATH=. ls; fi", Some("PATH")),
        ("make A=1", None),
        ("1A=1 x", None),
        ("=x", None),
        ("./A=1 x", None),
    ] {
        let sets = variables.map(|variables| format!("\nsets {variables}")).unwrap_or_default();
        assert_eq!(shown(command), format!("{command}\n\nin /w{sets}"));
    }
    for command in ["export \"$x\"", "f() { x[1]=2; }; f", "printf -v PATH .; ls"] {
        assert_eq!(shown(command), format!("{command}\n\nin /w\nmay set variables"));
    }
}

#[test]
fn a_path_is_shown_exactly() {
    let bench = Bench::new();
    let intent = ReadFile::new()
        .intent(&json!({ "path": "a\u{1b}[2J\\u{1b}\n" }), bench.workspace())
        .unwrap();
    assert_eq!(
        intent.details.unwrap(),
        format!("{}/a\\u{{1b}}[2J\\u{{5c}}u{{1b}}\\u{{a}}", bench.root().display())
    );
}

/// Commands are checked more strictly than text.
#[test]
fn t_c1_look_alikes_of_ascii_in_a_command_are_escaped() {
    for (command, expected) in [
        ("\u{441}\u{440} a b", "\\u{441}\\u{440} a b"),
        ("\u{ff52}\u{ff4d} x", "\\u{ff52}\\u{ff4d} x"),
        ("echo a\u{37e} reboot", "echo a\\u{37e} reboot"),
        ("ls \u{2013}l \u{2019}x\u{2019}", "ls \\u{2013}l \\u{2019}x\\u{2019}"),
        ("cp \u{5d0} \u{5d1}", "cp \\u{5d0} \\u{5d1}"),
        ("cat cafe\u{301} caf\u{e9} 漢字.txt Привет", "cat cafe\\u{301} café 漢字.txt Привет"),
        ("printf '\\u{1b}'", "printf '\\u{5c}u{1b}'"),
    ] {
        assert_eq!(shown::command(command, Path::new("/w")), format!("{expected}\n\nin /w"));
    }
}

#[test]
fn m_h3_values_are_hidden_in_errors_even_if_a_part_is_cut_off() {
    let values = ["team-7f3a-key", "short", " team-7f3a-key-long\n"].map(str::to_owned);
    for (text, expected) in [
        ("bad team-7f3a-key now", "bad *** now"),
        ("team-7f3a-key-long team-7f3a-key", "*** ***"),
        ("7f3a-key is old", "*** is old"),
        ("a-key is short", "a-key is short"),
        ("nothing", "nothing"),
        ("", ""),
    ] {
        assert_eq!(shown::without_values(text, &values), expected);
    }
    // The end that is shown would begin in the middle of the value.
    let errors = format!("{}{}", values[0], "x".repeat(495));
    let errors = shown::last_lines_without(&errors, &values).unwrap();
    assert_eq!(errors, format!("***{}", "x".repeat(495)));
    assert_eq!(shown::last_lines_without(" team-7f3a-key\n", &values).as_deref(), Some("***"));
    // A secret is masked before the text is cut, too.
    let errors = format!("ghp_{}{}", "a1B2c3D4e5".repeat(4), " x".repeat(240));
    let errors = shown::last_lines(&errors).unwrap();
    assert!(!errors.contains("c3D4") && errors.ends_with(" x"), "{errors}");
}

#[test]
fn no_control_sequence_reaches_the_terminal() {
    // The planes in between hold ideographs or are unassigned.
    let all: Vec<_> = ('\0'..='\u{20000}').chain('\u{e0000}'..='\u{f0000}').collect();
    for some in all.chunks(4096) {
        let text: String = some.iter().collect();
        for shown in [shown::text(&text), shown::prose(&text)] {
            assert!(
                !shown.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')),
                "{text:?}"
            );
        }
        assert!(!shown::prose_line(&text).chars().any(char::is_control), "{text:?}");
        assert_eq!(unshown(&shown::text(&text)), text);
    }
}
