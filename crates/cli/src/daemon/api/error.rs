//! Error responses: an [`ErrorBody`] with a fitting HTTP status.

use std::fmt;

use actix_web::http::StatusCode;
use actix_web::{HttpResponse, ResponseError};
use holdpoint_common::AnswerError;
use holdpoint_common::api::{API_VERSION, ErrorBody};
use holdpoint_session::SessionError;
use holdpoint_session::model::ModelError;
use holdpoint_session::state::Refused;

/// An error response.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    body: Box<ErrorBody>,
}

impl ApiError {
    fn new(status: StatusCode, code: &str, message: impl fmt::Display) -> Self {
        let body = ErrorBody { code: code.to_owned(), message: message.to_string(), ..ErrorBody::default() };
        Self { status, body: Box::new(body) }
    }

    pub(super) fn hint(mut self, hint: impl fmt::Display) -> Self {
        self.body.hint = Some(hint.to_string());
        self
    }

    /// The request can't be read. The message names the fault and its position.
    pub(super) fn malformed(message: impl fmt::Display) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", message)
    }

    /// The body is too large.
    pub(super) fn too_large(most: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "tooLarge",
            format!("the body is larger than the limit of {most} bytes"),
        )
    }

    /// Too many streams are open.
    pub(super) fn too_many_streams(most: usize) -> Self {
        let what = format!("the limit of {most} open streams is reached");
        let hint = "detach a client and try again";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "tooManyConnections", what).hint(hint)
    }

    /// Too many imports are in progress.
    pub(super) fn too_many_imports(most: usize) -> Self {
        let what = format!("the limit of {most} concurrent imports is reached");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "tooManyImports", what).hint("try again when one of them is done")
    }

    /// The body did not arrive in time.
    pub(super) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "tooSlow", "the rest of the body did not arrive in time")
    }

    /// The client speaks another version of the API.
    pub(super) fn other_version(theirs: &str) -> Self {
        let what = format!("this daemon speaks version {API_VERSION} of the API, not {theirs}");
        let hint = "only `status`, the list of sessions and `stop` are the same in all versions";
        Self::new(StatusCode::UPGRADE_REQUIRED, "otherVersion", what).hint(hint)
    }

    /// The path does not exist.
    pub(super) fn no_such_path(path: &str) -> Self {
        let hint = "/v1/openapi.json lists every path";
        Self::new(StatusCode::NOT_FOUND, "unknownPath", format!("no such path: {path}")).hint(hint)
    }

    /// The path does not support this method.
    pub(super) fn no_such_method(method: &str, path: &str) -> Self {
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "unknownMethod", format!("{path} does not support {method}"))
            .hint("/v1/openapi.json lists every path")
    }

    /// The daemon could not carry out the request.
    pub(super) fn failed(message: impl fmt::Display) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "failed", message)
    }

    /// The stable name of the error.
    pub(super) fn code(&self) -> &str {
        &self.body.code
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.body.message)
    }
}

impl ResponseError for ApiError {
    fn status_code(&self) -> StatusCode {
        self.status
    }

    fn error_response(&self) -> HttpResponse {
        HttpResponse::build(self.status).json(&self.body)
    }
}

impl From<SessionError> for ApiError {
    fn from(error: SessionError) -> Self {
        let hint = match &error {
            SessionError::Model(ModelError::Setup { hint, .. }) => Some(hint.clone()),
            SessionError::UnknownEvent { .. } => Some("leave out `after` to begin with the first event".to_owned()),
            _ => None,
        };
        Self { status: status(&error), body: Box::new(error.to_body(hint)) }
    }
}

/// The HTTP status that fits an error.
fn status(error: &SessionError) -> StatusCode {
    match error {
        SessionError::Unknown { .. } | SessionError::UnknownEvent { .. } => StatusCode::NOT_FOUND,
        SessionError::Ambiguous { .. }
        | SessionError::Inexact { .. }
        | SessionError::NameTaken { .. }
        | SessionError::Live { .. }
        | SessionError::NotLive { .. } => StatusCode::CONFLICT,
        SessionError::TooManySessions { .. } | SessionError::TooManyClients { .. } => StatusCode::TOO_MANY_REQUESTS,
        SessionError::Workspace { .. } | SessionError::Model(_) | SessionError::Policy(_) => {
            StatusCode::UNPROCESSABLE_ENTITY
        }
        SessionError::Refused(refused) => match refused {
            Refused::Closed => StatusCode::GONE,
            Refused::QueueFull { .. } => StatusCode::TOO_MANY_REQUESTS,
            Refused::NotSaving { .. } => StatusCode::INSUFFICIENT_STORAGE,
            Refused::PromptTooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Refused::InUse | Refused::RunOpen | Refused::TurnOpen => StatusCode::CONFLICT,
            Refused::Answer(error) => answer_status(error),
            _ => StatusCode::UNPROCESSABLE_ENTITY,
        },
        SessionError::Answer(error) => answer_status(error),
        SessionError::Stopped => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn answer_status(error: &AnswerError) -> StatusCode {
    match error {
        AnswerError::AlreadyAnswered { .. } => StatusCode::CONFLICT,
        AnswerError::Closed { .. } => StatusCode::GONE,
        AnswerError::Unknown { .. } => StatusCode::NOT_FOUND,
        _ => StatusCode::UNPROCESSABLE_ENTITY,
    }
}
