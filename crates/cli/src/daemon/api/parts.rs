//! What a path names: a session, or an ask.

use std::future::{Ready, ready};
use std::str::FromStr;

use actix_web::dev::Payload;
use actix_web::web::Path;
use actix_web::{FromRequest, HttpRequest};
use holdpoint_common::{AskId, SessionId, TurnId};
use holdpoint_session::SessionError;

use super::fault::Fault;
use super::operation::{Operation, Takes};

/// A session by whatever names it: its id, a unique prefix of one (4 characters or more), or its name.
pub(super) struct What(pub(super) String);

/// A session by its id.
pub(super) struct Id(pub(super) SessionId);

/// An ask by its id.
pub(super) struct AskPart(pub(super) AskId);

/// A turn of a session, by their ids.
pub(super) struct Turn(pub(super) SessionId, pub(super) TurnId);

/// The one part of the path, as text.
fn part(request: &HttpRequest) -> Result<String, Fault> {
    let part = Path::<String>::from_request(request, &mut Payload::None).into_inner();
    part.map(Path::into_inner).map_err(|error| Fault::malformed(format!("the path can't be read: {error}")))
}

/// The one part of the path, as an id; what is none names nothing.
fn id<T: FromStr>(request: &HttpRequest, unknown: impl Fn(String) -> Fault) -> Result<T, Fault> {
    let text = part(request)?;
    text.parse().map_err(|_| unknown(text))
}

impl FromRequest for What {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(part(request).map(Self))
    }
}

impl FromRequest for Id {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(id(request, |what| SessionError::Unknown { what }.into()).map(Self))
    }
}

impl FromRequest for AskPart {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(id(request, |what| Fault::malformed(format!("`{what}` is no ask id (session.number)"))).map(Self))
    }
}

impl FromRequest for Turn {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let parts = Path::<(String, u64)>::from_request(request, &mut Payload::None).into_inner();
        let turn = parts.map_err(|error| Fault::malformed(format!("the path can't be read: {error}")));
        ready(turn.and_then(|parts| {
            let (what, turn) = parts.into_inner();
            let id = what.parse().map_err(|_| SessionError::Unknown { what })?;
            Ok(Self(id, TurnId(turn)))
        }))
    }
}

impl Takes for What {
    fn describe(operation: &mut Operation<'_>) {
        operation
            .part::<String>("what", "The session: its id, a unique prefix of one (4 characters or more), or its name.");
    }
}

impl Takes for Id {
    fn describe(operation: &mut Operation<'_>) {
        operation.part::<SessionId>("id", "The session, by its id.");
    }
}

impl Takes for Turn {
    fn describe(operation: &mut Operation<'_>) {
        Id::describe(operation);
        operation.part::<TurnId>("turn", "The turn, by its id.");
    }
}

impl Takes for AskPart {
    fn describe(operation: &mut Operation<'_>) {
        operation.part::<AskId>("ask", "The ask, by its id.");
    }
}
