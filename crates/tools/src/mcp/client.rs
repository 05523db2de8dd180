//! Our side of the connection to a server: the answers to its requests.
#![allow(deprecated, reason = "servers of the old era ask for roots")]

use std::path::Path;
use std::sync::Arc;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientNotification, CustomNotification, ElicitRequestParams,
    ElicitResult, ElicitationCapability, ErrorData, FormElicitationCapability, Implementation,
    ListRootsResult, RequestId, Root, UrlElicitationCapability,
};
use rmcp::service::{NotificationContext, Peer, RequestContext, RoleClient, ServiceError};
use tokio::sync::Notify;

use super::calls::Calls;

/// Answers the requests of one server. It may ask the user and read the path of the workspace, but
/// not use the model (sampling).
pub(super) struct Client {
    pub(super) calls: Calls,
    /// The workspace, as the only root.
    pub(super) roots: ListRootsResult,
    /// Notified when the list of tools has changed.
    pub(super) tools_changed: Arc<Notify>,
}

/// The workspace as the only root.
pub(super) fn roots(folder: &Path) -> ListRootsResult {
    let mut uri = "file://".to_owned();
    for byte in folder.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    ListRootsResult::new(vec![Root::new(uri)])
}

/// Asks a server to stop working on a request. The request stays open until its answer comes:
/// `rmcp` closes it at once if it is cancelled by its own type of this notification.
pub(super) async fn cancel(
    peer: &Peer<RoleClient>,
    request: &RequestId,
    why: &str,
) -> Result<(), ServiceError> {
    let params = serde_json::json!({"requestId": request, "reason": why});
    let cancelled = CustomNotification::new("notifications/cancelled", Some(params));
    peer.send_notification(ClientNotification::CustomNotification(cancelled)).await
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(Default::default());
        capabilities.elicitation = Some(
            ElicitationCapability::new()
                .with_form(FormElicitationCapability::new())
                .with_url(UrlElicitationCapability::new()),
        );
        ClientConfig::new(capabilities, Implementation::new("holdpoint", env!("CARGO_PKG_VERSION")))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots.clone())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        tokio::select! {
            result = self.calls.elicit(request) => Ok(result),
            // The server has withdrawn the question, or has ended.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
        }
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.tools_changed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_the_workspace_is_a_root_whatever_its_path() {
        let roots = roots(Path::new("/home/me/a b/ä#?")).roots;
        assert_eq!(roots[0].uri, "file:///home/me/a%20b/%C3%A4%23%3F");
    }
}
