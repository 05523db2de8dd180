//! Finds the sessions that a command names by id, unique id prefix or name, and completes them in a
//! shell.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use holdpoint_common::{
    Refused, SessionError, SessionId, SessionSettings, SessionSummary, Snapshot,
};
use holdpoint_session::folders::Folders;
use holdpoint_session::{AttachFrom, SessionHandle, Sessions};
use holdpoint_tools::shown::prose_line;

use crate::daemon::Daemon;
use crate::error::CliError;
use crate::runtime::runtime;
use crate::sessions::who;
use crate::tone::Tone;
use crate::ui::Ui;

/// How long a shell waits for completions.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(1);

/// One session.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArg {
    /// The session: its id, the first 4 or more characters of the id, or its name
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(complete_session))]
    pub(crate) session: String,
}

/// One session, the range of its events to show, and their format.
#[derive(Debug, clap::Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    session: SessionArg,

    /// Show only events after the one with this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,

    /// Show at most this many past facts, the newest ones
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Print every event as one line of JSON on standard output
    #[arg(long)]
    pub(crate) json: bool,
}

impl StreamArgs {
    pub(crate) fn session(&self) -> &str {
        &self.session.session
    }

    /// The position to attach from.
    pub(crate) fn from(&self) -> AttachFrom {
        AttachFrom { limit: self.limit, ..AttachFrom::after(self.after) }
    }
}

/// Some sessions, or all that are live.
#[derive(Debug, clap::Args)]
#[group(required = true)]
pub(crate) struct SessionsArg {
    /// The sessions: their ids, the first 4 or more characters of the ids, or their names
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(complete_session), conflicts_with = "all")]
    sessions: Vec<String>,

    /// All live sessions
    #[arg(long)]
    all: bool,
}

/// Finds the session with this id or name. Commands that end or delete sessions do not accept a
/// prefix of an id.
pub(crate) async fn look_exactly(
    sessions: &Sessions,
    given: &str,
) -> Result<Arc<Snapshot>, SessionError> {
    let found = sessions.look(given).await?;
    let SessionSettings { id, name, .. } = &*found.settings;
    if id.as_str() == given || name == given {
        return Ok(found);
    }
    Err(SessionError::Inexact { given: given.to_owned(), session: id.clone() })
}

/// Shows which session was found, if it was named by a prefix of its id.
pub(crate) fn show_resolved(given: &str, session: &Snapshot, ui: &mut Ui) -> io::Result<()> {
    let SessionSettings { id, name, .. } = &*session.settings;
    if id.as_str() == given || name == given {
        return Ok(());
    }
    ui.line(Tone::Dim, &format!("session: {} ({id})", prose_line(name)))
}

/// Reports failures among several sessions, without stopping at the first.
pub(crate) struct Failures<'a> {
    folders: &'a Folders,
    code: i32,
}

impl<'a> Failures<'a> {
    /// Starts without failures, for sessions of the daemon of these folders.
    pub(crate) fn new(folders: &'a Folders) -> Self {
        Self { folders, code: 0 }
    }

    /// Reports the failure of one session.
    pub(crate) fn add(&mut self, session: &str, error: impl Into<CliError>, ui: &mut Ui) {
        self.report(&error.into().about(session), ui);
    }

    fn report(&mut self, error: &CliError, ui: &mut Ui) {
        error.show(ui);
        self.code = error.code();
    }

    /// Finds the named sessions. Failures are reported, and the rest is returned.
    pub(crate) async fn find<T>(
        &mut self,
        named: &[String],
        ui: &mut Ui,
        find: impl AsyncFn(&str) -> Result<T, SessionError>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for given in named {
            match find(given).await {
                Ok(one) => found.push(one),
                Err(error) => {
                    let names_session = matches!(
                        error,
                        SessionError::UnknownSession { .. }
                            | SessionError::Ambiguous { .. }
                            | SessionError::Inexact { .. }
                            | SessionError::Damaged { .. }
                    );
                    let error = Daemon::explain(self.folders, error.into()).await;
                    self.report(&if names_session { error } else { error.about(given) }, ui);
                }
            }
        }
        found
    }

    /// The exit code of the last failure, or 0.
    pub(crate) fn code(&self) -> i32 {
        self.code
    }
}

impl SessionsArg {
    /// Returns handles of the sessions. Saved sessions are not opened: a verb on such a handle
    /// fails with "not live".
    ///
    /// # Errors
    /// With `--all`, fails if the sessions can't be listed.
    pub(crate) async fn reach(
        &self,
        sessions: &Sessions,
        failures: &mut Failures<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<SessionHandle>, CliError> {
        if self.all {
            return self.reach_all(sessions, failures, ui).await;
        }
        let reach = async |given: &str| {
            let found = sessions.look(given).await?;
            sessions.reach(&found.settings.id).await
        };
        Ok(failures.find(&self.sessions, ui, reach).await)
    }

    /// Returns handles of the named sessions, opening the saved ones; with `--all`, of the live
    /// ones.
    ///
    /// # Errors
    /// With `--all`, fails if the sessions can't be listed.
    pub(crate) async fn open(
        &self,
        sessions: &Sessions,
        failures: &mut Failures<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<SessionHandle>, CliError> {
        if self.all {
            return self.reach_all(sessions, failures, ui).await;
        }
        Ok(failures.find(&self.sessions, ui, async |given: &str| sessions.get(given).await).await)
    }

    async fn reach_all(
        &self,
        sessions: &Sessions,
        failures: &mut Failures<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<SessionHandle>, CliError> {
        self.find_live(sessions, failures, ui, async |id: &SessionId| sessions.reach(id).await)
            .await
    }

    /// Returns snapshots of the sessions, for commands that end them. Saved sessions stay saved,
    /// and a prefix of an id is not accepted.
    ///
    /// # Errors
    /// With `--all`, fails if the sessions can't be listed.
    pub(crate) async fn look_exactly(
        &self,
        sessions: &Sessions,
        failures: &mut Failures<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<Arc<Snapshot>>, CliError> {
        if !self.all {
            return Ok(failures
                .find(&self.sessions, ui, async |given: &str| look_exactly(sessions, given).await)
                .await);
        }
        self.find_live(sessions, failures, ui, async |id: &SessionId| {
            sessions.look(id.as_str()).await
        })
        .await
    }

    /// Applies `find` to every live session, and prints a line if there are none.
    async fn find_live<T>(
        &self,
        sessions: &Sessions,
        failures: &mut Failures<'_>,
        ui: &mut Ui,
        find: impl AsyncFn(&SessionId) -> Result<T, SessionError>,
    ) -> Result<Vec<T>, CliError> {
        let mut found = Vec::new();
        for SessionSummary { id, name, .. } in
            sessions.list().await?.into_iter().filter(|session| session.live)
        {
            match find(&id).await {
                Ok(one) => found.push(one),
                Err(error) if self.is_ignorable_with_all(&error) => {}
                Err(error) => failures.add(&name, error, ui),
            }
        }
        if found.is_empty() && failures.code() == 0 {
            ui.line(Tone::Plain, "No live sessions.")?;
            ui.flush()?;
        }
        Ok(found)
    }

    /// Whether an error only means that one of "all live sessions" is no longer live.
    pub(crate) fn is_ignorable_with_all(&self, error: &SessionError) -> bool {
        let is_gone = matches!(
            error,
            SessionError::NotLive { .. }
                | SessionError::UnknownSession { .. }
                | SessionError::Refused(Refused::Closed)
        );
        self.all && is_gone
    }
}

/// A filter for the list of sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// List only sessions that wait for an answer
    #[arg(long)]
    waiting: bool,

    /// List only running sessions
    #[arg(long)]
    running: bool,

    /// List only sessions that work in this folder; without DIR, in the current folder
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    cwd: Option<PathBuf>,
}

impl Filter {
    /// Whether it excludes any session.
    pub(crate) fn is_given(&self) -> bool {
        self.waiting || self.running || self.cwd.is_some()
    }

    /// Returns the test that a listed session must pass.
    ///
    /// # Errors
    /// Fails if the folder does not exist.
    pub(crate) fn test(&self) -> Result<impl Fn(&SessionSummary) -> bool, CliError> {
        let folder = match &self.cwd {
            Some(folder) => Some(folder.canonicalize().map_err(|error| {
                CliError::usage(format!("{}: {error}", folder.display()))
                    .hint("give an existing folder with --cwd")
            })?),
            None => None,
        };
        let (waiting, running) = (self.waiting, self.running);
        Ok(move |session: &SessionSummary| {
            let has_status = match (waiting, running) {
                (false, false) => true,
                _ => {
                    waiting && session.waits_for.is_some()
                        || running && session.status == holdpoint_common::SessionStatus::Running
                }
            };
            // A path that is not UTF-8 is the folder of no session.
            let is_in =
                |folder: &PathBuf| folder.to_str().is_some_and(|folder| session.works_in(folder));
            has_status && folder.as_ref().is_none_or(is_in)
        })
    }
}

/// Completes the name or the id of a session.
pub(crate) fn complete_session(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let listed = with_daemon(|sessions| async move { sessions.list().await.ok() });
    let candidates = listed.into_iter().flatten().flat_map(|session| {
        let help = format!("{} {} {}", session.id, session.status, prose_line(&session.title));
        let words =
            [Some(session.name).filter(|name| is_plain(name)), Some(session.id.to_string())];
        words
            .into_iter()
            .flatten()
            .map(move |word| CompletionCandidate::new(word).help(Some(help.clone().into())))
    });
    candidates
        .filter(|candidate| candidate.get_value().to_string_lossy().starts_with(typed))
        .collect()
}

/// Whether a shell takes a name as exactly one word. Completions are inserted unquoted.
fn is_plain(name: &str) -> bool {
    let plain = |character: char| character.is_alphanumeric() || "._/@%+-".contains(character);
    !name.starts_with('-') && name.chars().all(plain)
}

/// Completes the id of an open ask.
pub(crate) fn complete_ask(typed: &OsStr) -> Vec<CompletionCandidate> {
    let Some(typed) = typed.to_str() else { return Vec::new() };
    let asks = with_daemon(|sessions| async move { sessions.inbox().await.ok() });
    let candidates = asks.into_iter().flatten().map(|entry| {
        let help =
            format!("{}: {}", prose_line(&entry.name), prose_line(entry.ask.request.tool_name()));
        CompletionCandidate::new(entry.ask.id.to_string()).help(Some(help.into()))
    });
    candidates
        .filter(|candidate| candidate.get_value().to_string_lossy().starts_with(typed))
        .collect()
}

/// Queries the daemon if one runs. A completion does not start one.
fn with_daemon<T, F: Future<Output = Option<T>>>(query: impl FnOnce(Sessions) -> F) -> Option<T> {
    let folders = Folders::find(state_dir().as_deref()).ok()?;
    runtime().ok()?.block_on(async {
        let queried = async {
            let daemon = Daemon::find(&folders).await.ok()??;
            query(Sessions::remote(daemon.socket, &who("completions"))).await
        };
        tokio::time::timeout(COMPLETION_TIMEOUT, queried).await.ok()?
    })
}

/// The state folder in the command line that is being completed.
fn state_dir() -> Option<PathBuf> {
    let mut words = std::env::args_os().skip_while(|word| word != "--").skip(1);
    while let Some(word) = words.next() {
        if word == "--state-dir" {
            return words.next().map(PathBuf::from);
        }
        if let Some(dir) = word.to_str().and_then(|word| word.strip_prefix("--state-dir=")) {
            return Some(dir.into());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Seek};

    use holdpoint_common::Limits;
    use holdpoint_session::model::Catalog;
    use holdpoint_session::{Engine, OpenSession};
    use tempfile::TempDir;

    use super::*;

    /// Runs commands with `--all` in an engine with room for one session.
    struct Bench {
        engine: Engine,
        folder: TempDir,
        folders: Folders,
        written: File,
        ui: Ui,
    }

    impl Bench {
        fn new() -> Self {
            let limits = Limits { max_sessions: 1, ..Limits::default() };
            let engine = Engine::builder(Catalog::default()).limits(limits).start().unwrap();
            let folder = TempDir::new().unwrap();
            let folders = Folders::find(Some(folder.path())).unwrap();
            let written = tempfile::tempfile().unwrap();
            let ui = Ui::to_file(&written).unwrap();
            Self { engine, folder, folders, written, ui }
        }

        fn sessions(&self) -> Sessions {
            self.engine.sessions(who("test"))
        }

        async fn open(&self) -> SessionHandle {
            self.sessions().open(OpenSession::in_folder(self.folder.path())).await.unwrap()
        }

        fn written(&mut self) -> String {
            self.ui.flush().unwrap();
            let mut text = String::new();
            self.written.rewind().unwrap();
            self.written.read_to_string(&mut text).unwrap();
            text
        }
    }

    fn all() -> SessionsArg {
        SessionsArg { sessions: vec![], all: true }
    }

    #[tokio::test]
    async fn m_d3_live_sessions_that_can_not_be_reached_are_not_called_none() {
        let mut bench = Bench::new();
        bench.open().await;
        let (sessions, folders) = (bench.sessions(), bench.folders.clone());
        let mut failures = Failures::new(&folders);
        let find = async |_: &SessionId| {
            Err::<(), _>(SessionError::Unreachable { message: "busy".to_owned() })
        };
        let found = all().find_live(&sessions, &mut failures, &mut bench.ui, find).await.unwrap();
        assert!(found.is_empty() && failures.code() != 0);
        let written = bench.written();
        assert!(written.contains("busy") && !written.contains("No live sessions"), "{written}");
    }

    #[tokio::test]
    async fn m_b9_sessions_are_reached_and_never_opened() {
        let mut bench = Bench::new();
        let named = |id: &SessionId| SessionsArg { sessions: vec![id.to_string()], all: false };
        for is_named in [false, true] {
            let session = bench.open().await;
            let (sessions, folders) = (bench.sessions(), bench.folders.clone());
            let mut failures = Failures::new(&folders);
            let arg = if is_named { named(session.id()) } else { all() };
            let reached = arg.reach(&sessions, &mut failures, &mut bench.ui).await.unwrap();
            assert_eq!((reached.len(), failures.code()), (1, 0));
            // The first session has to make room.
            let other = bench.open().await;
            let held = reached[0].hold().await;
            assert!(
                matches!(held, Err(SessionError::NotLive { .. })),
                "named: {is_named}, {held:?}"
            );
            other.close().await.unwrap();
        }
    }
}
