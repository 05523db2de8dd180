//! The transmission of errors to clients. Stable codes make an error the same one on both sides.

use std::borrow::Cow;

use holdpoint_common::AnswerError;
use holdpoint_common::api::ErrorBody;

use super::SessionError;
use crate::model::ModelError;
use crate::state::Refused;

impl SessionError {
    /// The kind of the error, as a stable code for programs.
    #[must_use]
    pub fn code(&self) -> Cow<'static, str> {
        let code = match self {
            Self::Unknown { .. } => "unknownSession",
            Self::Ambiguous { .. } => "ambiguous",
            Self::Inexact { .. } => "inexact",
            Self::NameTaken { .. } => "nameTaken",
            Self::Live { .. } => "live",
            Self::TooManySessions { .. } => "tooManySessions",
            Self::TooManyClients { .. } => "tooManyClients",
            Self::UnknownEvent { .. } => "unknownEvent",
            Self::Workspace { .. } => "workspace",
            Self::Model(ModelError::Setup { .. }) => "modelSetup",
            Self::Model(_) => "model",
            Self::Policy(_) => "policy",
            Self::Refused(refused) => match refused {
                Refused::Closed => "closed",
                Refused::QueueFull { .. } => "queueFull",
                Refused::NotSaving { .. } => "notSaving",
                Refused::EmptyPrompt => "emptyPrompt",
                Refused::PromptTooLong { .. } => "promptTooLong",
                Refused::EmptyGoal => "emptyGoal",
                Refused::InUse => "inUse",
                Refused::RunOpen => "runOpen",
                Refused::TurnOpen => "turnOpen",
                Refused::Task(_) => "badTask",
                Refused::Name(_) => "badName",
                Refused::Answer(error) => answer_code(error),
            },
            Self::Answer(error) => answer_code(error),
            Self::Store(_) => "store",
            Self::Damaged { .. } => "damaged",
            Self::Gone { .. } => "gone",
            Self::Stopped => "stopped",
            Self::NotLive { .. } => "notLive",
            Self::Unreachable { .. } => "unreachable",
            Self::Disconnected { .. } => "disconnected",
            Self::Remote(body) => return Cow::Owned(body.code.clone()),
        };
        Cow::Borrowed(code)
    }

    /// The body in which the error is sent, with a hint for the user.
    #[must_use]
    pub fn to_body(&self, hint: Option<String>) -> ErrorBody {
        if let Self::Remote(body) = self {
            return (**body).clone();
        }
        ErrorBody {
            code: self.code().into_owned(),
            message: self.to_string(),
            hint,
            answer: match self {
                Self::Answer(error) | Self::Refused(Refused::Answer(error)) => Some(error.clone()),
                _ => None,
            },
            ids: match self {
                Self::Ambiguous { ids, .. } => ids.clone(),
                Self::NotLive { session }
                | Self::Gone { session }
                | Self::Damaged { session, .. }
                | Self::Inexact { session, .. } => vec![session.clone()],
                _ => Vec::new(),
            },
        }
    }
}

/// Restores the errors that clients handle, and keeps only the message of the others.
impl From<ErrorBody> for SessionError {
    fn from(body: ErrorBody) -> Self {
        match (body.code.as_str(), body.answer) {
            ("notLive", _) if !body.ids.is_empty() => Self::NotLive { session: body.ids[0].clone() },
            ("gone", _) if !body.ids.is_empty() => Self::Gone { session: body.ids[0].clone() },
            ("closed", _) => Self::Refused(Refused::Closed),
            ("inUse", _) => Self::Refused(Refused::InUse),
            ("stopped", _) => Self::Stopped,
            (_, Some(answer)) => Self::Answer(answer),
            (_, answer) => Self::Remote(Box::new(ErrorBody { answer, ..body })),
        }
    }
}

fn answer_code(error: &AnswerError) -> &'static str {
    match error {
        AnswerError::AlreadyAnswered { .. } => "alreadyAnswered",
        AnswerError::Closed { .. } => "askClosed",
        AnswerError::Unknown { .. } => "unknownAsk",
        AnswerError::KindMismatch { .. } => "kindMismatch",
        AnswerError::Incomplete { .. } => "incompleteAnswer",
        AnswerError::NothingShown => "nothingShown",
        _ => "answer",
    }
}
