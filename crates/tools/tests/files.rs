//! The file tools: what they show and write, where, and what they refuse.
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::panic, reason = "a test")]
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::{Duration, Instant};

use holdpoint_common::PolicyClass as Class;
use holdpoint_tools::testing::Bench;
use holdpoint_tools::{ReadFile, Tool, ToolOutcome, WriteFile};
use serde_json::{Value, json};

fn read(bench: &Bench, input: Value) -> Result<ToolOutcome, String> {
    bench.call(ReadFile::new(), input).result.map_err(|error| error.to_string())
}

fn write(bench: &Bench, path: &str, content: &str) -> Result<ToolOutcome, String> {
    let called = bench.call(WriteFile::new(), json!({ "path": path, "content": content }));
    assert_eq!(called.streamed, 0);
    called.result.map_err(|error| error.to_string())
}

#[test]
fn lines_are_numbered_and_ranges_told() {
    let bench = Bench::new();
    fs::write(bench.root().join("a"), "one\ntwo\r\nthree").unwrap();
    let outcome = read(&bench, json!({"path": "a"})).unwrap();
    assert_eq!(outcome.output, "     1\tone\n     2\ttwo\n     3\tthree\n");
    let metadata = fs::metadata(bench.root().join("a")).unwrap();
    let mark = &outcome.read[0];
    assert_eq!((mark.path.as_str(), mark.size), ("a", 14));
    assert_eq!(mark.modified, u64::try_from(metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec()).unwrap());

    let outcome = read(&bench, json!({"path": "a", "offset": 2, "limit": 1})).unwrap();
    assert_eq!(outcome.output, "     2\ttwo\n[there is more: go on with offset 3]\n");
    let outcome = read(&bench, json!({"path": "a", "offset": 3, "limit": 1})).unwrap();
    assert_eq!(outcome.output, "     3\tthree\n");
    assert_eq!(read(&bench, json!({"path": "a", "offset": 4})).unwrap().output, "[the file has 3 lines]\n");
    assert!(read(&bench, json!({"path": "a", "offset": 0})).unwrap_err().contains("counted from 1"));
    fs::write(bench.root().join("empty"), "").unwrap();
    assert_eq!(read(&bench, json!({"path": "empty"})).unwrap().output, "[the file is empty]\n");
}

#[test]
fn every_line_of_a_long_file_can_be_had() {
    let bench = Bench::new();
    let line = "x".repeat(100);
    fs::write(bench.root().join("a"), format!("{line}\n").repeat(5_000)).unwrap();
    let (mut offset, mut seen) = (1, 0);
    loop {
        let output = read(&bench, json!({"path": "a", "offset": offset})).unwrap().output;
        assert!(output.len() < 80 * 1024);
        seen += output.lines().filter(|shown| shown.ends_with(&line)).count();
        let Some((_, next)) = output.split_once("go on with offset ") else { break };
        offset = next.trim_end_matches("]\n").parse().unwrap();
        assert_eq!(offset, seen + 1);
    }
    assert_eq!(seen, 5_000);
    fs::write(bench.root().join("b"), "\n".repeat(3_000)).unwrap();
    let output = read(&bench, json!({"path": "b", "limit": 9_999})).unwrap().output;
    assert!(output.ends_with("  2000\t\n[there is more: go on with offset 2001]\n"));
    fs::write(bench.root().join("c"), format!("{}\nlast\n", "漢".repeat(100_000))).unwrap();
    let output = read(&bench, json!({"path": "c"})).unwrap().output;
    assert!(output.ends_with("[line 1 is longer than 65536 bytes and cut; there is more: go on with offset 2]\n"));
}

#[test]
fn what_is_no_text_file_is_said() {
    let bench = Bench::new();
    let root = bench.root();
    fs::write(root.join("binary"), b"\x7fELF\0\0").unwrap();
    fs::write(root.join("latin"), b"gr\xfc\xdfe\n").unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(root.join("fifo")).status().unwrap();
    assert!(fifo.success());
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    fs::File::create(root.join("huge")).unwrap().set_len(1 << 40).unwrap();
    let since = Instant::now();
    for (path, told) in [
        ("binary", "a binary file of 6 bytes"),
        ("folder", "it is a folder"),
        ("fifo", "a pipe"),
        ("/dev/zero", "a device"),
        ("huge", "too many"),
        ("missing", "No such file"),
        ("binary/below", "Not a directory"),
        ("", "empty"),
        ("a\0b", "zero byte"),
    ] {
        let error = read(&bench, json!({ "path": path })).unwrap_err();
        assert!(error.contains(told), "{path:?}: {error}");
    }
    assert!(read(&bench, json!({"path": "socket"})).is_err());
    assert!(since.elapsed() < Duration::from_secs(5));
    let output = read(&bench, json!({"path": "latin"})).unwrap().output;
    assert!(output.starts_with("     1\tgr\u{fffd}\u{fffd}e\n[the file is not UTF-8"), "{output}");
}

#[test]
fn a_file_is_written_whole() {
    let bench = Bench::new();
    let outcome = write(&bench, "a/b/c.txt", "hello\n").unwrap();
    assert_eq!(outcome.output, "wrote a/b/c.txt (6 bytes)");
    assert_eq!((outcome.wrote[0].path.as_str(), outcome.wrote[0].size), ("a/b/c.txt", 6));
    let path = bench.root().join("a/b/c.txt");
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello\n");
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666 & !umask.as_raw_mode());

    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    write(&bench, path.to_str().unwrap(), "again").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode() & 0o7777, after.ino() == before), (0o751, false));
    assert_eq!(fs::read_dir(bench.root().join("a/b")).unwrap().count(), 1, "nothing is left beside it");
    let marked = read(&bench, json!({"path": "a/b/c.txt"})).unwrap().read;
    assert_eq!(marked[0].size, 5);

    fs::create_dir(bench.root().join("folder")).unwrap();
    assert!(write(&bench, "folder", "").unwrap_err().contains("irectory"));
    assert!(write(&bench, "a/b/c.txt/d", "").unwrap_err().contains("Not a directory"));
    assert!(write(&bench, "/", "").is_err());
}

#[test]
fn links_are_followed_before_a_path_is_judged() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    let outside = outside.path().canonicalize().unwrap();
    let root = bench.root();
    fs::create_dir_all(root.join("in/deep")).unwrap();
    fs::create_dir(root.join(".git")).unwrap();
    symlink(&outside, root.join("out")).unwrap();
    symlink("in", root.join("same")).unwrap();
    symlink(".git", root.join("innocent")).unwrap();
    symlink("loop", root.join("loop")).unwrap();
    symlink(outside.join("not-there"), root.join("dangling")).unwrap();
    let absolute = root.join("in/x");
    for (path, reads, writes) in [
        ("in/x", Class::Read, Class::Write),
        ("./in/../in/deep/x", Class::Read, Class::Write),
        ("same/deep/../x", Class::Read, Class::Write),
        (absolute.to_str().unwrap(), Class::Read, Class::Write),
        ("out/x", Class::ReadOutside, Class::WriteOutside),
        ("out/../x", Class::ReadOutside, Class::WriteOutside),
        ("dangling", Class::ReadOutside, Class::WriteOutside),
        ("../x", Class::ReadOutside, Class::WriteOutside),
        ("/etc/passwd", Class::ReadOutside, Class::WriteOutside),
        (".git/config", Class::Read, Class::WriteProtected),
        (".GIT/hooks/pre-commit", Class::Read, Class::WriteProtected),
        ("innocent/config", Class::Read, Class::WriteProtected),
        ("sub/.bashrc", Class::Read, Class::WriteProtected),
        (".vscode/tasks.json", Class::Read, Class::WriteProtected),
        (".holdpoint/x", Class::Read, Class::WriteProtected),
        (".github/x", Class::Read, Class::Write),
    ] {
        let intent = ReadFile::new().intent(&json!({ "path": path }), bench.workspace()).unwrap();
        assert_eq!(intent.acts[0].class(), reads, "reading {path}");
        let input = json!({ "path": path, "content": "text" });
        let intent = WriteFile::new().intent(&input, bench.workspace()).unwrap();
        assert_eq!(intent.acts[0].class(), writes, "writing {path}");
        assert!(intent.details.unwrap().ends_with("\n\ntext"));
    }
    let error = ReadFile::new().intent(&json!({"path": "loop"}), bench.workspace()).unwrap_err();
    assert!(error.to_string().contains("symbolic links"), "{error}");

    write(&bench, "dangling", "through").unwrap();
    assert_eq!(fs::read_to_string(outside.join("not-there")).unwrap(), "through");
    assert!(root.join("dangling").is_symlink());
}

#[test]
fn what_was_judged_is_what_is_done() {
    let bench = Bench::new();
    let outside = tempfile::tempdir().unwrap();
    let root = bench.root();
    fs::create_dir(root.join("in")).unwrap();
    let input = json!({"path": "in/x", "content": "text"});
    let tool = WriteFile::new();
    assert_eq!(tool.intent(&input, bench.workspace()).unwrap().acts[0].class(), Class::Write);
    fs::remove_dir(root.join("in")).unwrap();
    symlink(outside.path(), root.join("in")).unwrap();
    let error = bench.call(tool, input).result.unwrap_err().to_string();
    assert!(error.contains("nothing was done"), "{error}");
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn schemas_name_what_is_needed() {
    for (tool, needed) in [
        (Box::new(ReadFile::new()) as Box<dyn Tool>, json!(["path"])),
        (Box::new(WriteFile::new()), json!(["path", "content"])),
        (Box::new(holdpoint_tools::Shell::new()), json!(["command"])),
    ] {
        let schema = tool.schema();
        assert_eq!(schema["type"], "object");
        assert_eq!(schema["required"], needed, "{schema}");
        assert_eq!(schema["additionalProperties"], false);
        assert!(schema.get("$schema").is_none() && schema.get("title").is_none(), "{schema}");
    }
}
