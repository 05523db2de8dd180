//! The program's error type, which turns every error into a message, a hint and an exit code.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

use holdpoint_common::api::RequestError;
use holdpoint_common::{AnswerError, ConfigError, PolicyError, Refused, SessionError};
use holdpoint_session::folders::{Exposed, FoldersError};
use holdpoint_session::{StartError, model::ModelError};
use holdpoint_tools::shown::{prose, prose_line};
use serde::{Deserialize, Serialize};

use crate::ui::Ui;

/// An error with a hint and the program's exit code. A daemon that can't start sends it, as JSON,
/// to the process that started it.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
#[error("{message}")]
pub(crate) struct CliError {
    message: String,
    hint: Option<String>,
    code: i32,
    /// The named session does not exist. It may have been lost.
    #[serde(default)]
    misses_session: bool,
}

/// The exit code for a wrong command line, configuration or environment.
pub(crate) const USAGE: i32 = 2;
/// The exit code for an operation that failed.
pub(crate) const FAILED: i32 = 1;
/// The exit code when the reader of the output is gone: 128 + SIGPIPE, as for any program in a
/// pipe.
pub(crate) const NO_READER: i32 = 141;

/// The hint for missing sessions.
pub(crate) const DAMAGED: &str =
    "the store was damaged: `holdpoint status` shows what is lost, and where the rest is kept";

/// The hint when too many sessions are live.
const TOO_MANY: &str =
    "close one, or raise `max_sessions` under [limits] and run `holdpoint daemon restart`";

/// The hint for invalid rules.
const RULES: &str = "`holdpoint policy --help` explains how to write rules";

impl CliError {
    /// The command line or the configuration is wrong.
    pub(crate) fn usage(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None, code: USAGE, misses_session: false }
    }

    /// An operation failed.
    pub(crate) fn failed(message: impl Display) -> Self {
        Self { message: message.to_string(), hint: None, code: FAILED, misses_session: false }
    }

    /// The daemon was stopped while it was needed.
    pub(crate) fn stopped(hint: impl Display) -> Self {
        Self::failed("the daemon was stopped").hint(hint)
    }

    /// Sets the hint.
    pub(crate) fn hint(self, hint: impl Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    /// Converts the error of the first prompt in a session that was opened for it.
    pub(crate) fn from_first_prompt(error: SessionError) -> Self {
        match error {
            // The session had to make room for others before its prompt was accepted.
            SessionError::NotLive { .. } => {
                Self::failed("too many sessions are live: this one was unloaded to make room")
                    .hint(TOO_MANY)
            }
            _ => error.into(),
        }
    }

    /// Prefixes the message with the session's name.
    pub(crate) fn about(self, session: &str) -> Self {
        Self { message: format!("{}: {}", prose_line(session), self.message), ..self }
    }

    /// Whether the error is about a session that does not exist.
    pub(crate) fn misses_session(&self) -> bool {
        self.misses_session
    }

    /// Whether the user has to change the request, the configuration or the environment.
    pub(crate) fn is_usage(&self) -> bool {
        self.code == USAGE
    }

    /// The hint.
    pub(crate) fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Adds the hint that the store was damaged.
    pub(crate) fn in_damaged_store(self) -> Self {
        let hint =
            self.hint.iter().map(String::as_str).chain([DAMAGED]).collect::<Vec<_>>().join("; ");
        self.hint(hint)
    }

    /// The configuration in this file is wrong.
    pub(crate) fn config(path: &std::path::Path, error: &ConfigError) -> Self {
        Self::usage(format!("{}: {error}", path.display()))
            .hint("`holdpoint config schema` lists every key")
    }

    pub(crate) fn code(&self) -> i32 {
        self.code
    }

    /// The message and the hint in one line that is safe to show anywhere.
    pub(crate) fn in_a_line(&self) -> String {
        let hint = self.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
        prose_line(&format!("{}{hint}", self.message)).into_owned()
    }

    /// Shows the error to the user. If the output has no reader, only the exit code reports it.
    pub(crate) fn show(&self, ui: &mut Ui) {
        if self.code == NO_READER {
            return;
        }
        ui.fault(&prose(&self.message), self.hint.as_deref().map(prose).as_deref());
    }
}

/// Covers the errors of an engine in this process and of a daemon, which are the same.
impl From<SessionError> for CliError {
    fn from(error: SessionError) -> Self {
        let message = error.to_string();
        let misses_session = matches!(error, SessionError::UnknownSession { .. });
        let is_usage = matches!(
            error,
            SessionError::Workspace { .. }
                | SessionError::Sandbox { .. }
                | SessionError::Policy(_)
                | SessionError::ModelSetup { .. }
                | SessionError::Refused(Refused::EmptyPrompt | Refused::PromptTooLong { .. })
        );
        let code = if is_usage { USAGE } else { FAILED };
        Self { message, hint: hint(&error).map(str::to_owned), code, misses_session }
    }
}

/// The hint for an error of a session.
fn hint(error: &SessionError) -> Option<&str> {
    let hint = match error {
        SessionError::Refused(refused) => return hint_for_refusal(refused),
        SessionError::Request(RequestError::OtherVersion { .. }) => {
            "`holdpoint daemon restart` starts the daemon of this version"
        }
        SessionError::Workspace { .. } => "set the folder to work in with --cwd",
        SessionError::Sandbox { .. } => {
            "`--sandbox auto` uses the strongest level that works, and `--sandbox off` uses none"
        }
        SessionError::Policy(_) => RULES,
        SessionError::UnknownSession { .. } => "`holdpoint list` lists every session",
        SessionError::Damaged { .. } => "`holdpoint rm` deletes the rest of it",
        SessionError::Ambiguous { .. } => "give its id, which `holdpoint list` shows",
        SessionError::Inexact { .. } => "give the whole id, or the name",
        SessionError::Live { .. } => "`holdpoint close` closes it",
        SessionError::NotLive { .. } => "`holdpoint attach` or `holdpoint prompt` opens it",
        SessionError::TooManySessions { .. } => TOO_MANY,
        SessionError::Store { .. } => "check its data folder, which `holdpoint status` shows",
        SessionError::Stopped => {
            "the daemon was asked to stop: when it has stopped, the next command starts another one"
        }
        SessionError::Unreachable { .. } => "try again, which starts a daemon if none runs",
        SessionError::Disconnected { .. } => {
            "it may have been done: `holdpoint show` shows the state of the session"
        }
        SessionError::UnknownMachine { .. } => "`holdpoint fleet list` shows the machines",
        SessionError::MachineUnreachable { .. } => {
            "see docs/fleet.md; `holdpoint fleet list` shows whether the machine responds"
        }
        SessionError::NotOwner { .. } => {
            "run the command on that machine; `holdpoint fleet list` shows whether it responds"
        }
        SessionError::HomeAway { .. } => {
            "`holdpoint fleet list` shows whether that machine responds; `holdpoint move` moves the \
             session to a folder of this one"
        }
        SessionError::PlaceUnusable { .. } => {
            "mount the file system of the place on that machine, or correct `[fleet] places` in its \
             configuration and run `holdpoint daemon restart`"
        }
        SessionError::ModelSetup { .. }
        | SessionError::UnknownEvent { .. }
        | SessionError::Request(_)
        | SessionError::Other { .. }
        | SessionError::NameTaken { .. }
        | SessionError::TooManyClients { .. }
        | SessionError::Model { .. }
        | SessionError::Gone { .. } => return error.hint(),
    };
    Some(hint)
}

fn hint_for_refusal(refused: &Refused) -> Option<&'static str> {
    match refused {
        Refused::EmptyPrompt => Some("give a prompt, or `-` to read it from standard input"),
        Refused::PromptTooLong { .. } => Some("write it to a file and name the file in the prompt"),
        Refused::NotSaving { .. } => Some(
            "free space on the disk of the data folder, which `holdpoint status` shows, and try again",
        ),
        Refused::QueueFull { .. } => Some("wait until it has run some of them: `holdpoint wait`"),
        Refused::NotQueued { .. } => Some(
            "`holdpoint show` lists the queued prompts; `holdpoint interrupt` ends an open turn",
        ),
        Refused::Answer(AnswerError::KindMismatch { .. }) => {
            Some("`holdpoint inbox` shows its kind")
        }
        Refused::Answer(AnswerError::Unknown { .. } | AnswerError::Closed { .. }) => {
            Some("`holdpoint inbox` lists the open asks")
        }
        Refused::Answer(
            AnswerError::AlreadyAnswered { .. }
            | AnswerError::Incomplete { .. }
            | AnswerError::NothingShown,
        )
        | Refused::Closed
        | Refused::EmptyGoal
        | Refused::InUse
        | Refused::RunOpen
        | Refused::TurnOpen
        | Refused::Task(_)
        | Refused::Name(_) => None,
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
                    failed.hint("make it writable, or set another folder with --state-dir")
                } else {
                    failed
                };
            }
            FoldersError::Config { path, error } => return Self::config(path, error),
            FoldersError::Refused(error) => return SessionError::from(error.clone()).into(),
            FoldersError::NoHome => "set HOME, or use --state-dir".to_owned(),
            FoldersError::SocketPath { .. } => "set a shorter path with --state-dir or XDG_RUNTIME_DIR".to_owned(),
            FoldersError::Unreadable { .. } => {
                "nothing runs without its rules: make it readable, or set another folder with --state-dir".to_owned()
            }
            FoldersError::Exposed(Exposed::Foreign { .. }) => {
                "set another folder with --state-dir; as another user, set HOME and XDG_RUNTIME_DIR to that user's own \
                 (`sudo -H` without -E, `su -`)"
                    .to_owned()
            }
            FoldersError::Exposed(Exposed::Writable { path, .. }) => format!(
                "check its contents, then run `chmod go-w {}`, or set another folder with --state-dir",
                path.display()
            ),
            FoldersError::Exposed(Exposed::Link { .. }) => "it is left unchanged: check it and move it away".to_owned(),
            FoldersError::Exposed(Exposed::Open { path, is_folder: true, .. }) => {
                format!("check its contents, then run `chmod 700 {}`", path.display())
            }
            FoldersError::Exposed(Exposed::Open { path, is_folder: false, .. }) => {
                format!("check it, then run `chmod 600 {}`", path.display())
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

/// Converts a failed write to standard output.
impl From<io::Error> for CliError {
    fn from(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { NO_READER } else { FAILED };
        Self {
            message: format!("the output could not be written: {error}"),
            hint: None,
            code,
            misses_session: false,
        }
    }
}

/// Converts an exit code. A code out of range becomes 1.
pub(crate) fn exit(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}
