//! The time from one iteration of a run to the next.

use std::num::NonZeroU64;
use std::process::Command;

use holdpoint_common::{Hold, RunLimits};
use holdpoint_session::RunRequest;
use holdpoint_tests::model_server::Reply;

use crate::support::{EngineWorld, MODEL, hold_is};
use crate::table::{Samples, Table};

const ITERATIONS: u64 = 200;

pub(crate) fn measure(table: &Table) {
    if table.wants("runs", &["iteration of one answer"]) {
        table.note("iteration of one answer, request to request", iterations(false).median());
        table.note("the same with git asked before and after", iterations(true).median());
    }
}

/// The time from each request to the next in a run with one word per iteration, inside a repository
/// or not.
fn iterations(in_repository: bool) -> Samples {
    let world = EngineWorld::new();
    if in_repository {
        let made = Command::new("git")
            .args(["init", "-q"])
            .current_dir(world.folder.path())
            .status()
            .unwrap();
        assert!(made.success());
    }
    world.server.answer(|_| Reply::text(["done"]));
    world.runtime.block_on(async {
        let (session, mut client) = world.watched(MODEL).await;
        let limits =
            RunLimits { iterations: NonZeroU64::new(ITERATIONS + 1), ..RunLimits::default() };
        let request =
            RunRequest { tasks: vec!["endless".to_owned()], limits, ..RunRequest::new("never") };
        session.start_run(request).await.unwrap();
        hold_is(&mut client, |hold| matches!(hold, Hold::Standing { .. })).await;
    });
    let requests = world.server.requests();
    Samples::new(requests.windows(2).map(|pair| pair[1].at - pair[0].at).collect())
}
