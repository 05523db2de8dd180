//! One tab of a browser: opened empty, closed when dropped, gone with its browser or its window.

mod watch;

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::browser::Up;
use super::cdp::protocol::{
    CreateTarget, EnableNetwork, EnablePage, GetTargetInfo, HandleJavaScriptDialog, SetLifecycleEventsEnabled,
};
use super::cdp::{Client, Listening};
use super::error::WebError;
use super::guard::Ledger;
use crate::ask::Subject;
use watch::{Doings, Watch};

/// A tab. Closed when dropped, with all that its page has opened.
#[derive(Debug)]
pub(super) struct Tab {
    pub(super) page: Client,
    /// The page's target, and its main frame: they have the same id.
    pub(super) id: String,
    pub(super) up: Arc<Up>,
    /// What of its page's was not let through.
    pub(super) ledger: Arc<Ledger>,
    /// What a pause with it is about.
    pub(super) subject: Subject,
    doings: Arc<Doings>,
    /// Cancelled when it is gone, as its subject is.
    gone: CancellationToken,
    /// The listeners for the browser's events and the page's.
    _watched: [Listening; 2],
}

impl Tab {
    /// Opens an empty one, in a window of its own; in the background unless it is to be seen.
    ///
    /// Done on the browser's own thread: if nobody waits for it any more, it is closed again and not forgotten.
    pub(super) async fn open(up: &Arc<Up>, seen: bool) -> Result<Self, WebError> {
        let (tell, told) = oneshot::channel();
        let up = Arc::clone(up);
        up.runtime.clone().spawn(async move { tell.send(Self::make(up, seen).await) });
        told.await.map_err(|_| WebError::Ended)?
    }

    async fn make(up: Arc<Up>, seen: bool) -> Result<Self, WebError> {
        // Where there is no window yet, a tab alone can't be opened.
        let blank = CreateTarget { url: "about:blank", new_window: true, background: !seen };
        let id = up.chrome.execute(blank).await?.target_id;
        let doings = Doings::of(id.clone());
        let page = match up.chrome.attach(&id).await {
            Ok(page) => page,
            Err(error) => {
                doings.close(&up);
                return Err(error.into());
            }
        };
        let ledger = Arc::new(up.guard.ledger());
        let (kept, subject) = Subject::new();
        let gone = CancellationToken::new();
        let watch = Watch::new(id.clone(), page.clone(), &up, &ledger, &doings, (kept, gone.clone().drop_guard()));
        let tab = Self { page, id, up, ledger, subject, doings, gone, _watched: watch.listen() };
        tab.page.execute(EnablePage {}).await?;
        tab.page.execute(SetLifecycleEventsEnabled { enabled: true }).await?;
        tab.page.execute(EnableNetwork {}).await?;
        Ok(tab)
    }

    /// Where the page is.
    pub(super) async fn url(&self) -> Result<String, WebError> {
        Ok(self.up.chrome.execute(GetTargetInfo { target_id: &self.id }).await?.target_info.url)
    }

    /// Does something with the page, until that is gone.
    pub(super) async fn with<T>(&self, work: impl Future<Output = Result<T, WebError>>) -> Result<T, WebError> {
        tokio::select! {
            biased;
            done = work => match done {
                // The end of its connection is noticed here first.
                Err(WebError::Ended) => self.gone.cancelled().await,
                done => return done,
            },
            () = self.gone.cancelled() => {}
        }
        Err(self.why_gone())
    }

    /// Why it is gone, if not with its browser.
    pub(super) fn why_gone(&self) -> WebError {
        WebError::Gone { how: if self.doings.has_crashed() { "crashed" } else { "was closed" } }
    }

    /// Waits until the page wants something to be downloaded, and says what.
    pub(super) async fn download(&self) -> String {
        self.doings.download().await
    }

    /// From now on a person has the page, or no longer.
    pub(super) async fn set_paused(&self, paused: bool) {
        // Until it is gone, nothing of the page can be read.
        if self.doings.set_paused(paused) && !paused {
            let _ = self.page.execute(HandleJavaScriptDialog { accept: false }).await;
        }
    }

    /// What the page has done unasked, in words.
    pub(super) fn told(&self) -> Vec<String> {
        self.doings.told()
    }

    /// Where its page is debugged by a browser of the user's.
    pub(super) fn developer_tools(&self) -> String {
        let (port, id) = (self.up.port, &self.id);
        format!("http://127.0.0.1:{port}/devtools/inspector.html?ws=127.0.0.1:{port}/devtools/page/{id}")
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        self.doings.close(&self.up);
    }
}
