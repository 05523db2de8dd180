//! The requests of a server that have no answer yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, JsonRpcMessage, JsonRpcNotification, NumberOrString, RequestId,
    ServerNotification,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

/// The most requests of a server that wait for their answer. With another one, the connection ends.
const MAX_REQUESTS: usize = 64;

/// The most bytes of the id of a request.
const MAX_ID: usize = 1024;

/// The requests of a server that have no answer yet: how many have each id. A server may use an id
/// again as soon as it has read the answer. Clones share them.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<Mutex<HashMap<RequestId, usize>>>);

/// A message of ours that is being sent. If it answers a request of the server, that request is open
/// until this is dropped.
pub(super) struct Sending(Option<(OpenRequests, RequestId)>);

impl OpenRequests {
    /// Takes note of a message of the server: a request, or the withdrawal of one, which gets no
    /// answer.
    ///
    /// # Errors
    /// The reason why the connection ends: too many requests have no answer yet, or an id can't be
    /// used.
    pub(super) fn receive(&self, message: &RxJsonRpcMessage<RoleClient>) -> Result<(), String> {
        match message {
            JsonRpcMessage::Request(request) => self.add(&request.id),
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification:
                    ServerNotification::CancelledNotification(CancelledNotification { params, .. }),
                ..
            }) => {
                params.request_id.iter().for_each(|id| self.remove(id));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes note of a request of the server.
    ///
    /// # Errors
    /// The reason why the connection ends: too many requests have no answer yet, or the id can't be
    /// used.
    pub(super) fn add(&self, id: &RequestId) -> Result<(), String> {
        if matches!(id, NumberOrString::String(id) if id.len() > MAX_ID) {
            return Err(format!("it sent a request with an id of more than {MAX_ID} bytes"));
        }
        let mut open = self.lock();
        if open.values().sum::<usize>() >= MAX_REQUESTS {
            return Err(format!(
                "it sent more than {MAX_REQUESTS} requests without waiting for answers"
            ));
        }
        *open.entry(id.clone()).or_default() += 1;
        Ok(())
    }

    /// Notes that a message of ours is being sent.
    pub(super) fn sending(&self, message: &TxJsonRpcMessage<RoleClient>) -> Sending {
        let answered = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
        };
        Sending(answered.map(|id| (self.clone(), id.clone())))
    }

    fn remove(&self, id: &RequestId) {
        let mut open = self.lock();
        if let Some(requests) = open.get_mut(id) {
            *requests -= 1;
            if *requests == 0 {
                open.remove(id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some((requests, id)) = &self.0 {
            requests.remove(id);
        }
    }
}
