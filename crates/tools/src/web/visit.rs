//! One visit to a page: a browser, the way there, the page, the person who looks at it, and what is read in the end.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{PauseKind, PauseResponse, WebAction, WebRequest};
use url::Url;

use super::browser::{LAUNCH_WITHIN, Lease, Up};
use super::error::WebError;
use super::find::find;
use super::guard::{Ask, Verdict};
use super::location;
use super::page::{Arrival, load};
use super::private;
use super::read::Read;
use super::screenshot;
use super::search;
use super::session_browser::SessionBrowser;
use super::tab::Tab;
use super::waiting::Waiting;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::shown;

/// How long the browser may take for what it does at once: to open a tab, to say where something is.
const AT_ONCE: Duration = Duration::from_secs(10);

/// How long a page may take to be read. One whose scripts never rest can't be.
const READ_WITHIN: Duration = Duration::from_secs(20);

/// What is said of a page that shows no text.
const NO_TEXT: &str = "[no text is shown there: it may be empty, a picture, or a document such as a PDF; `screenshot` shows what there is]";

/// How long a person may take.
const FOR_EVER: Duration = Duration::MAX;

/// One call of the tool.
pub(super) struct Visit<'a> {
    session: &'a SessionBrowser,
    context: &'a ToolContext,
    request: &'a WebRequest,
    url: String,
    waiting: Waiting<'a>,
}

impl<'a> Visit<'a> {
    pub(super) fn new(
        session: &'a SessionBrowser,
        context: &'a ToolContext,
        request: &'a WebRequest,
    ) -> Result<Self, ToolError> {
        let url = match &request.action {
            WebAction::Search { query } => search::address(&session.settings().search, query)?,
            WebAction::OpenPage { url } | WebAction::FindInPage { url, .. } | WebAction::Screenshot { url, .. } => {
                url.clone()
            }
        };
        Ok(Self { session, context, request, url, waiting: Waiting::new(context)? })
    }

    /// What it brought, for the model.
    pub(super) fn run(&self) -> Result<String, ToolError> {
        let settings = self.session.settings();
        let visible = self.request.is_visible(settings);
        let lease = self.session.lease(visible, self.context)?;
        let up = self.waiting.wait(lease.ended(), ("the start of the browser", LAUNCH_WITHIN), lease.up())?;
        self.go(&lease, &up)?;
        let tab = ("a new tab", AT_ONCE);
        let tab = self.waiting.wait(lease.ended(), tab, Tab::open(&up, self.request.pause))?;
        let within = self.session.load();
        let loading = ("loading the page", within + AT_ONCE);
        let arrival = self.wait(&lease, &tab, loading, load(&tab, &self.url, within))?;
        if self.request.pause {
            self.pause(&lease, &tab)?;
        }
        let said = self.wait(&lease, &tab, ("reading the page", READ_WITHIN), self.bring(&tab, arrival))?;
        Ok(said)
    }

    /// Waits for what is done with a page.
    fn wait<T>(
        &self,
        lease: &Lease,
        tab: &Tab,
        limit: (&'static str, Duration),
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        self.waiting.wait(lease.ended(), limit, tab.with(work))
    }

    /// Asks whoever has to be asked before the browser goes there.
    fn go(&self, lease: &Lease, up: &Arc<Up>) -> Result<(), ToolError> {
        let Some(ask) = self.question(lease, up)? else { return Ok(()) };
        let turn = async { Ok(self.session.questions().turn(&ask.host).await) };
        let _turn = self.waiting.wait(lease.ended(), ("another call's question", FOR_EVER), turn)?;
        // Another call may have been told yes by now.
        let Some(ask) = self.question(lease, up)? else { return Ok(()) };
        // A search engine was named by the user: it, and not what else its host serves.
        if matches!(self.request.action, WebAction::Search { .. }) {
            let url = Url::parse(&self.url).ok();
            if let Some(port) = url.and_then(|url| url.port_or_known_default()) {
                up.guard.allow_port(&ask, port);
            }
            return Ok(());
        }
        if !self.context.is_approved(&private::meaning(&ask)) {
            let details = format!("{}\n{}", shown::line(&self.url), private::meaning(&ask));
            let question = private::question(&ask);
            match self.context.pause_about(lease.subject(), PauseKind::Confirm, question, Some(details)) {
                Some(response) => agreed(response)?,
                None => return Err(WebError::Ended.into()),
            }
        }
        up.guard.allow(&ask);
        Ok(())
    }

    /// What a person has to agree to before the browser goes there, if anything.
    fn question(&self, lease: &Lease, up: &Arc<Up>) -> Result<Option<Ask>, ToolError> {
        let judging = async { Ok(up.guard.judge(&self.url).await) };
        match self.waiting.wait(lease.ended(), ("finding the host", AT_ONCE), judging)? {
            Verdict::Go => Ok(None),
            Verdict::Ask(ask) => Ok(Some(ask)),
            Verdict::Refused { why } => Err(ToolError::failed(format!("{} is not opened: {why}", self.url))),
        }
    }

    /// Lets a person have the page, until they go on.
    fn pause(&self, lease: &Lease, tab: &Tab) -> Result<(), ToolError> {
        let at_once = ("the page", AT_ONCE);
        let url = self.wait(lease, tab, at_once, async {
            tab.set_paused(true).await;
            tab.url().await
        })?;
        let url = location::brief(&url);
        let url = shown::line(&url);
        let message = match &self.request.action {
            WebAction::Search { query } => format!("Results loaded: {}", shown::line(query)),
            WebAction::OpenPage { .. } => format!("Page loaded: {url}"),
            WebAction::FindInPage { text, .. } => format!("Page loaded, to look for {:?}: {url}", shown::line(text)),
            WebAction::Screenshot { .. } => format!("Page loaded, to take its picture: {url}"),
        };
        let details = format!("Developer tools: {}", tab.developer_tools());
        match self.context.pause_about(&tab.subject, PauseKind::Continue, message, Some(details)) {
            Some(response) => agreed(response)?,
            None if lease.ended().is_cancelled() => return Err(WebError::Ended.into()),
            None => return Err(tab.why_gone().into()),
        }
        let back = self.wait(lease, tab, at_once, async {
            tab.set_paused(false).await;
            Ok(())
        });
        Ok(back?)
    }

    /// What is to be had of the page as it is now.
    async fn bring(&self, tab: &Tab, arrival: Arrival) -> Result<String, WebError> {
        let settings = self.session.settings();
        let most = match self.request.action {
            WebAction::OpenPage { .. } => settings.max_text_bytes as usize,
            _ => 0,
        };
        let page = Read::of(tab, most).await?;
        let mut said = String::new();
        if !page.title.is_empty() {
            said.push_str(&format!("# {}\n", page.title));
        }
        // Writing to a string does not fail.
        let _ = writeln!(said, "{}", location::brief(&page.url));
        for note in self.notes(tab, arrival, page.status) {
            let _ = writeln!(said, "[{note}]");
        }
        said.push('\n');
        match &self.request.action {
            WebAction::Search { .. } => said.push_str(&search::results(tab, &settings.search).await?),
            WebAction::OpenPage { .. } => match page.text(tab, most).await? {
                text if text.is_empty() => said.push_str(NO_TEXT),
                text => said.push_str(&text),
            },
            WebAction::FindInPage { text, .. } => said.push_str(&find(tab, text).await?),
            WebAction::Screenshot { full_page, .. } => {
                let picture = screenshot::take(tab, *full_page, &self.session.screenshots()).await?;
                let cut = if picture.cut { "; the page is larger than that" } else { "" };
                let (path, width, height) = (picture.path.display(), picture.width, picture.height);
                // First: of a result, clients show the first line.
                said.insert_str(0, &format!("The picture is in {path} ({width} × {height} pixels{cut}).\n\n"));
                said.truncate(said.trim_end().len());
            }
        }
        Ok(said)
    }

    /// What has to be known besides.
    fn notes(&self, tab: &Tab, arrival: Arrival, status: u16) -> Vec<String> {
        let mut notes = Vec::new();
        if status >= 400 {
            notes.push(format!("the server answered with HTTP status {status}"));
        }
        if arrival == Arrival::Stopped {
            let within = self.session.settings().load_s;
            notes.push(format!("the page was still loading after {within} s and was stopped: there may be more of it"));
        }
        notes.extend(tab.told().into_iter().map(|what| format!("the page did something unasked: {what}")));
        let refused = tab.ledger.refused();
        notes.extend(refused.hosts.iter().map(|refusal| format!("not let through: {}: {}", refusal.host, refusal.why)));
        if refused.more > 0 {
            notes.push(format!("{} more were not let through", refused.more));
        }
        notes
    }
}

/// Whether it goes on after an answer.
fn agreed(response: PauseResponse) -> Result<(), ToolError> {
    match response {
        PauseResponse::Approved | PauseResponse::Resumed => Ok(()),
        PauseResponse::Denied { reason } => Err(ToolError::Denied { reason }),
        PauseResponse::Interrupted => Err(ToolError::Interrupted),
    }
}
