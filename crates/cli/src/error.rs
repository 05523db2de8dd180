//! The one place where errors become words, a hint and an exit code.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use holdpoint_common::ConfigError;
use holdpoint_session::folders::{Exposed, FoldersError};
use holdpoint_session::{SessionError, StartError, model::ModelError};
use holdpoint_tools::PolicyError;
use holdpoint_tools::shown::{prose, prose_line};
use serde::{Deserialize, Serialize};

use crate::ui::Ui;

/// What went wrong, what to do about it, and the program's exit code. A daemon that can't start tells it like this to
/// whoever starts it.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{what}")]
pub(crate) struct CliError {
    what: String,
    hint: Option<String>,
    code: i32,
    /// There is no such session. It may have been lost.
    #[serde(default)]
    misses_session: bool,
}

/// The command line, the configuration or the surroundings are not as they should be.
pub(crate) const USAGE: i32 = 2;
/// It was tried and did not work.
pub(crate) const FAILED: i32 = 1;
/// Whoever reads the output is gone: 128 + SIGPIPE, as with any other program in a pipe.
pub(crate) const NO_READER: i32 = 141;

/// Where to look when sessions are not there.
pub(crate) const DAMAGED: &str =
    "the store was damaged: `holdpoint status` says what is lost, and where the rest is kept";

/// What to do where there is no room for another session.
const TOO_MANY: &str = "close one, or set `max_sessions` under [limits], which `holdpoint daemon restart` has read";

/// Where rules are explained.
const RULES: &str = "`holdpoint policy --help` says how rules are written";

impl CliError {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(what: impl Display) -> Self {
        Self { what: what.to_string(), hint: None, code: USAGE, misses_session: false }
    }

    /// It did not work.
    pub(crate) fn failed(what: impl Display) -> Self {
        Self { what: what.to_string(), hint: None, code: FAILED, misses_session: false }
    }

    /// The daemon was told to stop while it was needed.
    pub(crate) fn stopped(hint: impl Display) -> Self {
        Self::failed("the daemon was stopped").hint(hint)
    }

    /// The same, with what to do about it.
    pub(crate) fn hint(self, hint: impl Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    /// Why a session that was opened for it did not take what it was to do.
    pub(crate) fn of_first_prompt(error: SessionError) -> Self {
        match &*error.code() {
            // It made room for others before it had begun.
            "notLive" => Self::failed("too many sessions are live: this one had to make room").hint(TOO_MANY),
            _ => error.into(),
        }
    }

    /// The same, of the session of this name.
    pub(crate) fn about(self, session: &str) -> Self {
        Self { what: format!("{}: {}", prose_line(session), self.what), ..self }
    }

    /// Whether a session was named that is not there.
    pub(crate) fn misses_session(&self) -> bool {
        self.misses_session
    }

    /// The same, where the store was found damaged.
    pub(crate) fn in_damaged_store(self) -> Self {
        let hint = self.hint.iter().map(String::as_str).chain([DAMAGED]).collect::<Vec<_>>().join("; ");
        self.hint(hint)
    }

    /// What is wrong with the configuration of this file.
    pub(crate) fn config(path: &std::path::Path, error: &ConfigError) -> Self {
        Self::usage(format!("{}: {error}", path.display())).hint("`holdpoint config schema` has every key")
    }

    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    /// All of it in one line that can be shown anywhere.
    pub(crate) fn in_a_line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        prose_line(&format!("{}{hint}", self.what)).into_owned()
    }

    /// Tells the user. That nobody reads the output any more is told by the exit code alone.
    pub(crate) fn show(&self, ui: &mut Ui) {
        if self.code == NO_READER {
            return;
        }
        ui.fault(&prose(&self.what), self.hint.as_deref().map(prose).as_deref());
    }
}

/// Of the engine here or of the daemon's: what it is called is the same.
impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let what = error.to_string();
        let (usage, hint) = match &*error.code() {
            "workspace" => (true, "--cwd names the folder to work in"),
            "policy" => (true, RULES),
            "modelSetup" => (true, ""),
            "emptyPrompt" => (true, "say what to do, or `-` to read it from standard input"),
            "promptTooLong" => (true, "write it to a file and let the prompt name the file"),
            "unknownSession" => (false, "`holdpoint list` has every session"),
            "damaged" => (false, "`holdpoint rm` removes what is left of it"),
            "unknownEvent" => (false, "leave out `after` to begin with the first event"),
            "ambiguous" => (false, "give its id: `holdpoint list` has them"),
            "inexact" => (false, "give the whole id, or the name"),
            "live" => (false, "`holdpoint close` closes it"),
            "notLive" => (false, "`holdpoint attach` or `holdpoint prompt` opens it"),
            "tooManySessions" => (false, TOO_MANY),
            "notSaving" => {
                (false, "make room on the disk of the data folder, which `holdpoint status` names, and try again")
            }
            "store" => (false, "look at its data folder, which `holdpoint status` names"),
            "queueFull" => (false, "wait until it has done some of them: `holdpoint wait`"),
            "kindMismatch" => (false, "`holdpoint inbox` says of what kind it is"),
            "unknownAsk" | "askClosed" => (false, "`holdpoint inbox` lists what waits for an answer"),
            "stopped" => (false, "it was told to stop: once it has, the next command starts another"),
            "otherVersion" => (false, "`holdpoint daemon restart` starts this program's daemon"),
            _ => (false, ""),
        };
        let misses_session = error.code() == "unknownSession";
        let hint = match error {
            SessionError::Model(ModelError::Setup { hint, .. }) => hint,
            SessionError::Elsewhere(body) => body.hint.unwrap_or_else(|| hint.to_owned()),
            _ => hint.to_owned(),
        };
        let error = if usage { Self::usage(what) } else { Self::failed(what) };
        let error = Self { misses_session, ..error };
        if hint.is_empty() { error } else { error.hint(hint) }
    }
}

impl From<ModelError> for CliError {
    fn from(error: ModelError) -> Self {
        match error {
            ModelError::Setup { message, hint } => Self::usage(message).hint(hint),
            error => Self::failed(error),
        }
    }
}

impl From<PolicyError> for CliError {
    fn from(error: PolicyError) -> Self {
        Self::usage(error).hint(RULES)
    }
}

impl From<FoldersError> for CliError {
    fn from(error: FoldersError) -> Self {
        let hint = match &error {
            FoldersError::Io { error: cause, .. } => {
                let unwritable =
                    matches!(cause.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
                let failed = Self::failed(error);
                return if unwritable {
                    failed.hint("make it writable, or --state-dir names another place")
                } else {
                    failed
                };
            }
            FoldersError::Config { path, error } => return Self::config(path, error),
            FoldersError::NoHome => "set HOME, or use --state-dir".to_owned(),
            FoldersError::SocketPath { .. } => "name a shorter place by --state-dir or XDG_RUNTIME_DIR".to_owned(),
            FoldersError::Unreadable { .. } => {
                "without its rules nothing runs: make it readable, or --state-dir names another place".to_owned()
            }
            FoldersError::Exposed(Exposed::Foreign { .. }) => {
                "name another place by --state-dir; as another user, set HOME and XDG_RUNTIME_DIR to that user's own \
                 (`sudo -H` without -E, `su -`)"
                    .to_owned()
            }
            FoldersError::Exposed(Exposed::Link { .. }) => {
                "it is left as it is: look at it, and move it away".to_owned()
            }
            FoldersError::Exposed(Exposed::Open { path, is_folder: true, .. }) => {
                format!("look at what is in it, then: chmod 700 {}", path.display())
            }
            FoldersError::Exposed(Exposed::Open { path, is_folder: false, .. }) => {
                format!("look at it, then: chmod 600 {}", path.display())
            }
        };
        Self::usage(error).hint(hint)
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> Self {
        Self::failed(error)
    }
}

/// A failed write to standard output.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { NO_READER } else { FAILED };
        Self { what: format!("the output could not be written: {error}"), hint: None, code, misses_session: false }
    }
}

/// A code as the system takes it.
pub(crate) fn exit(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
