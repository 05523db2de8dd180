//! A test in two processes: the other is this test program again, with nothing but the same test.

use std::process::Command;
use std::thread;

/// Says in the other process what its part is.
const PART: &str = "HOLDPOINT_TEST_PART";

/// The test that calls this, to be started in a process of its own. There [`part`] is what is given here.
///
/// # Panics
/// Where no test calls it, and in the other process, which would start one after the other.
#[must_use]
#[expect(clippy::expect_used, reason = "in tests, a panic is how a fault is told")]
pub fn again(part: &str) -> Command {
    assert_eq!(self::part(), None, "the other process starts no third");
    super::before_main::keep();
    let program = std::env::current_exe().expect("this program has a path");
    // A test runs on a thread of its own, which is called as the test is.
    let this = thread::current();
    let test = this.name().filter(|name| *name != "main").expect("it is called by a test, on the test's own thread");
    let mut command = Command::new(program);
    command.args(["--exact", test, "--nocapture"]).env(PART, part);
    command
}

/// What the part of this process is; nothing in the first one.
#[must_use]
pub fn part() -> Option<String> {
    std::env::var(PART).ok()
}

/// Runs the calling test in a process of its own, where no other test runs: for tests that measure or change their
/// process. Returns true in that process; in the first one it waits for the other's end, prints its output, and returns
/// false.
///
/// # Panics
/// If the test fails in its own process.
#[must_use]
#[expect(clippy::print_stdout, clippy::expect_used, reason = "in tests, a panic is how a fault is told")]
pub fn in_own_process() -> bool {
    if part().is_some() {
        return true;
    }
    let output = again("own process").output().expect("this program starts again");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    print!("{out}");
    assert!(output.status.success(), "{}: {err}", output.status);
    assert!(out.contains("1 passed"), "no test ran: {out}");
    false
}
