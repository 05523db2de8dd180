//! `read_file`: the lines it shows, and how to continue.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;

use holdpoint_tools::testing::Bench;
use serde_json::json;

use super::support::read;

#[test]
fn lines_are_numbered_and_ranges_reported() {
    let bench = Bench::new();
    fs::write(bench.root().join("a"), "one\ntwo\r\nthree").unwrap();
    let outcome = read(&bench, json!({"path": "a"})).unwrap();
    assert_eq!(
        outcome.output,
        "     1\tone\n     2\ttwo\n     3\tthree\n[some of these lines end in CRLF]\n"
    );
    let metadata = fs::metadata(bench.root().join("a")).unwrap();
    let mark = &outcome.read[0];
    assert_eq!((mark.path.as_str(), mark.size), ("a", 14));
    assert_eq!(
        mark.modified,
        u64::try_from(metadata.mtime() * 1_000_000_000 + metadata.mtime_nsec()).unwrap()
    );

    let outcome = read(&bench, json!({"path": "a", "offset": 2, "limit": 1})).unwrap();
    assert_eq!(
        outcome.output,
        "     2\ttwo\n[these lines end in CRLF; the file has 3 lines; continue with offset=3]\n"
    );
    let outcome = read(&bench, json!({"path": "a", "offset": 3, "limit": 1})).unwrap();
    assert_eq!(outcome.output, "     3\tthree\n");
    assert_eq!(
        read(&bench, json!({"path": "a", "offset": 4})).unwrap().output,
        "[the file has 3 lines]\n"
    );
    assert!(
        read(&bench, json!({"path": "a", "offset": 0})).unwrap_err().contains("must be at least 1")
    );
    fs::write(bench.root().join("empty"), "").unwrap();
    assert_eq!(read(&bench, json!({"path": "empty"})).unwrap().output, "[the file is empty]\n");
    fs::write(bench.root().join("open"), "a\nb\r").unwrap();
    assert_eq!(read(&bench, json!({"path": "open"})).unwrap().output, "     1\ta\n     2\tb\r\n");
}

#[test]
fn every_line_of_a_long_file_can_be_read() {
    let bench = Bench::new();
    let line = "x".repeat(100);
    fs::write(bench.root().join("a"), format!("{line}\n").repeat(5_000)).unwrap();
    let (mut offset, mut seen) = (1, 0);
    loop {
        let output = read(&bench, json!({"path": "a", "offset": offset})).unwrap().output;
        assert!(output.len() < 80 * 1024);
        seen += output.lines().filter(|shown| shown.ends_with(&line)).count();
        let Some((_, next)) = output.split_once("continue with offset=") else { break };
        offset = next.trim_end_matches("]\n").parse().unwrap();
        assert_eq!(offset, seen + 1);
    }
    assert_eq!(seen, 5_000);
    fs::write(bench.root().join("b"), "\n".repeat(3_000)).unwrap();
    let output = read(&bench, json!({"path": "b", "limit": 9_999})).unwrap().output;
    assert!(output.ends_with("  2000\t\n[the file has 3000 lines; continue with offset=2001]\n"));
    fs::write(bench.root().join("c"), format!("{}\nlast\n", "漢".repeat(100_000))).unwrap();
    let output = read(&bench, json!({"path": "c"})).unwrap().output;
    assert!(
        output.ends_with(
            "[line 1 is longer than 65536 bytes and was cut; the file has 2 lines; continue with offset=2]\n"
        )
    );
}

#[test]
fn reading_a_non_text_file_names_the_reason() {
    let bench = Bench::new();
    let root = bench.root();
    fs::write(root.join("binary"), b"\x7fELF\0\0").unwrap();
    fs::write(root.join("latin"), b"gr\xfc\xdfe\n").unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(root.join("fifo")).status().unwrap();
    assert!(fifo.success());
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    fs::File::create(root.join("huge")).unwrap().set_len(1 << 40).unwrap();
    for (path, expected) in [
        ("binary", "the file is binary (6 bytes)"),
        ("folder", "it is a folder"),
        ("fifo", "a pipe"),
        ("/dev/zero", "a device"),
        ("huge", "too large"),
        ("missing", "no such file"),
        ("binary/below", "Not a directory"),
        ("no/below", "No such file"),
        ("", "empty"),
        ("a\0b", "zero byte"),
    ] {
        let error = read(&bench, json!({ "path": path })).unwrap_err();
        assert!(error.contains(expected), "{path:?}: {error}");
    }
    assert!(read(&bench, json!({"path": "socket"})).is_err());
    let output = read(&bench, json!({"path": "latin"})).unwrap().output;
    assert!(output.starts_with("     1\tgr\u{fffd}\u{fffd}e\n[the file is not UTF-8"), "{output}");
}

#[test]
fn a_line_that_just_fits_is_not_cut() {
    let bench = Bench::new();
    for (length, end, cut) in
        [(65_536, "\n", false), (65_536, "\r\n", false), (65_536, "", false), (65_537, "\n", true)]
    {
        fs::write(bench.root().join("a"), format!("{}{end}{end}", "x".repeat(length))).unwrap();
        let output = read(&bench, json!({"path": "a"})).unwrap().output;
        assert_eq!(output.contains("longer than 65536 bytes and was cut"), cut, "{length} {end:?}");
        assert_eq!(output.lines().next().unwrap().len(), 7 + 65_536);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_binary_file_with_size_0_is_recognised() {
    let error = read(&Bench::new(), json!({"path": "/proc/self/cmdline"})).unwrap_err();
    assert!(error.ends_with(": the file is binary"), "{error}");
}
