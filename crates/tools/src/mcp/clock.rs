//! The clock of the calls of one server. It is paused while the server waits for the user.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// A clock that is paused while a question of the server is open. Which of its calls has asked is
/// unknown, so none of them loses time. Clones share it.
#[derive(Clone)]
pub(super) struct Clock(Arc<watch::Sender<Reading>>);

#[derive(Clone, Copy)]
struct Reading {
    /// When the clock began, later by all the time for which it was paused.
    began: Instant,
    /// How many questions are open, and when the first of them was asked.
    questions: usize,
    asked: Instant,
}

/// An open question. When this is dropped, it is answered.
pub(super) struct Question(Clock);

impl Default for Clock {
    fn default() -> Self {
        let now = Instant::now();
        Self(Arc::new(watch::Sender::new(Reading { began: now, questions: 0, asked: now })))
    }
}

impl Reading {
    fn is_paused(&self) -> bool {
        self.questions > 0
    }

    fn time(&self) -> Duration {
        let now = if self.is_paused() { self.asked } else { Instant::now() };
        now.saturating_duration_since(self.began)
    }
}

impl Clock {
    /// The time that the clock shows.
    pub(super) fn time(&self) -> Duration {
        self.0.borrow().time()
    }

    /// Pauses the clock until the question is answered.
    pub(super) fn ask(&self) -> Question {
        self.0.send_modify(|reading| {
            if !reading.is_paused() {
                reading.asked = Instant::now();
            }
            reading.questions += 1;
        });
        Question(self.clone())
    }

    /// Waits until the clock shows this time.
    pub(super) async fn wait_until(&self, time: Duration) {
        let mut readings = self.0.subscribe();
        loop {
            let reading = *readings.borrow_and_update();
            let remaining = time.saturating_sub(reading.time());
            if remaining.is_zero() {
                return;
            }
            // Never closed: `self` has a sender.
            let changed = readings.changed();
            if reading.is_paused() {
                let _ = changed.await;
            } else if tokio::time::timeout(remaining, changed).await.is_err() {
                return;
            }
        }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.0.0.send_modify(|reading| {
            reading.questions -= 1;
            if !reading.is_paused() {
                reading.began += reading.asked.elapsed();
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn m_h2_the_time_of_the_user_does_not_count() {
        let clock = Clock::default();
        let (first, second) = (clock.ask(), clock.ask());
        let asked = clock.time();
        let end = asked + Duration::from_nanos(1);
        assert!(clock.wait_until(end).now_or_never().is_none());
        drop(first);
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(clock.time(), asked, "the second question is open");
        assert!(clock.wait_until(end).now_or_never().is_none());
        drop(second);
        clock.wait_until(end).await;
        assert!(clock.time() >= end);
    }
}
