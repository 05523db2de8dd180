//! Requests for sessions that another machine of the fleet has, which are forwarded to it.

use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::CONTENT_TYPE;
use actix_web::http::{Method, StatusCode};
use actix_web::middleware::Next;
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, Responder, ResponseError, rt};
use futures_util::FutureExt;
use futures_util::future::ready;
use futures_util::stream::{once, try_unfold};
use holdpoint_common::api::{CLIENT_HEADER, RequestError, VERSION_HEADER};
use holdpoint_common::{AskId, SessionId};
use holdpoint_session::remote::http::{self, Response};
use holdpoint_session::{ClientEnd, Elsewhere, SessionError};
use percent_encoding::percent_decode_str;
use serde_json::Value;
use tokio::time::timeout;

use super::body::{max_body_bytes, read_bytes};
use super::events::{LAST_EVENT_HEADER, send_end};
use super::stream::{BEAT, Gone, Stream, Writer};
use crate::daemon::connection::{Connection, MAX_STREAMS, StreamPlace};
use crate::daemon::error::ApiError;
use crate::daemon::fleet::{Fleet, RequestFailed};
use crate::daemon::host::{Host, StopSubscription};
use crate::daemon::peer::Peer;

/// How often a request is sent, because its session may move meanwhile.
const MAX_TRIES: usize = 2;

/// The longest time without data in a stream of events: some signs of life are missing.
const SILENCE: Duration = BEAT.saturating_mul(3);

/// The content type of a stream of events.
const EVENT_STREAM: &str = "text/event-stream";

/// The headers that are forwarded.
const HEADERS: [&str; 5] =
    [CLIENT_HEADER, VERSION_HEADER, LAST_EVENT_HEADER, "user-agent", "content-type"];

/// A request for a session, by its path.
struct ForSession<'a> {
    /// The session, as the path names it.
    given: String,
    part: Part<'a>,
}

/// The part of a session that a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part<'a> {
    /// Its snapshot.
    Whole,
    /// Its actor, with the client's supplies.
    Opening,
    /// One of its open asks.
    Ask,
    /// What the rest of the path names.
    Rest(&'a str),
}

/// Forwards a request of this machine for a session that another machine has. All others are handled
/// here, and so are deletion and export, which need no actor.
pub(in crate::daemon) async fn to_owner<B: MessageBody>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    let host = request.app_data::<Data<Host>>().cloned();
    let forwarded = match host.as_ref().and_then(|host| Some((host, host.store.fleet()?))) {
        Some((host, fleet)) => forward(&mut request, host, fleet).await,
        None => Ok(None),
    };
    let response = match forwarded {
        Ok(Some(response)) => response,
        Ok(None) => return Ok(next.call(request).await?.map_into_left_body()),
        Err(error) => error.error_response(),
    };
    Ok(request.into_response(response).map_into_right_body())
}

/// Whether a request is one that other machines forward.
pub(in crate::daemon) fn is_for_session(request: &HttpRequest) -> bool {
    for_session(request).is_some()
}

fn for_session(request: &HttpRequest) -> Option<ForSession<'_>> {
    let path = request.path().strip_prefix("/v1/")?;
    let decoded = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    let Some(path) = path.strip_prefix("sessions/") else {
        let ask = path.strip_prefix("asks/")?.strip_suffix("/answer")?;
        let ask: AskId = decoded(ask)?.parse().ok()?;
        return Some(ForSession { given: ask.session.to_string(), part: Part::Ask });
    };
    let (given, rest) = path.split_once('/').unwrap_or((path, ""));
    let (given, is_deletion) = (decoded(given)?, request.method() == Method::DELETE);
    let part = match rest {
        // These need no actor.
        "" if is_deletion => return None,
        "log" => return None,
        "" => Part::Whole,
        "open" => Part::Opening,
        // A session is named only by its id.
        rest if given.parse::<SessionId>().is_ok() => Part::Rest(rest),
        _ => return None,
    };
    Some(ForSession { given, part })
}

/// Forwards a request, unless it is to be handled here.
async fn forward(
    request: &mut ServiceRequest,
    host: &Host,
    fleet: &Fleet,
) -> Result<Option<HttpResponse>, ApiError> {
    // A machine sends requests only to the owner.
    if matches!(request.conn_data::<Peer>(), Some(Peer::Machine(_))) {
        return Ok(None);
    }
    let Some(ForSession { given, part }) = for_session(request.request()) else {
        return Ok(None);
    };
    let has_state = matches!(part, Part::Whole | Part::Rest("asks"));
    let is_wait = matches!(part, Part::Rest(rest) if rest.starts_with("turns/"));
    // The handler here reports an error.
    let locate = async || host.locator.locate(&given).await.ok().flatten();
    let Some(mut owner) = locate().await else { return Ok(None) };
    // It may wait for hours, as a stream does.
    let place = if is_wait { Some(take_stream_place(request.request())?) } else { None };
    let mut payload = request.take_payload();
    let body = read_bytes(request.request(), &mut payload, max_body_bytes(&host.limits)).await?;
    for _ in 0..MAX_TRIES {
        let response = match send(request.request(), fleet, &owner, &body).await {
            Ok(response) => response,
            // The database has the state, too.
            Err(SessionError::OwnerUnreachable { .. })
                if has_state && request.method() == Method::GET =>
            {
                break;
            }
            Err(error) => return Err(error.into()),
        };
        if response.status() != http::StatusCode::MISDIRECTED_REQUEST {
            let forwarded = Forwarded { owner, fleet: fleet.clone(), response };
            return forwarded.reply(request.request(), host, place).map(Some);
        }
        match locate().await {
            Some(found) => owner = found,
            None => break,
        }
    }
    request.set_payload(Payload::Stream { payload: Box::pin(once(ready(Ok(body)))) });
    Ok(None)
}

/// Sends a request to the owner of its session.
async fn send(
    request: &HttpRequest,
    fleet: &Fleet,
    owner: &Elsewhere,
    body: &Bytes,
) -> Result<Response, SessionError> {
    let Elsewhere { session, machine } = owner;
    let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
    let method: http::Method = request.method().as_str().parse().unwrap_or_default();
    // The supplies of a client stay on its machine.
    let (method, path, body) = match for_session(request).map(|named| named.part) {
        Some(Part::Whole) => (method, format!("/v1/sessions/{session}"), body.clone()),
        // It is open there, with supplies of that machine.
        Some(Part::Opening) => (http::Method::GET, format!("/v1/sessions/{session}"), Bytes::new()),
        Some(Part::Rest(rest)) => {
            let body = if rest == "model" { without_supplies(body) } else { body.clone() };
            (method, format!("/v1/sessions/{session}/{rest}{query}"), body)
        }
        Some(Part::Ask) | None => (method, format!("{}{query}", request.path()), body.clone()),
    };
    let header = |name: &'static str| Some((name, request.headers().get(name)?.to_str().ok()?));
    let headers: Vec<_> = HEADERS.into_iter().filter_map(header).collect();
    let unreachable = |message: String| SessionError::OwnerUnreachable {
        session: session.clone(),
        owner: machine.clone(),
        message,
    };
    let changes_nothing = method == http::Method::GET;
    let sent = fleet.request(machine, (method, &path), &headers, body).await;
    let response = sent.map_err(|error| match error {
        RequestFailed::Broken(message) if !changes_nothing => SessionError::Disconnected {
            message: format!("the machine `{machine}` did not reply: {message}"),
        },
        RequestFailed::Unreachable(message) | RequestFailed::Broken(message) => {
            unreachable(message)
        }
    })?;
    // These concern the connection between the two daemons, and not the client.
    match response.status() {
        http::StatusCode::FORBIDDEN => {
            Err(unreachable("it does not serve this machine".to_owned()))
        }
        http::StatusCode::UPGRADE_REQUIRED => {
            Err(unreachable("it has another version of holdpoint".to_owned()))
        }
        _ => Ok(response),
    }
}

/// The body of a change of the model, without the provider settings and keys of the client.
fn without_supplies(body: &Bytes) -> Bytes {
    let Ok(mut request) = serde_json::from_slice::<serde_json::Map<_, Value>>(body) else {
        // The owner refuses it.
        return Bytes::new();
    };
    request.remove("supplies");
    Value::Object(request).to_string().into()
}

/// Takes a place among the streams of this machine.
fn take_stream_place(request: &HttpRequest) -> Result<StreamPlace, ApiError> {
    let connection = request.conn_data::<Arc<Connection>>();
    let place = connection.and_then(|connection| connection.take_stream_place());
    place.ok_or_else(|| RequestError::TooManyStreams { limit: MAX_STREAMS }.into())
}

/// A response of the owner of a session.
struct Forwarded {
    owner: Elsewhere,
    fleet: Fleet,
    response: Response,
}

impl Forwarded {
    /// The next piece of the body. `None` at its end, or if the owner has no lease any more.
    async fn chunk(&mut self) -> Result<Option<Bytes>, http::HttpError> {
        tokio::select! {
            chunk = self.response.chunk() => chunk,
            () = self.fleet.lost(&self.owner.machine) => Ok(None),
        }
    }

    /// The reply to the client. `place` is kept until it is sent.
    fn reply(
        self,
        request: &HttpRequest,
        host: &Host,
        place: Option<StreamPlace>,
    ) -> Result<HttpResponse, ApiError> {
        let content = self.response.header(CONTENT_TYPE.as_str());
        if content == Some(EVENT_STREAM) {
            return self.events(request, host);
        }
        let status =
            StatusCode::from_u16(self.response.status().as_u16()).map_err(ApiError::failed)?;
        let mut reply = HttpResponse::build(status);
        if let Some(content) = content {
            reply.content_type(content);
        }
        let chunks = try_unfold((self, place), |(mut forwarded, place)| async {
            let chunk = forwarded.chunk().await?;
            Ok::<_, http::HttpError>(chunk.map(|chunk| (chunk, (forwarded, place))))
        });
        Ok(reply.streaming(chunks))
    }

    /// A stream of events, which is passed on to the client.
    fn events(self, request: &HttpRequest, host: &Host) -> Result<HttpResponse, ApiError> {
        let place = take_stream_place(request)?;
        let connection = request.conn_data::<Arc<Connection>>().map(Arc::downgrade);
        let (writer, stream) = Stream::new(connection.unwrap_or_default(), place);
        // After an error, the client is gone.
        rt::spawn(self.pass_on(writer, host.stopping.subscribe()).map(drop));
        Ok(stream.respond_to(request))
    }

    /// Passes events on until the stream ends. If the stream breaks, the client sees that it ends
    /// without an `end`, and attaches again.
    async fn pass_on(
        mut self,
        mut writer: Writer,
        mut stopping: StopSubscription,
    ) -> Result<(), Gone> {
        let mut frames = WholeFrames::default();
        loop {
            let next = timeout(SILENCE, self.chunk());
            let chunk = tokio::select! {
                chunk = writer.wait(next) => chunk?,
                () = stopping.begun() => return send_end(&mut writer, ClientEnd::Stopped).await,
            };
            let Ok(Ok(Some(chunk))) = chunk else { return Ok(()) };
            if let Some(whole) = frames.add(&chunk) {
                writer.copy(&whole).await?;
            }
        }
    }
}

/// Collects the bytes of a stream of events into whole frames, so that signs of life can be sent
/// between them.
#[derive(Default)]
struct WholeFrames(BytesMut);

impl WholeFrames {
    /// Adds bytes. Returns the frames that are whole now.
    fn add(&mut self, bytes: &[u8]) -> Option<Bytes> {
        // The end of a frame may have arrived in part.
        let from = self.0.len().saturating_sub(1);
        self.0.extend_from_slice(bytes);
        let end = self.0[from..].windows(2).rposition(|pair| pair == b"\n\n")?;
        Some(self.0.split_to(from + end + 2).freeze())
    }
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn requests_for_a_session_are_known_by_their_path() {
        let check = |method: Method, path: &str, expected: Option<(&str, Part<'_>)>| {
            let request = TestRequest::with_uri(path).method(method).to_http_request();
            let found = for_session(&request);
            let found = found.as_ref().map(|found| (&*found.given, found.part));
            assert_eq!(found, expected, "{path}");
        };
        let id = "k3v9x2m7qa";
        check(Method::GET, "/v1/sessions/a%20b?x=1", Some(("a b", Part::Whole)));
        check(Method::POST, "/v1/sessions/a%20b/open", Some(("a b", Part::Opening)));
        let turn = Some((id, Part::Rest("turns/7")));
        check(Method::GET, "/v1/sessions/k3v9x2m7qa/turns/7", turn);
        check(Method::POST, "/v1/asks/k3v9x2m7qa.1/answer", Some((id, Part::Ask)));
        for here in ["/v1/sessions", "/v1/asks", "/v1/stop", "/v1/asks/x/answer", "/v1/events"] {
            check(Method::POST, here, None);
        }
        // The handler here refuses it.
        check(Method::POST, "/v1/sessions/a%20b/prompts", None);
        check(Method::GET, "/v1/sessions/k3v9x2m7qa/log", None);
        check(Method::DELETE, "/v1/sessions/k3v9x2m7qa", None);
    }

    #[test]
    fn a_change_of_the_model_is_sent_without_the_keys_of_the_client() {
        let body = br#"{"model":"a/b","supplies":{"providers":{"a":{"apiKey":"secret"}}}}"#;
        assert_eq!(&*without_supplies(&Bytes::from_static(body)), br#"{"model":"a/b"}"#);
        assert!(without_supplies(&Bytes::from_static(b"{\"supplies\": secret")).is_empty());
    }

    #[test]
    fn a_stream_is_passed_on_in_whole_frames() {
        let text = b"data: 1\n\n:\n\nevent: live\ndata: null\n\n";
        for cut in 0..text.len() {
            let mut frames = WholeFrames::default();
            let (first, second) = text.split_at(cut);
            let first = frames.add(first).unwrap_or_default();
            assert!(first.is_empty() || first.ends_with(b"\n\n"), "{first:?}");
            let second = frames.add(second).unwrap_or_default();
            assert_eq!([first, second].concat(), text, "{cut}");
        }
    }
}
