//! Missing paths that differ invisibly from an existing one, which the error then names.

use std::fs;

use holdpoint_common::{PolicyMode, PolicyRules};
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{EditFile, Glob, Grep, ListDir, Policy, ReadFile, WriteFile};
use serde_json::{Value, json};

use super::support::{call, judge_and_call, replace, write};

/// Existing names, the names that were asked for, how the former are shown, and how they differ.
const NAMES: [(&str, &str, &str, &str); 6] = [
    ("a\u{a0}b", "a b", r"a\u00a0b", "a no-break space (U+00A0)"),
    ("at 9.41\u{202f}AM", "at 9.41 AM", r"at 9.41\u202fAM", "a narrow no-break space (U+202F)"),
    ("c d", "c\u{3000}d", "c d", "another space (U+3000)"),
    ("e\u{301}t\u{e9}", "\u{e9}t\u{e9}", r"e\u0301té", "the form of its accents (NFC or NFD)"),
    ("Read Me", "README", "", ""),
    ("Docs", "docs", "Docs", "upper and lower case"),
];

/// The error of each tool that reads, for one path.
fn errors(bench: &Bench, path: &str) -> Vec<String> {
    let errors = [
        call(bench, ReadFile::new(), json!({ "path": path })),
        call(bench, EditFile::new(), replace(path, "x", "y")),
        judge_and_call(bench, EditFile::new(), replace(path, "x", "y")),
        call(bench, ListDir::new(), json!({ "path": path })),
        call(bench, Glob::new(), json!({ "path": path, "pattern": "*" })),
        call(bench, Grep::new(), json!({ "path": path, "pattern": "x" })),
    ];
    errors.into_iter().map(|called| called.unwrap_err()).collect()
}

#[test]
fn m_e7_the_error_for_a_missing_path_names_similar_paths() {
    let bench = Bench::new();
    for (there, asked, shown, differs) in NAMES {
        for folder in [false, true] {
            let path = bench.root().join(there);
            match folder {
                true => fs::create_dir(&path).unwrap(),
                false => fs::write(&path, "x").unwrap(),
            }
            for error in errors(&bench, asked) {
                let near = format!("; there is \"{shown}\", which differs by {differs}");
                match shown {
                    "" => assert!(!error.contains("there is \""), "{error}"),
                    _ => assert!(error.ends_with(&near), "{there:?}: {error}"),
                }
            }
            match folder {
                true => fs::remove_dir(path).unwrap(),
                false => fs::remove_file(path).unwrap(),
            }
        }
    }
}

#[test]
fn m_e7_every_part_of_a_missing_path_is_compared() {
    let bench = Bench::new();
    fs::create_dir_all(bench.root().join("My\u{a0}Docs/In")).unwrap();
    fs::write(bench.root().join("My\u{a0}Docs/In/a"), "x").unwrap();
    for (asked, shown, differs) in [
        ("My Docs/In/a", r"My\u00a0Docs/In/a", "a no-break space (U+00A0)"),
        (
            "My Docs/in/A",
            r"My\u00a0Docs/In/a",
            "a no-break space (U+00A0) and upper and lower case",
        ),
        ("My Docs/other", r"My\u00a0Docs", "a no-break space (U+00A0)"),
        ("My\u{a0}Docs/in/other", r"My\u00a0Docs/In", "upper and lower case"),
    ] {
        for error in errors(&bench, asked) {
            let near = format!("; there is \"{shown}\", which differs by {differs}");
            assert!(error.ends_with(&near), "{asked:?}: {error}");
        }
    }
    // The name in the error can be used to ask for the file.
    let input: Value = serde_json::from_str(r#"{"path": "My\u00a0Docs/In/a"}"#).unwrap();
    assert!(call(&bench, ReadFile::new(), input).unwrap().output.contains("1\tx"));
    fs::write(bench.root().join("b"), "").unwrap();
    fs::write(bench.root().join("B"), "").unwrap();
    fs::remove_file(bench.root().join("b")).unwrap();
    for name in ["X y", "x\u{a0}Y", "x Y", "X\u{2003}y", "X Y"] {
        fs::write(bench.root().join(name), "").unwrap();
    }
    let error = call(&bench, ReadFile::new(), json!({"path": "x y"})).unwrap_err();
    assert_eq!(error.matches("there is \"").count(), 3, "{error}");
    assert!(
        !call(&bench, ReadFile::new(), json!({"path": "z"})).unwrap_err().contains("there is \"")
    );
}

#[test]
fn m_e7_write_file_creates_no_folder_next_to_a_similar_one() {
    for mode in [PolicyMode::Ask, PolicyMode::Edits] {
        let bench = Bench::new().policy(Policy::new(mode, &PolicyRules::default(), None).unwrap());
        fs::create_dir(bench.root().join("My\u{a0}Docs")).unwrap();
        let error = write(&bench, "My Docs/sub/a", "text").unwrap_err();
        let near = r#"no such folder; there is "My\u00a0Docs", which differs by a no-break space (U+00A0)"#;
        assert_eq!(
            error,
            format!(
                "My Docs/sub/a: {near}: write there, or create the folder with a command first"
            )
        );
        assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 1);
        fs::create_dir(bench.root().join("My Docs")).unwrap();
        write(&bench, "My Docs/sub/a", "text").unwrap();
        // For a file, the result only mentions the similar name.
        assert_eq!(
            write(&bench, "My Docs/sub/A", "text").unwrap().output,
            "wrote My Docs/sub/A (4 bytes); there is \"My Docs/sub/a\", which differs by upper and lower case"
        );
        assert_eq!(
            write(&bench, "My Docs/sub/A", "text").unwrap().output,
            "wrote My Docs/sub/A (4 bytes)"
        );
    }
}

#[test]
fn t_d1_hints_name_only_paths_readable_without_an_ask() {
    let deny = ["read(Secret*/**)".parse().unwrap()];
    let rules = PolicyRules { deny: deny.to_vec(), ..PolicyRules::default() };
    let bench = Bench::new().policy(Policy::new(PolicyMode::Ask, &rules, None).unwrap());
    fs::create_dir(bench.root().join("Secret\u{a0}a")).unwrap();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    fs::write(outside.join("B"), "x").unwrap();
    for path in ["secret a".to_owned(), outside.join("b").display().to_string()] {
        for error in errors(&bench, &path) {
            assert!(!error.contains("there is \""), "{error}");
        }
    }
    let written =
        judge_and_call(&bench, WriteFile::new(), json!({"path": "secret a/b", "content": "x"}));
    assert_eq!(written.unwrap().output, "wrote secret a/b (1 bytes)");
}
