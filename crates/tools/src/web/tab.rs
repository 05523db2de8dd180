//! A tab of a browser, which is closed when dropped and ends with its browser or its window.

mod watch;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::browser::BrowserConnection;
use super::cdp::protocol::{
    CreateTarget, EnableNetwork, EnablePage, GetTargetInfo, HandleJavaScriptDialog,
    SetLifecycleEventsEnabled,
};
use super::cdp::{Client, ListenerGuard};
use super::error::WebError;
use super::guard::Ledger;
use crate::ask::Subject;
use watch::{Incidents, TabListener};

/// A tab. Dropping it closes it and all windows that its page has opened.
#[derive(Debug)]
pub(super) struct Tab {
    pub(super) page: Client,
    /// The id of the page's target, which is also the id of its main frame.
    pub(super) id: String,
    pub(super) connection: Arc<BrowserConnection>,
    /// The connections of the page that were refused or failed.
    pub(super) ledger: Arc<Ledger>,
    /// The subject of a pause on this page.
    pub(super) subject: Subject,
    incidents: Arc<Incidents>,
    /// Cancelled when the tab ends, together with its subject.
    gone: CancellationToken,
    /// The listeners for the browser's events and the page's.
    _watched: [ListenerGuard; 2],
}

impl Tab {
    /// Opens an empty tab in its own window, in the background unless `in_front`.
    ///
    /// The work runs on the browser's own thread: if the caller stops waiting, the tab is closed
    /// and does not leak.
    pub(super) async fn open(
        connection: &Arc<BrowserConnection>,
        in_front: bool,
    ) -> Result<Self, WebError> {
        let (sender, receiver) = oneshot::channel();
        let connection = Arc::clone(connection);
        connection
            .runtime
            .clone()
            .spawn(async move { sender.send(Self::make(connection, in_front).await) });
        receiver.await.map_err(|_| WebError::Ended)?
    }

    async fn make(connection: Arc<BrowserConnection>, in_front: bool) -> Result<Self, WebError> {
        // The browser may not have a window yet in which it could open a tab.
        let blank = CreateTarget { url: "about:blank", new_window: true, background: !in_front };
        let id = connection.chrome.execute(blank).await?.target_id;
        let incidents = Incidents::for_tab(id.clone());
        let page = match connection.chrome.attach(&id).await {
            Ok(page) => page,
            Err(error) => {
                incidents.close(&connection);
                return Err(error.into());
            }
        };
        let ledger = Arc::new(connection.guard.ledger());
        let (subject_guard, subject) = Subject::new();
        let gone = CancellationToken::new();
        let listener = TabListener::new(
            id.clone(),
            page.clone(),
            &connection,
            &ledger,
            &incidents,
            (subject_guard, gone.clone().drop_guard()),
        );
        let tab = Self {
            page,
            id,
            connection,
            ledger,
            subject,
            incidents,
            gone,
            _watched: listener.listen(),
        };
        tab.page.execute(EnablePage {}).await?;
        tab.page.execute(SetLifecycleEventsEnabled { enabled: true }).await?;
        tab.page.execute(EnableNetwork {}).await?;
        Ok(tab)
    }

    /// The page's current address.
    pub(super) async fn url(&self) -> Result<String, WebError> {
        Ok(self
            .connection
            .chrome
            .execute(GetTargetInfo { target_id: &self.id })
            .await?
            .target_info
            .url)
    }

    /// Runs `work` until the page is gone.
    pub(super) async fn with<T>(
        &self,
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        tokio::select! {
            biased;
            done = work => match done {
                // The page's connection ends shortly before `gone` is cancelled.
                Err(WebError::Ended) => self.gone.cancelled().await,
                done => return done,
            },
            () = self.gone.cancelled() => {}
        }
        Err(self.gone_error())
    }

    /// The error for a tab that ended while its browser still runs.
    pub(super) fn gone_error(&self) -> WebError {
        WebError::Gone { how: if self.incidents.has_crashed() { "crashed" } else { "was closed" } }
    }

    /// Waits until the page starts a download, and returns the file name.
    pub(super) async fn wait_for_download(&self) -> String {
        self.incidents.wait_for_download().await
    }

    /// Starts or ends a pause, during which the user controls the page.
    pub(super) async fn set_paused(&self, paused: bool) {
        // An open dialog blocks reading the page, so it is dismissed.
        if self.incidents.set_paused(paused) && !paused {
            let _ = self.page.execute(HandleJavaScriptDialog { accept: false }).await;
        }
    }

    /// Descriptions of the page's unrequested actions.
    pub(super) fn incidents(&self) -> Vec<String> {
        self.incidents.descriptions()
    }

    /// The DevTools address of the page, for the user's own browser.
    pub(super) fn developer_tools(&self) -> String {
        let (port, id) = (self.connection.port, &self.id);
        format!(
            "http://127.0.0.1:{port}/devtools/inspector.html?ws=127.0.0.1:{port}/devtools/page/{id}"
        )
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.incidents.close(&self.connection);
    }
}
