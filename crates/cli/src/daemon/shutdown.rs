//! The causes of the daemon's end, and the time limit for it.

use std::io;
use std::time::{Duration, SystemTime};

use holdpoint_common::Timestamp;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;

use super::claim::{Claim, Listener, Sockets};
use super::host::Host;

/// How long the daemon may take to stop. Then the process exits even if something is stuck, a
/// little before the 10 s that the documentation promises.
pub(super) const LIMIT: Duration = Duration::from_secs(9);

/// How often the daemon checks that clients can find it, which bounds how often it makes a socket
/// again. Also the shortest interval between checks of whether it is still busy.
const CHECK_INTERVAL: Duration = Duration::from_millis(500);
/// How long a daemon without work stays if clients can't find it.
const LOST_TIMEOUT: Duration = Duration::from_secs(5);

/// How long the log's thread may take to write its last lines.
const FLUSH_TIMEOUT: Duration = Duration::from_millis(50);

/// Starts to watch for signals on a thread of its own. The first TERM or INT requests a stop and
/// starts the time limit. An INT after that exits at once; another TERM repeats the request. HUP
/// has no effect on a daemon. It is caught and not ignored, because tool processes would inherit an
/// ignored signal.
pub(super) fn watch(sockets: Sockets) -> io::Result<oneshot::Receiver<&'static str>> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let (stop, requested) = oneshot::channel();
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        let mut stop = Some(stop);
        for signal in signals.forever() {
            let name = match signal {
                SIGHUP => {
                    tracing::info!("HUP is ignored");
                    continue;
                }
                SIGTERM => "TERM",
                _ => "INT",
            };
            match stop.take() {
                Some(stop) => {
                    start_time_limit(sockets.clone());
                    // Without a receiver, the daemon is stopping already.
                    let _ = stop.send(name);
                }
                None if signal == SIGINT => exit_now(&sockets, "asked to exit at once"),
                None => tracing::info!("asked to stop again"),
            }
        }
    })?;
    Ok(requested)
}

/// Starts the time limit, after which the process exits and leaves the rest as it is. Tools'
/// processes are ended by their supervisors, and acknowledged changes are saved.
pub(super) fn start_time_limit(sockets: Sockets) {
    let limited = std::thread::Builder::new().name("holdpoint-limit".to_owned()).spawn(move || {
        std::thread::sleep(LIMIT);
        exit_now(&sockets, "a task did not end in time");
    });
    if let Err(error) = limited {
        tracing::warn!(%error, "no thread for the time limit");
    }
}

/// Returns when there has been no work, connection or client for the time `idle`. Wakes no more
/// often than necessary.
pub(super) async fn wait_until_idle_for(host: &Host, idle: Duration) {
    loop {
        let load = host.load.load().await.unwrap_or_default();
        let busy = load.sessions.busy + load.clients + host.open_connections() > 0;
        let quiet_since = host
            .since
            .max(host.connections.last_closed())
            .max(host.machine_connections.last_closed())
            .max(load.last_change.unwrap_or_default());
        let remaining = idle.saturating_sub(Timestamp::from(SystemTime::now()).since(quiet_since));
        match busy {
            true => tokio::time::sleep(idle.max(CHECK_INTERVAL)).await,
            false if remaining.is_zero() => return,
            false => tokio::time::sleep(remaining).await,
        }
    }
}

/// Restores sockets that others remove and has them served, while the claim is this daemon's. If
/// the claim's folder and the sockets are gone, no client can find this daemon: returns after it has
/// been idle for [`LOST_TIMEOUT`].
pub(super) async fn keep_reachable(
    host: &Host,
    claim: &Claim,
    mut serve: impl AsyncFnMut(Vec<Listener>),
) {
    let sockets = claim.sockets();
    loop {
        let is_ours = claim.is_in_place();
        let renewed = if is_ours { sockets.renew() } else { Vec::new() };
        if !renewed.is_empty() {
            serve(renewed).await;
        }
        if !is_ours && !sockets.has_any_left() {
            break;
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
    }
    tracing::warn!(
        "the data folder and the sockets are gone: no client can find this daemon any more"
    );
    wait_until_idle_for(host, LOST_TIMEOUT).await;
}

/// Exits at once.
fn exit_now(sockets: &Sockets, why: &str) -> ! {
    tracing::warn!(why, "exiting at once");
    sockets.remove();
    std::thread::sleep(FLUSH_TIMEOUT);
    std::process::exit(1)
}
