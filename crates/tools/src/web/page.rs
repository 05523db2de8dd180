//! A page in a tab: loaded as far as it does, and looked into from outside of its own scripts.

use std::time::Duration;

use chromiumoxide::Page;
use chromiumoxide::cdp::browser_protocol::network::{
    EventLoadingFailed, EventRequestWillBeSent, EventResponseReceived, RequestId, ResourceType, Response,
};
use chromiumoxide::cdp::browser_protocol::page::{
    CreateIsolatedWorldParams, EventFrameStoppedLoading, NavigateParams, StopLoadingParams,
};
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use chromiumoxide::error::CdpError;
use futures_util::{FutureExt, StreamExt};
use serde::de::DeserializeOwned;

use super::error::WebError;
use super::guard::GUARD;
use super::tab::Tab;

/// How a browser says that a page was not to be loaded after all.
const ABORTED: &str = "net::ERR_ABORTED";

/// How long it may then take to say that it is a download.
const SETTLED: Duration = Duration::from_millis(500);

/// How long a page that is still loading may take to be stopped. One whose scripts never rest can't be.
const STOPPED: Duration = Duration::from_secs(3);

/// How many documents that can't be loaded are remembered: the page's own is the first, or the first after a few.
const MOST_ENDED: usize = 100;

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
    let mut failure = std::pin::pin!(failure(tab).await?);
    let loaded = tokio::select! {
        biased;
        name = tab.download() => return Err(is_download(url, &name)),
        error = &mut failure => return Err(failed(tab, url, &error).await),
        loaded = navigate(tab, url) => loaded,
        () = tokio::time::sleep(within) => Err(CdpError::Timeout),
    };
    // That it is loaded is told before what came with it: by the answer to one more question, that is told, too.
    if loaded.is_ok() {
        tab.up.chrome.version().await?;
    }
    if let Some(error) = failure.now_or_never() {
        return Err(failed(tab, url, &error).await);
    }
    match loaded {
        Ok(None) => Ok(Arrival::Whole),
        Ok(Some(error)) => Err(not_loaded(tab, url, &error)),
        Err(CdpError::Timeout) => match tokio::time::timeout(STOPPED, stop(tab)).await {
            Ok(address) => match address?.as_str() {
                "about:blank" => Err(WebError::Late { what: "the answer of the page's server", limit: within }),
                _ => Ok(Arrival::Stopped),
            },
            Err(_) => Err(WebError::failed(format!("{url} can't be read: its scripts never rest"))),
        },
        Err(error) => Err(error.into()),
    }
}

/// Goes there, and waits until all of it is there; or what the browser says was wrong.
async fn navigate(tab: &Tab, url: &str) -> Result<Option<String>, CdpError> {
    match tab.page.execute(NavigateParams::new(url)).await {
        Ok(loaded) => Ok(loaded.result.error_text),
        // No command is waited for any longer than 30 s, whatever the connection is set to. The browser goes on.
        Err(CdpError::Timeout) => {
            let frame = tab.page.mainframe().await?;
            let mut stopped = tab.page.event_listener::<EventFrameStoppedLoading>().await?;
            while let Some(stopped) = stopped.next().await {
                if Some(&stopped.frame_id) == frame.as_ref() {
                    return Ok(None);
                }
            }
            Err(CdpError::NoResponse)
        }
        Err(error) => Err(error),
    }
}

/// Stops a page that is still loading, and says where it is.
async fn stop(tab: &Tab) -> Result<String, WebError> {
    tab.page.execute(StopLoadingParams::default()).await?;
    look(&tab.page, "location.href").await
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
async fn failure(tab: &Tab) -> Result<impl Future<Output = String> + use<>, WebError> {
    let frame = tab.page.mainframe().await?;
    let mut sent = tab.page.event_listener::<EventRequestWillBeSent>().await?;
    let mut failed = tab.page.event_listener::<EventLoadingFailed>().await?;
    let mut answered = tab.page.event_listener::<EventResponseReceived>().await?;
    Ok(async move {
        let mut page = None;
        // Each kind of event has a way of its own: how a request ended may come before that there was one.
        let mut ended: Vec<(RequestId, String)> = Vec::new();
        loop {
            let of_page = ended.iter().find(|(request, _)| page.as_ref() == Some(request));
            if let Some((_, error)) = of_page {
                return error.clone();
            }
            tokio::select! {
                biased;
                Some(sent) = sent.next() => {
                    if sent.r#type == Some(ResourceType::Document) && sent.frame_id == frame {
                        page = Some(sent.request_id.clone());
                    }
                }
                Some(failed) = failed.next() => {
                    if failed.r#type == ResourceType::Document && ended.len() < MOST_ENDED {
                        ended.push((failed.request_id.clone(), failed.error_text.clone()));
                    }
                }
                Some(answer) = answered.next() => {
                    if answer.r#type == ResourceType::Document
                        && is_of_guard(&answer.response)
                        && ended.len() < MOST_ENDED
                    {
                        ended.push((answer.request_id.clone(), answer.response.status_text.clone()));
                    }
                }
                else => std::future::pending().await,
            }
        }
    })
}

/// Whether it is no server that answers but our own guard.
fn is_of_guard(response: &Response) -> bool {
    let fields = response.headers.inner().as_object();
    fields.is_some_and(|fields| fields.keys().any(|field| field.eq_ignore_ascii_case(GUARD.as_str())))
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
pub(super) async fn look<T: DeserializeOwned>(page: &Page, expression: impl Into<String>) -> Result<T, WebError> {
    let frame = page.mainframe().await?.ok_or(WebError::Ended)?;
    let mut world = CreateIsolatedWorldParams::new(frame);
    world.world_name = Some("holdpoint".to_owned());
    let world = page.execute(world).await?.result.execution_context_id;
    // An answer with half a character in it would not arrive.
    let expression = expression.into();
    let whole = "(_, value) => value?.toWellFormed?.() ?? value";
    let mut evaluate = EvaluateParams::new(format!("JSON.parse(JSON.stringify({expression}, {whole}))"));
    evaluate.context_id = Some(world);
    evaluate.return_by_value = Some(true);
    let evaluated = page.execute(evaluate).await?.result;
    if let Some(thrown) = evaluated.exception_details {
        return Err(WebError::failed(format!("the page can't be read: {}", thrown.text)));
    }
    let value = evaluated.result.value.unwrap_or_default();
    serde_json::from_value(value).map_err(|error| WebError::failed(format!("the page can't be read: {error}")))
}
