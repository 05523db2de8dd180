//! The daemon's report about itself: `GET /v1/status`.

use std::fs;

use holdpoint_common::SessionId;
use holdpoint_common::api::{API_VERSION, BrowserStatus, DaemonStatus, Descriptors};
use holdpoint_session::store::{Salvaged, Sqlite};
use holdpoint_tools::web::RunningBrowser;
use rustix::process::{Resource, getrlimit};

use super::host::{About, Host};

/// The current status of the daemon.
pub(super) async fn daemon_status(host: &Host) -> DaemonStatus {
    // An engine that has stopped has no load; the daemon exits soon after.
    let load = host.load.load().await.unwrap_or_default();
    let About { sockets, folders, config, log, log_lost, idle_stop } = &host.about;
    DaemonStatus {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        api: API_VERSION,
        pid: std::process::id(),
        socket: sockets.first().map(|socket| socket.display().to_string()).unwrap_or_default(),
        data: folders.data().display().to_string(),
        machine: host.store.machine().map(str::to_owned),
        since: host.since,
        idle_stop_s: idle_stop.map(|after| after.as_secs()),
        config: config.clone(),
        log: Some(log.display().to_string()),
        log_lines_lost: log_lost.dropped_lines(),
        sessions: load.sessions,
        connections: host.open_connections(),
        descriptors: descriptors(),
        clients: load.clients,
        queued_prompts: load.queued_prompts,
        saved: load.saved,
        browsers: host.browsers.running().into_iter().map(browser).collect(),
        damaged: host.store.file().map(damages).unwrap_or_default(),
    }
}

/// The file descriptors of this process. The one that lists them is not counted.
fn descriptors() -> Descriptors {
    let folder = if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" };
    Descriptors {
        open: fs::read_dir(folder).map_or(0, |open| open.count().saturating_sub(1)),
        limit: getrlimit(Resource::Nofile).current,
    }
}

fn browser(running: RunningBrowser) -> BrowserStatus {
    let RunningBrowser { session, pid, debugging, visible, sandbox } = running;
    BrowserStatus { session, pid, debugging, visible, sandbox }
}

/// Describes the damaged databases that the store has set aside.
fn damages(store: &Sqlite) -> Vec<String> {
    store.salvaged().iter().map(damage).chain(store.salvage_error()).collect()
}

/// Describes the remains of a damaged database.
fn damage(salvaged: &Salvaged) -> String {
    let Salvaged { kept_at, whole, relisted, damaged } = salvaged;
    let kept_at = kept_at.display();
    if whole.is_empty() && relisted.is_empty() && damaged.is_empty() {
        return format!(
            "the database was damaged and is kept as {kept_at}: no session can be read from it"
        );
    }
    let lost = match damaged.is_empty() {
        true => "no other session can be read from it".to_owned(),
        false => {
            let ids: Vec<_> = damaged.iter().map(SessionId::as_str).collect();
            format!("facts are missing from {}", ids.join(", "))
        }
    };
    let relisted = match relisted.len() {
        0 => String::new(),
        1 => ", 1 is listed again from its facts, which seem to be complete".to_owned(),
        sessions => {
            format!(", {sessions} are listed again from their facts, which seem to be complete")
        }
    };
    let whole = match whole.len() {
        1 => "1 session is complete".to_owned(),
        sessions => format!("{sessions} sessions are complete"),
    };
    format!("the database was damaged and is kept as {kept_at}: {whole}{relisted}, {lost}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn salvaged_sessions_are_counted_in_singular_and_plural() {
        let ids = |count: usize| vec!["it".parse::<SessionId>().unwrap(); count];
        for (whole, relisted, expected) in [
            (1, 1, "1 session is complete, 1 is listed again from its facts, "),
            (2, 2, "2 sessions are complete, 2 are listed again from their facts, "),
            (0, 1, "0 sessions are complete, 1 is listed again from its facts, "),
        ] {
            let salvaged = Salvaged {
                kept_at: "db".into(),
                whole: ids(whole),
                relisted: ids(relisted),
                damaged: vec![],
            };
            assert!(damage(&salvaged).contains(expected), "{}", damage(&salvaged));
        }
    }
}
