//! The connection to a browser, and when it ends: with the browser, when nobody has used it for long, or when told to.

use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{State, Up};
use crate::ask::SubjectKept;
use crate::web::cdp::protocol::{SetDiscoverTargets, SetDownloadBehavior};
use crate::web::cdp::{self, CdpError, Client};
use crate::web::guard::Guard;

/// What drives one browser's connection.
pub(super) struct Drive {
    pub(super) address: String,
    pub(super) guard: Arc<Guard>,
    pub(super) idle: Duration,
    pub(super) ended: CancellationToken,
    pub(super) kept: SubjectKept,
    pub(super) used: watch::Receiver<usize>,
    pub(super) state: watch::Sender<State>,
}

impl Drive {
    /// Until the connection or its use is over. Even if this panics, nobody goes on waiting.
    pub(super) fn run(self) {
        let Self { address, guard, idle, ended, kept, used, state } = self;
        // In this order, whatever happens: what is asked about it closes once it has ended.
        let _over = (ended.clone().drop_guard(), kept);
        let failed = |why: String| state.send_replace(State::Failed(why.into()));
        let runtime = match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return drop(failed(format!("the browser can't be reached: {error}"))),
        };
        runtime.block_on(async {
            let (chrome, mut driver) = tokio::select! {
                connected = cdp::connect(&address) => match connected {
                    Ok(connected) => connected,
                    Err(error) => return drop(failed(format!("the browser can't be reached: {error}"))),
                },
                () = ended.cancelled() => return,
            };
            let port = port(&address);
            let up = async {
                if let Err(error) = set_up(&chrome).await {
                    return drop(failed(format!("the browser can't be set up: {error}")));
                }
                state.send_replace(State::Up(Arc::new(Up { chrome, runtime: Handle::current(), guard, port })));
                unused(used, idle).await;
                tracing::info!("the browser was not used for long");
            };
            tokio::select! {
                () = driver.run() => {}
                () = up => {}
                () = ended.cancelled() => {}
            }
            // Before its tabs notice: what they are told is that it has ended.
            ended.cancel();
        });
        // Nobody waits for what was only asked for.
        runtime.shutdown_background();
    }
}

/// Has the browser report new windows and downloads, which are refused.
async fn set_up(chrome: &Client) -> Result<(), CdpError> {
    chrome.execute(SetDiscoverTargets { discover: true }).await?;
    chrome.execute(SetDownloadBehavior { behavior: "deny", events_enabled: true }).await?;
    Ok(())
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
