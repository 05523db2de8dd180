//! One visit to a page: lease a browser, get approval, load the page, pause on it, and read it.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::{PauseKind, PauseResponse, WebAction, WebRequest};
use url::Url;

use super::browser::{BrowserConnection, LAUNCH_LIMIT, Lease};
use super::error::WebError;
use super::find::find;
use super::guard::{Ask, Verdict};
use super::location;
use super::page::{LoadResult, load};
use super::private;
use super::read::PageContent;
use super::screenshot;
use super::search;
use super::session_browser::SessionBrowser;
use super::tab::Tab;
use super::waiting::Waiting;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::shown;

/// The time limit for short browser commands, such as opening a tab.
const COMMAND_LIMIT: Duration = Duration::from_secs(10);

/// The time limit for reading a page. A page with a busy script can't be read.
const READ_LIMIT: Duration = Duration::from_secs(20);

/// The text that is returned for a page without text.
const NO_TEXT: &str = "[the page shows no text: it may be empty, a picture, or a document such as a PDF; `screenshot` shows it]";

/// No time limit, for waiting on the user.
const NO_LIMIT: Duration = Duration::MAX;

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
            WebAction::OpenPage { url }
            | WebAction::FindInPage { url, .. }
            | WebAction::Screenshot { url, .. } => url.clone(),
        };
        Ok(Self { session, context, request, url, waiting: Waiting::new(context)? })
    }

    /// Visits the page and returns the result for the model.
    pub(super) fn run(&self) -> Result<String, ToolError> {
        let settings = self.session.settings();
        let visible = self.request.is_visible(settings);
        let lease = self.session.lease(visible, self.context)?;
        let connection = self.waiting.wait(
            lease.ended(),
            // The start has its own limit, and its error has the output of the browser.
            ("starting the browser", LAUNCH_LIMIT + COMMAND_LIMIT),
            lease.connection(),
        )?;
        self.approve_host(&lease, &connection)?;
        let opening = ("opening a tab", COMMAND_LIMIT);
        let tab = self.waiting.wait(
            lease.ended(),
            opening,
            Tab::open(&connection, self.request.pause),
        )?;
        let load_limit = self.session.load_limit();
        let loading = ("loading the page", load_limit + COMMAND_LIMIT);
        let load_result = self.wait(&lease, &tab, loading, load(&tab, &self.url, load_limit))?;
        if self.request.pause {
            self.pause(&lease, &tab)?;
        }
        let output = self.wait(
            &lease,
            &tab,
            ("reading the page", READ_LIMIT),
            self.read_result(&tab, load_result),
        )?;
        Ok(output)
    }

    /// Waits for work on a page. `limit` is the name of the work and its time limit.
    fn wait<T>(
        &self,
        lease: &Lease,
        tab: &Tab,
        limit: (&'static str, Duration),
        work: impl Future<Output = Result<T, WebError>>,
    ) -> Result<T, WebError> {
        self.waiting.wait(lease.ended(), limit, tab.with(work))
    }

    /// Gets the user's approval for a private host, if it is needed.
    fn approve_host(
        &self,
        lease: &Lease,
        connection: &Arc<BrowserConnection>,
    ) -> Result<(), ToolError> {
        let Some(ask) = self.needed_ask(lease, connection)? else { return Ok(()) };
        let locking = async { Ok(self.session.ask_locks().lock_host(&ask.host).await) };
        let _lock = self.waiting.wait(
            lease.ended(),
            ("waiting for the ask of another call", NO_LIMIT),
            locking,
        )?;
        // Another call may have received the approval while this one waited.
        let Some(ask) = self.needed_ask(lease, connection)? else { return Ok(()) };
        // The user has configured the search engine, so its port needs no approval; other ports of
        // its host do.
        if matches!(self.request.action, WebAction::Search { .. }) {
            let url = Url::parse(&self.url).ok();
            if let Some(port) = url.and_then(|url| url.port_or_known_default()) {
                connection.guard.allow_port(&ask, port);
            }
            return Ok(());
        }
        if !self.context.is_approved(&private::consequence(&ask)) {
            let details = format!("{}\n{}", shown::line(&self.url), private::consequence(&ask));
            let question = private::question(&ask);
            match self.context.pause_about(
                lease.subject(),
                PauseKind::Confirm,
                question,
                Some(details),
            ) {
                Some(response) => check_response(response)?,
                None => return Err(WebError::Ended.into()),
            }
        }
        connection.guard.allow(&ask);
        Ok(())
    }

    /// The ask for the host, if the user has to approve it first.
    fn needed_ask(
        &self,
        lease: &Lease,
        connection: &Arc<BrowserConnection>,
    ) -> Result<Option<Ask>, ToolError> {
        let judging = async { Ok(connection.guard.judge(&self.url).await) };
        match self.waiting.wait(lease.ended(), ("looking up the host", COMMAND_LIMIT), judging)? {
            Verdict::Allow => Ok(None),
            Verdict::Ask(ask) => Ok(Some(ask)),
            Verdict::Refused { why } => {
                Err(ToolError::failed(format!("{} can't be opened: {why}", self.url)))
            }
        }
    }

    /// Pauses on the page until the user continues.
    fn pause(&self, lease: &Lease, tab: &Tab) -> Result<(), ToolError> {
        let limit = ("the answer of the page", COMMAND_LIMIT);
        let url = self.wait(lease, tab, limit, async {
            tab.set_paused(true).await;
            tab.url().await
        })?;
        let url = location::brief(&url);
        let url = shown::line(&url);
        let message = match &self.request.action {
            WebAction::Search { query } => format!("Results loaded: {}", shown::line(query)),
            WebAction::OpenPage { .. } => format!("Page loaded: {url}"),
            WebAction::FindInPage { text, .. } => {
                format!("Page loaded, to find {:?}: {url}", shown::line(text))
            }
            WebAction::Screenshot { .. } => format!("Page loaded, to take a screenshot: {url}"),
        };
        let details = format!("Developer tools: {}", tab.developer_tools());
        match self.context.pause_about(&tab.subject, PauseKind::Continue, message, Some(details)) {
            Some(response) => check_response(response)?,
            None if lease.ended().is_cancelled() => return Err(WebError::Ended.into()),
            None => return Err(tab.gone_error().into()),
        }
        self.wait(lease, tab, limit, async {
            tab.set_paused(false).await;
            Ok(())
        })?;
        Ok(())
    }

    /// Reads the page and returns the result of the action.
    async fn read_result(&self, tab: &Tab, load_result: LoadResult) -> Result<String, WebError> {
        let settings = self.session.settings();
        let max_bytes = match self.request.action {
            WebAction::OpenPage { .. } => settings.max_text_bytes as usize,
            _ => 0,
        };
        let page = PageContent::from_tab(tab, max_bytes).await?;
        let mut output = String::new();
        if !page.title.is_empty() {
            output.push_str(&format!("# {}\n", page.title));
        }
        // Writing to a string does not fail.
        let _ = writeln!(output, "{}", location::brief(&page.url));
        for note in self.notes(tab, load_result, page.status) {
            let _ = writeln!(output, "[{note}]");
        }
        output.push('\n');
        match &self.request.action {
            WebAction::Search { .. } => {
                output.push_str(&search::results(tab, &settings.search).await?)
            }
            WebAction::OpenPage { .. } => match page.text(tab, max_bytes).await? {
                text if text.is_empty() => output.push_str(NO_TEXT),
                text => output.push_str(&text),
            },
            WebAction::FindInPage { text, .. } => output.push_str(&find(tab, text).await?),
            WebAction::Screenshot { full_page, .. } => {
                let picture =
                    screenshot::take(tab, *full_page, &self.session.screenshots()).await?;
                let cut = if picture.cut { "; the page is larger" } else { "" };
                let (path, width, height) = (picture.path.display(), picture.width, picture.height);
                // At the beginning, because clients show the first line of a result.
                output.insert_str(
                    0,
                    &format!("Screenshot saved to {path} ({width} × {height} pixels{cut}).\n\n"),
                );
                output.truncate(output.trim_end().len());
            }
        }
        Ok(output)
    }

    /// Remarks for the model: status, incidents and refused connections.
    fn notes(&self, tab: &Tab, load_result: LoadResult, status: u16) -> Vec<String> {
        let mut notes = Vec::new();
        if status >= 400 {
            notes.push(format!("the server answered with HTTP status {status}"));
        }
        if load_result == LoadResult::Stopped {
            let within = self.session.settings().load_s;
            notes.push(format!(
                "the page was still loading after {within} s and was stopped: it may be incomplete"
            ));
        }
        notes
            .extend(tab.incidents().into_iter().map(|incident| format!("page action: {incident}")));
        let refused = tab.ledger.refused();
        notes.extend(
            refused
                .hosts
                .iter()
                .map(|refusal| format!("no connection to {}: {}", refusal.host, refusal.why)),
        );
        if refused.more > 0 {
            notes.push(format!("{} more connections were not made", refused.more));
        }
        notes
    }
}

/// Turns the user's answer into a result: an approval or resume lets the call continue.
fn check_response(response: PauseResponse) -> Result<(), ToolError> {
    match response {
        PauseResponse::Approved | PauseResponse::Resumed => Ok(()),
        PauseResponse::Denied { reason } => Err(ToolError::Denied { reason }),
        PauseResponse::Interrupted => Err(ToolError::Interrupted),
    }
}
