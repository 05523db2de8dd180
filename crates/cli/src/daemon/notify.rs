//! Runs the user's command when a session waits for an answer, once for each ask.

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

/// The timeout of the command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);
/// The pause before another attempt to watch the sessions.
const RETRY_INTERVAL: Duration = Duration::from_secs(10);
/// The maximum size of a variable in bytes. Longer text is cut: a message begins with its subject.
const MAX_VARIABLE_BYTES: usize = 4096;
/// The maximum number of commands that run at once. Others wait.
const MAX_CONCURRENT: usize = 4;

/// The newest ask of a session that was reported or is about to be.
struct Notified {
    ask: AskId,
    /// Whether the session still shows this ask.
    open: watch::Sender<bool>,
}

/// Runs `command` for every ask, as soon as its session shows it, until the engine stops. The first
/// ask that a session shows is left out if it was raised before `since`, the start of this daemon:
/// the previous daemon is assumed to have reported it. The command receives the daemon's
/// environment, with the desktop variables that `desktops` has at that moment.
pub(super) async fn notify_asks(
    sessions: Sessions,
    command: String,
    since: Timestamp,
    desktops: Arc<Desktops>,
) {
    let mut watch = loop {
        match sessions.watch().await {
            Ok(watch) => break watch,
            Err(SessionError::Stopped) => return,
            Err(error) => {
                tracing::error!(%error, "no notifications until the sessions can be read")
            }
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    };
    let mut notified: HashMap<SessionId, Notified> = HashMap::new();
    let places = Arc::new(Semaphore::new(MAX_CONCURRENT));
    let command: Arc<str> = command.into();
    while let Some(news) = watch.next().await {
        let session = match news {
            SessionNews::Session(session) => *session,
            SessionNews::Deleted(id) => {
                notified.remove(&id);
                continue;
            }
        };
        let before = notified.get(&session.id);
        if let Some(before) = before {
            let open = session.waits_for.as_ref().is_some_and(|ask| ask.id == before.ask);
            before.open.send_replace(open);
        }
        let Some(ask) = session.waits_for.clone() else { continue };
        if before.is_some_and(|before| before.ask == ask.id) {
            continue;
        }
        let was_reported = before.is_none() && ask.since < since;
        let (open, is_open) = watch::channel(true);
        notified.insert(session.id.clone(), Notified { ask: ask.id.clone(), open });
        if was_reported {
            continue;
        }
        let (command, places, desktops) =
            (Arc::clone(&command), Arc::clone(&places), Arc::clone(&desktops));
        tokio::spawn(async move {
            // The semaphore is never closed.
            let _place = places.acquire().await;
            // By now the ask may be answered, or its session gone.
            if is_open.has_changed().is_err() || !*is_open.borrow() {
                return;
            }
            match run_until(
                notify_command(&command, &session, &ask, desktops.current()),
                tokio::time::sleep(COMMAND_TIMEOUT),
            )
            .await
            {
                Ok(Some(status)) if status.success() => {}
                Ok(Some(status)) => {
                    tracing::warn!(%status, session = %session.id, "the command of `notify` failed")
                }
                Ok(None) => {
                    tracing::warn!(session = %session.id, "the command of `notify` took too long and was ended")
                }
                Err(error) => {
                    tracing::warn!(%error, session = %session.id, "the command of `notify` can't be run")
                }
            }
        });
    }
}

/// Builds the command for an ask of this session.
fn notify_command(
    command: &str,
    session: &SessionSummary,
    ask: &Ask,
    desktop: Option<Variables>,
) -> Command {
    let mut shell = Command::new("sh");
    if let Some(desktop) = desktop {
        // Variables of two desktops must not be mixed. The runtime folder is the same on all of a
        // user's desktops.
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

/// Makes a line fit for a variable: without NUL, and within the system's limit.
fn fitting(line: &str) -> String {
    let shown = prose_line(&line[..line.floor_char_boundary(MAX_VARIABLE_BYTES)]);
    let end = shown.floor_char_boundary(MAX_VARIABLE_BYTES);
    if end == shown.len() && line.len() <= MAX_VARIABLE_BYTES {
        shown.into_owned()
    } else {
        format!("{}…", &shown[..end])
    }
}

/// Runs the command; `None` if the time is up first. Its processes are then killed, as they are
/// when the daemon stops.
async fn run_until(
    mut command: Command,
    timeout: impl Future<Output = ()>,
) -> io::Result<Option<ExitStatus>> {
    let mut child = command.process_group(0).spawn()?;
    let group = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).map(Group);
    tokio::select! {
        status = child.wait() => {
            // Processes that the command leaves running are meant to continue.
            std::mem::forget(group);
            status.map(Some)
        }
        () = timeout => Ok(None),
    }
}

/// A command's process group, killed when dropped.
struct Group(Pid);

impl Drop for Group {
    fn drop(&mut self) {
        // All its processes may have ended just now.
        let _ = kill_process_group(self.0, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[tokio::test]
    async fn a_timed_out_command_ends_with_all_its_processes() {
        let folder = tempfile::tempdir().unwrap();
        let pid_file = folder.path().join("pid");
        let read = || std::fs::read_to_string(&pid_file).unwrap_or_default();
        // A background process would outlive its shell.
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $! > \"$1\"; wait", "sh"]).arg(&pid_file);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let timeout = async {
            while !read().ends_with('\n') {
                tokio::task::yield_now().await;
            }
        };
        assert!(run_until(command, timeout).await.unwrap().is_none());
        // Gone, or dead and not reaped yet by its new parent.
        let stat = format!("/proc/{}/stat", read().trim());
        let deadline = Instant::now() + holdpoint_tools::testing::patience();
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < deadline, "the process is still alive");
            std::thread::yield_now();
        }
    }
}
