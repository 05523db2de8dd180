//! Who asks: the client by the name it gives itself, its process by the kernel's word.

use std::future::{Ready, ready};
use std::sync::{Arc, Weak};

use actix_web::dev::Payload;
use actix_web::http::header::{HeaderValue, USER_AGENT};
use actix_web::web::Data;
use actix_web::{FromRequest, HttpRequest};
use holdpoint_common::api::{API_VERSION, CLIENT_HEADER, DESKTOP_HEADER, VERSION_HEADER};
use holdpoint_common::{SessionId, Who};
use holdpoint_session::{SessionError, SessionHandle, Sessions};
use percent_encoding::percent_decode;

use super::fault::Fault;
use super::operation::{Operation, Takes};
use crate::daemon::connection::{Connection, MOST_STREAMS, StreamPlace};
use crate::daemon::host::Host;
use crate::daemon::peer::Peer;

/// Characters of a client's name that are kept.
const NAME: usize = 64;

/// What a client is called that says no name.
const NAMELESS: &str = "http";

/// A client that speaks this version.
pub(super) struct Caller {
    pub(super) who: Who,
    pub(super) peer: Peer,
    pub(super) host: Data<Host>,
    /// The connection it asks by.
    pub(super) connection: Weak<Connection>,
}

/// A client of whatever version: for what is the same in all of them.
pub(super) struct AnyCaller(pub(super) Caller);

impl Caller {
    /// All sessions, as this client.
    pub(super) fn sessions(&self) -> Sessions {
        self.host.sessions.clone().for_client(self.who.clone())
    }

    /// The session of this id, as this client. One that is only saved is opened by whoever says what with.
    pub(super) async fn session(&self, id: &SessionId) -> Result<SessionHandle, SessionError> {
        self.sessions().reach(id).await
    }

    /// A place among the streams, for an answer that lasts.
    ///
    /// # Errors
    /// [`Fault`] if there is none.
    pub(super) fn stream(&self) -> Result<StreamPlace, Fault> {
        // A connection that is gone needs no answer.
        self.connection
            .upgrade()
            .and_then(|connection| connection.stream())
            .ok_or_else(|| Fault::too_many_streams(MOST_STREAMS))
    }

    fn of(request: &HttpRequest) -> Option<Self> {
        let connection = request.conn_data::<Arc<Connection>>()?;
        let peer = *request.conn_data::<Peer>()?;
        let host = request.app_data::<Data<Host>>()?.clone();
        if let Some(desktop) = request.headers().get(DESKTOP_HEADER).and_then(|value| value.to_str().ok()) {
            host.desktops.note(peer.pid, desktop);
        }
        let who = Who { name: name(request), pid: peer.pid };
        Some(Self { who, peer, host, connection: Arc::downgrade(connection) })
    }
}

/// What the client calls itself; else what its program does, as `curl/8.5.0`.
fn name(request: &HttpRequest) -> String {
    let text = |value: &HeaderValue| {
        let text = percent_decode(value.as_bytes()).decode_utf8_lossy();
        let shown = text.trim().chars().filter(|character| !character.is_control()).take(NAME).collect::<String>();
        Some(shown).filter(|name| !name.is_empty())
    };
    let own = request.headers().get(CLIENT_HEADER).and_then(text);
    let agent = || request.headers().get(USER_AGENT).and_then(text);
    let program = || agent().and_then(|agent| agent.split_whitespace().next().map(str::to_owned));
    own.or_else(program).unwrap_or_else(|| NAMELESS.to_owned())
}

fn version(request: &HttpRequest) -> Result<(), Fault> {
    let Some(theirs) = request.headers().get(VERSION_HEADER) else { return Ok(()) };
    let theirs = String::from_utf8_lossy(theirs.as_bytes());
    if theirs.trim().parse() == Ok(API_VERSION) { Ok(()) } else { Err(Fault::other_version(theirs.trim())) }
}

impl FromRequest for Caller {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        match version(request) {
            Ok(()) => ready(AnyCaller::from_request(request, payload).into_inner().map(|AnyCaller(caller)| caller)),
            Err(fault) => ready(Err(fault)),
        }
    }
}

impl FromRequest for AnyCaller {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(Caller::of(request).map(Self).ok_or_else(|| Fault::failed("it is not known who asks")))
    }
}

impl Takes for Caller {
    fn describe(operation: &mut Operation<'_>) {
        AnyCaller::describe(operation);
        let what = "The version of the API that the client speaks; of another one it is refused (426).";
        operation.header::<u32>(VERSION_HEADER, what);
    }
}

impl Takes for AnyCaller {
    fn describe(operation: &mut Operation<'_>) {
        operation.header::<String>(CLIENT_HEADER, "What the client calls itself, as others are told.");
        let what = "How its user's desktop is reached, for the command of `notify`: `DISPLAY=%3A0&…`, percent-encoded.";
        operation.header::<String>(DESKTOP_HEADER, what);
    }
}
