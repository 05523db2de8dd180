//! One tab of a browser, and what is done about what its page does unasked: dialogs, downloads, further windows.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chromiumoxide::Page;
use chromiumoxide::cdp::browser_protocol::browser::EventDownloadWillBegin;
use chromiumoxide::cdp::browser_protocol::page::{
    DialogType, EventJavascriptDialogClosed, EventJavascriptDialogOpening, HandleJavaScriptDialogParams,
};
use chromiumoxide::cdp::browser_protocol::target::{
    CloseTargetParams, CreateTargetParams, EventTargetCreated, TargetId, TargetInfo,
};
use chromiumoxide::listeners::EventStream;
use futures_util::StreamExt;
use tokio::sync::{oneshot, watch};

use super::browser::Up;
use super::error::WebError;

/// What is told of one kind of incident at most.
const TOLD: usize = 5;

/// A tab. Closed when dropped, with all that its page has opened.
#[derive(Debug)]
pub(super) struct Tab {
    pub(super) page: Page,
    pub(super) up: Arc<Up>,
    doings: Arc<Doings>,
}

/// What a page has done unasked.
#[derive(Debug, Default)]
struct Doings {
    state: Mutex<State>,
    /// The first thing that it wanted to be downloaded.
    download: watch::Sender<Option<String>>,
}

#[derive(Debug, Default)]
struct State {
    /// A person has the page: dialogs and windows are theirs.
    paused: bool,
    dialog: bool,
    /// The tab itself and all that was opened from it.
    family: HashSet<TargetId>,
    told: Vec<String>,
    untold: usize,
}

/// What is listened to.
struct Watch {
    page: Page,
    up: Arc<Up>,
    doings: Arc<Doings>,
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
        let mut blank = CreateTargetParams::new("about:blank");
        // Where there is no window yet, a tab alone can't be opened.
        blank.new_window = Some(true);
        blank.background = Some(!seen);
        let targets = up.chrome.event_listener::<EventTargetCreated>().await?;
        let downloads = up.chrome.event_listener::<EventDownloadWillBegin>().await?;
        let page = up.chrome.new_page(blank).await?;
        let doings = Arc::<Doings>::default();
        doings.state().family.insert(page.target_id().clone());
        let tab = Self { page, up, doings };
        let watch = Watch { page: tab.page.clone(), up: Arc::clone(&tab.up), doings: Arc::clone(&tab.doings) };
        let opening = tab.page.event_listener::<EventJavascriptDialogOpening>().await?;
        let closed = tab.page.event_listener::<EventJavascriptDialogClosed>().await?;
        tab.up.runtime.spawn(watch.run(opening, closed, downloads, targets));
        Ok(tab)
    }

    /// Waits until the page wants something to be downloaded, and says what.
    pub(super) async fn download(&self) -> String {
        let mut download = self.doings.download.subscribe();
        let name = download.wait_for(Option::is_some).await.ok().and_then(|name| name.clone());
        match name {
            Some(name) => name,
            None => std::future::pending().await,
        }
    }

    /// From now on a person has the page, or no longer.
    pub(super) async fn set_paused(&self, paused: bool) {
        let dialog = {
            let mut state = self.doings.state();
            state.paused = paused;
            state.dialog
        };
        // Until it is gone, nothing of the page can be read.
        if dialog && !paused {
            let _ = self.page.execute(HandleJavaScriptDialogParams::new(false)).await;
        }
    }

    /// What the page has done unasked, in words.
    pub(super) fn told(&self) -> Vec<String> {
        let state = self.doings.state();
        let more = (state.untold > 0).then(|| format!("it did {} more things of this kind", state.untold));
        state.told.iter().cloned().chain(more).collect()
    }

    /// Where its page is debugged by a browser of the user's.
    pub(super) fn developer_tools(&self) -> String {
        let (port, id) = (self.up.port, self.page.target_id().inner());
        format!("http://127.0.0.1:{port}/devtools/inspector.html?ws=127.0.0.1:{port}/devtools/page/{id}")
    }
}

impl Drop for Tab {
    fn drop(&mut self) {
        let family: Vec<_> = self.doings.state().family.drain().collect();
        let up = Arc::clone(&self.up);
        self.up.runtime.spawn(async move {
            for target in family {
                // One that is gone is closed.
                let _ = up.chrome.execute(CloseTargetParams::new(target)).await;
            }
        });
    }
}

impl Doings {
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
    /// Until the tab is closed: then its events end.
    async fn run(
        self,
        mut opening: EventStream<EventJavascriptDialogOpening>,
        mut closed: EventStream<EventJavascriptDialogClosed>,
        mut downloads: EventStream<EventDownloadWillBegin>,
        mut targets: EventStream<EventTargetCreated>,
    ) {
        loop {
            tokio::select! {
                dialog = opening.next() => match dialog {
                    Some(dialog) => self.dialog(&dialog).await,
                    None => return,
                },
                dialog = closed.next() => match dialog {
                    Some(_) => self.doings.state().dialog = false,
                    None => return,
                },
                Some(download) = downloads.next() => self.download(&download),
                Some(target) = targets.next() => self.window(&target.target_info).await,
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
