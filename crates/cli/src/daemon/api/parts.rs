//! Path parameters: a session, a turn or an ask.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::web::Path;
use actix_web::{FromRequest, HttpRequest};
use holdpoint_common::{AskId, SessionId, TurnId};
use holdpoint_session::SessionError;

use super::operation::{DescribeInput, Operation};
use crate::daemon::error::ApiError;

/// A session named by its id, a unique prefix of the id (4 characters or more), or its name.
pub(super) struct SessionRef(pub(super) String);

/// A session named by its id.
pub(super) struct Id(pub(super) SessionId);

/// An ask named by its id.
pub(super) struct AskParam(pub(super) AskId);

/// A turn of a session, both named by their ids.
pub(super) struct Turn(pub(super) SessionId, pub(super) TurnId);

/// The only parameter of the path, as text.
fn parameter(request: &HttpRequest) -> Result<String, ApiError> {
    let parameter = Path::<String>::from_request(request, &mut Payload::None).into_inner();
    parameter
        .map(Path::into_inner)
        .map_err(|error| ApiError::malformed(format!("the path can't be read: {error}")))
}

/// The only parameter of the path, as an id. A text that is not an id gives the error of `unknown`.
fn id<T: FromStr>(
    request: &HttpRequest,
    unknown: impl Fn(String) -> ApiError,
) -> Result<T, ApiError> {
    let text = parameter(request)?;
    text.parse().map_err(|_| unknown(text))
}

impl FromRequest for SessionRef {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(parameter(request).map(Self))
    }
}

impl FromRequest for Id {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(id(request, |given| SessionError::UnknownSession { given }.into()).map(Self))
    }
}

impl FromRequest for AskParam {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(
            id(request, |given| {
                ApiError::malformed(format!("`{given}` is not an ask id (session.number)"))
            })
            .map(Self),
        )
    }
}

impl FromRequest for Turn {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let params = Path::<(String, u64)>::from_request(request, &mut Payload::None).into_inner();
        let turn =
            params.map_err(|error| ApiError::malformed(format!("the path can't be read: {error}")));
        ready(turn.and_then(|params| {
            let (given, turn) = params.into_inner();
            let id = given.parse().map_err(|_| SessionError::UnknownSession { given })?;
            Ok(Self(id, TurnId(turn)))
        }))
    }
}

impl DescribeInput for SessionRef {
    fn describe(operation: &mut Operation<'_>) {
        operation.path::<String>(
            "session",
            "The session: its id, a unique prefix of it (4 characters or more), or its name.",
        );
    }
}

impl DescribeInput for Id {
    fn describe(operation: &mut Operation<'_>) {
        operation.path::<SessionId>("id", "The id of the session.");
    }
}

impl DescribeInput for Turn {
    fn describe(operation: &mut Operation<'_>) {
        Id::describe(operation);
        operation.path::<TurnId>("turn", "The id of the turn.");
    }
}

impl DescribeInput for AskParam {
    fn describe(operation: &mut Operation<'_>) {
        operation.path::<AskId>("ask", "The id of the ask.");
    }
}
