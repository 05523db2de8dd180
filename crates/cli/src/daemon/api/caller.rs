//! The client of a request: its name as the client states it, and its process as the kernel reports
//! it.

use std::future::{Ready, ready};
use std::sync::{Arc, Weak};

use actix_web::dev::Payload;
use actix_web::http::header::{HeaderValue, USER_AGENT};
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use holdpoint_common::api::{
    API_VERSION, CLIENT_HEADER, DESKTOP_HEADER, RequestError, VERSION_HEADER,
};
use holdpoint_common::{SessionId, Supplies, Who};
use holdpoint_session::{SessionError, SessionHandle, Sessions};
use percent_encoding::percent_decode;

use super::operation::{DescribeInput, Operation};
use crate::daemon::connection::{Connection, MAX_STREAMS, StreamPlace};
use crate::daemon::error::ApiError;
use crate::daemon::host::Host;
use crate::daemon::peer::Peer;

/// The maximum length of a client's name in characters.
const MAX_NAME_CHARS: usize = 64;

/// The name of a client that sends none.
const NAMELESS: &str = "http";

/// A client whose API version, if it states one, is the daemon's.
pub(super) struct Caller {
    pub(super) who: Who,
    pub(super) peer: Peer,
    pub(super) host: Data<Host>,
    /// The connection of the request.
    pub(super) connection: Weak<Connection>,
}

/// A client of any version, for requests that are the same in all versions.
pub(super) struct AnyCaller(pub(super) Caller);

impl Caller {
    /// All sessions, with this client as the author of its requests.
    pub(super) fn sessions(&self) -> Sessions {
        self.host.sessions.clone().for_client(self.who.clone())
    }

    /// The session with this id, with this client as the author of its requests. A saved session is
    /// not opened: that needs the client's supplies.
    pub(super) async fn session(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        self.sessions().reach(id).await
    }

    /// All sessions, which are opened with the supplies of the client. Those of a client of another
    /// machine stay there, and the daemon uses its own.
    pub(super) fn opening(&self, supplies: Supplies) -> Result<Sessions, ApiError> {
        let supplies = match self.peer {
            Peer::Process { .. } => supplies,
            Peer::Machine(_) => self.host.supplies()?,
        };
        Ok(self.sessions().with_supplies(supplies))
    }

    /// Takes a place among the streams, for a long-lived response.
    ///
    /// # Errors
    /// Returns an [`ApiError`] if all places are taken.
    pub(super) fn take_stream_place(&self) -> Result<StreamPlace, ApiError> {
        // If the connection is gone, nobody reads this error.
        self.connection
            .upgrade()
            .and_then(|connection| connection.take_stream_place())
            .ok_or_else(|| ApiError::from(RequestError::TooManyStreams { limit: MAX_STREAMS }))
    }

    fn identify(request: &HttpRequest) -> Option<Self> {
        let connection = request.conn_data::<Arc<Connection>>()?;
        let peer = request.conn_data::<Peer>()?.clone();
        let host = request.app_data::<Data<Host>>()?.clone();
        if let Some(desktop) =
            request.headers().get(DESKTOP_HEADER).and_then(|value| value.to_str().ok())
        {
            host.desktops.record(peer.pid(), desktop);
        }
        let name = match &peer {
            Peer::Process { .. } => name(request),
            Peer::Machine(machine) => format!("{}@{}", name(request), machine.name),
        };
        let who = Who { name, pid: peer.pid() };
        Some(Self { who, peer, host, connection: Arc::downgrade(connection) })
    }
}

/// The name that the client gives itself, else the name of its program, such as `curl/8.5.0`.
fn name(request: &HttpRequest) -> String {
    let text = |value: &HeaderValue| {
        let text = percent_decode(value.as_bytes()).decode_utf8_lossy();
        let shown = text
            .trim()
            .chars()
            .filter(|character| !character.is_control())
            .take(MAX_NAME_CHARS)
            .collect::<String>();
        Some(shown).filter(|name| !name.is_empty())
    };
    let stated = request.headers().get(CLIENT_HEADER).and_then(text);
    let agent = || request.headers().get(USER_AGENT).and_then(text);
    let program = || agent().and_then(|agent| agent.split_whitespace().next().map(str::to_owned));
    stated.or_else(program).unwrap_or_else(|| NAMELESS.to_owned())
}

fn check_version(request: &HttpRequest) -> Result<(), ApiError> {
    let Some(theirs) = request.headers().get(VERSION_HEADER) else { return Ok(()) };
    let theirs = String::from_utf8_lossy(theirs.as_bytes());
    if theirs.trim().parse() == Ok(API_VERSION) {
        Ok(())
    } else {
        Err(ApiError::from(RequestError::OtherVersion {
            supported: API_VERSION,
            requested: theirs.trim().to_owned(),
        }))
    }
}

impl FromRequest for Caller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        match check_version(request) {
            Ok(()) => ready(
                AnyCaller::from_request(request, payload)
                    .into_inner()
                    .map(|AnyCaller(caller)| caller),
            ),
            Err(fault) => ready(Err(fault)),
        }
    }
}

impl FromRequest for AnyCaller {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(
            Caller::identify(request)
                .map(Self)
                .ok_or_else(|| ApiError::failed("the client of the request is unknown")),
        )
    }
}

impl DescribeInput for Caller {
    fn describe(operation: &mut Operation<'_>) {
        AnyCaller::describe(operation);
        let description = "The API version that the client speaks. Any other version than the daemon's is refused with 426.";
        operation.header::<u32>(VERSION_HEADER, description);
    }
}

impl DescribeInput for AnyCaller {
    fn describe(operation: &mut Operation<'_>) {
        operation
            .header::<String>(CLIENT_HEADER, "The name of the client, shown to other clients.");
        let description =
            "The desktop variables for the `notify` command, percent-encoded: `DISPLAY=%3A0&…`.";
        operation.header::<String>(DESKTOP_HEADER, description);
    }
}
