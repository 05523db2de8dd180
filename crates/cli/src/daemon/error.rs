//! Error responses: an [`ErrorBody`] with a fitting HTTP status.

use std::fmt;

use actix_web::http::{ConnectionType, StatusCode};
use actix_web::{HttpResponse, ResponseError};
use holdpoint_common::api::{ErrorBody, RequestError};
use holdpoint_common::{AnswerError, Refused, SessionError};

/// An error response.
#[derive(Debug)]
pub(super) struct ApiError(SessionError);

impl ApiError {
    /// The request can't be read. The message names the fault and its position.
    pub(super) fn malformed(message: impl fmt::Display) -> Self {
        RequestError::Malformed { message: message.to_string() }.into()
    }

    /// The daemon could not carry out the request.
    pub(super) fn failed(message: impl fmt::Display) -> Self {
        RequestError::Failed { message: message.to_string() }.into()
    }

    /// The response, after which the connection is closed.
    pub(super) fn closing_response(&self) -> HttpResponse {
        let mut response = self.error_response();
        response.head_mut().set_connection_type(ConnectionType::Close);
        response
    }

    /// The stable name of the error.
    pub(super) fn code(&self) -> String {
        self.0.code()
    }
}

impl<E: Into<SessionError>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        match &self.0 {
            SessionError::UnknownSession { .. }
            | SessionError::UnknownEvent { .. }
            | SessionError::UnknownMachine { .. } => StatusCode::NOT_FOUND,
            SessionError::Ambiguous { .. }
            | SessionError::Inexact { .. }
            | SessionError::NameTaken { .. }
            | SessionError::Live { .. }
            | SessionError::NotLive { .. } => StatusCode::CONFLICT,
            SessionError::TooManySessions { .. } | SessionError::TooManyClients { .. } => {
                StatusCode::TOO_MANY_REQUESTS
            }
            SessionError::Workspace { .. }
            | SessionError::PlaceUnusable { .. }
            | SessionError::Sandbox { .. }
            | SessionError::ModelSetup { .. }
            | SessionError::Model { .. }
            | SessionError::Policy(_) => StatusCode::UNPROCESSABLE_ENTITY,
            SessionError::NotOwner { .. } | SessionError::HomeAway { .. } => {
                StatusCode::MISDIRECTED_REQUEST
            }
            SessionError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
            SessionError::MachineUnreachable { .. } => StatusCode::BAD_GATEWAY,
            SessionError::Refused(refused) => status_of_refusal(refused),
            SessionError::Request(error) => status_of_request(error),
            SessionError::Store { .. }
            | SessionError::Damaged { .. }
            | SessionError::Gone { .. }
            | SessionError::Unreachable { .. }
            | SessionError::Disconnected { .. }
            | SessionError::Other { .. } => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status_code()).json(ErrorBody::from(self.0.clone()))
    }
}

fn status_of_refusal(refused: &Refused) -> StatusCode {
    match refused {
        Refused::Closed | Refused::Answer(AnswerError::Closed { .. }) => StatusCode::GONE,
        Refused::QueueFull { .. } => StatusCode::TOO_MANY_REQUESTS,
        Refused::NotSaving { .. } => StatusCode::INSUFFICIENT_STORAGE,
        Refused::PromptTooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        Refused::InUse
        | Refused::RunOpen
        | Refused::TurnOpen
        | Refused::NotQueued { .. }
        | Refused::Answer(AnswerError::AlreadyAnswered { .. }) => StatusCode::CONFLICT,
        Refused::Answer(AnswerError::Unknown { .. }) => StatusCode::NOT_FOUND,
        Refused::EmptyPrompt
        | Refused::EmptyGoal
        | Refused::Task(_)
        | Refused::Name(_)
        | Refused::Answer(
            AnswerError::KindMismatch { .. }
            | AnswerError::Incomplete { .. }
            | AnswerError::NothingShown,
        ) => StatusCode::UNPROCESSABLE_ENTITY,
    }
}

fn status_of_request(error: &RequestError) -> StatusCode {
    match error {
        RequestError::Malformed { .. } => StatusCode::BAD_REQUEST,
        RequestError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        RequestError::TooSlow => StatusCode::REQUEST_TIMEOUT,
        RequestError::TooManyConnections { .. }
        | RequestError::TooManyStreams { .. }
        | RequestError::TooManyImports { .. } => StatusCode::TOO_MANY_REQUESTS,
        RequestError::OtherVersion { .. } => StatusCode::UPGRADE_REQUIRED,
        RequestError::Forbidden | RequestError::FromTool | RequestError::Unverified { .. } => {
            StatusCode::FORBIDDEN
        }
        RequestError::UnknownPath { .. } => StatusCode::NOT_FOUND,
        RequestError::UnknownMethod { .. } => StatusCode::METHOD_NOT_ALLOWED,
        RequestError::Failed { .. } => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
