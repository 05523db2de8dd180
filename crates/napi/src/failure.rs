//! What goes wrong, as an error of JavaScript with a `code`.

use std::any::Any;
use std::fmt::Display;

use holdpoint_common::api::ErrorBody;
use holdpoint_session::folders::FoldersError;
use holdpoint_session::model::ModelError;
use holdpoint_session::{SessionError, StartError};
use napi::bindgen_prelude::Object;
use napi::{Env, JsValue};
use serde::Serialize;

use crate::crossing;

/// What helps where there is no daemon.
pub(crate) const NO_DAEMON: &str = "`holdpoint daemon start` starts one; with `--state-dir`, for a folder of its own";

/// What to do about files that are not opened.
pub(crate) const AS_THEY_ARE: &str = "they are left as they are: look at them, or name another place by stateDir";

/// Something that was not done, and why: with the code, the hint and all else that a daemon would answer.
#[derive(Debug)]
pub struct Failure(Box<ErrorBody>);

impl Failure {
    pub(crate) fn new(code: &str, message: impl Display) -> Self {
        Self(Box::new(ErrorBody { code: code.to_owned(), message: message.to_string(), ..ErrorBody::default() }))
    }

    /// What was given can't be meant.
    pub(crate) fn argument(message: impl Display) -> Self {
        Self::new("invalidArgument", message)
    }

    /// What was to be done panicked. It is a fault of ours, and ends nothing else.
    pub(crate) fn panicked(payload: &(dyn Any + Send)) -> Self {
        let words = payload.downcast_ref::<&str>().copied();
        let words = words.or_else(|| payload.downcast_ref::<String>().map(String::as_str)).unwrap_or("no words");
        Self::new("panicked", format!("this is a fault of holdpoint: {words}"))
    }

    pub(crate) fn hint(mut self, hint: impl Display) -> Self {
        self.0.hint = Some(hint.to_string());
        self
    }

    /// The error that is thrown.
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
        // What can't even be told so is told without a code.
        make().unwrap_or_else(|_| napi::Error::from_reason(format!("{code}: {message}")))
    }
}

/// Sets what is of a kind of its own, if it is there.
fn set(env: &Env, error: &mut Object<'_>, name: &str, value: Option<&impl Serialize>) -> napi::Result<()> {
    let Some(value) = value else { return Ok(()) };
    let text = serde_json::to_string(value).map_err(|error| napi::Error::from_reason(error.to_string()))?;
    error.set(name, crossing::parse(env, &text)?)
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
            "unreachable" => Some(NO_DAEMON),
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
            FoldersError::SocketPath { .. } => Self::argument(error).hint("name a shorter place by stateDir"),
            FoldersError::Unreadable { .. } | FoldersError::Config { .. } => Self::new("config", error),
            FoldersError::Io { .. } => Self::new("store", error),
            FoldersError::Exposed(_) => Self::new("store", error).hint(AS_THEY_ARE),
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::new("start", error)
    }
}
