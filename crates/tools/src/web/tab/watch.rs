//! The handling of events that a page causes unasked: dialogs, downloads, further windows and its
//! end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::ask::SubjectGuard;
use crate::web::browser::BrowserConnection;
use crate::web::cdp::protocol::{
    CloseTarget, DownloadWillBegin, HandleJavaScriptDialog, JavascriptDialogClosed,
    JavascriptDialogOpening, RequestWillBeSent, TargetCrashed, TargetCreated, TargetInfo,
    WebSocketCreated,
};
use crate::web::cdp::{Client, Event, ListenerGuard};
use crate::web::guard::Ledger;

/// How many incidents of a tab are described; further ones are counted.
const MAX_INCIDENTS: usize = 5;

/// The incidents of one tab.
#[derive(Debug, Default)]
pub(super) struct Incidents {
    state: Mutex<State>,
    /// The file name of the page's first download.
    download: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the user controls the page, and with it dialogs and windows.
    paused: bool,
    dialog_open: bool,
    crashed: bool,
    /// The tab and all windows opened from it.
    family: HashSet<String>,
    described: Vec<String>,
    undescribed: usize,
}

/// The listener to a tab's events.
pub(super) struct TabListener {
    id: String,
    page: Client,
    connection: Arc<BrowserConnection>,
    ledger: Arc<Ledger>,
    incidents: Arc<Incidents>,
    /// Dropped when the tab ends.
    life: Mutex<Option<(SubjectGuard, DropGuard)>>,
}

/// Ends a tab when the listener to its page is dropped.
struct EndGuard(Arc<TabListener>);

impl Incidents {
    pub(super) fn for_tab(tab: String) -> Arc<Self> {
        let state = State { family: HashSet::from([tab]), ..State::default() };
        Arc::new(Self { state: Mutex::new(state), ..Self::default() })
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.state().crashed
    }

    /// Sets the pause and returns whether a dialog is open.
    pub(super) fn set_paused(&self, paused: bool) -> bool {
        let mut state = self.state();
        state.paused = paused;
        state.dialog_open
    }

    /// Starts to close the tab and all windows opened from it.
    pub(super) fn close(&self, connection: &Arc<BrowserConnection>) {
        for target in std::mem::take(&mut self.state().family) {
            close(connection, target);
        }
    }

    /// Waits for the page's first download, and returns its file name.
    pub(super) async fn wait_for_download(&self) -> String {
        let mut download = self.download.subscribe();
        let name = download.wait_for(Option::is_some).await.ok().and_then(|name| name.clone());
        match name {
            Some(name) => name,
            None => std::future::pending().await,
        }
    }

    pub(super) fn descriptions(&self) -> Vec<String> {
        let state = self.state();
        let more = (state.undescribed > 0)
            .then(|| format!("{} more actions are not listed", state.undescribed));
        state.described.iter().cloned().chain(more).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add_incident(&mut self, description: String) {
        match self.described.len() < MAX_INCIDENTS {
            true => self.described.push(description),
            false => self.undescribed += 1,
        }
    }
}

impl TabListener {
    pub(super) fn new(
        id: String,
        page: Client,
        connection: &Arc<BrowserConnection>,
        ledger: &Arc<Ledger>,
        incidents: &Arc<Incidents>,
        life: (SubjectGuard, DropGuard),
    ) -> Arc<Self> {
        let (connection, ledger, incidents) =
            (Arc::clone(connection), Arc::clone(ledger), Arc::clone(incidents));
        Arc::new(Self { id, page, connection, ledger, incidents, life: Mutex::new(Some(life)) })
    }

    /// Starts listening to the browser and to the page.
    pub(super) fn listen(self: Arc<Self>) -> [ListenerGuard; 2] {
        let (chrome, page) = (self.connection.chrome.clone(), self.page.clone());
        let end_guard = EndGuard(Arc::clone(&self));
        [
            chrome.listen(move |event| self.on_browser_event(event)),
            page.listen(move |event| end_guard.0.on_page_event(event)),
        ]
    }

    /// Handles an event of the browser, which may concern any tab.
    fn on_browser_event(&self, event: &Event<'_>) {
        if let Some(created) = event.read::<TargetCreated>() {
            self.on_window(&created.target_info);
        } else if let Some(download) = event.read::<DownloadWillBegin>() {
            self.on_download(&download);
        } else if let Some(crash) = event.read::<TargetCrashed>()
            && crash.target_id == self.id
        {
            self.incidents.state().crashed = true;
            self.end();
        }
    }

    fn on_page_event(&self, event: &Event<'_>) {
        if let Some(sent) = event.read::<RequestWillBeSent>() {
            self.ledger.requested(&sent.request.url);
        } else if let Some(opened) = event.read::<WebSocketCreated>() {
            self.ledger.requested(&opened.url);
        } else if let Some(dialog) = event.read::<JavascriptDialogOpening>() {
            self.on_dialog(&dialog);
        } else if event.read::<JavascriptDialogClosed>().is_some() {
            self.incidents.state().dialog_open = false;
        }
    }

    /// Marks the tab as closed or crashed.
    fn end(&self) {
        // Dropped after the lock is released.
        let life = self.life.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(life);
    }

    /// Dismisses a dialog, unless the user controls the page. Leaving the page is always accepted.
    fn on_dialog(&self, dialog: &JavascriptDialogOpening) {
        let leaving = dialog.r#type == "beforeunload";
        {
            let mut state = self.incidents.state();
            state.dialog_open = true;
            if state.paused {
                return;
            }
            if !leaving {
                let kind = &dialog.r#type;
                state.add_incident(format!(
                    "showed a dialog ({kind}), which was dismissed: {:?}",
                    brief(&dialog.message)
                ));
            }
        }
        let page = self.page.clone();
        self.connection
            .runtime
            .spawn(async move { page.execute(HandleJavaScriptDialog { accept: leaving }).await });
    }

    fn on_download(&self, download: &DownloadWillBegin) {
        // A page's main frame has the id of its tab.
        let is_ours = self.incidents.state().family.contains(&download.frame_id);
        if is_ours {
            let name = brief(&download.suggested_filename);
            self.incidents
                .state()
                .add_incident(format!("started a download of `{name}`, which was refused"));
            self.incidents.download.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(name);
                is_first
            });
        }
    }

    /// Closes a window that the page opened. During a pause, it stays open until the tab closes.
    fn on_window(&self, opened: &TargetInfo) {
        let is_ours = |state: &State| {
            opened.opener_id.as_ref().is_some_and(|opener| state.family.contains(opener))
        };
        {
            let mut state = self.incidents.state();
            if !is_ours(&state) || opened.r#type != "page" {
                return;
            }
            if state.paused {
                state.family.insert(opened.target_id.clone());
                return;
            }
            state.add_incident(format!(
                "opened another window, which was closed: {:?}",
                brief(&opened.url)
            ));
        }
        close(&self.connection, opened.target_id.clone());
    }
}

impl Drop for EndGuard {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Starts to close a target; one that is already gone is not an error.
fn close(connection: &Arc<BrowserConnection>, target: String) {
    let chrome = connection.chrome.clone();
    connection
        .runtime
        .spawn(async move { chrome.execute(CloseTarget { target_id: &target }).await });
}

/// The text, cut to its first 200 bytes.
fn brief(text: &str) -> String {
    const MAX_BYTES: usize = 200;
    let end = text.floor_char_boundary(MAX_BYTES);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}
