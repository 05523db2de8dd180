//! The attacks once more, as a user without any privilege. Root has others.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;

use holdpoint_tools::testing::rounds;
use rustix::process::geteuid;

/// The user `nobody`.
const NOBODY: u32 = 65_534;

/// The tests that run every day, and all of them.
const EVERYDAY: &[&str] = &[
    "sandbox::browser",
    "sandbox::domains",
    "sandbox::files",
    "sandbox::kernel",
    "sandbox::processes",
    "sandbox::sockets",
];
const ALL: &[&str] = &["sandbox::", "sandbox_changes::"];

#[test]
fn m_g2_another_user_has_the_same_sandbox() {
    if !geteuid().is_root() {
        return println!("skipped: only root can run the tests as another user");
    }
    // `nobody` may be unable to reach the build folder.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let open = |path: &Path| fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    open(folder.path());
    let [tests, home] = ["tests", "home"].map(|name| folder.path().join(name));
    fs::copy(std::env::current_exe().unwrap(), &tests).unwrap();
    open(&tests);
    fs::create_dir(&home).unwrap();
    chown(&home, Some(NOBODY), Some(NOBODY)).unwrap();
    let id = NOBODY.to_string();
    let ran = Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups"])
        .arg(&tests)
        .args(rounds(EVERYDAY, ALL))
        .args(["--skip", "as_nobody", "--test-threads", "2", "--nocapture"])
        .current_dir(&home)
        .env("HOME", &home)
        .env("TMPDIR", &home)
        .output()
        .unwrap();
    let [out, err] =
        [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(ran.status.success(), "{out}\n{err}");
    assert!(!out.contains("running 0 tests") && !out.contains("skipped landlock"), "{out}");
}
