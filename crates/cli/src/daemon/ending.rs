//! What ends the daemon, and by when it is gone.

use std::io;
use std::time::{Duration, SystemTime};

use holdpoint_common::Timestamp;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tokio::sync::oneshot;

use super::claim::{Claim, Listener, Sockets};
use super::host::Host;

/// By when it is gone, whatever is stuck: a little less than the 10 s that people are told.
pub(super) const LIMIT: Duration = Duration::from_secs(9);

/// How often it looks whether it can still be found, and so how often it makes a socket again at the most.
const LOOK: Duration = Duration::from_millis(500);
/// How long one that cannot be found stays without work.
const UNFOUND: Duration = Duration::from_secs(5);

/// How long the log's thread may take to write the last words.
const LAST_WORDS: Duration = Duration::from_millis(50);

/// Watches for signals from now on, on a thread of its own: the first TERM or INT tells that it is time to stop, and
/// from then on the time runs. An INT after that leaves at once; another TERM is the same wish of somebody else. A hang-up
/// means nothing to a daemon; it is caught, not ignored, because tool processes would inherit an ignored signal.
pub(super) fn watch(sockets: Sockets) -> io::Result<oneshot::Receiver<&'static str>> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let (stop, asked) = oneshot::channel();
    std::thread::Builder::new().name("holdpoint-signals".to_owned()).spawn(move || {
        let mut stop = Some(stop);
        for signal in signals.forever() {
            let name = match signal {
                SIGHUP => {
                    tracing::info!("a hang-up, which means nothing here");
                    continue;
                }
                SIGTERM => "TERM",
                _ => "INT",
            };
            match stop.take() {
                Some(stop) => {
                    limit(sockets.clone());
                    // If nobody waits for it, it is stopping already.
                    let _ = stop.send(name);
                }
                None if signal == SIGINT => leave(&sockets, "told to leave at once"),
                None => tracing::info!("told to stop again"),
            }
        }
    })?;
    Ok(asked)
}

/// From now on the time runs: what is not gone by then is left as it is. Tools' processes are ended by their
/// supervisors, and what was acknowledged is saved.
pub(super) fn limit(sockets: Sockets) {
    let limited = std::thread::Builder::new().name("holdpoint-limit".to_owned()).spawn(move || {
        std::thread::sleep(LIMIT);
        leave(&sockets, "something did not come back in time");
    });
    if let Err(error) = limited {
        tracing::warn!(%error, "no thread to leave in time");
    }
}

/// Ends when for so long there was no work, no connection and nobody attached. Wakes no more often than that.
pub(super) async fn idle_for(host: &Host, patience: Duration) {
    loop {
        let load = host.load.load().await.unwrap_or_default();
        let busy = load.sessions.busy + load.clients + host.connections.open() > 0;
        let quiet_since = host.since.max(host.connections.last_closed()).max(load.last_change.unwrap_or_default());
        let left = patience.saturating_sub(Timestamp::from(SystemTime::now()).since(quiet_since));
        match busy {
            true => tokio::time::sleep(patience).await,
            false if left.is_zero() => return,
            false => tokio::time::sleep(left).await,
        }
    }
}

/// Makes sockets again that others remove, for as long as the claim is this daemon's, and has them served. Ends when the
/// claim can be another daemon's, its folder being gone, no client can find this one, and it has nothing to do.
pub(super) async fn lost(host: &Host, claim: &Claim, mut serve: impl AsyncFnMut(Vec<Listener>)) {
    let sockets = claim.sockets();
    loop {
        let is_ours = claim.is_in_place();
        let renewed = if is_ours { sockets.renew() } else { Vec::new() };
        if !renewed.is_empty() {
            serve(renewed).await;
        }
        if !is_ours && !sockets.any_left() {
            break;
        }
        tokio::time::sleep(LOOK).await;
    }
    tracing::warn!("the data folder and the sockets are gone: no client can find this daemon any more");
    idle_for(host, UNFOUND).await;
}

/// Leaves at once.
fn leave(sockets: &Sockets, why: &str) -> ! {
    tracing::warn!(why, "leaving at once");
    sockets.remove();
    std::thread::sleep(LAST_WORDS);
    std::process::exit(1)
}
