//! What is done about what a page does unasked: dialogs, downloads, further windows, and its end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::ask::SubjectKept;
use crate::web::browser::Up;
use crate::web::cdp::protocol::{
    CloseTarget, DownloadWillBegin, HandleJavaScriptDialog, JavascriptDialogClosed, JavascriptDialogOpening,
    RequestWillBeSent, TargetCrashed, TargetCreated, TargetInfo, WebSocketCreated,
};
use crate::web::cdp::{Client, Event, Listening};
use crate::web::guard::Ledger;

/// What is told of one kind of incident at most.
const TOLD: usize = 5;

/// What a page has done unasked.
#[derive(Debug, Default)]
pub(super) struct Doings {
    state: Mutex<State>,
    /// The first thing that it wanted to be downloaded.
    download: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct State {
    /// A person has the page: dialogs and windows are theirs.
    paused: bool,
    dialog: bool,
    crashed: bool,
    /// The tab itself and all that was opened from it.
    family: HashSet<String>,
    told: Vec<String>,
    untold: usize,
}

/// The listener to a tab's events.
pub(super) struct Watch {
    id: String,
    page: Client,
    up: Arc<Up>,
    ledger: Arc<Ledger>,
    doings: Arc<Doings>,
    /// Dropped when the tab ends.
    life: Mutex<Option<(SubjectKept, DropGuard)>>,
}

/// Drops the `life` of a tab when its page is no longer listened to.
struct Life(Arc<Watch>);

impl Doings {
    /// Of a tab that has just been opened.
    pub(super) fn of(tab: String) -> Arc<Self> {
        let state = State { family: HashSet::from([tab]), ..State::default() };
        Arc::new(Self { state: Mutex::new(state), ..Self::default() })
    }

    pub(super) fn has_crashed(&self) -> bool {
        self.state().crashed
    }

    /// Whether there is a dialog.
    pub(super) fn set_paused(&self, paused: bool) -> bool {
        let mut state = self.state();
        state.paused = paused;
        state.dialog
    }

    /// Begins to close the tab and all that was opened from it.
    pub(super) fn close(&self, up: &Arc<Up>) {
        for target in std::mem::take(&mut self.state().family) {
            close(up, target);
        }
    }

    pub(super) async fn download(&self) -> String {
        let mut download = self.download.subscribe();
        let name = download.wait_for(Option::is_some).await.ok().and_then(|name| name.clone());
        match name {
            Some(name) => name,
            None => std::future::pending().await,
        }
    }

    pub(super) fn told(&self) -> Vec<String> {
        let state = self.state();
        let more = (state.untold > 0).then(|| format!("it did {} more things of this kind", state.untold));
        state.told.iter().cloned().chain(more).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self, what: String) {
        match self.told.len() < TOLD {
            true => self.told.push(what),
            false => self.untold += 1,
        }
    }
}

impl Watch {
    pub(super) fn new(
        id: String,
        page: Client,
        up: &Arc<Up>,
        ledger: &Arc<Ledger>,
        doings: &Arc<Doings>,
        life: (SubjectKept, DropGuard),
    ) -> Arc<Self> {
        let (up, ledger, doings) = (Arc::clone(up), Arc::clone(ledger), Arc::clone(doings));
        Arc::new(Self { id, page, up, ledger, doings, life: Mutex::new(Some(life)) })
    }

    /// Listens, to the browser and to the page.
    pub(super) fn listen(self: Arc<Self>) -> [Listening; 2] {
        let (chrome, page) = (self.up.chrome.clone(), self.page.clone());
        let of_page = Life(Arc::clone(&self));
        [chrome.listen(move |event| self.hear_browser(event)), page.listen(move |event| of_page.0.hear_page(event))]
    }

    /// Handles an event of the browser, which may concern any tab.
    fn hear_browser(&self, event: &Event<'_>) {
        if let Some(created) = event.read::<TargetCreated>() {
            self.window(&created.target_info);
        } else if let Some(download) = event.read::<DownloadWillBegin>() {
            self.download(&download);
        } else if let Some(crash) = event.read::<TargetCrashed>()
            && crash.target_id == self.id
        {
            self.doings.state().crashed = true;
            self.end();
        }
    }

    /// Handles an event of the page.
    fn hear_page(&self, event: &Event<'_>) {
        if let Some(sent) = event.read::<RequestWillBeSent>() {
            self.ledger.asked(&sent.request.url);
        } else if let Some(opened) = event.read::<WebSocketCreated>() {
            self.ledger.asked(&opened.url);
        } else if let Some(dialog) = event.read::<JavascriptDialogOpening>() {
            self.dialog(&dialog);
        } else if event.read::<JavascriptDialogClosed>().is_some() {
            self.doings.state().dialog = false;
        }
    }

    /// It is closed, or of no use.
    fn end(&self) {
        // Dropped without the lock.
        let life = self.life.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(life);
    }

    /// Dismissed, unless a person has the page; leaving is agreed to.
    fn dialog(&self, dialog: &JavascriptDialogOpening) {
        let leaving = dialog.r#type == "beforeunload";
        {
            let mut state = self.doings.state();
            state.dialog = true;
            if state.paused {
                return;
            }
            if !leaving {
                let kind = &dialog.r#type;
                state.tell(format!("it showed a dialog ({kind}), which was dismissed: {:?}", brief(&dialog.message)));
            }
        }
        let page = self.page.clone();
        self.up.runtime.spawn(async move { page.execute(HandleJavaScriptDialog { accept: leaving }).await });
    }

    fn download(&self, download: &DownloadWillBegin) {
        // A page's main frame has the id of its tab.
        let is_ours = self.doings.state().family.contains(&download.frame_id);
        if is_ours {
            let name = brief(&download.suggested_filename);
            self.doings.state().tell(format!("it wanted `{name}` to be downloaded, which was refused"));
            self.doings.download.send_if_modified(|first| {
                let is_first = first.is_none();
                first.get_or_insert(name);
                is_first
            });
        }
    }

    /// Closed, unless a person has the page: then it is closed with it.
    fn window(&self, opened: &TargetInfo) {
        let is_ours = |state: &State| opened.opener_id.as_ref().is_some_and(|opener| state.family.contains(opener));
        {
            let mut state = self.doings.state();
            if !is_ours(&state) || opened.r#type != "page" {
                return;
            }
            if state.paused {
                state.family.insert(opened.target_id.clone());
                return;
            }
            state.tell(format!("it opened another window, which was closed: {:?}", brief(&opened.url)));
        }
        close(&self.up, opened.target_id.clone());
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Begins to close a tab. One that is gone is closed.
fn close(up: &Arc<Up>, target: String) {
    let chrome = up.chrome.clone();
    up.runtime.spawn(async move { chrome.execute(CloseTarget { target_id: &target }).await });
}

/// As much of it as is told.
fn brief(text: &str) -> String {
    const MOST: usize = 200;
    let end = text.floor_char_boundary(MOST);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}
