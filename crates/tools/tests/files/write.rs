//! `write_file`: whole files, at once.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

use holdpoint_tools::testing::Bench;
use serde_json::json;

use super::support::{read, write};

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
    assert_eq!(outcome.wrote[0].hash.as_ref().unwrap().len(), 32);
    let marked = read(&bench, json!({"path": "a/b/c.txt"})).unwrap().read;
    assert_eq!(marked[0].size, 5);

    fs::create_dir(bench.root().join("folder")).unwrap();
    assert!(write(&bench, "folder", "").unwrap_err().contains("it is a folder"));
    assert!(write(&bench, "a/b/c.txt/d", "").unwrap_err().contains("Not a directory"));
    assert!(write(&bench, "/", "").is_err());
}

#[test]
fn m_e7_a_byte_order_mark_stays_and_line_ends_are_as_given() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    for (before, content, after) in [
        ("\u{feff}one\r\n", "two\n", "\u{feff}two\n"),
        ("\u{feff}one", "\u{feff}two", "\u{feff}two"),
        ("one\n", "\u{feff}two\r\n", "\u{feff}two\r\n"),
    ] {
        fs::write(&path, before).unwrap();
        read(&bench, json!({"path": "a"})).unwrap();
        write(&bench, "a", content).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
    }
    assert!(read(&bench, json!({"path": "a"})).unwrap().output.starts_with("     1\ttwo\n"), "nobody sees it");
}

#[test]
fn what_may_not_be_written_is_not_replaced() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    fs::write(&path, "one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let written = write(&bench, "a", "two");
    // Root may write it all the same.
    match rustix::process::geteuid().is_root() {
        true => assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o444),
        false => assert!(written.unwrap_err().contains("ermission denied")),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn t_d7_drafts_have_names_nobody_guesses_and_are_private() {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    let bench = Bench::new();
    fs::write(bench.root().join("a"), "").unwrap();
    fs::set_permissions(bench.root().join("a"), fs::Permissions::from_mode(0o600)).unwrap();
    let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    add_watch(&watch, bench.root(), WatchFlags::CREATE).unwrap();
    let content = "a line of text\n".repeat(500_000);
    let rounds = 8;
    let mut modes = 0;
    let mut names = std::collections::BTreeSet::new();
    for _ in 0..rounds {
        let calling = bench.start(holdpoint_tools::WriteFile::new(), json!({"path": "a", "content": content}));
        let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
        let mut created = Reader::new(&watch, &mut buffer);
        let patience = rustix::event::Timespec { tv_sec: 10, tv_nsec: 0 };
        let came = poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&patience)).unwrap();
        assert_eq!(came, 1, "a draft is made");
        let name = created.next().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        if let Ok(draft) = fs::symlink_metadata(bench.root().join(&name)) {
            assert_eq!(draft.mode() & 0o7777, 0o600);
            modes += 1;
        }
        assert!(name.starts_with(".holdpoint-") && name.len() == 27, "{name}");
        names.insert(name);
        calling.wait().result.unwrap();
    }
    assert_eq!(names.len(), rounds, "never the same");
    assert!(modes > 0, "some were seen while they were written");
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 1);
}
