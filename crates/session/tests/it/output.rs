//! Floods of output, through a whole session.
#![cfg(target_os = "linux")]

use holdpoint_common::{Fact, KEPT_HEAD, KEPT_TAIL, Limits, ToolFact, ToolStatus};
use holdpoint_session::testing::{Harness, reply};
use holdpoint_session::{AttachFrom, ClientEnd};
use holdpoint_tools::testing::{in_own_process, rounds};
use serde_json::json;

/// How many KiB the process may grow, whatever the size of the output.
const GROWTH: u64 = 64 * 1024;

/// Output without a newline, or binary: the head and the tail are kept, the rest is counted, a
/// client that never reads costs no memory, and the exit code is right.
#[tokio::test]
async fn t_p8_a_flood_of_output_is_bounded() {
    if !in_own_process() {
        return;
    }
    let mib: u64 = rounds(128, 8 * 1024);
    let harness = Harness::limited(Limits::default());
    let session = harness.open().await;
    // A first call makes the threads and buffers.
    harness.model.then(reply().call("shell", json!({ "command": "head -c 1000000 /dev/zero" })));
    session.prompt("go").await.unwrap();
    session.settled().await.unwrap();
    let before = crate::process::resident_kib();
    for source in ["/dev/zero", "/dev/urandom"] {
        let mut lazy = session.attach(AttachFrom::now()).await.unwrap();
        let command = format!("head -c {mib}M {source} | tr '\\0' y; echo the end; exit 3");
        harness
            .model
            .then(reply().call("shell", json!({ "command": command, "timeout_ms": 600_000 })));
        session.prompt("go").await.unwrap();
        // Returns at the timeout of the call at the latest.
        session.settled().await.unwrap();
        let turn = session.snapshot().last_turn.as_ref().map(|last| last.turn);
        let mut newest =
            session.attach(AttachFrom { limit: Some(20), ..AttachFrom::start() }).await.unwrap();
        let result = loop {
            let event = newest.next().await.unwrap();
            if let Some(Fact::Tool(ToolFact::Finished(result))) = event.fact()
                && event.turn == turn
            {
                break result.clone();
            }
        };
        assert_eq!(result.status, ToolStatus::Error);
        assert!(result.result.starts_with("[exit code 3"), "{}", result.result);
        // Both are full, except for a character that would not have fitted whole.
        let (head, tail) = (result.output.head.len(), result.output.tail.len());
        assert!((KEPT_HEAD - 3..=KEPT_HEAD).contains(&head), "{head} bytes of the head");
        assert!((KEPT_TAIL - 3..=KEPT_TAIL).contains(&tail), "{tail} bytes of the tail");
        assert!(result.output.tail.ends_with("the end\n"));
        let kept = (result.output.head.len() + result.output.tail.len()) as u64;
        assert!(kept + result.output.dropped >= mib << 20, "kept and dropped bytes add up");
        while lazy.next().await.is_some() {}
        assert!(matches!(lazy.end(), ClientEnd::Lagged { .. }));
        let grown = crate::process::resident_kib().saturating_sub(before);
        assert!(grown < GROWTH, "{source}: grown by {grown} KiB");
    }
}
