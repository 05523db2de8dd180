//! Tells the user that a session waits: by a command of theirs, once for each ask.

use std::collections::HashMap;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::api::SessionNews;
use holdpoint_common::{Ask, AskId, SessionId, SessionSummary, Timestamp};
use holdpoint_session::{SessionError, Sessions};
use holdpoint_tools::environment;
use holdpoint_tools::shown::prose_line;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Command;
use tokio::sync::{Semaphore, watch};

use super::desktop::{Desktops, Variables};

/// How long the command may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long after a failure to watch the sessions it is tried again.
const AGAIN: Duration = Duration::from_secs(10);
/// Bytes of what is told by a variable: a message says what it is about at its beginning.
const MOST: usize = 4096;
/// Commands that run at once; the others wait.
const AT_ONCE: usize = 4;

/// The ask of a session that was told of last.
struct Told {
    ask: AskId,
    /// Whether it is still the one that its session shows.
    open: watch::Sender<bool>,
}

/// Runs `command` for every ask that is raised from `since` on, until the engine stops: when it is the one its session
/// shows. It gets the daemon's environment, and the variables of the current one of `desktops`.
pub(super) async fn of_asks(sessions: Sessions, command: String, since: Timestamp, desktops: Arc<Desktops>) {
    let mut watch = loop {
        match sessions.watch().await {
            Ok(watch) => break watch,
            Err(SessionError::Stopped) => return,
            Err(error) => tracing::error!(%error, "nobody is told of asks, until the sessions can be read"),
        }
        tokio::time::sleep(AGAIN).await;
    };
    let mut told: HashMap<SessionId, Told> = HashMap::new();
    let places = Arc::new(Semaphore::new(AT_ONCE));
    let command: Arc<str> = command.into();
    while let Some(news) = watch.next().await {
        let session = match news {
            SessionNews::Session(session) => *session,
            SessionNews::Deleted(id) => {
                told.remove(&id);
                continue;
            }
        };
        let before = told.get(&session.id);
        if let Some(before) = before {
            let open = session.waits_for.as_ref().is_some_and(|ask| ask.id == before.ask);
            before.open.send_replace(open);
        }
        let Some(ask) = session.waits_for.clone() else { continue };
        // One that stands again after a restart was told of before it.
        if ask.since < since || before.is_some_and(|before| before.ask == ask.id) {
            continue;
        }
        let (open, is_open) = watch::channel(true);
        told.insert(session.id.clone(), Told { ask: ask.id.clone(), open });
        let (command, places, desktops) = (Arc::clone(&command), Arc::clone(&places), Arc::clone(&desktops));
        tokio::spawn(async move {
            // Never closed.
            let _place = places.acquire().await;
            // It may be answered by now, or its session be gone.
            if is_open.has_changed().is_err() || !*is_open.borrow() {
                return;
            }
            match run(telling(&command, &session, &ask, desktops.current()), tokio::time::sleep(PATIENCE)).await {
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => tracing::warn!(%status, session = %session.id, "the command of `notify` failed"),
                Ok(None) => {
                    tracing::warn!(session = %session.id, "the command of `notify` took too long and was ended")
                }
                Err(error) => tracing::warn!(%error, session = %session.id, "the command of `notify` can't be run"),
            }
        });
    }
}

/// The command, as it is run to tell of what this session asks.
fn telling(command: &str, session: &SessionSummary, ask: &Ask, desktop: Option<Variables>) -> Command {
    let mut shell = Command::new("sh");
    if let Some(desktop) = desktop {
        // Part of one desktop and part of another is neither. The runtime folder is the user's on all of them.
        for name in environment::DESKTOP.iter().filter(|name| **name != "XDG_RUNTIME_DIR") {
            shell.env_remove(name);
        }
        shell.envs(desktop);
    }
    shell
        .args(["-c", command])
        .env("HOLDPOINT_ASK", ask.id.to_string())
        .env("HOLDPOINT_SESSION", session.id.as_str())
        .env("HOLDPOINT_NAME", fitting(&session.name))
        .env("HOLDPOINT_TOOL", fitting(ask.request.tool_name()))
        .env("HOLDPOINT_MESSAGE", fitting(ask.request.message().lines().next().unwrap_or_default()))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    shell
}

/// A line as a variable takes it: without NUL, and not longer than the system lets one be.
fn fitting(line: &str) -> String {
    let shown = prose_line(&line[..line.floor_char_boundary(MOST)]);
    let end = shown.floor_char_boundary(MOST);
    if end == shown.len() && line.len() <= MOST { shown.into_owned() } else { format!("{}…", &shown[..end]) }
}

/// Runs it; nothing if the time was up first. What it has started ends then, too, as it does when the daemon stops.
async fn run(mut command: Command, time: impl Future<Output = ()>) -> io::Result<Option<ExitStatus>> {
    let mut child = command.process_group(0).spawn()?;
    let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).map(Group);
    tokio::select! {
        status = child.wait() => {
            // What it leaves running it means to.
            std::mem::forget(group);
            status.map(Some)
        }
        () = time => Ok(None),
    }
}

/// A command and all that it has started, which ends with this.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // All of it may have ended just now.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn when_the_time_is_up_all_that_it_has_started_ends() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let read = || std::fs::read_to_string(&told).unwrap_or_default();
        // What is in the background would outlive its shell.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $! > \"$1\"; wait", "sh"]).arg(&told);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let time = async {
            while !read().ends_with('\n') {
                tokio::task::yield_now().await;
            }
        };
        assert!(run(command, time).await.unwrap().is_none());
        // Gone, or dead and not yet buried by whoever has inherited it.
        let stat = format!("/proc/{}/stat", read().trim());
        let by = Instant::now() + holdpoint_tools::testing::patience();
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < by, "it lives");
            std::thread::yield_now();
        }
    }
}
