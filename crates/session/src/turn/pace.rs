//! When pieces of an answer are told: at once; but where many answers stream at the same time, on a beat that all of them
//! share, so that the threads behind them wake once for all and not once for each.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Answers that stream at the same time before they are told on the beat.
const MANY: usize = 4;

/// The beat: about as often as a screen is drawn.
const BEAT: Duration = Duration::from_millis(33);

/// Bytes of a piece that waits for nothing: what comes in bulk is no trickle.
const BULK: usize = 1024;

/// The answers that stream at present, of all sessions of an engine. Clones are the same.
#[derive(Debug, Clone)]
pub(crate) struct Streams {
    count: Arc<AtomicUsize>,
    /// From when on the beat is counted.
    since: Instant,
}

/// One of them, for as long as it is kept.
#[derive(Debug)]
pub(super) struct Pace(Streams);

impl Default for Streams {
    fn default() -> Self {
        Self { count: Arc::default(), since: Instant::now() }
    }
}

impl Streams {
    /// One more, which has just told its first piece.
    pub(super) fn join(&self) -> Pace {
        self.count.fetch_add(1, Ordering::Relaxed);
        Pace(self.clone())
    }

    /// The beat after `now`.
    fn beat_after(&self, now: Instant) -> Instant {
        let beats = now.duration_since(self.since).as_nanos() / BEAT.as_nanos() + 1;
        self.since + BEAT * u32::try_from(beats).unwrap_or(u32::MAX)
    }
}

impl Pace {
    /// Waits until the next piece may be told, after one of so many bytes.
    pub(super) async fn after(&self, bytes: usize) {
        if bytes < BULK && self.0.count.load(Ordering::Relaxed) >= MANY {
            sleep_until(self.0.beat_after(Instant::now())).await;
        }
    }
}

impl Drop for Pace {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn few_wait_for_nothing_and_many_for_the_same_beat() {
        let streams = Streams::default();
        let paces: Vec<_> = (0..MANY).map(|_| streams.join()).collect();
        tokio::time::advance(Duration::from_millis(40)).await;
        paces[0].after(1).await;
        assert_eq!(streams.since.elapsed(), 2 * BEAT);
        tokio::time::advance(Duration::from_millis(1)).await;
        // What is much is told, and so is all once they are few.
        paces[1].after(BULK).await;
        drop(paces.into_iter().next_back());
        let few = [streams.join(), streams.join()];
        few[0].after(1).await;
        assert_eq!(streams.since.elapsed(), 2 * BEAT + Duration::from_millis(1));
        let many = [streams.join(), streams.join()];
        many[1].after(1).await;
        assert_eq!(streams.since.elapsed(), 3 * BEAT);
    }
}
