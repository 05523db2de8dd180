//! A network in which every address is local, so that a test sees a connection to any of them.

use std::env;
use std::process::Command;
use std::thread;

/// Set in the run of a test that is inside the network.
const INSIDE: &str = "HOLDPOINT_TEST_NETWORK";

/// Runs the calling test again in its own network namespace, where every address is local. Returns
/// true there, and false in the first process: `if !network::enter() { return }`.
///
/// Where namespaces can't be created, such as in some containers, it prints a message and the test
/// is skipped.
pub(crate) fn enter() -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    let unshare = |then: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--net"]).args(then).env(INSIDE, "1");
        command
    };
    if !unshare(&["ip", "link", "set", "lo", "up"]).status().is_ok_and(|status| status.success()) {
        println!("skipped: a network namespace can't be created here");
        return false;
    }
    let everywhere = "ip link set lo up && ip route add local default dev lo && ip -6 route add local default dev lo";
    let script = format!("{everywhere} && exec \"$0\" \"$@\"");
    let this = thread::current();
    let test = this.name().unwrap();
    let program = env::current_exe().unwrap();
    let program = program.to_str().unwrap();
    let run =
        unshare(&["sh", "-c", &script, program, "--exact", test, "--nocapture"]).output().unwrap();
    let printed = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{printed}{}", String::from_utf8_lossy(&run.stderr));
    assert!(printed.contains("1 passed"), "the test `{test}` did not run: {printed}");
    false
}
