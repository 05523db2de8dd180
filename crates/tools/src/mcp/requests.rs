//! The requests of a server that have no answer yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rmcp::RoleClient;
use rmcp::model::JsonRpcMessage;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

/// The most requests of a server that wait for their answer. With another one, the connection ends.
const MAX_REQUESTS: usize = 64;

/// The number of requests of a server that have no answer yet. Clones share it.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<AtomicUsize>);

/// A message of ours that is being sent. If it answers a request of the server, that request counts
/// until this is dropped.
pub(super) struct Sending(Option<OpenRequests>);

impl OpenRequests {
    /// Counts a message of the server, if it is a request.
    ///
    /// # Errors
    /// Too many requests have no answer yet.
    pub(super) fn count(&self, message: &RxJsonRpcMessage<RoleClient>) -> Result<(), String> {
        match message {
            JsonRpcMessage::Request(_) => self.count_request(),
            _ => Ok(()),
        }
    }

    /// Counts a request of the server.
    ///
    /// # Errors
    /// Too many requests have no answer yet.
    pub(super) fn count_request(&self) -> Result<(), String> {
        match self.0.fetch_add(1, Ordering::Relaxed) >= MAX_REQUESTS {
            true => Err(format!(
                "it sent more than {MAX_REQUESTS} requests without waiting for answers"
            )),
            false => Ok(()),
        }
    }

    /// Notes that a message of ours is being sent.
    pub(super) fn sending(&self, message: &TxJsonRpcMessage<RoleClient>) -> Sending {
        let is_answer = matches!(message, JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_));
        Sending(is_answer.then(|| self.clone()))
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let answered = |requests: usize| Some(requests.saturating_sub(1));
        if let Some(OpenRequests(requests)) = &self.0 {
            // Never fails: the function always returns a value.
            let _ = requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, answered);
        }
    }
}
