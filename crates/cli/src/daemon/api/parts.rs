//! Parameters of the path (a session, a turn or an ask) and of the query.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::error::QueryPayloadError;
use actix_web::web::{Path, Query};
use actix_web::{FromRequest, HttpRequest};
use holdpoint_common::api::ListQuery;
use holdpoint_common::{AskId, SessionId, TurnId};
use holdpoint_session::SessionError;
use serde::de::DeserializeOwned;

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

/// The part of the list of sessions to send.
pub(super) struct ListParams(pub(super) ListQuery);

/// Parses the query of a request. An error names the wrong part, and these parameters.
pub(super) fn parse_query<T: DeserializeOwned>(
    request: &HttpRequest,
    parameters: &str,
) -> Result<T, ApiError> {
    let read = |text: &str| Query::<T>::from_query(text).map(Query::into_inner);
    let text = request.query_string();
    read(text).map_err(|error| {
        let part = text.split('&').find(|part| read(part).is_err()).unwrap_or(text);
        let why = match &error {
            QueryPayloadError::Deserialize(why) => why.to_string(),
            error => error.to_string(),
        };
        ApiError::malformed(format!(
            "the query can't be read at `{part}`: {why}; the parameters are {parameters}"
        ))
    })
}

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

impl FromRequest for ListParams {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let parameters = "`limit`, a whole number above 0, and `after`, the `next` of a page";
        ready(parse_query(request, parameters).map(Self))
    }
}

impl DescribeInput for ListParams {
    fn describe(operation: &mut Operation<'_>) {
        operation.query::<ListQuery>();
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
