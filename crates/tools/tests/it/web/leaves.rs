//! A test that many pages leave no threads, descriptors or folders behind.
#![cfg(target_os = "linux")]

use holdpoint_tools::testing::{in_own_process, rounds};

use super::server::{Server, html};
use super::support::{Session, pages, wait_until};

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The number of threads without those of the test's server.
fn threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.filter(|name| name.trim() != "server").count()
}

#[test]
fn m_e7_web_many_pages_leave_no_resources() {
    if !in_own_process() {
        return;
    }
    let opens = rounds(5, 200);
    let server = Server::start(|_| html("<p>text</p>"));
    // Creates the resources that libraries keep for the whole process.
    let mut first = Session::new();
    first.open(&server.url("/"));
    first.close();
    let before = (descriptors(), threads());
    let mut session = Session::new();
    session.open(&server.url("/first"));
    let address = session.browsers.running()[0].debugging.clone();
    let quiet = || !pages(&address).contains("\"type\": \"page\"");
    wait_until("the first tab is closed", quiet);
    let one = (descriptors(), threads());
    for n in 0..opens {
        let text = session.open(&server.url(&format!("/{n}")));
        assert!(
            text.contains("text") && !text.contains("no connection to"),
            "the browser itself contacts no host: {text}"
        );
    }
    wait_until("tabs are closed", quiet);
    assert_eq!(session.folders().len(), 1, "one browser serves the session");
    // The browser keeps a few connections to the proxy open.
    wait_until("descriptors are closed", || descriptors() <= one.0 + 8);
    wait_until("threads have ended", || threads() <= one.1 + 1);
    session.close();
    wait_until("no descriptor is left", || descriptors() <= before.0);
    wait_until("no thread is left", || threads() <= before.1);
}
