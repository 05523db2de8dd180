//! The connection to a browser, and when it ends: with the browser, when nobody has used it for long, or when told to.

use std::sync::Arc;
use std::time::Duration;

use chromiumoxide::Browser as Chrome;
use chromiumoxide::cdp::browser_protocol::browser::{SetDownloadBehaviorBehavior, SetDownloadBehaviorParams};
use chromiumoxide::handler::{Handler, HandlerConfig};
use futures_util::StreamExt;
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{State, Up};
use crate::web::guard::Guard;

/// What drives one browser's connection.
pub(super) struct Drive {
    pub(super) address: String,
    pub(super) guard: Arc<Guard>,
    pub(super) idle: Duration,
    pub(super) ended: CancellationToken,
    pub(super) used: watch::Receiver<usize>,
    pub(super) state: watch::Sender<State>,
}

impl Drive {
    /// Until the connection or its use is over. Even if this panics, nobody goes on waiting.
    pub(super) fn run(self) {
        let Self { address, guard, idle, ended, used, state } = self;
        let _over = ended.clone().drop_guard();
        let failed = |why: String| state.send_replace(State::Failed(why.into()));
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(failed(format!("the browser can't be reached: {error}"))),
        };
        runtime.block_on(async {
            let config = HandlerConfig { ignore_https_errors: false, viewport: None, ..HandlerConfig::default() };
            let (chrome, mut handler) = tokio::select! {
                connected = Chrome::connect_with_config(&address, config) => match connected {
                    Ok(connected) => connected,
                    Err(error) => return drop(failed(format!("the browser can't be reached: {error}"))),
                },
                () = ended.cancelled() => return,
            };
            let port = port(&address);
            guard.forbid_port(port);
            let up = async {
                // What is not let in is still told.
                let downloads = SetDownloadBehaviorParams::builder().behavior(SetDownloadBehaviorBehavior::Deny);
                if let Ok(downloads) = downloads.events_enabled(true).build()
                    && let Err(error) = chrome.execute(downloads).await
                {
                    tracing::warn!(%error, "the browser does not take that downloads are refused");
                }
                state.send_replace(State::Up(Arc::new(Up { chrome, runtime: Handle::current(), guard, port })));
                unused(used, idle).await;
                tracing::info!("the browser was not used for long");
            };
            tokio::select! {
                () = driven(&mut handler) => {}
                () = up => {}
                () = ended.cancelled() => {}
            }
        });
        // Nobody waits for what was only asked for.
        runtime.shutdown_background();
    }
}

/// Drives the connection until it is over.
async fn driven(handler: &mut Handler) {
    while let Some(Ok(())) = handler.next().await {}
}

/// Until nobody has used it for that long.
async fn unused(mut used: watch::Receiver<usize>, idle: Duration) {
    loop {
        if used.wait_for(|uses| *uses == 0).await.is_err() {
            return;
        }
        let again = tokio::time::timeout(idle, used.wait_for(|uses| *uses > 0)).await;
        if !matches!(again, Ok(Ok(_))) {
            return;
        }
    }
}

/// The port in `ws://127.0.0.1:PORT/…`.
fn port(address: &str) -> u16 {
    let authority = address.split('/').nth(2).unwrap_or_default();
    authority.rsplit_once(':').and_then(|(_, port)| port.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn m_e7_web_only_a_browser_that_nobody_uses_has_ended_by_then() {
        let soon = Duration::from_millis(1);
        let (uses, used) = watch::channel(1);
        let mut ending = std::pin::pin!(unused(used, soon));
        assert!(tokio::time::timeout(50 * soon, &mut ending).await.is_err(), "it is in use");
        uses.send_replace(0);
        ending.await;
    }
}
