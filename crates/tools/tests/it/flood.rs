//! t-P8: a flood of output passes in bounded memory.
#![cfg(target_os = "linux")]

use holdpoint_common::limits::MAX_OUTPUT_DELTA;
use holdpoint_tools::Shell;
use holdpoint_tools::testing::{Bench, in_own_process, rounds};
use serde_json::json;

#[test]
fn t_p8_a_flood_of_output_needs_bounded_memory() {
    if !in_own_process() {
        return;
    }
    let mebibytes = rounds(96, 8 * 1024);
    let bench = Bench::new();
    let before = peak_kib();
    // Without a newline; bytes that are not text become three times as many.
    for source in ["/dev/zero", "<(yes | tr -d '\\n')", "<(tr '\\0' '\\377' </dev/zero)"] {
        let bytes = mebibytes * 1024 * 1024 / if source.contains("377") { 4 } else { 1 };
        let command = format!("head -c {bytes} {source}; exit 7");
        let called =
            bench.call(Shell::new(), json!({ "command": command, "timeout_ms": 3_600_000 }));
        let outcome = called.result.unwrap();
        assert!(outcome.output == "[exit code 7]", "{}", outcome.output);
        let factor = if source.contains("377") { 3 } else { 1 };
        assert_eq!(called.streamed, bytes * factor);
        assert!(called.largest_piece <= MAX_OUTPUT_DELTA);
    }
    let grown = peak_kib() - before;
    assert!(grown < 64 * 1024, "{grown} KiB");
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
