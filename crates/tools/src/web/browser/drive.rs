//! The driver of a browser's connection, which ends with the browser, on request, or when the
//! browser has been idle for too long.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{BrowserConnection, State};
use crate::ask::SubjectGuard;
use crate::web::cdp::protocol::{SetDiscoverTargets, SetDownloadBehavior};
use crate::web::cdp::{self, CdpError, Client};
use crate::web::guard::Guard;

/// The parameters of the driver thread of one browser.
pub(super) struct Drive {
    pub(super) address: String,
    pub(super) guard: Arc<Guard>,
    pub(super) idle: Duration,
    pub(super) ended: CancellationToken,
    pub(super) subject_guard: SubjectGuard,
    pub(super) lease_count: watch::Receiver<usize>,
    pub(super) state: watch::Sender<State>,
}

impl Drive {
    /// Drives the connection until it closes, the browser ends, or the browser has been idle.
    /// Waiting callers are released even on a panic.
    pub(super) fn run(self) {
        let Self { address, guard, idle, ended, subject_guard, lease_count, state } = self;
        // Dropped in this order, even on a panic: the browser's asks close after `ended` is
        // cancelled.
        let _over = (ended.clone().drop_guard(), subject_guard);
        let fail = |why: String| state.send_replace(State::Failed(why.into()));
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(fail(format!("the browser can't be reached: {error}"))),
        };
        runtime.block_on(async {
            let (chrome, mut driver) = tokio::select! {
                connected = cdp::connect(&address) => match connected {
                    Ok(connected) => connected,
                    Err(error) => return drop(fail(format!("the browser can't be reached: {error}"))),
                },
                () = ended.cancelled() => return,
            };
            let port = port(&address);
            let serving = async {
                if let Err(error) = set_up(&chrome).await {
                    return drop(fail(format!("the browser can't be set up: {error}")));
                }
                state.send_replace(State::Connected(Arc::new(BrowserConnection {
                    chrome,
                    runtime: Handle::current(),
                    guard,
                    port,
                })));
                end_when_idle(lease_count, idle, &ended).await;
                tracing::info!("closing the idle browser");
            };
            tokio::select! {
                () = driver.run() => {}
                () = serving => {}
                () = ended.cancelled() => {}
            }
            // Cancelled before the connection is dropped, so that tabs report the end of the
            // browser and not a lost connection.
            ended.cancel();
        });
        // Does not wait for spawned commands such as closing a tab.
        runtime.shutdown_background();
    }
}

/// Makes the browser report new windows and downloads, and refuse downloads.
async fn set_up(chrome: &Client) -> Result<(), CdpError> {
    chrome.execute(SetDiscoverTargets { discover: true }).await?;
    chrome.execute(SetDownloadBehavior { behavior: "deny", events_enabled: true }).await?;
    Ok(())
}

/// Waits until the browser has had no lease for `idle`, and cancels `ended`.
async fn end_when_idle(
    mut lease_count: watch::Receiver<usize>,
    idle: Duration,
    ended: &CancellationToken,
) {
    loop {
        if lease_count.wait_for(|leases| *leases == 0).await.is_err() {
            return;
        }
        // A lease may have begun and ended again before the count is read.
        if tokio::time::timeout(idle, lease_count.changed()).await.is_ok_and(|new| new.is_ok()) {
            continue;
        }
        // The count is locked meanwhile, so that no lease begins.
        let leases = lease_count.borrow();
        if *leases == 0 {
            return ended.cancel();
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
    async fn m_e7_web_only_an_unused_browser_ends_after_the_idle_time() {
        let soon = Duration::from_millis(1);
        let ended = CancellationToken::new();
        let (leases, lease_count) = watch::channel(1);
        let mut ending = std::pin::pin!(end_when_idle(lease_count, soon, &ended));
        assert!(tokio::time::timeout(50 * soon, &mut ending).await.is_err(), "it is in use");
        leases.send_replace(0);
        ending.await;
        assert!(ended.is_cancelled());
    }
}
