//! Which failed model requests are retried, and when. Pure.

use std::time::Duration;

use holdpoint_common::Limits;
use holdpoint_common::limits::{MAX_RETRY_AFTER, RETRY_TOTAL};

use crate::model::ModelError;

/// The tries of one request.
#[derive(Debug, Default)]
pub(super) struct Tries {
    made: u32,
    waited: Duration,
}

/// The decision about a request that failed.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// The request is retried after this time.
    Wait(Duration),
    /// The request is not retried. The text, if there is one, is added to the error.
    GiveUp(Option<String>),
}

impl Tries {
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// Counts a try that failed with `error`, and decides whether to wait and try again. `jitter` is
    /// a random number from 0 to 1.
    ///
    /// The wait doubles with each try, and is extended by up to half. It is longer if the provider
    /// asks for a longer one. The sum of all waits has a bound.
    pub(super) fn record_failure(
        &mut self,
        error: &ModelError,
        limits: &Limits,
        jitter: f64,
    ) -> Next {
        self.made += 1;
        if !error.is_temporary() {
            return Next::GiveUp(None);
        }
        let retry_after = error.retry_after().unwrap_or_default();
        if retry_after > MAX_RETRY_AFTER {
            return Next::GiveUp(Some(format!(
                "the provider asks to retry after {} s",
                retry_after.as_secs()
            )));
        }
        if self.made >= limits.model_tries {
            return Next::GiveUp((self.made > 1).then(|| format!("tried {} times", self.made)));
        }
        let doubled = limits.model_retry_ms.saturating_mul(1 << (self.made - 1).min(20));
        let backoff = Duration::from_millis(doubled).mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 2.0);
        let wait = backoff.max(retry_after).min(MAX_RETRY_AFTER);
        self.waited += wait;
        if self.waited > RETRY_TOTAL {
            return Next::GiveUp(Some(format!("tried {} times", self.made)));
        }
        Next::Wait(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, retry_after: Option<u64>) -> ModelError {
        ModelError::Refused {
            status,
            message: "no".into(),
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    /// All waits until the request is given up, and the text of that.
    fn waits(error: &ModelError, jitter: f64) -> (Vec<f64>, Option<String>) {
        let (mut tries, mut waits) = (Tries::default(), Vec::new());
        loop {
            match tries.record_failure(error, &Limits::default(), jitter) {
                Next::Wait(wait) => waits.push(wait.as_secs_f64()),
                Next::GiveUp(note) => return (waits, note),
            }
        }
    }

    #[test]
    fn t_l2_tries_are_limited_and_back_off() {
        for error in
            [refused(500, None), refused(503, None), refused(529, None), refused(429, Some(0))]
        {
            assert_eq!(
                waits(&error, 0.0),
                (vec![1.0, 2.0, 4.0, 8.0], Some("tried 5 times".into())),
                "{error}"
            );
        }
        let reset = ModelError::Connection { message: "reset".into() };
        assert_eq!(waits(&reset, 1.0).0, [1.5, 3.0, 6.0, 12.0]);
    }

    #[test]
    fn t_l1_a_retry_waits_as_long_as_the_provider_asks() {
        assert_eq!(waits(&refused(429, Some(5)), 0.5).0, [5.0, 5.0, 5.0, 10.0]);
        assert_eq!(
            waits(&refused(503, Some(300)), 0.0).0,
            [300.0, 300.0, 300.0],
            "all waits together have an end"
        );
        let (none, note) = waits(&refused(429, Some(3600)), 0.0);
        assert!(none.is_empty() && note.unwrap().contains("3600 s"));
    }

    #[test]
    fn t_l3_permanent_errors_are_not_retried() {
        for status in [400, 401, 403, 404, 408, 413, 422] {
            assert_eq!(waits(&refused(status, Some(1)), 0.0), (vec![], None), "{status}");
        }
        let failed = ModelError::Failed { message: "filtered".into() };
        assert_eq!(waits(&failed, 0.0), (vec![], None));
    }
}
