//! The cost of the file tools. For comparison, `grep` runs alternately with ripgrep
//! (`apt-get install ripgrep`).

use std::fmt::Write;
use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use holdpoint_tools::testing::Bench;
use holdpoint_tools::{EditFile, Glob, Grep, ListDir, ReadFile, Tool, ToolError, WriteFile};
use serde_json::{Value, json};

use crate::floors::Floor;
use crate::table::{Amount, Samples, Table};

/// The number of searched files.
const FILES: usize = 100_000;
const ROUNDS: usize = 11;

pub(crate) fn measure(table: &Table) {
    if table.wants("edits", &["edit_file", "read_file", "write_file"]) {
        edits(table, &Bench::new());
    }
    if table.wants("searches", &["grep", "glob", "list_dir"]) {
        searches(table, &Bench::new());
    }
    if table.wants("refused files", &["unreadable file refused", "grep cut"]) {
        let refused = Samples::new(unreadable_files(&Bench::new()));
        table.figure_beside(
            Floor::Hop,
            "unreadable file refused by a tool, slowest (t-D8)",
            refused.slowest(),
            Amount::ms(2_000),
        );
        let cut = cuts(&Bench::new());
        table.figure_beside(
            Floor::Hop,
            "grep cut to call ended, slowest",
            cut.slowest(),
            Amount::ms(10_000),
        );
    }
}

/// File tools on a pipe, a socket, a device, a folder and a file of 20 GiB. Calls that succeed are
/// not counted.
fn unreadable_files(bench: &Bench) -> Vec<Duration> {
    let root = bench.root();
    assert!(Command::new("mkfifo").arg(root.join("fifo")).status().unwrap().success());
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    File::create(root.join("sparse")).unwrap().set_len(20 << 30).unwrap();
    let mut took = Vec::new();
    for path in ["fifo", "socket", "/dev/zero", "folder", "sparse"] {
        let input = json!({"path": path});
        let edit = json!({"path": path, "old_string": "x", "new_string": "y"});
        let pattern = json!({"path": path, "pattern": "needle"});
        let calls = [
            refused(bench, ReadFile::new(), &input),
            refused(bench, EditFile::new(), &edit),
            refused(bench, Glob::new(), &pattern),
            refused(bench, ListDir::new(), &input),
            // `grep` is right to search the large file.
            if path == "sparse" { None } else { refused(bench, Grep::new(), &pattern) },
        ];
        took.extend(calls.into_iter().flatten());
    }
    took
}

/// How long a tool takes to refuse its input; `None` if it accepts the input.
fn refused(bench: &Bench, tool: impl Tool + 'static, input: &Value) -> Option<Duration> {
    let since = Instant::now();
    let is_refused = tool.intent(input, bench.workspace()).is_err()
        || bench.call(tool, input.clone()).result.is_err();
    is_refused.then(|| since.elapsed())
}

/// Cuts a search of 22 GB after its start.
fn cuts(bench: &Bench) -> Samples {
    fs::write(bench.root().join("0"), "no needle here\n".repeat(300_000)).unwrap();
    for link in 1..5_000 {
        fs::hard_link(bench.root().join("0"), bench.root().join(link.to_string())).unwrap();
    }
    Samples::of(ROUNDS, || {
        let calling = bench.start(Grep::new(), json!({"pattern": "no such line"}));
        std::thread::sleep(Duration::from_millis(100));
        let since = Instant::now();
        calling.cut();
        assert!(matches!(calling.wait().result, Err(ToolError::Interrupted)));
        since.elapsed()
    })
}

/// Source code of about this many bytes, and a line that occurs in it once.
fn source(bytes: usize) -> (String, String) {
    let mut text = String::with_capacity(bytes + 100);
    let mut random = 7_u64;
    while text.len() < bytes {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let _ = writeln!(
            text,
            "    let value_{} = compute({}, \"{:x}\");",
            random >> 40,
            random >> 50,
            random >> 20
        );
    }
    let line = text[bytes / 2..].lines().nth(1).unwrap().to_owned();
    (text, line)
}

fn edits(table: &Table, bench: &Bench) {
    let (text, line) = source(10 * 1024 * 1024);
    for (ends, text) in [("", text.clone()), (" with CRLF", text.replace('\n', "\r\n"))] {
        let name = format!("large{ends}");
        fs::write(bench.root().join(&name), &text).unwrap();
        let edit =
            |old: &str, new: &str| json!({"path": name, "old_string": old, "new_string": new});
        let mut edits = [edit(&line, "// gone"), edit("// gone", &line)].into_iter().cycle();
        let mut intents = Vec::new();
        let both = Samples::of(ROUNDS * 2, || {
            let (took, intent) = timed(bench, EditFile::new(), &edits.next().unwrap());
            intents.push(intent);
            took
        });
        table.figure(
            &format!("edit_file in 10 MiB{ends}: intent and call"),
            both.median(),
            Amount::ms(50),
        );
        table.note("   … the intent's part, with the diff", Samples::new(intents).median());
    }
    let read = json!({"path": "large", "offset": 100, "limit": 200});
    note(table, "read_file, 200 lines of 10 MiB", || timed(bench, ReadFile::new(), &read).0);
    let (text, _) = source(64 * 1024);
    let mut number = 0;
    note(table, "write_file of 64 KiB, almost half of its lines changed", || {
        number += 1;
        let content = text.replace("compute(1", &format!("compute({number}"));
        timed(bench, WriteFile::new(), &json!({"path": "written", "content": content})).0
    });
}

/// Makes this many files of source code, one of which has a word that the others lack.
pub(crate) fn make_files(bench: &Bench, files: usize) {
    for folder in 0..files / 100 {
        let folder = bench.root().join(format!("{}/{}", folder % 30, folder));
        fs::create_dir_all(&folder).unwrap();
        for file in 0..100 {
            let (text, _) = source(500 + file * 40);
            fs::write(folder.join(format!("file_{file}.rs")), text).unwrap();
        }
    }
    fs::write(bench.root().join("0/0/one.rs"), "the_needle\n").unwrap();
}

/// How long `grep` takes to find the word of [`make_files`].
pub(crate) fn found_in(bench: &Bench) -> Duration {
    timed(bench, Grep::new(), &json!({"pattern": "the_needle"})).0
}

fn searches(table: &Table, bench: &Bench) {
    make_files(bench, FILES);
    for (what, pattern) in
        [("a word", "the_needle"), ("an expression", r"value_\d+9999 = .*[a-f]{9}\w*x")]
    {
        let mut theirs = Vec::new();
        let ours = Samples::of(ROUNDS, || {
            theirs.extend(ripgrep(bench.root(), pattern));
            timed(bench, Grep::new(), &json!({ "pattern": pattern })).0
        });
        table.note(&format!("grep: {what} in {FILES} files"), ours.median());
        if theirs.is_empty() {
            println!("   … no ripgrep to compare with: apt-get install ripgrep");
        } else {
            let theirs = Samples::new(theirs).median();
            table.figure(
                "   … of ripgrep's own time",
                ours.median().of(theirs),
                Amount::Times(1.3),
            );
        }
    }
    let glob = json!({"pattern": "**/file_7.rs"});
    note(table, &format!("glob in {FILES} files"), || timed(bench, Glob::new(), &glob).0);
    note(table, "list_dir of 1,000 entries", || {
        timed(bench, ListDir::new(), &json!({"depth": 2})).0
    });
}

/// How long ripgrep takes; `None` if it is not installed.
fn ripgrep(folder: &Path, pattern: &str) -> Option<Duration> {
    let since = Instant::now();
    let mut command = Command::new("rg");
    command
        .args(["--no-config", "--hidden", "--glob", "!.git", "--line-number", pattern])
        .current_dir(folder);
    command.output().ok().map(|_| since.elapsed())
}

/// The time of a tool's intent and call together, and of the intent alone. A session does both for
/// each call.
fn timed(bench: &Bench, tool: impl Tool + 'static, input: &Value) -> (Duration, Duration) {
    let since = Instant::now();
    tool.intent(input, bench.workspace()).unwrap();
    let intent = since.elapsed();
    let called = bench.call(tool, input.clone());
    let took = since.elapsed();
    assert!(called.result.is_ok(), "{called:?}");
    (took, intent)
}

fn note(table: &Table, what: &str, round: impl FnMut() -> Duration) {
    table.note(what, Samples::of(ROUNDS, round).median());
}
