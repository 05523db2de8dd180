//! That what is freed goes back to the system: a daemon runs for weeks, and is busy for minutes.
//!
//! Left to itself glibc keeps, in each of its arenas (one a thread or so), as much at the end as twice the largest
//! block that was ever freed, up to 64 MiB, and all of the holes: a daemon that used 5 MB kept 60 MB of what floods had
//! taken, for good.

use std::time::{Duration, Instant};

use holdpoint_session::LoadMeter;

/// How long what a session has taken may need to be free, and how often it is given back at most: holes are looked for
/// under the locks of the arenas.
const REST: Duration = Duration::from_secs(1);

/// Keeps little at the end of an arena. To be called before there is a second thread.
pub(super) fn keep_little() {
    heap::keep_little();
}

/// Gives back the holes whenever sessions have come or gone, until the engine stops.
pub(super) async fn give_back(load: LoadMeter) {
    let Ok(mut sessions) = load.turnover().await else { return };
    while sessions.next().await {
        tokio::time::sleep(REST).await;
        let since = Instant::now();
        // A runtime that is stopping gives back everything.
        let _ = tokio::task::spawn_blocking(heap::give_back).await;
        tracing::debug!(took_us = since.elapsed().as_micros(), "what was free is given back");
    }
}

/// No crate has these: rustix speaks to the system, and they are the C library's own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "calls of the C library")]
mod heap {
    /// Bytes: what glibc begins with. Once it is said, it stays.
    const SPARE: libc::c_int = 128 * 1024;

    pub(super) fn keep_little() {
        // SAFETY: it takes two numbers and changes a setting, which no other thread reads yet. Refused, all is as it was.
        unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE) };
    }

    pub(super) fn give_back() {
        // SAFETY: any thread may call it at any time; it touches what is free, and takes the arenas' locks for it.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Other C libraries do it by themselves, or can't be told.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod heap {
    pub(super) fn keep_little() {}

    pub(super) fn give_back() {}
}
