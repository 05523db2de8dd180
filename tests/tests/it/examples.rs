//! Tests that run the crates' examples and compare their output with the text below.
//!
//! `cargo test --workspace` builds them next to the tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

/// Each example with its output, in which `/…` stands for a path and `N` for a number.
const EXAMPLES: [(&str, &str); 4] = [
    (
        "session/examples/approve_in_code.rs",
        "\
ls → approve
the model receives: build
[exit code N]
ls; rm -rf build → deny
the model receives: the user denied this: this guard lets only `ls` through
rm -rf build → deny
the model receives: the user denied this: this guard lets only `ls` through
the turn is done
",
    ),
    (
        "session/examples/attach_detach.rs",
        "\
one two three
(left at event N, the session is paused)
four five six
(back, and up to event N, the session is idle)
",
    ),
    (
        "session/examples/two_sessions.rs",
        "\
left asks: echo left > left.txt  in /…
right asks: echo right > right.txt  in /…
left is paused
right is paused
right is idle, left is paused
left.txt: \"left\\n\"
right.txt is there: false
",
    ),
    (
        "tools/examples/custom_tool.rs",
        "\
asked: Count so many?
 N poem
 N list
 N total
the model receives: exit code N
",
    ),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("crates")
}

/// The program of an example; fails if it is older than its source.
fn program(file: &str) -> PathBuf {
    let source = crates().join(file);
    // This test's program is in `deps`, next to `examples`.
    let built = std::env::current_exe().unwrap().parent().unwrap().with_file_name("examples");
    let program = built.join(source.file_stem().unwrap());
    let changed = |path: &Path| fs::metadata(path).and_then(|about| about.modified()).ok();
    assert!(
        changed(&program) >= changed(&source),
        "{file} is not built: run `cargo test --workspace`"
    );
    program
}

#[test]
fn every_example_prints_the_expected_output() {
    let folder = Regex::new(r"/\S+").unwrap();
    let number = Regex::new("[0-9]+").unwrap();
    for (file, expected) in EXAMPLES {
        let mut command = Command::new(program(file));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap());
        let ran = command.output().unwrap();
        let (out, err) =
            (String::from_utf8(ran.stdout).unwrap(), String::from_utf8(ran.stderr).unwrap());
        assert!(ran.status.success() && err.is_empty(), "{file}: {}\n{out}{err}", ran.status);
        let out = number.replace_all(&folder.replace_all(&out, "/…"), "N").replace(" \n", "\n");
        assert_eq!(out, expected, "{file}");
    }
}

#[test]
fn every_example_is_run() {
    let mut there = BTreeSet::new();
    for krate in fs::read_dir(crates()).unwrap() {
        let krate = krate.unwrap().file_name().into_string().unwrap();
        for example in fs::read_dir(crates().join(&krate).join("examples")).into_iter().flatten() {
            there.insert(format!(
                "{krate}/examples/{}",
                example.unwrap().file_name().into_string().unwrap()
            ));
        }
    }
    assert_eq!(there, EXAMPLES.map(|(file, _)| file.to_owned()).into());
}
