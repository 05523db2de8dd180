//! Tool calls of the real program, from the model's stream to the next request.

use std::time::{Duration, Instant};

use holdpoint_tests::model_server::{ModelServer, Reply};
use tempfile::TempDir;

use crate::floors::Floor;
use crate::support::{EngineWorld, MODEL, holdpoint, succeed, turn_finished};
use crate::table::{Amount, Samples, Table};

const PROGRAMS: usize = 8;
/// Calls in one conversation, few because the conversation grows.
const CALLS: usize = 25;

pub(crate) fn measure(table: &Table) {
    if table.wants("calls", &["tool call streamed to its result in the next request"]) {
        let took = calls();
        table.figure_beside(
            Floor::Spawn,
            "tool call streamed to its result in the next request (true)",
            took.median(),
            Amount::ms(6),
        );
        table.note("   … p99", took.p99());
    }
}

/// The time of a turn whose first answer calls an unknown tool this often.
pub(crate) fn many_calls(count: usize) -> Duration {
    let world = EngineWorld::new();
    let calls = std::iter::repeat_n(("nothing", "{}"), count);
    world.server.reply(Reply::calls(calls)).reply(Reply::text(["done"]));
    world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        let since = Instant::now();
        session.prompt("Go.").await.unwrap();
        turn_finished(&mut client).await;
        since.elapsed()
    })
}

fn calls() -> Samples {
    let mut took = Vec::new();
    for _ in 0..PROGRAMS {
        let server = ModelServer::start();
        let folder = TempDir::new().unwrap();
        // The call arrives first, and the end of the answer lets it run.
        let gates: Vec<_> = (0..CALLS).map(|_| server.gate()).collect();
        for gate in &gates {
            let called = Reply::stream().call(0, "shell", r#"{"command":"true"}"#);
            server.reply(called.gate(gate).finish("tool_calls"));
        }
        server.reply(Reply::text(["done"]));
        let program = holdpoint(&folder, MODEL, "go")
            .env("OPENAI_BASE_URL", server.base_url())
            .spawn()
            .unwrap();
        for (n, gate) in gates.iter().enumerate() {
            drop(server.request(n));
            let since = Instant::now();
            gate.open();
            let next = server.request(n + 1);
            if n > 0 {
                took.push(next.at - since);
            }
        }
        succeed(program);
        server.assert_no_violations();
    }
    Samples::new(took)
}
