//! Errors with a `code`, as JavaScript receives them.

use std::any::Any;
use std::fmt::Display;

use holdpoint_common::SessionError;
use holdpoint_session::StartError;
use holdpoint_session::folders::FoldersError;
use napi::{Env, JsValue};

use crate::globals::parse_json;

/// Hint for the error that no daemon can be reached.
pub(crate) const NO_DAEMON_HINT: &str =
    "start one with `holdpoint daemon start`; add `--state-dir` for another state folder";

/// Hint for saved sessions that can't be opened.
pub(crate) const UNCHANGED_HINT: &str =
    "nothing was changed: inspect the folder, or pass another stateDir";

/// An error with the code, hint and details that a daemon would send.
#[derive(Debug)]
pub struct Failure {
    error: SessionError,
    hint: Option<String>,
}

impl Failure {
    /// Creates an error that only this package has.
    pub(crate) fn new(code: &str, message: impl Display) -> Self {
        let error =
            SessionError::Other { code: code.to_owned(), message: message.to_string(), hint: None };
        Self { error, hint: None }
    }

    /// Creates the error for an invalid argument.
    pub(crate) fn argument(message: impl Display) -> Self {
        Self::new("invalidArgument", message)
    }

    /// Creates the error for a panic, which is a bug in Holdpoint and ends only the current call.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let message = payload.downcast_ref::<&str>().copied();
        let message = message
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("no message");
        Self::new("panicked", format!("bug in holdpoint: {message}"))
    }

    pub(crate) fn hint(self, hint: impl Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }

    /// Converts the error to the one that is thrown.
    pub(crate) fn into_js(self, env: &Env) -> napi::Error {
        // If even this fails, the error has no `code` property.
        self.to_js(env).unwrap_or_else(|_| {
            napi::Error::from_reason(format!("{}: {}", self.error.code(), self.error))
        })
    }

    fn to_js(&self, env: &Env) -> napi::Result<napi::Error> {
        let json = serde_json::to_value(&self.error)
            .map_err(|error| napi::Error::from_reason(error.to_string()))?;
        let mut error = env.create_error(napi::Error::from_reason(self.error.to_string()))?;
        for name in ["code", "details"] {
            if let Some(value) = json.get(name) {
                error.set(name, parse_json(env, &value.to_string())?)?;
            }
        }
        if let Some(hint) = &self.hint {
            error.set("hint", hint)?;
        }
        Ok(napi::Error::from(error.to_unknown()))
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let hint = match &error {
            SessionError::TooManySessions { .. } => Some("close one, or raise limits.max_sessions"),
            SessionError::Unreachable { .. } => Some(NO_DAEMON_HINT),
            error => error.hint(),
        };
        let hint = hint.map(str::to_owned);
        Self { error, hint }
    }
}

impl From<FoldersError> for Failure {
    fn from(error: FoldersError) -> Self {
        match error {
            FoldersError::Refused(error) => SessionError::from(error).into(),
            FoldersError::NoHome => Self::new("failed", error).hint("set HOME, or pass stateDir"),
            FoldersError::SocketPath { .. } => {
                Self::argument(error).hint("pass a shorter stateDir")
            }
            FoldersError::Unreadable { .. } | FoldersError::Config { .. } => {
                Self::new("config", error)
            }
            FoldersError::Io { .. } => Self::new("store", error),
            FoldersError::Exposed(_) => Self::new("store", error).hint(UNCHANGED_HINT),
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::new("start", error)
    }
}
