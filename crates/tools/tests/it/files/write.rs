//! `write_file`: whole files, in one step.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Instant;

use holdpoint_common::{PolicyMode, PolicyRules};
use holdpoint_tools::testing::{Bench, patience};
use holdpoint_tools::{Policy, WriteFile};
use serde_json::json;

use super::support::{call, intent, read, write};

#[test]
fn a_file_is_written_whole() {
    let bench = Bench::new();
    let outcome = write(&bench, "a/b/c.txt", "hello\n").unwrap();
    assert_eq!(outcome.output, "wrote a/b/c.txt (6 bytes)");
    assert_eq!((outcome.wrote[0].path.as_str(), outcome.wrote[0].size), ("a/b/c.txt", 6));
    let path = bench.root().join("a/b/c.txt");
    assert_eq!(fs::read_to_string(&path).unwrap(), "hello\n");
    let plain = bench.root().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().mode(),
        fs::metadata(plain).unwrap().mode(),
        "the mode follows the umask"
    );

    fs::set_permissions(&path, fs::Permissions::from_mode(0o751)).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    write(&bench, path.to_str().unwrap(), "again").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_eq!((after.mode() & 0o7777, after.ino() == before), (0o751, false));
    assert_eq!(fs::read_dir(bench.root().join("a/b")).unwrap().count(), 1, "no draft is left");
    assert_eq!(outcome.wrote[0].hash.as_ref().unwrap().len(), 32);
    let marked = read(&bench, json!({"path": "a/b/c.txt"})).unwrap().read;
    assert_eq!(marked[0].size, 5);

    fs::create_dir(bench.root().join("folder")).unwrap();
    assert!(write(&bench, "folder", "").unwrap_err().contains("it is a folder"));
    assert!(write(&bench, "a/b/c.txt/d", "").unwrap_err().contains("Not a directory"));
    assert!(write(&bench, "/", "").is_err());
}

#[test]
fn m_e7_byte_order_mark_and_line_ends_are_kept() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    for (before, content, after) in [
        ("\u{feff}one\r\n", "two\n", "\u{feff}two\r\n"),
        ("one\r\ntwo", "three\n\nfour", "three\r\n\r\nfour"),
        // Not if only some lines end in this way, nor if the new text has its own line ends.
        ("one\r\ntwo\n", "three\n", "three\n"),
        ("one\r\n", "two\nthree\r", "two\nthree\r"),
        ("one\r\n", "", ""),
        ("one\n", "two\r\n", "two\r\n"),
        ("one", "two\n", "two\n"),
        ("\u{feff}one", "\u{feff}two", "\u{feff}two"),
        ("one\n", "\u{feff}two\r\n", "\u{feff}two\r\n"),
    ] {
        fs::write(&path, before).unwrap();
        read(&bench, json!({"path": "a"})).unwrap();
        let output = write(&bench, "a", content).unwrap().output;
        assert_eq!(fs::read_to_string(&path).unwrap(), after);
        let note = if after.contains('\r') && !content.contains('\r') {
            ", CRLF line endings kept"
        } else {
            ""
        };
        assert_eq!(output, format!("wrote a ({} bytes{note})", after.len()));
    }
    fs::write(&path, "one\r\ntwo\r\n").unwrap();
    let input = json!({"path": "a", "content": "one\n2\n"});
    let diff = intent(&bench, &WriteFile::new(), &input).unwrap().details.unwrap();
    assert!(
        diff.ends_with(" one\\u{d}\n-two\\u{d}\n+2\\u{d}\n"),
        "the diff shows the written text: {diff}"
    );
    fs::write(&path, "\u{feff}two\n").unwrap();
    assert!(
        read(&bench, json!({"path": "a"})).unwrap().output.starts_with("     1\ttwo\n"),
        "the byte order mark is not shown"
    );
}

#[test]
fn a_file_without_write_permission_is_not_replaced() {
    let bench = Bench::new();
    let path = bench.root().join("a");
    fs::write(&path, "one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let written = write(&bench, "a", "two");
    // Root may write it anyway.
    match rustix::process::geteuid().is_root() {
        true => assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o444),
        false => assert!(written.unwrap_err().contains("ermission denied")),
    }
}

#[test]
#[cfg(target_os = "linux")]
fn t_d7_temporary_files_have_random_names_and_are_private() {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};

    let bench = Bench::new();
    fs::write(bench.root().join("a"), "").unwrap();
    fs::set_permissions(bench.root().join("a"), fs::Permissions::from_mode(0o600)).unwrap();
    let watch = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).unwrap();
    add_watch(&watch, bench.root(), WatchFlags::CREATE).unwrap();
    let content = "a line of text\n".repeat(500_000);
    let (mut rounds, mut modes) = (0, 0);
    let mut names = std::collections::BTreeSet::new();
    let by = Instant::now() + patience();
    // Some drafts are renamed before the test sees them.
    while rounds < 8 || modes == 0 {
        assert!(Instant::now() < by, "no draft was seen while it was written");
        rounds += 1;
        let calling = bench
            .start(holdpoint_tools::WriteFile::new(), json!({"path": "a", "content": content}));
        let mut buffer = [std::mem::MaybeUninit::uninit(); 1024];
        let mut created = Reader::new(&watch, &mut buffer);
        let limit: rustix::event::Timespec = patience().try_into().unwrap();
        let came = poll(&mut [PollFd::new(&watch, PollFlags::IN)], Some(&limit)).unwrap();
        assert_eq!(came, 1, "a draft is created");
        let name = created.next().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
        if let Ok(draft) = fs::symlink_metadata(bench.root().join(&name)) {
            assert_eq!(draft.mode() & 0o7777, 0o600);
            modes += 1;
        }
        assert!(name.starts_with(".holdpoint-") && name.len() == 27, "{name}");
        names.insert(name);
        calling.wait().result.unwrap();
    }
    assert_eq!(names.len(), rounds, "every name is new");
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 1);
}

#[test]
fn m_e7_a_write_with_a_too_large_diff_is_refused_if_it_asks() {
    let bench = Bench::new();
    let line = "a line of some length, forty bytes of it\n";
    let (fits, too_much) = (line.repeat(95_000), line.repeat(110_000));
    let path = bench.root().join("new");
    let content = |content: &str| json!({"path": path, "content": content});
    assert!(
        intent(&bench, &WriteFile::new(), &content(&fits)).unwrap().details.unwrap().len()
            > 3_900_000
    );
    let error = intent(&bench, &WriteFile::new(), &content(&too_much)).unwrap_err();
    assert_eq!(error, "new: the diff is larger than 4 MiB: split the change");
    // In a large file, only the changes count.
    fs::write(&path, &too_much).unwrap();
    let changed = too_much.replacen("some", "any", 1);
    assert!(intent(&bench, &WriteFile::new(), &content(&changed)).is_ok());
    // Hidden characters are shown as long escapes.
    assert!(intent(&bench, &WriteFile::new(), &content(&"\u{1}".repeat(1_000_000))).is_err());

    // An approval without having seen the text does not count.
    let outside = tempfile::tempdir().unwrap();
    let path = outside.path().canonicalize().unwrap().join("new");
    let input = json!({"path": path, "content": too_much});
    let tool = WriteFile::new();
    let details = intent(&bench, &tool, &input).unwrap().details.unwrap();
    assert!(
        details.contains("This call will fail: ") && details.contains("larger than 4 MiB"),
        "{details}"
    );
    assert!(call(&bench, tool, input).unwrap_err().contains("larger than 4 MiB"));
    assert!(!path.exists());

    // Without an ask, there is no text to show.
    let bench =
        Bench::new().policy(Policy::new(PolicyMode::Edits, &PolicyRules::default(), None).unwrap());
    write(&bench, "new", &too_much).unwrap();
}

#[test]
fn nothing_is_created_before_all_checks_pass() {
    let bench = Bench::new();
    for path in ["folder/", "folder/.", "a/b/"] {
        let error = write(&bench, path, "text").unwrap_err();
        assert!(error.contains("a folder, not a file"), "{error}");
    }
    for path in ["~", "~/note", "~root/note"] {
        let error = write(&bench, path, "text").unwrap_err();
        assert!(error.contains("`~` is not expanded"), "{error}");
    }
    // The edit is shown with an existing file, which is then removed together with its folder.
    fs::create_dir(bench.root().join("deep")).unwrap();
    fs::write(bench.root().join("deep/a"), "old").unwrap();
    let tool = WriteFile::new();
    let input = json!({"path": "deep/a", "content": "text"});
    intent(&bench, &tool, &input).unwrap();
    fs::remove_dir_all(bench.root().join("deep")).unwrap();
    assert!(call(&bench, tool, input).unwrap_err().contains("has changed since it was shown"));
    assert_eq!(fs::read_dir(bench.root()).unwrap().count(), 0);
    write(&bench, "./~/note", "meant").unwrap();
    assert_eq!(fs::read_to_string(bench.root().join("~/note")).unwrap(), "meant");
}

/// An access control list in the system's format, from tags, permissions and ids.
#[cfg(target_os = "linux")]
fn acl(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let entry = |(tag, permissions, id): &(u16, u16, u32)| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    2_u32.to_le_bytes().into_iter().chain(entries.iter().flat_map(entry)).collect()
}

#[test]
#[cfg(target_os = "linux")]
fn m_e7_access_control_lists_and_attributes_are_kept() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    use rustix::io::Errno;
    const ACL: &str = "system.posix_acl_access";
    const NOBODY: u32 = u32::MAX;
    let bench = Bench::new();
    let path = bench.root().join("a");
    fs::write(&path, "one").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    // Its user rw, user 1000 rw, its group r, mask rw, others none: shown as 0660.
    let list =
        acl(&[(1, 6, NOBODY), (2, 6, 1000), (4, 4, NOBODY), (0x10, 6, NOBODY), (0x20, 0, NOBODY)]);
    match setxattr(&path, ACL, &list, XattrFlags::empty()) {
        // Some file systems have no access control lists.
        Err(Errno::NOTSUP) => return,
        set => set.unwrap(),
    }
    setxattr(&path, "user.origin", b"elsewhere", XattrFlags::empty()).unwrap();
    write(&bench, "a", "two").unwrap();
    let mut value = [0; 256];
    let length = getxattr(&path, ACL, &mut value[..]).unwrap();
    assert_eq!(value[..length], list);
    let length = getxattr(&path, "user.origin", &mut value[..]).unwrap();
    assert_eq!(&value[..length], b"elsewhere");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o660);

    // A file without a list does not receive one, even if its folder has a default for new files.
    fs::write(bench.root().join("b"), "one").unwrap();
    fs::set_permissions(bench.root().join("b"), fs::Permissions::from_mode(0o660)).unwrap();
    setxattr(bench.root(), "system.posix_acl_default", &list, XattrFlags::empty()).unwrap();
    write(&bench, "b", "two").unwrap();
    assert_eq!(getxattr(bench.root().join("b"), ACL, &mut value[..]), Err(Errno::NODATA));
    assert_eq!(fs::metadata(bench.root().join("b")).unwrap().mode() & 0o777, 0o660);
}
