//! The requests of a server that have no answer yet.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rmcp::RoleClient;
use rmcp::model::{
    CancelledNotification, ClientRequest, JsonRpcMessage, JsonRpcNotification, NumberOrString,
    RequestId, ServerNotification, ServerResult,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};

use super::calls::Calls;

/// The most requests of a server that wait for their answer. With another one, the connection ends.
const MAX_REQUESTS: usize = 64;

/// The most bytes of the id of a request.
const MAX_ID: usize = 1024;

/// The requests of a server that have no answer yet, by their ids. Clones share them.
#[derive(Clone, Default)]
pub(super) struct OpenRequests(Arc<Mutex<Open>>);

#[derive(Default)]
struct Open {
    requests: HashMap<RequestId, OfId>,
    /// The id of our request that begins the old era, until it is answered.
    initialize: Option<RequestId>,
    /// Whether the server speaks the old era, in which it may withdraw its requests. `rmcp` ignores
    /// such a withdrawal in the modern era.
    is_old_era: bool,
}

/// The open requests of one id. A server may use an id again as soon as it has read the answer.
#[derive(Default)]
struct OfId {
    /// How many there are, including those with an answer that is being sent.
    count: usize,
    /// Whether the last one was neither answered nor withdrawn. An answer that is being sent takes
    /// memory until the server reads it, so a withdrawal comes too late then.
    is_waiting: bool,
}

/// A message of ours that is being sent. If it answers a request of the server, that request is open
/// until this is dropped.
pub(super) struct Sending(Option<(OpenRequests, RequestId)>);

impl OpenRequests {
    /// Receives a message of the server, and returns it unless it is progress. Progress is passed
    /// to its call here: `rmcp` passes it on in tasks, and may pass on the answer of a call first.
    /// Takes note of requests, and of the withdrawal of one, which gets no answer.
    ///
    /// # Errors
    /// The reason why the connection ends: too many requests have no answer yet, or an id can't be
    /// used.
    pub(super) fn receive(
        &self,
        message: RxJsonRpcMessage<RoleClient>,
        calls: &Calls,
    ) -> Result<Option<RxJsonRpcMessage<RoleClient>>, String> {
        match message {
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification: ServerNotification::ProgressNotification(progress),
                ..
            }) => {
                calls.progress(progress.params);
                return Ok(None);
            }
            JsonRpcMessage::Notification(JsonRpcNotification {
                notification:
                    ServerNotification::CancelledNotification(CancelledNotification {
                        ref params, ..
                    }),
                ..
            }) => params.request_id.iter().for_each(|id| self.lock().withdraw(id)),
            JsonRpcMessage::Request(ref request) => self.add(&request.id)?,
            JsonRpcMessage::Response(ref response) => {
                self.lock().answered(&response.id, &response.result);
            }
            JsonRpcMessage::Notification(_) | JsonRpcMessage::Error(_) => {}
        }
        Ok(Some(message))
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
        if open.requests.values().map(|of_id| of_id.count).sum::<usize>() >= MAX_REQUESTS {
            return Err(format!(
                "it sent more than {MAX_REQUESTS} requests without waiting for answers"
            ));
        }
        let of_id = open.requests.entry(id.clone()).or_default();
        of_id.count += 1;
        of_id.is_waiting = true;
        Ok(())
    }

    /// Notes that a message of ours is being sent.
    pub(super) fn sending(&self, message: &TxJsonRpcMessage<RoleClient>) -> Sending {
        let answered = match message {
            JsonRpcMessage::Response(answer) => Some(&answer.id),
            JsonRpcMessage::Error(answer) => answer.id.as_ref(),
            JsonRpcMessage::Request(request) => {
                if matches!(request.request, ClientRequest::InitializeRequest(_)) {
                    self.lock().initialize = Some(request.id.clone());
                }
                None
            }
            JsonRpcMessage::Notification(_) => None,
        };
        if let Some(id) = answered
            && let Some(of_id) = self.lock().requests.get_mut(id)
        {
            of_id.is_waiting = false;
        }
        Sending(answered.map(|id| (self.clone(), id.clone())))
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Takes note of the answer to a request of ours: that to `initialize` decides the era.
    fn answered(&mut self, id: &RequestId, result: &ServerResult) {
        if self.initialize.as_ref() == Some(id) {
            self.initialize = None;
            self.is_old_era = matches!(result, ServerResult::InitializeResult(result)
                if result.protocol_version.has_initialize());
        }
    }

    /// Removes a request that the server withdraws, unless it is being answered.
    fn withdraw(&mut self, id: &RequestId) {
        if !self.is_old_era {
            return;
        }
        if let Some(of_id) = self.requests.get_mut(id)
            && std::mem::take(&mut of_id.is_waiting)
        {
            self.remove(id);
        }
    }

    fn remove(&mut self, id: &RequestId) {
        if let Some(of_id) = self.requests.get_mut(id) {
            of_id.count -= 1;
            if of_id.count == 0 {
                self.requests.remove(id);
            }
        }
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if let Some((requests, id)) = &self.0 {
            requests.lock().remove(id);
        }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ErrorData;
    use serde_json::{Value, json};

    use super::*;

    /// The open requests of a server that answers `initialize` with this revision.
    fn of_revision(revision: &str) -> OpenRequests {
        let requests = OpenRequests::default();
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                            "clientInfo": {"name": "holdpoint", "version": "1"}});
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                                "params": params});
        drop(requests.sending(&serde_json::from_value(initialize).unwrap()));
        let result = json!({"protocolVersion": revision, "capabilities": {},
                            "serverInfo": {"name": "s", "version": "1"}});
        receive(&requests, json!({"id": 1, "result": result})).unwrap();
        requests
    }

    fn receive(requests: &OpenRequests, mut message: Value) -> Result<(), String> {
        message["jsonrpc"] = json!("2.0");
        let message = serde_json::from_value(message).unwrap();
        requests.receive(message, &Calls::default()).map(drop)
    }

    fn ask(requests: &OpenRequests, id: usize) -> Result<(), String> {
        receive(requests, json!({"id": id, "method": "ping"}))
    }

    fn withdraw(requests: &OpenRequests, id: usize) {
        let params = json!({"requestId": id});
        let message = json!({"method": "notifications/cancelled", "params": params});
        receive(requests, message).unwrap();
    }

    fn sending(requests: &OpenRequests, id: usize) -> Sending {
        let id = NumberOrString::Number(id.try_into().unwrap());
        let error = ErrorData::internal_error("no", None);
        requests.sending(&JsonRpcMessage::error(error, Some(id)))
    }

    #[test]
    fn m_h2_a_withdrawal_frees_no_request_that_is_being_answered() {
        let requests = of_revision("2025-11-25");
        for id in 0..MAX_REQUESTS * 2 {
            ask(&requests, id).unwrap();
            withdraw(&requests, id);
        }
        // One withdrawal of two requests with the same id has an effect.
        ask(&requests, 0).unwrap();
        ask(&requests, 0).unwrap();
        withdraw(&requests, 0);
        withdraw(&requests, 0);
        let mut unread = Vec::new();
        for id in 1..MAX_REQUESTS {
            ask(&requests, id).unwrap();
            unread.push(sending(&requests, id));
            withdraw(&requests, id);
        }
        assert!(ask(&requests, 1).is_err());
        // Each has an end.
        unread.clear();
        for id in 1..MAX_REQUESTS {
            ask(&requests, id).unwrap();
        }
        assert!(ask(&requests, MAX_REQUESTS).is_err());
    }

    #[test]
    fn m_h2_a_withdrawal_frees_no_request_in_the_modern_era() {
        // An answer to no request does not change the era.
        for requests in [of_revision("2026-07-28"), OpenRequests::default()] {
            let result = json!({"protocolVersion": "2025-11-25", "capabilities": {},
                                "serverInfo": {"name": "s", "version": "1"}});
            receive(&requests, json!({"id": 1, "result": result})).unwrap();
            for id in 0..MAX_REQUESTS {
                ask(&requests, id).unwrap();
                withdraw(&requests, id);
            }
            assert!(ask(&requests, 0).is_err());
        }
    }
}
