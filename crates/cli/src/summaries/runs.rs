//! One-line texts about the progress of runs.

use std::time::{Duration, SystemTime};

use holdpoint_common::{RunProgress, Timestamp};

use super::counted;

/// The total of a finished run: `3 iterations, 1200 tokens, 1h 2m of work`.
pub(crate) fn taken(progress: &RunProgress) -> String {
    format!("{}, {}", counted(progress.iteration, "iteration"), spent(progress))
}

/// The progress of a run: `iteration 3, 1200 tokens, 1h 2m of work`.
pub(crate) fn so_far(progress: &RunProgress) -> String {
    match progress.iteration {
        0 => "before its first iteration".to_owned(),
        iteration => format!("iteration {iteration}, {}", spent(progress)),
    }
}

fn spent(progress: &RunProgress) -> String {
    let now = Timestamp::from(SystemTime::now());
    // Whole seconds are precise enough.
    let worked = Duration::from_secs(progress.worked(now).as_secs());
    format!("{} tokens, {} of work", progress.tokens, humantime::format_duration(worked))
}
