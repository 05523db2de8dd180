//! Paths that are not regular files, or that are huge, are plain errors in little memory.
#![cfg(target_os = "linux")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::process::Command;

use holdpoint_tools::testing::{Bench, in_own_process};
use holdpoint_tools::{EditFile, Glob, Grep, ListDir, ReadFile, Tool, WriteFile};
use serde_json::{Value, json};

/// The most KiB that this program has held since [`forget_peak`].
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn forget_peak() {
    // Where this is not possible, the test detects less.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Judges and calls like a session, and returns the text that the model receives.
fn outcome_text<T: Tool + 'static>(
    bench: &Bench,
    tool: T,
    input: &Value,
) -> Result<String, String> {
    let called = tool.intent(input, bench.workspace()).map_err(|error| error.to_string());
    let called = called
        .and_then(|_| bench.call(tool, input.clone()).result.map_err(|error| error.to_string()));
    Ok(called?.output)
}

#[test]
fn t_d8_non_files_and_huge_files_are_errors_with_little_memory() {
    if !in_own_process() {
        return;
    }
    let bench = Bench::new();
    let root = bench.root();
    assert!(Command::new("mkfifo").arg(root.join("fifo")).status().unwrap().success());
    let _listener = UnixListener::bind(root.join("socket")).unwrap();
    fs::create_dir(root.join("folder")).unwrap();
    fs::File::create(root.join("sparse")).unwrap().set_len(20 << 30).unwrap();
    fs::write(root.join("unreadable"), "x").unwrap();
    fs::set_permissions(root.join("unreadable"), fs::Permissions::from_mode(0o000)).unwrap();
    let line = "y".repeat(60 << 20);
    fs::write(root.join("line"), &line).unwrap();
    drop(line);
    symlink("/dev/zero", root.join("zero")).unwrap();
    let name = OsStr::from_bytes(b"not\xffutf8");
    fs::write(root.join(name), "x").unwrap();
    // An endless ignore file, and one that is never written to.
    fs::create_dir_all(root.join("trap/.git/info")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("trap/.gitignore")).status().unwrap().success());
    symlink("/dev/zero", root.join("trap/.ignore")).unwrap();
    symlink("/dev/zero", root.join("trap/.git/info/exclude")).unwrap();

    // Much text to show: a match in every 41st line, and each line as long as the limit for shown
    // lines.
    let (other, wanted) = (format!("{}\n", "z".repeat(499)), format!("{}\n", "needle".repeat(83)));
    fs::create_dir(root.join("much")).unwrap();
    fs::write(
        root.join("much/0"),
        format!("{}{wanted}{}", other.repeat(20), other.repeat(20)).repeat(1_400),
    )
    .unwrap();
    for link in 1..10 {
        fs::hard_link(root.join("much/0"), root.join(format!("much/{link}"))).unwrap();
    }

    // Runs all the code once before measuring.
    let _ = outcome_text(&bench, Grep::new(), &json!({"pattern": "x", "path": "folder"}));
    forget_peak();
    let before = peak();
    let is_root = rustix::process::geteuid().is_root();
    for (path, why) in [
        ("fifo", "a pipe"),
        ("socket", "a socket"),
        ("zero", "a device"),
        ("/dev/zero", "a device"),
        ("folder", "a folder"),
        ("sparse", "bytes"),
        ("unreadable", "ermission denied"),
        ("not\u{fffd}utf8", "no such file"),
    ] {
        let edit = json!({"path": path, "old_string": "x", "new_string": "y"});
        let results = [
            ("read_file", outcome_text(&bench, ReadFile::new(), &json!({ "path": path }))),
            ("edit_file", outcome_text(&bench, EditFile::new(), &edit)),
            (
                "grep",
                outcome_text(&bench, Grep::new(), &json!({"path": path, "pattern": "needle"})),
            ),
            ("glob", outcome_text(&bench, Glob::new(), &json!({"path": path, "pattern": "*"}))),
            ("list_dir", outcome_text(&bench, ListDir::new(), &json!({ "path": path }))),
        ];
        for (tool, result) in results {
            let is_folder = path == "folder" && matches!(tool, "grep" | "glob" | "list_dir");
            let is_searched = matches!(path, "sparse") && tool == "grep";
            match result {
                Ok(_) if is_folder || is_searched || is_root && path == "unreadable" => {}
                Ok(output) => panic!("{tool} {path}: {output}"),
                Err(error) => assert!(
                    error.contains(why)
                        || error.contains("Not a directory")
                        || error.contains("No such"),
                    "{tool} {path}: {error}"
                ),
            }
        }
        if !matches!(path, "sparse" | "unreadable") && !path.contains('\u{fffd}') {
            let error =
                outcome_text(&bench, WriteFile::new(), &json!({"path": path, "content": "x"}))
                    .unwrap_err();
            assert!(error.contains(why), "write_file {path}: {error}");
        }
    }
    let found =
        outcome_text(&bench, Grep::new(), &json!({"pattern": "^y", "output": "files"})).unwrap();
    assert!(
        found.contains("1 binary file skipped") && found.contains("lines that are too long"),
        "{found}"
    );
    assert!(
        outcome_text(&bench, ListDir::new(), &json!({"depth": 3}))
            .unwrap()
            .contains("not\u{fffd}utf8")
    );
    assert!(
        outcome_text(&bench, Glob::new(), &json!({"pattern": "*"})).unwrap().contains("sparse")
    );
    assert!(
        outcome_text(&bench, ReadFile::new(), &json!({"path": "line"}))
            .unwrap()
            .ends_with("is longer than 65536 bytes and was cut]\n")
    );
    let much = json!({"pattern": "needle", "path": "much", "context": 20, "limit": 2_000});
    let found = outcome_text(&bench, Grep::new(), &much).unwrap();
    assert!(found.len() > 64 * 1024 && found.contains("there may be more"), "{}", found.len());
    let grown = peak() - before;
    assert!(grown <= 32 * 1024, "{grown} KiB more");
}
