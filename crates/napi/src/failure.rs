//! Errors with a `code`, as JavaScript receives them.

use std::any::Any;
use std::fmt::Display;

use holdpoint_common::api::ErrorBody;
use holdpoint_session::folders::FoldersError;
use holdpoint_session::model::ModelError;
use holdpoint_session::{SessionError, StartError};
use napi::bindgen_prelude::Object;
use napi::{Env, JsValue};
use serde::Serialize;

use crate::globals::parse_json;

/// Hint for errors without a daemon.
pub(crate) const NO_DAEMON_HINT: &str =
    "start one with `holdpoint daemon start`; add `--state-dir` for another state folder";

/// Hint for saved sessions that can't be opened.
pub(crate) const UNCHANGED_HINT: &str = "nothing was changed: inspect the folder, or pass another stateDir";

/// An error with the code, hint and further fields that a daemon would send.
#[derive(Debug)]
pub struct Failure(Box<ErrorBody>);

impl Failure {
    pub(crate) fn new(code: &str, message: impl Display) -> Self {
        Self(Box::new(ErrorBody { code: code.to_owned(), message: message.to_string(), ..ErrorBody::default() }))
    }

    /// Creates the error for an invalid argument.
    pub(crate) fn argument(message: impl Display) -> Self {
        Self::new("invalidArgument", message)
    }

    /// Creates the error for a panic, which is a bug in Holdpoint and ends only the current call.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let words = payload.downcast_ref::<&str>().copied();
        let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message");
        Self::new("panicked", format!("bug in holdpoint: {words}"))
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.0.hint = Some(hint.to_string());
        self
    }

    /// Converts the error to the one that is thrown.
    pub(crate) fn into_js(self, env: &Env) -> napi::Error {
        let ErrorBody { code, message, hint, answer, ids } = *self.0;
        let make = || {
            let mut error = env.create_error(napi::Error::from_reason(message.clone()))?;
            error.set("code", &code)?;
            if let Some(hint) = &hint {
                error.set("hint", hint)?;
            }
            set(env, &mut error, "answer", answer.as_ref())?;
            set(env, &mut error, "ids", Some(&ids).filter(|ids| !ids.is_empty()))?;
            Ok::<_, napi::Error>(napi::Error::from(error.to_unknown()))
        };
        // If even this fails, the error has no `code` property.
        make().unwrap_or_else(|_| napi::Error::from_reason(format!("{code}: {message}")))
    }
}

/// Sets a structured property, if it has a value.
fn set(env: &Env, error: &mut Object<'_>, name: &str, value: Option<&impl Serialize>) -> napi::Result<()> {
    let Some(value) = value else { return Ok(()) };
    let text = serde_json::to_string(value).map_err(|error| napi::Error::from_reason(error.to_string()))?;
    error.set(name, parse_json(env, &text)?)
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let hint = match &error {
            SessionError::Model(ModelError::Setup { hint, .. }) => Some(hint.clone()),
            _ => None,
        };
        let mut body = error.to_body(hint);
        let usual = match &*body.code {
            "tooManySessions" => Some("close one, or raise limits.max_sessions"),
            "unreachable" => Some(NO_DAEMON_HINT),
            _ => None,
        };
        body.hint = body.hint.or(usual.map(str::to_owned));
        Self(Box::new(body))
    }
}

impl From<FoldersError> for Failure {
    fn from(error: FoldersError) -> Self {
        match error {
            FoldersError::NoHome => Self::new("failed", error).hint("set HOME, or pass stateDir"),
            FoldersError::SocketPath { .. } => Self::argument(error).hint("pass a shorter stateDir"),
            FoldersError::Unreadable { .. } | FoldersError::Config { .. } => Self::new("config", error),
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
