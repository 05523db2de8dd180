//! The pace of requests for streams.

use std::time::Duration;

/// The least time between two requests for a stream. It doubles with each further one, up to
/// [`MAX_STREAM_DELAY`], and is reset when a stream was open for twice that.
const STREAM_DELAY: Duration = Duration::from_millis(250);
const MAX_STREAM_DELAY: Duration = Duration::from_secs(5);

/// The time of the last request for a stream, and the least time to the next one.
pub(super) struct Pace {
    last: Option<tokio::time::Instant>,
    delay: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { last: None, delay: STREAM_DELAY }
    }
}

impl Pace {
    /// The time when the next request for a stream may be sent, which it then is.
    pub(super) fn next(&mut self, now: tokio::time::Instant) -> tokio::time::Instant {
        let Some(last) = self.last else {
            self.last = Some(now);
            return now;
        };
        if now.saturating_duration_since(last) >= self.delay * 2 {
            self.delay = STREAM_DELAY;
        }
        let next = now.max(last + self.delay);
        self.delay = (self.delay * 2).min(MAX_STREAM_DELAY);
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_streams_that_end_at_once_are_opened_ever_more_rarely() {
        let begin = tokio::time::Instant::now();
        let mut pace = Pace::default();
        assert_eq!(pace.next(begin), begin);
        let mut last = begin;
        for delay in [250, 500, 1_000, 2_000, 4_000, 5_000, 5_000] {
            let next = pace.next(last);
            assert_eq!(next - last, Duration::from_millis(delay));
            last = next;
        }
        let later = last + Duration::from_secs(10);
        assert_eq!(pace.next(later), later);
        assert_eq!(pace.next(later) - later, Duration::from_millis(500));
    }
}
