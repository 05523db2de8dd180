//! The daemon: what keeps sessions running when nobody is there. One per user and state folder.
//!
//! | file | what it does |
//! | --- | --- |
//! | `claim` | makes sure that there is one: the lock, the socket |
//! | `server`, `peer`, `connection`, `host` | serves HTTP on the socket, to this user alone, so many at once |
//! | `api` | what is said there: every path and its handler |
//! | `status` | what it says of itself |
//! | `ending` | what ends it, and by when |
//! | `memory` | that what is freed goes back to the system |
//! | `log` | its log: bounded, private, without secrets |
//! | `notify` | tells the user, by a command of theirs, that a session waits |
//! | `desktop` | the variables of the desktop of the client that connected last, for that command |
//! | `client`, `start`, `stop` | how a command finds it, starts it if there is none, and stops it |

mod api;
mod claim;
mod client;
mod connection;
mod desktop;
mod ending;
mod host;
mod log;
mod memory;
mod notify;
mod peer;
mod server;
mod start;
mod status;
mod stop;

use std::sync::Arc;
use std::time::{Duration, Instant};

use actix_web::web::Data;
use holdpoint_common::Who;
use holdpoint_common::api::DaemonStatus;
use holdpoint_session::Engine;
use holdpoint_session::folders::{self, Folders};
use holdpoint_session::model::Catalog;
use holdpoint_session::store::Sqlite;
use holdpoint_tools::Supervisor;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

pub(crate) use self::client::{Daemon, READS_ANEW};
pub(crate) use self::start::{announce, detach};
pub(crate) use self::stop::stop;

use self::claim::{Claim, ClaimError, Listener, Unreachable};
use self::host::{About, Host};
use self::server::Servers;
use crate::error::CliError;
use crate::runtime::runtime;
use crate::web;

/// How long sessions may take to end before clients are told no more of it: longer than they take with the usual grace,
/// and so that the rest of [`ending::LIMIT`] is enough for what comes after.
const SESSIONS_END: Duration = Duration::from_millis(6500);

/// How long it waits at its end for its store to be closed.
const STORE_CLOSES: Duration = Duration::from_secs(1);

/// How a daemon runs.
#[derive(Debug)]
pub(crate) struct Options {
    /// It stops after so long without work and clients.
    pub(crate) idle_stop: Option<Duration>,
    /// If another daemon holds the claim and can't be reached, it is stopping, and this one waits for its place.
    pub(crate) patient: bool,
}

/// Is the daemon until it is told to stop, or, if it is patient, not at all where another one serves. `ready` is called
/// when it serves, with its status.
///
/// # Errors
/// It can't be: another one is, or something it needs is not as it should be.
pub(crate) fn run(folders: &Folders, options: &Options, ready: impl FnOnce(&DaemonStatus)) -> Result<(), CliError> {
    memory::keep_little();
    let config = folders.config()?;
    folders.make()?;
    for file in Sqlite::files(folders.data()) {
        folders::check_file(&file)?;
    }
    // Dropped last: who has it next finds the store closed, and the log written to its end.
    let (claim, listeners) = match claim(folders, options)? {
        Some(claimed) => claimed,
        None => return Ok(()),
    };
    let log = log::start(&folders.logs(), config.log.as_deref())?;
    let failed = |what: &str, error: &dyn std::fmt::Display| CliError::failed(format!("{what}: {error}"));
    let asked = ending::watch(claim.sockets().clone()).map_err(|error| failed("signals can't be watched", &error))?;
    let store = Sqlite::open(folders.data()).map_err(|error| {
        failed(&format!("the sessions in {} can't be opened", folders.data().display()), &error)
            .hint("it is left as it is: look at it, or name another place by --state-dir")
    })?;
    // The daemon's own environment counts for nothing.
    let catalog = Catalog::new(&config, |_| None);
    let browsers = web::browsers(&config, folders)?;
    browsers.sweep();
    let engine = Engine::builder(catalog).limits(config.limits.clone()).store(store.clone());
    let engine = engine.own_folders(folders.all());
    let engine = engine.tools(web::tools(&browsers)).supervisor(Supervisor::ThisProgram).start()?;
    let runtime = runtime()?;

    let about = About {
        sockets: claim.sockets().clone(),
        data: folders.data().to_owned(),
        config: config.of_daemon(),
        log: log.path.clone(),
        log_lost: log.lost.clone(),
        idle_stop: options.idle_stop,
    };
    let host = Data::new(Host::new(&engine, browsers, store.clone(), config.limits, about));
    runtime.block_on(async {
        let mut servers = Servers::default();
        let server = servers.start(listeners, &host).map_err(|error| failed("no server", &error))?;
        let served = tokio::spawn(server);
        if let Some(command) = config.notify.command {
            let (sessions, desktops) = (engine.sessions(Who::named("notify")), Arc::clone(&host.desktops));
            tokio::spawn(notify::of_asks(sessions, command, host.since, desktops));
        }
        tokio::spawn(memory::give_back(host.load.clone()));
        let status = status::of(&host).await;
        tracing::info!(version = status.version, pid = status.pid, socket = status.socket, "serving");
        ready(&status);
        let cause = tokio::select! {
            asked = asked => asked.unwrap_or("its signals are no longer watched"),
            () = ending::lost(&host, &claim, async |again| servers.renew(again, &host).await) => {
                ending::limit(claim.sockets().clone());
                "nobody can find it"
            }
            () = idle(&host) => {
                ending::limit(claim.sockets().clone());
                "idle"
            }
        };
        tracing::info!(cause, "stopping");
        // Who looks for a daemon from now on finds none, and starts the next one, which waits for the lock.
        claim.sockets().remove();
        host.stopping.begin();
        let since = Instant::now();
        let mut ending = spawn_blocking(|| drop(engine));
        // Whoever is attached is told how its session ends, unless that takes too long.
        let ended = timeout(SESSIONS_END, &mut ending).await;
        host.stopping.end().await;
        // What was written is read by whoever reads; the others are given up.
        servers.end().await;
        let ended = match ended {
            Ok(ended) => ended,
            Err(_) => ending.await,
        };
        if let Err(error) = ended {
            tracing::error!(%error, "the engine failed at its end");
        }
        tracing::info!(engine_ms = since.elapsed().as_millis(), "sessions have ended");
        if let Ok(Err(error)) = served.await {
            tracing::error!(%error, "the server failed");
        }
        Ok::<_, CliError>(())
    })?;
    drop(host);
    if runtime.block_on(async { timeout(STORE_CLOSES, store.close()).await }).is_err() {
        tracing::warn!("the store is still in use: what was saved last is in a file beside it");
    }
    tracing::info!("stopped");
    Ok(())
}

/// Ends when the daemon has been idle for as long as it may be.
async fn idle(host: &Host) {
    match host.about.idle_stop {
        Some(patience) => ending::idle_for(host, patience).await,
        None => std::future::pending().await,
    }
}

/// The claim, or nothing if another daemon has it and serves.
fn claim(folders: &Folders, options: &Options) -> Result<Option<(Claim, Vec<Listener>)>, CliError> {
    let by = Instant::now() + start::PATIENCE;
    loop {
        let pid = match Claim::take(folders) {
            Ok(claimed) => return Ok(Some(claimed)),
            Err(ClaimError::Failed(error)) => return Err(error),
            Err(held @ ClaimError::Held { .. }) if !options.patient => {
                let hint = "`holdpoint status` tells of it, `holdpoint daemon stop` ends it";
                return Err(CliError::failed(held).hint(hint));
            }
            Err(ClaimError::Held { pid }) => pid,
        };
        if claim::is_served(folders)? {
            return Ok(None);
        }
        // As the command that waits for this process reports it, and which of them is first is chance.
        if Instant::now() > by {
            return Err(Unreachable { pid }.into());
        }
        // A daemon takes up to 10 s to stop, and there is no lock with a time limit. Seldom: two commands in a row.
        std::thread::sleep(start::AGAIN);
    }
}
