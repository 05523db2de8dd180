//! Page loading, and evaluation of expressions that the page's own scripts can't influence.

use std::time::Duration;

use futures_util::FutureExt;
use serde::de::DeserializeOwned;
use tokio::sync::watch;

use super::cdp::protocol::{
    CreateIsolatedWorld, Evaluate, FrameStoppedLoading, GetVersion, LifecycleEvent, LoadingFailed,
    Navigate, RequestWillBeSent, Response, ResponseReceived, StopLoading,
};
use super::cdp::{CdpError, Event};
use super::error::WebError;
use super::guard::GUARD_HEADER;
use super::tab::Tab;

/// The error of a load that was abandoned, as for a download.
const ABORTED: &str = "net::ERR_ABORTED";

/// How long the browser may take to report a download after [`ABORTED`].
const DOWNLOAD_LIMIT: Duration = Duration::from_millis(500);

/// How long the browser may take to stop a page that is still loading. A page with a busy script
/// can't be stopped.
const STOP_LIMIT: Duration = Duration::from_secs(3);

/// The result of a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadResult {
    /// The page is complete.
    Whole,
    /// The page was still loading at the time limit and was stopped.
    Stopped,
}

/// Loads a page, and stops it if it is still loading after `limit`.
///
/// # Errors
/// The page can't be loaded, is a download, or no part of it arrived in time.
pub(super) async fn load(tab: &Tab, url: &str, limit: Duration) -> Result<LoadResult, WebError> {
    let mut failure = std::pin::pin!(wait_for_failure(tab));
    // `None` at the time limit; else the browser's error, if any.
    let loaded = tokio::select! {
        biased;
        name = tab.wait_for_download() => return Err(download_error(url, &name)),
        error = &mut failure => return Err(download_or_load_error(tab, url, &error).await),
        loaded = navigate(tab, url) => Some(loaded?),
        () = tokio::time::sleep(limit) => None,
    };
    // The load event may precede events about the page's requests. Those have arrived when the
    // browser answers one more command.
    if loaded.is_some() {
        tab.connection.chrome.execute(GetVersion {}).await?;
    }
    if let Some(error) = failure.now_or_never() {
        return Err(download_or_load_error(tab, url, &error).await);
    }
    match loaded {
        Some(None) => Ok(LoadResult::Whole),
        Some(Some(error)) => Err(load_error(tab, url, &error)),
        None => match tokio::time::timeout(STOP_LIMIT, stop(tab)).await {
            Ok(address) => match address?.as_str() {
                "about:blank" => {
                    Err(WebError::Late { task: "the answer of the page's server", limit })
                }
                _ => Ok(LoadResult::Stopped),
            },
            Err(_) => Err(WebError::failed(format!(
                "{url} can't be read: its scripts never stop running"
            ))),
        },
    }
}

/// Navigates to `url` and waits until the page is loaded. Returns the browser's error, if any.
async fn navigate(tab: &Tab, url: &str) -> Result<Option<String>, CdpError> {
    // The loader id of the last document that was loaded.
    let (sender, mut receiver) = watch::channel(None);
    let frame = tab.id.clone();
    let _listening = tab.page.listen(move |event| {
        if let Some(loaded) = event.read::<LifecycleEvent>()
            && (loaded.name.as_str(), &loaded.frame_id) == ("load", &frame)
        {
            sender.send_replace(Some(loaded.loader_id));
        } else if event
            .read::<FrameStoppedLoading>()
            .is_some_and(|stopped| stopped.frame_id == frame)
        {
            // Wakes the waiter too: if a script stops the load, there is no `load` event.
            sender.send_modify(|_| ());
        }
    });
    let navigation = tab.page.execute(Navigate { url }).await?;
    if navigation.error_text.is_some() {
        return Ok(navigation.error_text);
    }
    // Events before this answer may belong to the previous page.
    let is_loaded =
        navigation.loader_id.is_some() && *receiver.borrow_and_update() == navigation.loader_id;
    if !is_loaded {
        receiver.changed().await.map_err(|_| CdpError::Ended)?;
    }
    Ok(None)
}

/// Stops loading and returns the page's current address.
async fn stop(tab: &Tab) -> Result<String, WebError> {
    tab.page.execute(StopLoading {}).await?;
    evaluate(tab, "location.href").await
}

/// The error for a page whose load ended with `error`: that of a download, or of a failed load.
async fn download_or_load_error(tab: &Tab, url: &str, error: &str) -> WebError {
    if error != ABORTED {
        return load_error(tab, url, error);
    }
    // A download or an empty response ends a load like a failure.
    match tokio::time::timeout(DOWNLOAD_LIMIT, tab.wait_for_download()).await {
        Ok(name) => download_error(url, &name),
        Err(_) => load_error(tab, url, error),
    }
}

/// Waits until the page's own document fails to load, and returns the error.
fn wait_for_failure(tab: &Tab) -> impl Future<Output = String> + use<> {
    let (sender, mut receiver) = watch::channel(None);
    let frame = tab.id.clone();
    let mut document = None;
    let listening = tab.page.listen(move |event| {
        let error = document_error(event, &frame, &mut document);
        if error.is_some() {
            sender.send_replace(error);
        }
    });
    async move {
        let _listening = listening;
        match receiver.wait_for(Option::is_some).await.map(|error| error.clone()) {
            Ok(Some(error)) => error,
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }
}

/// The error of the document of this frame, if the event reports one. `document` is the id of its
/// request.
fn document_error(event: &Event<'_>, frame: &str, document: &mut Option<String>) -> Option<String> {
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

/// Whether the answer is the guard's own page.
fn is_of_guard(response: &Response) -> bool {
    response.headers.keys().any(|field| field.eq_ignore_ascii_case(GUARD_HEADER.as_str()))
}

/// The error for a page that could not be loaded. The guard's reasons are more precise than the
/// browser's.
fn load_error(tab: &Tab, url: &str, error: &str) -> WebError {
    let refused = tab.ledger.refused().hosts;
    let reasons: Vec<_> =
        refused.iter().map(|refusal| format!("{}: {}", refusal.host, refusal.why)).collect();
    let why = if reasons.is_empty() { error.to_owned() } else { reasons.join("; ") };
    WebError::failed(format!("{url} could not be loaded: {why}"))
}

fn download_error(url: &str, name: &str) -> WebError {
    WebError::failed(format!("{url} is a download (`{name}`), and downloads are refused"))
}

/// Evaluates an expression in the page and deserializes its value from JSON. It runs in an isolated
/// world, which shares the document but no script objects with the page, so the page's scripts
/// can't falsify the result.
///
/// # Errors
/// The expression throws, or the page is gone.
pub(super) async fn evaluate<T: DeserializeOwned>(
    tab: &Tab,
    expression: impl Into<String>,
) -> Result<T, WebError> {
    let world = CreateIsolatedWorld { frame_id: &tab.id, world_name: "holdpoint" };
    let context_id = tab.page.execute(world).await?.execution_context_id;
    // The browser does not send an answer that contains a lone surrogate.
    let expression = expression.into();
    let well_formed = "(_, value) => value?.toWellFormed?.() ?? value";
    let expression = format!("JSON.parse(JSON.stringify({expression}, {well_formed}))");
    let evaluated =
        tab.page.execute(Evaluate { expression, context_id, return_by_value: true }).await?;
    if let Some(thrown) = evaluated.exception_details {
        return Err(WebError::failed(format!("the page can't be read: {}", thrown.text)));
    }
    let value = evaluated.result.value.unwrap_or_default();
    serde_json::from_value(value)
        .map_err(|error| WebError::failed(format!("the page can't be read: {error}")))
}
