//! The daemon returns the memory that its sessions took.

use std::time::Instant;

use holdpoint_common::{Event, Fact, TurnFact};
use serde_json::json;

use super::client::Api;
use super::harness::DaemonWorld;
use crate::world::{is_root, patience};

const FLOOD: &str = "flood 40000 40\nshell: seq 100000";

fn is_end(event: &Event) -> bool {
    matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. })))
}

/// Floods this many sessions at once, each with a reader, then closes and deletes them.
fn floods(api: &Api, sessions: usize) {
    let opened: Vec<_> = (0..sessions).map(|_| api.open("all")).collect();
    std::thread::scope(|scope| {
        for session in &opened {
            scope.spawn(|| {
                let mut stream = api.attach(session, "");
                api.prompt(session, FLOOD);
                // To its end, or until the stream lags.
                while stream
                    .next()
                    .is_some_and(|frame| !frame.event().is_some_and(|event| is_end(&event)))
                {
                }
                api.settled(session);
                // A session with unsaved facts refuses to close.
                api.wait_saved(session);
            });
        }
    });
    for session in opened {
        api.post(&format!("sessions/{session}/close"), &json!(null)).ok();
        api.delete(&format!("sessions/{session}")).ok();
    }
}

#[test]
fn t_t8_the_memory_of_floods_is_returned() {
    if !is_root() {
        return;
    }
    const MOST: u64 = 16 << 20;
    let house = DaemonWorld::new();
    house.start();
    let api = Api::new(&house);
    // Allocates the stacks, arenas and caches that the process keeps for later.
    floods(&api, 1);
    let before = house.resident();
    let peak = house.peak(|| floods(&api, 10));
    let by = Instant::now() + patience();
    let kept = || house.resident().saturating_sub(before);
    while kept() > MOST {
        assert!(
            Instant::now() < by,
            "{} of {} KiB are kept",
            kept() / 1024,
            (peak - before) / 1024
        );
        std::thread::yield_now();
    }
    println!("{} of {} KiB are kept", kept() / 1024, (peak - before) / 1024);
}
