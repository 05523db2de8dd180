//! Files that another program has changed since they were read or shown.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use holdpoint_common::FileMark;
use holdpoint_common::limits::MAX_CALLS;
use holdpoint_tools::testing::{Bench, rounds};
use holdpoint_tools::{EditFile, WriteFile};
use serde_json::json;

use super::support::{call, edit, intent, read, replace, write};

fn set_modified(path: &std::path::Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn t_d10_a_file_changed_since_it_was_read_is_refused() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    let rounds = rounds(10, 100);
    for round in 0..rounds {
        let (before, after) = (format!("one {round:03}\n"), format!("two {round:03}\n"));
        fs::write(&path, &before).unwrap();
        let time = fs::metadata(&path).unwrap().modified().unwrap();
        read(&bench, json!({"path": "a"})).unwrap();
        // With the same size and time.
        fs::write(&path, &after).unwrap();
        set_modified(&path, time);
        for refused in [
            edit(&bench, replace("a", "two", "three")),
            call(&bench, EditFile::new(), replace("a", "two", "three")),
            write(&bench, "a", "all new"),
            call(&bench, WriteFile::new(), json!({"path": "a", "content": "all new"})),
        ] {
            let error = refused.unwrap_err();
            assert!(
                error.contains("a: the file has changed since it was last read: read it again"),
                "{error}"
            );
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
        read(&bench, json!({"path": "a", "offset": 9})).unwrap();
        match round % 2 {
            0 => edit(&bench, replace("a", "two", "three")).unwrap(),
            _ => write(&bench, "a", "three").unwrap(),
        };
    }
}

#[test]
fn t_d10_a_touch_or_an_own_write_is_not_a_change() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    fs::write(&path, "one\n").unwrap();
    read(&bench, json!({"path": "a"})).unwrap();
    set_modified(&path, SystemTime::now() + Duration::from_secs(60));
    edit(&bench, replace("a", "one", "two")).unwrap();
    edit(&bench, replace("a", "two", "three")).unwrap();
    write(&bench, "a", "four").unwrap();
    edit(&bench, replace("a", "four", "five")).unwrap();
    // A file that is gone is created again.
    fs::remove_file(&path).unwrap();
    write(&bench, "a", "six").unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "six");
}

#[test]
fn t_d10_a_file_too_large_to_hash_is_compared_by_size_and_time() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    let text = "line\n".repeat(13_500_000);
    fs::write(&path, &text).unwrap();
    let mark = &read(&bench, json!({"path": "a"})).unwrap().read[0];
    assert_eq!((mark.hash.as_deref(), mark.size), (None, text.len() as u64));
    set_modified(&path, SystemTime::now() + Duration::from_secs(60));
    assert!(write(&bench, "a", "short").unwrap_err().contains("has changed since"));
    assert!(
        read(&bench, json!({"path": "a"}))
            .unwrap()
            .output
            .contains("the file has 13500000 lines; continue with")
    );
    write(&bench, "a", "short").unwrap();
}

#[test]
fn m_b7_a_diff_that_no_longer_applies_is_refused() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    let (tool, input) = (EditFile::new(), replace("a", "two", "2"));
    fs::write(&path, "one\ntwo\n").unwrap();
    assert!(intent(&bench, &tool, &input).unwrap().details.unwrap().contains("\n one\n-two\n+2\n"));
    // The edit would still match.
    fs::write(&path, "ONE\ntwo\n").unwrap();
    let error = call(&bench, tool, input).unwrap_err();
    assert_eq!(error, "a has changed since the edit was shown: nothing was done");

    let content = |content: &str| json!({"path": "b", "content": content});
    let path = bench.root().join("b");
    for (before, after) in [(Some("1"), Some("2")), (None, Some("2")), (Some("1"), None)] {
        let put = |content: Option<&str>| match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => drop(fs::remove_file(&path)),
        };
        put(before);
        let tool = WriteFile::new();
        intent(&bench, &tool, &content("3")).unwrap();
        put(after);
        let error = call(&bench, tool, content("3")).unwrap_err();
        assert_eq!(error, "b has changed since it was shown: nothing was done");
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), after);
    }
}

#[test]
fn t_d10_edits_of_one_file_at_once_all_land() {
    let bench = Bench::new();
    let count = 16;
    for round in 0..rounds(5, 100) {
        let name = format!("file {round}");
        let text: String = (0..count).map(|line| format!("line <{line}>\r\n")).collect();
        fs::write(bench.root().join(&name), &text).unwrap();
        let judged: Vec<_> = (0..count)
            .map(|line| {
                let input = replace(&name, &format!("<{line}>"), &format!("({line})\nand more"));
                let tool = EditFile::new();
                // All edits are shown before the first one is made.
                intent(&bench, &tool, &input).unwrap();
                (tool, input)
            })
            .collect();
        let calls: Vec<_> =
            judged.into_iter().map(|(tool, input)| bench.start(tool, input)).collect();
        for called in calls {
            called.wait().result.unwrap();
        }
        let expected: String =
            (0..count).map(|line| format!("line ({line})\r\nand more\r\n")).collect();
        assert_eq!(fs::read_to_string(bench.root().join(&name)).unwrap(), expected);
    }
}

#[test]
fn the_last_edit_of_the_longest_answer_lands() {
    let bench = Bench::new();
    fs::write(bench.root().join("a"), "one\n0\n").unwrap();
    let last = EditFile::new();
    let input = replace("a", "one", "1");
    intent(&bench, &last, &input).unwrap();
    for count in 1..MAX_CALLS {
        let other = replace("a", &format!("\n{}\n", count - 1), &format!("\n{count}\n"));
        call(&bench, EditFile::new(), other).unwrap();
    }
    call(&bench, last, input).unwrap();
    assert_eq!(
        fs::read_to_string(bench.root().join("a")).unwrap(),
        format!("1\n{}\n", MAX_CALLS - 1)
    );
}

#[test]
fn t_d10_a_line_changed_by_another_call_since_the_diff_is_refused() {
    let bench = Bench::new();
    fs::write(bench.root().join("a"), "one two\n").unwrap();
    let (first, second) = (EditFile::new(), EditFile::new());
    let (one, two) = (replace("a", "one", "1"), replace("a", "two", "2"));
    intent(&bench, &first, &one).unwrap();
    intent(&bench, &second, &two).unwrap();
    call(&bench, first, one).unwrap();
    assert!(call(&bench, second, two.clone()).unwrap_err().contains("since the edit was shown"));
    edit(&bench, two).unwrap();
    assert_eq!(fs::read_to_string(bench.root().join("a")).unwrap(), "1 2\n");
}

#[test]
fn t_d10_marks_are_restored_from_the_log() {
    let (bench, later) = (Bench::new(), Bench::new());
    for bench in [&bench, &later] {
        fs::write(bench.root().join("a"), "one\n").unwrap();
    }
    let mark = read(&bench, json!({"path": "a"})).unwrap().read[0].clone();
    let old = FileMark { hash: Some("0".repeat(32)), ..mark.clone() };
    later.workspace().files().recall([mark, old]);
    edit(&later, replace("a", "one", "two")).unwrap();
    fs::write(later.root().join("a"), "six\n").unwrap();
    assert!(edit(&later, replace("a", "six", "seven")).unwrap_err().contains("read it again"));
}
