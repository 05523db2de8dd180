//! A test in two processes: the second one runs only the same test of this test program.

use std::process::Command;
use std::thread;

/// The environment variable with the part of the second process.
const PART: &str = "HOLDPOINT_TEST_PART";

/// A command that runs the calling test in a second process, where [`part`] returns this part.
///
/// # Panics
/// If it is not called by a test on the test's own thread, or if it is called in the second
/// process.
#[must_use]
#[expect(clippy::expect_used, reason = "tests report faults by panicking")]
pub fn again(part: &str) -> Command {
    assert_eq!(self::part(), None, "the second process must not start a third");
    super::before_main::keep();
    let program = std::env::current_exe().expect("the path of this program");
    // A test runs on its own thread, which has the test's name.
    let this = thread::current();
    let test = this
        .name()
        .filter(|name| *name != "main")
        .expect("a call from a test, on the test's own thread");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]).env(PART, part);
    command
}

/// The part of this process, or `None` in the first process.
#[must_use]
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Runs the calling test in its own process, where no other test runs: for tests that measure or
/// change their process. Returns `true` in that process. In the first process, waits for the second
/// to end, prints its output and returns `false`.
///
/// # Panics
/// If the test fails in its own process.
#[must_use]
#[expect(clippy::print_stdout, clippy::expect_used, reason = "tests report faults by panicking")]
pub fn in_own_process() -> bool {
    if part().is_some() {
        return true;
    }
    let output = again("own process").output().expect("the second process starts");
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{out}");
    assert!(output.status.success(), "{}: {err}", output.status);
    assert!(out.contains("1 passed"), "no test ran: {out}");
    false
}
