//! What is done about what a page does unasked: dialogs, downloads, further windows, and its end.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chromiumoxide::cdp::browser_protocol::browser::EventDownloadWillBegin;
use chromiumoxide::cdp::browser_protocol::network::{EventRequestWillBeSent, EventWebSocketCreated};
use chromiumoxide::cdp::browser_protocol::page::{
    DialogType, EventJavascriptDialogClosed, EventJavascriptDialogOpening, HandleJavaScriptDialogParams,
};
use chromiumoxide::cdp::browser_protocol::target::{
    CloseTargetParams, EventTargetCrashed, EventTargetCreated, TargetId, TargetInfo,
};
use chromiumoxide::error::CdpError;
use chromiumoxide::listeners::EventStream;
use chromiumoxide::{Browser as Chrome, Page};
use futures_util::StreamExt;
use tokio::sync::watch;
use tokio_util::sync::DropGuard;

use crate::ask::SubjectKept;
use crate::web::browser::Up;
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
    family: HashSet<TargetId>,
    told: Vec<String>,
    untold: usize,
}

/// What is listened to, and what ends with that.
pub(super) struct Watch {
    pub(super) page: Page,
    pub(super) up: Arc<Up>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) doings: Arc<Doings>,
    pub(super) _kept: SubjectKept,
    pub(super) _gone: DropGuard,
}

/// What a browser tells of all its tabs.
pub(super) struct OfBrowser {
    targets: EventStream<EventTargetCreated>,
    crashes: EventStream<EventTargetCrashed>,
    downloads: EventStream<EventDownloadWillBegin>,
}

/// What is told of one page, until it is gone.
pub(super) struct OfPage {
    opening: EventStream<EventJavascriptDialogOpening>,
    closed: EventStream<EventJavascriptDialogClosed>,
    requests: EventStream<EventRequestWillBeSent>,
    sockets: EventStream<EventWebSocketCreated>,
}

pub(super) async fn of_browser(chrome: &Chrome) -> Result<OfBrowser, CdpError> {
    Ok(OfBrowser {
        targets: chrome.event_listener().await?,
        crashes: chrome.event_listener().await?,
        downloads: chrome.event_listener().await?,
    })
}

pub(super) async fn of_page(page: &Page) -> Result<OfPage, CdpError> {
    Ok(OfPage {
        opening: page.event_listener().await?,
        closed: page.event_listener().await?,
        requests: page.event_listener().await?,
        sockets: page.event_listener().await?,
    })
}

impl Doings {
    /// Of a tab that has just been opened.
    pub(super) fn of(tab: TargetId) -> Arc<Self> {
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

    /// The tab, and all that was opened from it: nothing is, any more.
    pub(super) fn disband(&self) -> HashSet<TargetId> {
        std::mem::take(&mut self.state().family)
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
    /// Until the tab is closed: then its events end; or has crashed: then it is of no use.
    pub(super) async fn run(self, mut browser: OfBrowser, mut page: OfPage) {
        loop {
            tokio::select! {
                dialog = page.opening.next() => match dialog {
                    Some(dialog) => self.dialog(&dialog).await,
                    None => return,
                },
                dialog = page.closed.next() => match dialog {
                    Some(_) => self.doings.state().dialog = false,
                    None => return,
                },
                Some(sent) = page.requests.next() => self.ledger.asked(&sent.request.url),
                Some(opened) = page.sockets.next() => self.ledger.asked(&opened.url),
                Some(download) = browser.downloads.next() => self.download(&download),
                Some(target) = browser.targets.next() => self.window(&target.target_info).await,
                Some(crash) = browser.crashes.next() => {
                    if crash.target_id == *self.page.target_id() {
                        self.doings.state().crashed = true;
                        return;
                    }
                }
            }
        }
    }

    /// Dismissed, unless a person has the page; leaving is agreed to.
    async fn dialog(&self, dialog: &EventJavascriptDialogOpening) {
        let leaving = dialog.r#type == DialogType::Beforeunload;
        {
            let mut state = self.doings.state();
            state.dialog = true;
            if state.paused {
                return;
            }
            if !leaving {
                let kind = dialog.r#type.as_ref();
                state.tell(format!("it showed a dialog ({kind}), which was dismissed: {:?}", brief(&dialog.message)));
            }
        }
        let _ = self.page.execute(HandleJavaScriptDialogParams::new(leaving)).await;
    }

    fn download(&self, download: &EventDownloadWillBegin) {
        // A page's main frame has the id of its tab.
        let is_ours = self.doings.state().family.iter().any(|target| target.inner() == download.frame_id.inner());
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
    async fn window(&self, opened: &TargetInfo) {
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
        let _ = self.up.chrome.execute(CloseTargetParams::new(opened.target_id.clone())).await;
    }
}

/// As much of it as is told.
fn brief(text: &str) -> String {
    const MOST: usize = 200;
    let end = text.floor_char_boundary(MOST);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}
