//! Which sessions a command is about: by id, unique prefix of an id, or name; completed by the shell.

use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use holdpoint_common::{SessionId, SessionSettings, SessionSummary, Snapshot};
use holdpoint_session::folders::Folders;
use holdpoint_session::{AttachFrom, SessionError, SessionHandle, Sessions};
use holdpoint_tools::shown::prose_line;

use crate::daemon::Daemon;
use crate::error::CliError;
use crate::runtime::runtime;
use crate::sessions::who;
use crate::ui::{Style, Ui};

/// How long a shell waits for completions.
const PATIENCE: Duration = Duration::from_secs(1);

/// One session.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionArg {
    /// The session: its id, its first 4 or more characters, or its name
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(complete_session))]
    pub(crate) session: String,
}

/// What of one session's events is looked at, and how it is written.
#[derive(Debug, clap::Args)]
pub(crate) struct StreamArgs {
    #[command(flatten)]
    session: SessionArg,

    /// Shows only what came after the event of this number
    #[arg(long, value_name = "N", default_value_t = 0)]
    after: u64,

    /// Of the past, shows at most so many facts: the newest
    #[arg(long, value_name = "N")]
    limit: Option<usize>,

    /// Writes every event to standard output instead, one line of JSON each
    #[arg(long)]
    pub(crate) json: bool,
}

impl StreamArgs {
    /// Which session.
    pub(crate) fn session(&self) -> &str {
        &self.session.session
    }

    /// From where on.
    pub(crate) fn from(&self) -> AttachFrom {
        AttachFrom { limit: self.limit, ..AttachFrom::after(self.after) }
    }
}

/// Some sessions, or all that are live.
#[derive(Debug, clap::Args)]
#[group(required = true)]
pub(crate) struct SessionsArg {
    /// The sessions: their ids, the first 4 or more characters of them, or their names
    #[arg(value_name = "SESSION", add = ArgValueCompleter::new(complete_session), conflicts_with = "all")]
    sessions: Vec<String>,

    /// Every live session
    #[arg(long)]
    all: bool,
}

/// Looks at the session of this id or name, for what ends or deletes it: a prefix of an id is not enough.
pub(crate) async fn look_exactly(sessions: &Sessions, what: &str) -> Result<Arc<Snapshot>, SessionError> {
    let found = sessions.look(what).await?;
    let SessionSettings { id, name, .. } = &*found.settings;
    if id.as_str() == what || name == what {
        return Ok(found);
    }
    Err(SessionError::Inexact { what: what.to_owned(), session: id.clone() })
}

/// Tells which session was meant by the first characters of its id.
pub(crate) fn tell_meant(what: &str, session: &Snapshot, ui: &mut Ui) -> io::Result<()> {
    let SessionSettings { id, name, .. } = &*session.settings;
    if id.as_str() == what || name == what {
        return Ok(());
    }
    ui.line(Style::Dim, &format!("session: {} ({id})", prose_line(name)))
}

/// What could not be done to some of several sessions: it keeps the others from nothing.
pub(crate) struct Faults<'a> {
    folders: &'a Folders,
    code: i32,
}

impl<'a> Faults<'a> {
    /// None yet, of sessions of the daemon of these folders.
    pub(crate) fn new(folders: &'a Folders) -> Self {
        Self { folders, code: 0 }
    }

    /// Tells the user what could not be done to this one.
    pub(crate) fn add(&mut self, session: &str, error: impl Into<CliError>, ui: &mut Ui) {
        self.tell(&error.into().about(session), ui);
    }

    fn tell(&mut self, error: &CliError, ui: &mut Ui) {
        error.show(ui);
        self.code = error.code();
    }

    /// What is found of each that is named. Why another one can't be is told, and keeps from nothing what is done to the
    /// rest.
    pub(crate) async fn find<T>(
        &mut self,
        named: &[String],
        ui: &mut Ui,
        find: impl AsyncFn(&str) -> Result<T, SessionError>,
    ) -> Vec<T> {
        let mut found = Vec::new();
        for what in named {
            match find(what).await {
                Ok(one) => found.push(one),
                Err(error) => {
                    let says_which = matches!(&*error.code(), "unknownSession" | "ambiguous" | "inexact" | "damaged");
                    let error = Daemon::explain(self.folders, error.into()).await;
                    self.tell(&if says_which { error } else { error.about(what) }, ui);
                }
            }
        }
        found
    }

    /// The exit code: that of the last one, 0 if all was done.
    pub(crate) fn code(&self) -> i32 {
        self.code
    }
}

impl SessionsArg {
    /// The live sessions. A saved session is not opened: a verb on its handle answers that it is not live.
    ///
    /// # Errors
    /// All are meant, and can't be listed.
    pub(crate) async fn reach(
        &self,
        sessions: &Sessions,
        faults: &mut Faults<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<SessionHandle>, CliError> {
        if self.all {
            return self.reach_all(sessions, faults, ui).await;
        }
        let reach = async |what: &str| {
            let found = sessions.look(what).await?;
            sessions.reach(&found.settings.id).await
        };
        Ok(faults.find(&self.sessions, ui, reach).await)
    }

    /// The sessions that were named, opened if they are only saved; with `--all`, the live ones.
    ///
    /// # Errors
    /// All are meant, and can't be listed.
    pub(crate) async fn open(
        &self,
        sessions: &Sessions,
        faults: &mut Faults<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<SessionHandle>, CliError> {
        if self.all {
            return self.reach_all(sessions, faults, ui).await;
        }
        Ok(faults.find(&self.sessions, ui, async |what: &str| sessions.get(what).await).await)
    }

    async fn reach_all(
        &self,
        sessions: &Sessions,
        faults: &mut Faults<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<SessionHandle>, CliError> {
        self.find_live(sessions, faults, ui, async |id: &SessionId| sessions.reach(id).await).await
    }

    /// The same, as they are, for what ends them: those that are saved stay so, and no prefix of an id is enough.
    ///
    /// # Errors
    /// All are meant, and can't be listed.
    pub(crate) async fn look_exactly(
        &self,
        sessions: &Sessions,
        faults: &mut Faults<'_>,
        ui: &mut Ui,
    ) -> Result<Vec<Arc<Snapshot>>, CliError> {
        if !self.all {
            return Ok(faults.find(&self.sessions, ui, async |what: &str| look_exactly(sessions, what).await).await);
        }
        self.find_live(sessions, faults, ui, async |id: &SessionId| sessions.look(id.as_str()).await).await
    }

    /// What is found of each that is live. That there are none is said.
    async fn find_live<T>(
        &self,
        sessions: &Sessions,
        faults: &mut Faults<'_>,
        ui: &mut Ui,
        find: impl AsyncFn(&SessionId) -> Result<T, SessionError>,
    ) -> Result<Vec<T>, CliError> {
        let mut found = Vec::new();
        for SessionSummary { id, name, .. } in sessions.list().await?.into_iter().filter(|session| session.live) {
            match find(&id).await {
                Ok(one) => found.push(one),
                Err(error) if self.means_no_more(&error) => {}
                Err(error) => faults.add(&name, error, ui),
            }
        }
        if found.is_empty() && faults.code() == 0 {
            ui.line(Style::Plain, "No session is live.")?;
            ui.flush()?;
        }
        Ok(found)
    }

    /// Whether an error says that a session is none of those that are meant any more: all that are live.
    pub(crate) fn means_no_more(&self, error: &SessionError) -> bool {
        self.all && matches!(&*error.code(), "notLive" | "closed" | "unknownSession")
    }
}

/// Which of the sessions there are.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only those that wait for an answer
    #[arg(long)]
    waiting: bool,

    /// Only those that are running
    #[arg(long)]
    running: bool,

    /// Only those that work in this folder; without DIR, in the current one
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    cwd: Option<PathBuf>,
}

impl Filter {
    /// What is to be looked at.
    ///
    /// # Errors
    /// The folder is none.
    pub(crate) fn test(&self) -> Result<impl Fn(&SessionSummary) -> bool, CliError> {
        let folder = match &self.cwd {
            Some(folder) => Some(folder.canonicalize().map_err(|error| {
                CliError::usage(format!("{}: {error}", folder.display())).hint("--cwd names a folder")
            })?),
            None => None,
        };
        let (waiting, running) = (self.waiting, self.running);
        Ok(move |session: &SessionSummary| {
            let status = match (waiting, running) {
                (false, false) => true,
                _ => {
                    waiting && session.waits_for.is_some()
                        || running && session.status == holdpoint_common::SessionStatus::Running
                }
            };
            status && folder.as_ref().is_none_or(|folder| folder.as_os_str() == session.workspace.as_str())
        })
    }
}

/// Sessions whose names or ids begin so.
pub(crate) fn complete_session(begun: &OsStr) -> Vec<CompletionCandidate> {
    let Some(begun) = begun.to_str() else { return Vec::new() };
    let listed = with_daemon(|sessions| async move { sessions.list().await.ok() });
    let candidates = listed.into_iter().flatten().flat_map(|session| {
        let help = format!("{} {} {}", session.id, session.status, prose_line(&session.title));
        let words = [Some(session.name).filter(|name| is_plain(name)), Some(session.id.to_string())];
        words.into_iter().flatten().map(move |word| CompletionCandidate::new(word).help(Some(help.clone().into())))
    });
    candidates.filter(|candidate| candidate.get_value().to_string_lossy().starts_with(begun)).collect()
}

/// Whether a shell takes a name as one word, and as nothing else: what is completed is put in as it is.
fn is_plain(name: &str) -> bool {
    let plain = |character: char| character.is_alphanumeric() || "._/@%+-".contains(character);
    !name.starts_with('-') && name.chars().all(plain)
}

/// Open asks whose ids begin so.
pub(crate) fn complete_ask(begun: &OsStr) -> Vec<CompletionCandidate> {
    let Some(begun) = begun.to_str() else { return Vec::new() };
    let asks = with_daemon(|sessions| async move { sessions.inbox().await.ok() });
    let candidates = asks.into_iter().flatten().map(|asked| {
        let help = format!("{}: {}", prose_line(&asked.name), prose_line(asked.ask.request.tool_name()));
        CompletionCandidate::new(asked.ask.id.to_string()).help(Some(help.into()))
    });
    candidates.filter(|candidate| candidate.get_value().to_string_lossy().starts_with(begun)).collect()
}

/// Asks the daemon, if one runs: completing starts none.
fn with_daemon<T, F: Future<Output = Option<T>>>(ask: impl FnOnce(Sessions) -> F) -> Option<T> {
    let folders = Folders::find(state_dir().as_deref()).ok()?;
    runtime().ok()?.block_on(async {
        let asked = async {
            let daemon = Daemon::find(&folders).await.ok()??;
            ask(Sessions::remote(daemon.socket, &who("completions"))).await
        };
        tokio::time::timeout(PATIENCE, asked).await.ok()?
    })
}

/// What the line that is completed says of it.
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

    /// Commands about all sessions, in an engine with room for one.
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
        let mut faults = Faults::new(&folders);
        let find = async |_: &SessionId| Err::<(), _>(SessionError::Unreachable { message: "busy".to_owned() });
        let found = all().find_live(&sessions, &mut faults, &mut bench.ui, find).await.unwrap();
        assert!(found.is_empty() && faults.code() != 0);
        let written = bench.written();
        assert!(written.contains("busy") && !written.contains("No session is live"), "{written}");
    }

    #[tokio::test]
    async fn m_b9_sessions_are_reached_and_never_opened() {
        let mut bench = Bench::new();
        let named = |id: &SessionId| SessionsArg { sessions: vec![id.to_string()], all: false };
        for is_named in [false, true] {
            let session = bench.open().await;
            let (sessions, folders) = (bench.sessions(), bench.folders.clone());
            let mut faults = Faults::new(&folders);
            let arg = if is_named { named(session.id()) } else { all() };
            let reached = arg.reach(&sessions, &mut faults, &mut bench.ui).await.unwrap();
            assert_eq!((reached.len(), faults.code()), (1, 0));
            // The first has to make room.
            let other = bench.open().await;
            let held = reached[0].hold().await;
            assert!(matches!(held, Err(SessionError::NotLive { .. })), "named: {is_named}, {held:?}");
            other.close().await.unwrap();
        }
    }
}
