//! Returns freed memory to the system: a daemon runs for weeks and is busy for minutes.
//!
//! By default glibc keeps much of the freed memory: at the end of each arena (about one per thread)
//! twice the largest block ever freed, up to 64 MiB, and all holes. A daemon that used 5 MB kept 60
//! MB of past floods for good.
//!
//! An allocator that returns memory by itself needs more in total: with mimalloc, `run` had 36 MiB
//! at its peak instead of 17, and a daemon that streamed 200,000 deltas 69 MiB instead of 27.

use std::time::{Duration, Instant};

use holdpoint_session::LoadMeter;

/// How long to wait for the memory of a session to be freed, which also bounds how often memory is
/// returned: holes are searched for under the locks of the arenas.
const RETURN_DELAY: Duration = Duration::from_secs(1);

/// Limits the free memory at the end of an arena. Must be called before a second thread starts.
pub(super) fn limit_spare_memory() {
    heap::limit_spare_memory();
}

/// Returns freed memory to the system whenever sessions have started or ended, until the engine
/// stops.
pub(super) async fn give_back(load: LoadMeter) {
    let Ok(mut sessions) = load.changes().await else { return };
    while sessions.next().await {
        tokio::time::sleep(RETURN_DELAY).await;
        let since = Instant::now();
        // Fails only in a runtime that is stopping, which returns everything.
        let _ = tokio::task::spawn_blocking(heap::give_back).await;
        tracing::debug!(
            took_us = since.elapsed().as_micros(),
            "freed memory was returned to the system"
        );
    }
}

/// These calls belong to the C library: rustix covers only system calls, and no other crate has
/// them.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[allow(unsafe_code, reason = "calls of the C library")]
mod heap {
    /// The initial threshold of glibc in bytes. Once set explicitly, it no longer grows.
    const SPARE: libc::c_int = 128 * 1024;

    pub(super) fn limit_spare_memory() {
        // SAFETY: takes two numbers and changes a setting that no other thread reads yet. If the
        // call is refused, nothing changes.
        unsafe { libc::mallopt(libc::M_TRIM_THRESHOLD, SPARE) };
    }

    pub(super) fn give_back() {
        // SAFETY: may be called by any thread at any time. It touches only free memory, under the
        // locks of the arenas.
        unsafe { libc::malloc_trim(0) };
    }
}

/// Other C libraries return memory by themselves, or have no such call.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod heap {
    pub(super) fn limit_spare_memory() {}

    pub(super) fn give_back() {}
}
