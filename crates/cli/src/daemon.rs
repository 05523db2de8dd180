//! The daemon: keeps sessions running without clients. There is one for each user and state folder.
//!
//! | file | purpose |
//! | --- | --- |
//! | `claim` | the lock and the sockets that make one process the daemon |
//! | `server`, `peer`, `connection`, `host` | HTTP on the sockets, bounded and for this user only |
//! | `api` | every path and its handler |
//! | `status` | the daemon's report about itself |
//! | `shutdown` | the causes of the daemon's end, and its time limit |
//! | `store` | the file or database that keeps the sessions |
//! | `fleet` | connections between the machines that share a database |
//! | `memory` | the return of freed memory to the system |
//! | `log` | the log: bounded, private, without secrets |
//! | `notify` | the user's command for a session that waits |
//! | `desktop` | the variables of the latest client's desktop, for that command |
//! | `client`, `start`, `stop` | how a command finds, starts and stops the daemon |

mod api;
mod claim;
mod client;
mod connection;
mod desktop;
mod error;
mod fleet;
mod host;
mod log;
mod memory;
mod notify;
mod peer;
mod server;
mod shutdown;
mod start;
mod status;
mod stop;
mod store;

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::Data;
use holdpoint_common::Who;
use holdpoint_common::api::DaemonStatus;
use holdpoint_session::Engine;
use holdpoint_session::folders::Folders;
use holdpoint_session::model::Catalog;
use holdpoint_tools::Supervisor;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub(crate) use self::client::{Daemon, RESTART_HINT};
pub(crate) use self::fleet::{check_listen, make_certificate};
pub(crate) use self::start::{announce, detach};
pub(crate) use self::stop::stop;
pub(crate) use self::store::{authorities, connect, open_file};

use self::claim::{Claim, ClaimError, Listener, Unreachable};
use self::host::{About, Host};
use self::peer::Peers;
use self::server::Servers;
use self::store::Store;
use crate::error::CliError;
use crate::mcp;
use crate::runtime::runtime;
use crate::web;

/// How long sessions may take to end while clients are kept informed. It is longer than the usual
/// grace requires, and leaves enough of [`shutdown::LIMIT`] for the rest.
const SESSIONS_END_TIMEOUT: Duration = Duration::from_millis(6500);

/// How long the daemon waits at its end for its store to close.
const STORE_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The options of a daemon process.
#[derive(Debug)]
pub(crate) struct Options {
    /// The time without work and clients after which the daemon stops.
    pub(crate) idle_stop: Option<Duration>,
    /// Whether to wait for the claim while another daemon holds it and can't be reached, because
    /// that daemon is stopping.
    pub(crate) wait_for_claim: bool,
}

/// Serves as the daemon until asked to stop. With [`Options::wait_for_claim`], returns at once if
/// another daemon already serves. `ready` receives the status when serving begins.
///
/// # Errors
/// Fails if another daemon runs, or if something that the daemon needs is not usable.
pub(crate) fn run(
    folders: &Folders,
    options: &Options,
    ready: impl FnOnce(&DaemonStatus),
) -> Result<(), CliError> {
    // Before any other thread starts.
    memory::limit_spare_memory();
    let config = folders.config()?;
    folders.make()?;
    // Dropped last, so that the next owner finds the store closed and the log complete.
    let (claim, listeners) = match take_claim(folders, options)? {
        Some(claimed) => claimed,
        None => return Ok(()),
    };
    let log = log::start(&folders.logs(), config.log.as_deref())?;
    let failed =
        |what: &str, error: &dyn std::fmt::Display| CliError::failed(format!("{what}: {error}"));
    let stop_signal = shutdown::watch(claim.sockets().clone())
        .map_err(|error| failed("signal handlers can't be installed", &error))?;
    let runtime = runtime()?;
    let (store, for_machines) = runtime.block_on(Store::open(folders, &config.fleet))?;
    // The daemon's own environment is ignored.
    let catalog = Catalog::new(&config, |_| None);
    let browsers = web::browsers(&config, folders)?;
    browsers.sweep();
    let engine = store.serve(Engine::builder(catalog).configured(&config, folders));
    let engine = engine.supervisor(Supervisor::beside_this_program());
    let engine = engine.tools(web::tools(&browsers)).mcp(mcp::source(folders.logins()));
    let engine = engine.folder_servers(folders.trust()).start()?;

    let about = About {
        sockets: claim.sockets().clone(),
        folders: folders.clone(),
        config: config.daemon_parts(),
        log: log.path.clone(),
        log_lost: log.lost.clone(),
        idle_stop: options.idle_stop,
    };
    let peers = Peers::new(&engine).map_err(|error| {
        failed("the daemon can't identify its clients", &error).hint(
            "if `/proc` is mounted with `hidepid`, add this user to the group of its `gid` option",
        )
    })?;
    let host = Data::new(Host::new(&engine, peers, browsers, store.clone(), config.limits, about));
    runtime.block_on(async {
        let mut servers = Servers::default();
        let server = servers
            .start(listeners, &host)
            .map_err(|error| failed("the server can't be started", &error))?;
        let served = tokio::spawn(server);
        if let (Some(listener), Some(fleet)) = (for_machines, store.fleet()) {
            servers
                .start_for_machines(listener, fleet, &host)
                .map_err(|error| failed("the other machines can't be served", &error))?;
        }
        if let Some(command) = config.notify.command {
            let sessions = engine.sessions(Who::named("notify"));
            let desktops = Arc::clone(&host.desktops);
            tokio::spawn(notify::notify_asks(sessions, command, host.since, desktops));
        }
        tokio::spawn(memory::give_back(host.load.clone()));
        let status = status::daemon_status(&host).await;
        let DaemonStatus { version, pid, socket, .. } = &status;
        tracing::info!(version, pid, socket, "serving");
        ready(&status);
        let cause = tokio::select! {
            signal = stop_signal => signal.unwrap_or("signals are no longer watched"),
            () = shutdown::keep_reachable(&host, &claim, async |renewed| {
                servers.renew(renewed, &host).await
            }) => "no client can find this daemon",
            () = wait_until_idle_stop(&host) => "idle",
        };
        // After a signal, an earlier time limit runs already and ends first.
        shutdown::start_time_limit(claim.sockets().clone());
        tracing::info!(cause, "stopping");
        // From now on, clients find no daemon and start the next one, which waits for the lock.
        claim.sockets().remove();
        host.stopping.begin();
        end_sessions(engine, servers, &host).await;
        if let Ok(Err(error)) = served.await {
            tracing::error!(%error, "the server failed");
        }
        Ok::<_, CliError>(())
    })?;
    drop(host);
    if runtime.block_on(async { timeout(STORE_CLOSE_TIMEOUT, store.close()).await }).is_err() {
        tracing::warn!("the store is still in use: the newest data is in its write-ahead log");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Ends all sessions, and then the streams of their clients.
async fn end_sessions(engine: Engine, servers: Servers, host: &Host) {
    let since = Instant::now();
    let mut ending = spawn_blocking(|| drop(engine));
    // Attached clients receive the end of their sessions, unless that takes too long.
    let ended = timeout(SESSIONS_END_TIMEOUT, &mut ending).await;
    host.stopping.end().await;
    // Clients that read receive the rest of their data. The others are given up.
    servers.end().await;
    let ended = match ended {
        Ok(ended) => ended,
        Err(_) => ending.await,
    };
    if let Err(error) = ended {
        tracing::error!(%error, "the engine failed while it was stopping");
    }
    tracing::info!(engine_ms = since.elapsed().as_millis(), "sessions have ended");
}

/// Returns when the daemon has been idle for as long as it may be.
async fn wait_until_idle_stop(host: &Host) {
    match host.about.idle_stop {
        Some(idle_stop) => shutdown::wait_until_idle_for(host, idle_stop).await,
        None => std::future::pending().await,
    }
}

/// Takes the claim. Returns `None` if another daemon holds it and serves.
fn take_claim(
    folders: &Folders,
    options: &Options,
) -> Result<Option<(Claim, Vec<Listener>)>, CliError> {
    let deadline = Instant::now() + start::START_TIMEOUT;
    loop {
        let pid = match Claim::take(folders) {
            Ok(claimed) => return Ok(Some(claimed)),
            Err(ClaimError::Failed(error)) => return Err(error),
            Err(held @ ClaimError::Held { .. }) if !options.wait_for_claim => {
                let hint = "`holdpoint status` shows it, `holdpoint daemon stop` stops it";
                return Err(CliError::failed(held).hint(hint));
            }
            Err(ClaimError::Held { pid }) => pid,
        };
        if claim::is_served(folders)? {
            return Ok(None);
        }
        // The command that waits for this process reports the same, and either may be first.
        if Instant::now() > deadline {
            return Err(Unreachable { pid }.into());
        }
        // Polls, because a lock has no timeout and a daemon takes up to 10 s to stop. This is rare:
        // it needs two commands in a row.
        std::thread::sleep(start::CLAIM_RETRY_INTERVAL);
    }
}
