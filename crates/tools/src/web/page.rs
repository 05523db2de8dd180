//! A page in a tab: loaded as far as it does, and looked into from outside of its own scripts.

use std::time::Duration;

use futures_util::FutureExt;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::cdp::protocol::{
    CreateIsolatedWorld, Evaluate, FrameStoppedLoading, GetVersion, LifecycleEvent, LoadingFailed, Navigate,
    RequestWillBeSent, Response, ResponseReceived, StopLoading,
};
use super::cdp::{CdpError, Event};
use super::error::WebError;
use super::guard::GUARD;
use super::tab::Tab;

/// How a browser says that a page was not to be loaded after all.
const ABORTED: &str = "net::ERR_ABORTED";

/// How long it may then take to say that it is a download.
const SETTLED: Duration = Duration::from_millis(500);

/// How long a page that is still loading may take to be stopped. One whose scripts never rest can't be.
const STOPPED: Duration = Duration::from_secs(3);

/// How far a page was loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival {
    /// All of it is there.
    Whole,
    /// It would have gone on: loading was stopped.
    Stopped,
}

/// Loads a page, for so long at most.
///
/// # Errors
/// It does not load, nothing of it came in time, or it is a download.
pub(super) async fn load(tab: &Tab, url: &str, within: Duration) -> Result<Arrival, WebError> {
    let mut failure = std::pin::pin!(failure(tab));
    let loaded = tokio::select! {
        biased;
        name = tab.download() => return Err(is_download(url, &name)),
        error = &mut failure => return Err(failed(tab, url, &error).await),
        loaded = navigate(tab, url) => Some(loaded?),
        () = tokio::time::sleep(within) => None,
    };
    // That it is loaded is told before what came with it: by the answer to one more question, that is told, too.
    if loaded.is_some() {
        tab.up.chrome.execute(GetVersion {}).await?;
    }
    if let Some(error) = failure.now_or_never() {
        return Err(failed(tab, url, &error).await);
    }
    match loaded {
        Some(None) => Ok(Arrival::Whole),
        Some(Some(error)) => Err(not_loaded(tab, url, &error)),
        None => match tokio::time::timeout(STOPPED, stop(tab)).await {
            Ok(address) => match address?.as_str() {
                "about:blank" => Err(WebError::Late { what: "the answer of the page's server", limit: within }),
                _ => Ok(Arrival::Stopped),
            },
            Err(_) => Err(WebError::failed(format!("{url} can't be read: its scripts never rest"))),
        },
    }
}

/// Goes there, and waits until all of it is there; or what the browser says was wrong.
async fn navigate(tab: &Tab, url: &str) -> Result<Option<String>, CdpError> {
    // The document that was loaded last.
    let (tell, mut told) = watch::channel(None);
    let frame = tab.id.clone();
    let _listening = tab.page.listen(move |event| {
        if let Some(loaded) = event.read::<LifecycleEvent>()
            && (loaded.name.as_str(), &loaded.frame_id) == ("load", &frame)
        {
            tell.send_replace(Some(loaded.loader_id));
        } else if event.read::<FrameStoppedLoading>().is_some_and(|stopped| stopped.frame_id == frame) {
            // Also where scripts have stopped it: then it does not load.
            tell.send_modify(|_| ());
        }
    });
    let begun = tab.page.execute(Navigate { url }).await?;
    if begun.error_text.is_some() {
        return Ok(begun.error_text);
    }
    // An event before this answer may have been of the previous page.
    let is_loaded = begun.loader_id.is_some() && *told.borrow_and_update() == begun.loader_id;
    if !is_loaded {
        told.changed().await.map_err(|_| CdpError::Ended)?;
    }
    Ok(None)
}

/// Stops a page that is still loading, and says where it is.
async fn stop(tab: &Tab) -> Result<String, WebError> {
    tab.page.execute(StopLoading {}).await?;
    look(tab, "location.href").await
}

/// Why a page is not loaded whose loading has ended like this.
async fn failed(tab: &Tab, url: &str, error: &str) -> WebError {
    // What is downloaded, or has no content, ends like one that can't be had, too.
    match tokio::time::timeout(SETTLED, tab.download()).await {
        Ok(name) if error == ABORTED => is_download(url, &name),
        _ => not_loaded(tab, url, error),
    }
}

/// Waits until the page itself can't be loaded, and says why.
fn failure(tab: &Tab) -> impl Future<Output = String> + use<> {
    let (tell, mut told) = watch::channel(None);
    let frame = tab.id.clone();
    let mut document = None;
    let listening = tab.page.listen(move |event| {
        let error = ending(event, &frame, &mut document);
        if error.is_some() {
            tell.send_replace(error);
        }
    });
    async move {
        let _listening = listening;
        match told.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

/// Why the document of this frame can't be loaded, if the event says so. `document` is the request for it.
fn ending(event: &Event<'_>, frame: &str, document: &mut Option<String>) -> Option<String> {
    if let Some(sent) = event.read::<RequestWillBeSent>()
        && sent.r#type.as_deref() == Some("Document")
        && sent.frame_id.as_deref() == Some(frame)
    {
        *document = Some(sent.request_id);
    } else if let Some(failed) = event.read::<LoadingFailed>()
        && *document == Some(failed.request_id)
    {
        return Some(failed.error_text);
    } else if let Some(answer) = event.read::<ResponseReceived>()
        && *document == Some(answer.request_id)
        && is_of_guard(&answer.response)
    {
        return Some(answer.response.status_text);
    }
    None
}

/// Whether it is no server that answers but our own guard.
fn is_of_guard(response: &Response) -> bool {
    response.headers.keys().any(|field| field.eq_ignore_ascii_case(GUARD.as_str()))
}

/// Why a page could not be loaded: what was not let through says more than the browser does.
fn not_loaded(tab: &Tab, url: &str, error: &str) -> WebError {
    let refused = tab.ledger.refused().hosts;
    let whys: Vec<_> = refused.iter().map(|refusal| format!("{}: {}", refusal.host, refusal.why)).collect();
    let why = if whys.is_empty() { error.to_owned() } else { whys.join("; ") };
    WebError::failed(format!("{url} could not be loaded: {why}"))
}

fn is_download(url: &str, name: &str) -> WebError {
    WebError::failed(format!("{url} is a download (`{name}`), and downloads are refused"))
}

/// What an expression comes to in the page, as JSON. It sees the document but nothing of the page's scripts, which
/// can't pretend anything.
///
/// # Errors
/// It throws, or the page is gone.
pub(super) async fn look<T: DeserializeOwned>(tab: &Tab, expression: impl Into<String>) -> Result<T, WebError> {
    let world = CreateIsolatedWorld { frame_id: &tab.id, world_name: "holdpoint" };
    let context_id = tab.page.execute(world).await?.execution_context_id;
    // An answer with half a character in it would not arrive.
    let expression = expression.into();
    let whole = "(_, value) => value?.toWellFormed?.() ?? value";
    let expression = format!("JSON.parse(JSON.stringify({expression}, {whole}))");
    let evaluated = tab.page.execute(Evaluate { expression, context_id, return_by_value: true }).await?;
    if let Some(thrown) = evaluated.exception_details {
        return Err(WebError::failed(format!("the page can't be read: {}", thrown.text)));
    }
    let value = evaluated.result.value.unwrap_or_default();
    serde_json::from_value(value).map_err(|error| WebError::failed(format!("the page can't be read: {error}")))
}
