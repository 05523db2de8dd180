//! What the daemon keeps of the memory that its sessions took.

use std::time::Instant;

use holdpoint_common::{Event, Fact};
use serde_json::json;

use super::client::Api;
use super::house::House;
use crate::world::patience;

const FLOOD: &str = "flood 40000 40\nshell: seq 100000";

fn is_end(event: &Event) -> bool {
    matches!(event.fact(), Some(Fact::TurnFinished { .. }))
}

/// Floods in so many sessions at once, somebody reading each; then all are closed and deleted.
fn floods(api: &Api, sessions: usize) {
    let opened: Vec<_> = (0..sessions).map(|_| api.open("all")).collect();
    std::thread::scope(|scope| {
        for session in &opened {
            scope.spawn(|| {
                let mut stream = api.attach(session, "");
                api.prompt(session, FLOOD);
                // To its end, or to where it is told that it is too slow.
                while stream.next().is_some_and(|frame| !frame.event().is_some_and(|event| is_end(&event))) {}
                api.settled(session);
                // A session with unsaved facts refuses to close.
                api.saved(session);
            });
        }
    });
    for session in opened {
        api.post(&format!("sessions/{session}/close"), &json!(null)).ok();
        api.delete(&format!("sessions/{session}")).ok();
    }
}

#[test]
fn t_t8_what_floods_took_is_given_back() {
    const MOST: u64 = 16 << 20;
    let house = House::new();
    house.start();
    let api = Api::new(&house);
    // What is kept for later (stacks, arenas, caches) is there.
    floods(&api, 1);
    let before = house.resident();
    let peak = house.peak(|| floods(&api, 10));
    let by = Instant::now() + patience();
    let kept = || house.resident().saturating_sub(before);
    while kept() > MOST {
        assert!(Instant::now() < by, "{} of {} KiB are kept", kept() / 1024, (peak - before) / 1024);
        std::thread::yield_now();
    }
    println!("{} of {} KiB are kept", kept() / 1024, (peak - before) / 1024);
}
