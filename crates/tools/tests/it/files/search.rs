//! `list_dir`, `glob` and `grep`: the paths they find, skip and report.

use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use holdpoint_common::{PolicyMode, PolicyRules, Rule};
use holdpoint_tools::testing::{Bench, rounds};
use holdpoint_tools::{Glob, Grep, ListDir, Policy, ToolError};
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use serde_json::{Value, json};

use super::support::{call, intent};

fn grep(bench: &Bench, input: Value) -> String {
    call(bench, Grep::new(), input).unwrap().output
}

fn glob(bench: &Bench, input: Value) -> String {
    call(bench, Glob::new(), input).unwrap().output
}

fn list(bench: &Bench, input: Value) -> String {
    call(bench, ListDir::new(), input).unwrap().output
}

fn with(files: &[(&str, &str)]) -> Bench {
    let bench = Bench::new();
    add(&bench, files);
    bench
}

fn add(bench: &Bench, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = bench.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A small project, with every kind of file that is skipped.
fn project() -> Bench {
    let bench = with(&[
        ("src/main.rs", "fn main() {\n    needle();\n}\n\nfn needle() {}\n"),
        ("src/lib/deep.rs", "// Needle\n"),
        (".hidden/x", "needle\n"),
        (".env", "needle=1\n"),
        ("target/out", "needle\n"),
        ("keep.log", "needle\n"),
        ("drop.log", "needle\n"),
        (".gitignore", "/target/\n*.log\n!keep.log\n"),
        (".git/config", "needle\n"),
        (".git/info/exclude", "excluded\n"),
        ("excluded", "needle\n"),
        ("sub/.ignore", "plain\n"),
        ("sub/plain", "needle\n"),
        ("binary", "needle\0needle\n"),
    ]);
    let outside = bench.root().join("outside");
    symlink("/etc", &outside).unwrap();
    symlink("src/main.rs", bench.root().join("link.rs")).unwrap();
    bench
}

#[test]
fn m_e7_grep_shows_lines_files_or_counts_in_order() {
    let bench = project();
    let found = grep(&bench, json!({"pattern": "needle"}));
    let expected = ".env\n1: needle=1\n\n.hidden/x\n1: needle\n\nkeep.log\n1: needle\n\nsrc/main.rs\n2:     needle();\n5: fn \
                    needle() {}\n\n[1 binary file skipped]\n";
    assert_eq!(found, expected);
    let found = grep(
        &bench,
        json!({"pattern": "needle", "case_insensitive": true, "output": "files", "path": "src"}),
    );
    assert_eq!(found, "src/lib/deep.rs\nsrc/main.rs\n");
    let found = grep(&bench, json!({"pattern": "needle", "output": "count", "glob": "*.rs"}));
    assert_eq!(found, "src/main.rs: 2\n");
    let found = grep(&bench, json!({"pattern": "needle", "output": "files", "glob": "!**/.*"}));
    assert!(!found.contains(".env") && found.contains("keep.log"), "{found}");
    // A file that is named is searched, even if it is ignored.
    let found = grep(&bench, json!({"pattern": "needle", "path": "target/out"}));
    assert_eq!(found, "target/out\n1: needle\n");
    let found = grep(&bench, json!({"pattern": "needle", "path": "target", "output": "files"}));
    assert_eq!(found, "target/out\n");
    assert_eq!(
        grep(&bench, json!({"pattern": "no such thing", "path": "src"})),
        "[nothing found]\n"
    );
    let found = grep(&bench, json!({"pattern": "^fn needle", "context": 1, "path": "src"}));
    assert_eq!(found, "src/main.rs\n4- \n5: fn needle() {}\n");
    let found = grep(&bench, json!({"pattern": r"main\(|\{\}$", "context": 1, "path": "src"}));
    assert_eq!(
        found,
        "src/main.rs\n1: fn main() {\n2-     needle();\n--\n4- \n5: fn needle() {}\n"
    );
}

#[test]
fn m_e7_gitignore_counts_in_a_repository() {
    let bench = with(&[
        (".gitignore", "x\n"),
        ("x", "needle\n"),
        ("inner/x", "needle\n"),
        ("inner/.ignore", "y"),
        ("inner/y", "needle\n"),
    ]);
    // Programs leave one in /tmp, such as the sandbox of Codex.
    let repository = bench.root().ancestors().find(|folder| folder.join(".git").exists());
    assert_eq!(repository, None, "the folder of the tests must not be in a repository");
    let files = || grep(&bench, json!({"pattern": "needle", "output": "files"}));
    assert_eq!(files(), "inner/x\nx\n");
    fs::create_dir(bench.root().join("inner/.git")).unwrap();
    assert_eq!(files(), "inner/x\nx\n", "a repository ignores the rules of the folders above it");
    fs::create_dir(bench.root().join(".git")).unwrap();
    assert_eq!(files(), "inner/x\n");
    fs::remove_dir(bench.root().join("inner/.git")).unwrap();
    assert_eq!(files(), "[nothing found]\n");
    assert_eq!(
        grep(&bench, json!({"pattern": "needle", "output": "files", "path": "inner"})),
        "[nothing found]\n"
    );
}

#[test]
fn m_e7_limits_are_reported_and_results_are_deterministic() {
    let bench = Bench::new();
    for file in 0..300 {
        add(&bench, &[(&format!("{}/{file:03}", file % 7), "needle\nneedle\n")]);
    }
    let first = grep(&bench, json!({"pattern": "needle"}));
    assert!(first.starts_with("0/000\n1: needle\n2: needle\n\n0/007\n"), "{first}");
    assert!(first.ends_with(
        "\n[the first 200 matches; there may be more: use a narrower pattern, path or glob]\n"
    ));
    assert_eq!(first.matches(": needle").count(), 200);
    for _ in 0..rounds(20, 500) {
        assert_eq!(grep(&bench, json!({"pattern": "needle"})), first);
    }
    let odd = grep(&bench, json!({"pattern": "needle", "limit": 3}));
    assert!(
        odd.starts_with("0/000\n1: needle\n2: needle\n\n0/007\n1: needle\n\n[the first 3 matches"),
        "{odd}"
    );
    let files = grep(&bench, json!({"pattern": "needle", "limit": 2, "output": "files"}));
    assert!(files.starts_with("0/000\n0/007\n\n[the first 2 files"), "{files}");
    let count = grep(&bench, json!({"pattern": "needle", "limit": 9999, "output": "count"}));
    assert_eq!(count.matches(": 2\n").count(), 300);
    assert!(call(&bench, Grep::new(), json!({"pattern": "x", "limit": 0})).is_err());

    let many = with(&[("a", &"needle in a line of some length\n".repeat(10_000))]);
    let page = grep(&many, json!({"pattern": "needle", "limit": 2_000}));
    assert!(page.len() < 70 * 1024 && page.contains("there may be more"), "{}", page.len());
}

#[test]
fn a_count_of_matches_does_not_depend_on_the_context() {
    let other = format!("{}\n", "x".repeat(400)).repeat(40);
    let bench = with(&[("a", &format!("needle\n{other}").repeat(20))]);
    for context in [0, 20] {
        let search = |output: &str| {
            grep(&bench, json!({"pattern": "needle", "output": output, "context": context}))
        };
        assert_eq!((search("count").as_str(), search("files").as_str()), ("a: 20\n", "a\n"));
    }
}

#[test]
fn m_e7_long_lines_are_cut_around_the_match() {
    let bench =
        with(&[("a", &format!("{}needle{}\nneedle\n", "漢".repeat(2_000), "é".repeat(3_000)))]);
    let found = grep(&bench, json!({"pattern": "needle"}));
    let line = found.lines().nth(1).unwrap();
    assert!(
        line.starts_with("1: …漢")
            && line.contains("漢needleé")
            && line.ends_with("é… (cut: 12006 bytes)"),
        "{line}"
    );
    assert!(line.len() < 560 && !line.contains('\u{fffd}'));
    let endless = with(&[("a", &"x".repeat(20 * 1024 * 1024)), ("b", "x\n")]);
    let found = grep(&endless, json!({"pattern": "x$"}));
    assert_eq!(found, "b\n1: x\n\n[1 file skipped because of lines that are too long]\n");
}

#[test]
fn an_invalid_search_names_the_reason() {
    let bench = with(&[("a", "x\n")]);
    for (input, expected) in [
        (json!({"pattern": "("}), "invalid pattern: regex parse error"),
        (json!({"pattern": "a\nb"}), "invalid pattern"),
        (json!({"pattern": r"(\w{500}){500}"}), "invalid pattern"),
        (json!({"pattern": "x", "glob": "["}), "["),
        (json!({"pattern": "x", "path": "missing"}), "no such file or folder"),
    ] {
        let error = call(&bench, Grep::new(), input.clone()).unwrap_err();
        assert!(error.contains(expected), "{input}: {error}");
    }
    assert!(
        call(&bench, Glob::new(), json!({"pattern": "../*"}))
            .unwrap_err()
            .contains("can't contain `..`")
    );
    assert!(
        call(&bench, Glob::new(), json!({"pattern": "*", "path": "a"}))
            .unwrap_err()
            .contains("Not a directory")
    );
    assert!(
        call(&bench, ListDir::new(), json!({"path": "a"})).unwrap_err().contains("Not a directory")
    );
    assert!(call(&bench, ListDir::new(), json!({"depth": 0})).is_err());
    assert!(
        intent(&bench, &Grep::new(), &json!({"pattern": "("})).is_err(),
        "an invalid pattern raises no ask"
    );
}

#[test]
fn m_e7_glob_lists_the_newest_files_first() {
    let bench = project();
    let now = SystemTime::now();
    for (path, age) in [("src/main.rs", 30), ("src/lib/deep.rs", 10), ("keep.log", 20)] {
        let file = fs::File::options().write(true).open(bench.root().join(path)).unwrap();
        file.set_modified(now - Duration::from_secs(age)).unwrap();
    }
    assert_eq!(
        glob(&bench, json!({"pattern": "*.{rs,log}"})),
        "src/lib/deep.rs\nkeep.log\nsrc/main.rs\n"
    );
    assert_eq!(
        glob(&bench, json!({"pattern": "*.rs", "path": "src"})),
        "src/lib/deep.rs\nsrc/main.rs\n"
    );
    assert_eq!(glob(&bench, json!({"pattern": "src/*.rs"})), "src/main.rs\n");
    assert_eq!(glob(&bench, json!({"pattern": "target/**"})), "[nothing found]\n");
    for file in 0..250 {
        add(&bench, &[(&format!("many/{file}"), "")]);
    }
    let found = glob(&bench, json!({"pattern": "many/*"}));
    assert_eq!(found.lines().count(), 201);
    assert!(
        found.ends_with("[50 more, changed earlier: use a narrower pattern or path]\n"),
        "{found}"
    );
}

#[test]
fn m_e7_list_dir_shows_a_tree() {
    let bench = project();
    let listed = list(&bench, json!({}));
    let expected = ".env\n.git/\n.gitignore\n.hidden/\nbinary\ndrop.log\nexcluded\nkeep.log\nlink.rs -> src/main.rs\noutside -> \
                    /etc\nsrc/\nsub/\ntarget/\n";
    assert_eq!(listed, expected);
    let listed = list(&bench, json!({"path": "src", "depth": 9}));
    assert_eq!(listed, "lib/\n  deep.rs\nmain.rs\n");
    let listed = list(&bench, json!({"depth": 2}));
    assert!(
        listed.contains(".git/ (ignored, not entered)\n")
            && listed.contains("target/ (ignored, not entered)\n")
    );
    assert!(listed.contains("src/\n  lib/\n  main.rs\n"), "{listed}");
    assert_eq!(list(&bench, json!({"path": "target"})), "out\n");
    fs::create_dir(bench.root().join("empty")).unwrap();
    assert_eq!(list(&bench, json!({"path": "empty"})), "[the folder is empty]\n");
    for file in 0..600 {
        add(&bench, &[(&format!("wide/{file:03}"), ""), (&format!("wide/x/{file:03}"), "")]);
    }
    let listed = list(&bench, json!({"path": "wide", "depth": 2}));
    assert_eq!(listed.lines().count(), 1_001);
    assert!(listed.ends_with(
        "[the first 1000 entries; there are more: list a folder below, or use a lower depth]\n"
    ));
    assert!(listed.contains("\n599\n"), "the upper level is complete");
}

fn rules(ask: &[&str], deny: &[&str]) -> Policy {
    let parse = |rules: &[&str]| rules.iter().map(|rule| rule.parse::<Rule>().unwrap()).collect();
    let rules = PolicyRules { ask: parse(ask), deny: parse(deny), ..PolicyRules::default() };
    Policy::new(PolicyMode::Ask, &rules, None).unwrap()
}

#[test]
fn m_e7_paths_that_the_policy_restricts_are_left_out_and_counted() {
    let bench =
        Bench::new().policy(rules(&["read(private/**)"], &["read(.env)", "read(secrets/**)"]));
    add(
        &bench,
        &[
            (".env", "needle\n"),
            ("secrets/key", "needle\n"),
            ("private/a", "needle\n"),
            ("private/.b", "needle\n"),
            ("c", "needle\n"),
        ],
    );
    symlink("secrets", bench.root().join("innocent")).unwrap();
    let judge = |tool: &str, path: &str| {
        let tool: Box<dyn holdpoint_tools::Tool> = match tool {
            "grep" => Box::new(Grep::new()),
            "glob" => Box::new(Glob::new()),
            _ => Box::new(ListDir::new()),
        };
        let input = json!({"pattern": "needle", "path": path});
        let input = if tool.name() == "list_dir" { json!({"path": path}) } else { input };
        let intent = tool.intent(&input, bench.workspace()).unwrap();
        bench.workspace().policy().judge(tool.name(), &intent.acts, bench.root()).verdict
    };
    use holdpoint_common::Verdict::{Allow, Ask, Deny};
    for tool in ["grep", "glob", "list_dir"] {
        assert_eq!(judge(tool, "."), Allow, "{tool}: paths that need approval are left out");
        assert_eq!(judge(tool, "secrets"), Deny);
        assert_eq!(judge(tool, "innocent"), Deny);
        assert_eq!(judge(tool, "private"), Ask);
        assert_eq!(judge(tool, "/"), Ask);
    }
    assert_eq!(
        grep(&bench, json!({"pattern": "needle"})),
        "c\n1: needle\n\n[3 paths left out by the policy]\n"
    );
    assert_eq!(glob(&bench, json!({"pattern": "**"})), "c\n[3 paths left out by the policy]\n");
    assert_eq!(
        list(&bench, json!({"depth": 3})),
        "c\ninnocent -> secrets\n[3 paths left out by the policy]\n"
    );
    // A folder that was approved is not left out again.
    assert_eq!(
        grep(&bench, json!({"pattern": "needle", "output": "files", "path": "private"})),
        "private/.b\nprivate/a\n"
    );
}

#[test]
fn a_rule_that_allows_a_folder_allows_a_walk_only_with_all_below() {
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    for (rule, verdict) in [("", "ask"), ("/*", "ask"), ("/**", "allow")] {
        let rule = format!("read({}{rule})", outside.display());
        let rules = PolicyRules { allow: vec![rule.parse().unwrap()], ..PolicyRules::default() };
        let bench = Bench::new().policy(Policy::new(PolicyMode::Ask, &rules, None).unwrap());
        let intent = intent(&bench, &ListDir::new(), &json!({ "path": outside })).unwrap();
        let judged =
            bench.workspace().policy().judge("list_dir", &intent.acts, bench.root()).verdict;
        assert_eq!(format!("{judged:?}").to_lowercase(), verdict, "{rule}");
    }
}

#[test]
fn names_of_all_kinds_are_found() {
    let bench =
        with(&[("new\nline", "needle\n"), ("\u{1b}[31m", "needle\n"), ("sp ace", "needle\n")]);
    fs::write(bench.root().join(OsStr::from_bytes(b"not\xffutf8")), "needle\n").unwrap();
    let found = grep(&bench, json!({"pattern": "needle", "output": "files"}));
    assert_eq!(found, "\\u{1b}[31m\nnew\\u{a}line\nnot\u{fffd}utf8\nsp ace\n");
    assert_eq!(list(&bench, json!({})), found);
    assert_eq!(glob(&bench, json!({"pattern": "*"})).lines().count(), 4);
}

#[test]
fn t_d8_unreadable_entries_are_skipped_and_counted() {
    let bench = with(&[("a", "needle\n")]);
    // Root can read every file except one beyond the longest path, which is created step by step.
    let mut folder = OwnedFd::from(fs::File::open(bench.root()).unwrap());
    let name = "x".repeat(250);
    for _ in 0..16 {
        mkdirat(&folder, &name, Mode::RWXU).unwrap();
        folder = openat(&folder, &name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
    openat(&folder, "short", OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
    openat(&folder, &name, OFlags::CREATE | OFlags::WRONLY, Mode::RWXU).unwrap();
    mkdirat(&folder, &*name.replace('x', "y"), Mode::RWXU).unwrap();
    let found = grep(&bench, json!({"pattern": "needle", "output": "files"}));
    assert_eq!(found, "a\n\n[2 paths that could not be read]\n");
}

#[test]
fn a_cut_ends_a_running_search() {
    let bench = with(&[("0", &"no needle here\n".repeat(300_000))]);
    // With so many names, a search that ignores the cut would take minutes.
    for link in 1..5_000 {
        fs::hard_link(bench.root().join("0"), bench.root().join(link.to_string())).unwrap();
    }
    let calling = bench.start(Grep::new(), json!({"pattern": "no such line"}));
    calling.cut();
    assert!(matches!(calling.wait().result, Err(ToolError::Interrupted)));
}

#[test]
fn m_e7_a_workspace_below_a_repository_root_uses_its_ignore_rules() {
    let repository = tempfile::tempdir().unwrap();
    let root = repository.path().canonicalize().unwrap();
    let bench = Bench::within(root.join("mono/pkg"));
    add(
        &bench,
        &[
            ("../../.gitignore", "unrelated\n"),
            ("../../.ignore", "a\n"),
            ("../.gitignore", "node_modules/\n*.log\n/pkg/dist\n"),
            ("../.git/info/exclude", "excluded\n"),
            (".gitignore", "!keep.log\n"),
            ("a", "needle\n"),
            ("dist", "needle\n"),
            ("deep/dist", "needle\n"),
            ("excluded", "needle\n"),
            ("keep.log", "needle\n"),
            ("drop.log", "needle\n"),
            ("unrelated", "needle\n"),
            ("node_modules/x/a.js", "needle\n"),
        ],
    );
    let files =
        |path: &str| grep(&bench, json!({"pattern": "needle", "output": "files", "path": path}));
    assert_eq!(files("."), "a\ndeep/dist\nkeep.log\nunrelated\n");
    assert_eq!(files("deep"), "deep/dist\n");
    // A workspace that is a repository itself is not affected by the folders above.
    fs::create_dir(bench.root().join(".git")).unwrap();
    assert!(files(".").contains("node_modules") && files("node_modules").contains("a.js"));
}

#[test]
fn m_e7_all_outputs_agree_on_what_is_binary_or_too_long() {
    let bench = Bench::new();
    let lines = "needle\n".repeat(3);
    let padding = "some line\n".repeat(100_000);
    let utf16 = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>();
    for (name, content) in [
        ("a", lines.clone().into_bytes()),
        ("early", [lines.as_bytes(), b"\0", lines.as_bytes()].concat()),
        ("late", [lines.as_bytes(), padding.as_bytes(), b"\0\n", lines.as_bytes()].concat()),
        ("later", [padding.as_bytes(), b"\0\n", lines.as_bytes()].concat()),
        (
            "long",
            [lines.as_bytes(), "x".repeat(9_000_000).as_bytes(), b"\n", lines.as_bytes()].concat(),
        ),
        ("utf16", [&b"\xff\xfe"[..], &utf16(&lines)].concat()),
        ("utf16-bare", utf16(&lines)),
    ] {
        fs::write(bench.root().join(name), content).unwrap();
    }
    let search = |output: &str| grep(&bench, json!({"pattern": "needle", "output": output}));
    let notes = "[3 binary files skipped";
    let files = search("files");
    assert!(files.starts_with("a\nlate\nlong\nutf16\n\n[3 binary files skipped]\n"), "{files}");
    let count = search("count");
    assert!(
        count.starts_with("a: 3\nlate: 3\nlong: 3\nutf16: 3\n") && count.contains(notes),
        "{count}"
    );
    let lines = search("lines");
    let shown: String = ["a", "late", "long", "utf16"]
        .map(|name| format!("{name}\n1: needle\n2: needle\n3: needle\n\n"))
        .concat();
    let end = "; 2 files searched only up to a zero byte or a line that is too long]\n";
    assert!(lines.starts_with(&shown) && lines.contains(notes) && lines.ends_with(end), "{lines}");
    assert!(count.ends_with(end), "{count}");
}

#[test]
fn m_e7_an_absolute_pattern_is_one_below_the_folder() {
    let bench = project();
    let absolute = |pattern: &str| format!("{}/{pattern}", bench.root().display());
    assert_eq!(glob(&bench, json!({"pattern": absolute("src/*.rs")})), "src/main.rs\n");
    assert_eq!(
        glob(&bench, json!({"pattern": absolute("src/*.rs"), "path": "src"})),
        "src/main.rs\n"
    );
    let found =
        grep(&bench, json!({"pattern": "needle", "output": "files", "glob": absolute("src/**")}));
    assert_eq!(found, "src/main.rs\n");
    let found = grep(
        &bench,
        json!({"pattern": "needle", "output": "files", "path": "src", "glob": absolute("x/*")}),
    );
    assert_eq!(found, "[nothing found; patterns are relative to the searched folder]\n");
    let found = glob(&bench, json!({"pattern": "/etc/*"}));
    assert_eq!(found, "[nothing found; patterns are relative to the searched folder]\n");
}

#[test]
fn files_named_like_temporary_files_are_listed() {
    let bench = with(&[
        (".holdpoint-0123456789abcdef", "needle\n"),
        (".holdpoint-0123", "needle\n"),
        (".holdpoint/config", "needle\n"),
    ]);
    assert_eq!(
        list(&bench, json!({})),
        ".holdpoint/\n.holdpoint-0123\n.holdpoint-0123456789abcdef\n"
    );
    assert_eq!(glob(&bench, json!({"pattern": "*"})).lines().count(), 3);
    let found = grep(&bench, json!({"pattern": "needle", "output": "files"}));
    assert_eq!(found, ".holdpoint/config\n.holdpoint-0123\n.holdpoint-0123456789abcdef\n");
}
