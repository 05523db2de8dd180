//! What the file tools cost: `cargo bench -p holdpoint-tools --bench files`.
//!
//! `-- edits` and `-- searches` narrow it. `grep` is compared with ripgrep's own program, run in turn with it: `apt-get install ripgrep`.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::expect_used, clippy::panic, reason = "a benchmark")]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdpoint_tools::testing::Bench;
use holdpoint_tools::{EditFile, Glob, Grep, ListDir, ReadFile, Tool, WriteFile};
use serde_json::{Value, json};

/// Files that are searched.
const FILES: usize = 100_000;

fn main() {
    let bench = Bench::new();
    let only = std::env::args().find(|arg| arg == "edits" || arg == "searches");
    if only.as_deref() != Some("searches") {
        edits(&bench);
    }
    if only.as_deref() != Some("edits") {
        searches(&bench);
    }
}

/// A file of so many bytes, and a line of it that stands there once.
fn source(bytes: usize) -> (String, String) {
    let mut text = String::with_capacity(bytes + 100);
    let mut random = 7_u64;
    while text.len() < bytes {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let _ = writeln!(text, "    let value_{} = compute({}, \"{:x}\");", random >> 40, random >> 50, random >> 20);
    }
    let line = text[bytes / 2..].lines().nth(1).unwrap().to_owned();
    (text, line)
}

fn edits(bench: &Bench) {
    for (size, bytes) in [("64 KiB", 64 * 1024), ("10 MiB", 10 * 1024 * 1024)] {
        let (text, line) = source(bytes);
        for (name, text) in [(size.to_owned(), text.clone()), (format!("{size}, CRLF"), text.replace('\n', "\r\n"))] {
            let edit = |old: &str, new: &str| json!({"path": name, "old_string": old, "new_string": new});
            let (there, back) = (edit(&line, "// gone"), edit("// gone", &line));
            fs::write(bench.root().join(&name), &text).unwrap();
            let mut both = Vec::new();
            let mut shown = Vec::new();
            for round in 0..41 {
                let (took, intent) = judged(bench, EditFile::new(), if round % 2 == 0 { &there } else { &back });
                both.push(took);
                shown.push(intent);
            }
            report(&format!("edit_file {name}: intent and call"), &mut both);
            report("     … of it the intent, with the diff", &mut shown);
        }
        let read = json!({"path": size, "offset": 100, "limit": 200});
        report(&format!("read_file {size}"), &mut rounds(41, || judged(bench, ReadFile::new(), &read).0));
        // So much of a larger one is more than can be shown.
        if size != "64 KiB" {
            continue;
        }
        let write =
            |number: usize| json!({"path": size, "content": text.replace("compute(1", &format!("compute({number}"))});
        let mut number = 0;
        let mut round = || {
            number += 1;
            judged(bench, WriteFile::new(), &write(number)).0
        };
        report(&format!("write_file {size}, a tenth of all lines changed"), &mut rounds(11, &mut round));
    }
}

fn searches(bench: &Bench) {
    for folder in 0..FILES / 100 {
        let folder = bench.root().join(format!("{}/{}", folder % 30, folder));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            let (text, _) = source(500 + file * 40);
            fs::write(folder.join(format!("file_{file}.rs")), text).unwrap();
        }
    }
    fs::write(bench.root().join("0/0/one.rs"), "the_needle\n").unwrap();
    for (what, pattern) in [("a word", "the_needle"), ("an expression", r"value_\d+9999 = .*[a-f]{9}\w*x")] {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..11 {
            ours.push(judged(bench, Grep::new(), &json!({ "pattern": pattern })).0);
            theirs.extend(ripgrep(bench.root(), pattern));
        }
        report(&format!("grep {what} in {FILES} files"), &mut ours[1..]);
        match theirs.get_mut(1..) {
            Some(theirs) => {
                report("     … ripgrep", theirs);
                let ratio = median(&mut ours[1..]).as_secs_f64() / median(theirs).as_secs_f64();
                println!("     … {ratio:.2} of ripgrep's time");
            }
            None => println!("     … no ripgrep to compare with: apt-get install ripgrep"),
        }
    }
    let glob = json!({"pattern": "**/file_7.rs"});
    report(&format!("glob in {FILES} files"), &mut rounds(11, || judged(bench, Glob::new(), &glob).0));
    let list = json!({"depth": 2});
    report("list_dir of 1,000 entries", &mut rounds(21, || judged(bench, ListDir::new(), &list).0));
}

/// How long the program takes; nothing if there is none.
fn ripgrep(folder: &Path, pattern: &str) -> Option<Duration> {
    let since = Instant::now();
    let mut command = Command::new("rg");
    command.args(["--no-config", "--hidden", "--glob", "!.git", "--line-number", pattern]).current_dir(folder);
    command.output().ok().map(|_| since.elapsed())
}

/// How long a call takes, and how long its intent did: as a session does both.
fn judged(bench: &Bench, tool: impl Tool + 'static, input: &Value) -> (Duration, Duration) {
    let since = Instant::now();
    tool.intent(input, bench.workspace()).unwrap();
    let intent = since.elapsed();
    let called = bench.call(tool, input.clone());
    let took = since.elapsed();
    assert!(called.result.is_ok(), "{called:?}");
    (took, intent)
}

fn rounds(count: usize, mut round: impl FnMut() -> Duration) -> Vec<Duration> {
    (0..count).map(|_| round()).collect()
}

fn median(took: &mut [Duration]) -> Duration {
    took.sort();
    took[took.len() / 2]
}

fn report(name: &str, took: &mut [Duration]) {
    let median = median(took);
    println!("{name:<58} median {median:>9.3?}  worst {:>9.3?}  ({} rounds)", took[took.len() - 1], took.len());
}
