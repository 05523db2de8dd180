//! Requests for sessions and machines of the fleet that are not this one, which are forwarded there.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::middleware::Next;
use actix_web::web::{Bytes, Data};
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse, ResponseError};
use futures_util::future::ready;
use futures_util::stream::once;
use holdpoint_common::api::{CLIENT_HEADER, VERSION_HEADER};
use holdpoint_common::{AskId, SessionId};
use holdpoint_session::remote::http::{self, Response};
use holdpoint_session::{Elsewhere, SessionError};
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;

use super::body::{max_body_bytes, read_bytes};
use super::events::LAST_EVENT_HEADER;
use super::forwarded::{Forwarded, take_stream_place};
use crate::daemon::error::ApiError;
use crate::daemon::fleet::{Fleet, RequestFailed};
use crate::daemon::host::Host;
use crate::daemon::peer::Peer;

/// How often a request is sent: its session may move meanwhile, and the machines that have its place
/// are tried one after the other.
pub(super) const MAX_TRIES: usize = 4;

/// The headers that are forwarded.
const HEADERS: [&str; 5] =
    [CLIENT_HEADER, VERSION_HEADER, LAST_EVENT_HEADER, "user-agent", "content-type"];

/// The part of this API that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    /// The machine that its body names, for a new session or one that moves there.
    Machine,
    /// A session, as the path names it.
    Session(String, Part),
}

/// The part of a session that a request is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    /// Its snapshot.
    Whole,
    /// Its actor, with the client's supplies.
    Opening,
    /// One of its open asks.
    Ask,
    /// What the rest of the path names.
    Rest(String),
}

/// The field of a body that names the machine.
#[derive(Deserialize)]
struct Named {
    machine: Option<String>,
}

/// Forwards a request of this machine for a session that another machine has, and one that names
/// another machine. All others are handled here, and so are deletion and export, which need no actor.
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
pub(in crate::daemon) fn is_forwarded(request: &HttpRequest) -> bool {
    target_of(request).is_some()
}

fn target_of(request: &HttpRequest) -> Option<Target> {
    let path = request.path().strip_prefix("/v1/")?;
    let decoded = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    if path == "sessions" {
        return (request.method() == Method::POST).then_some(Target::Machine);
    }
    let Some(path) = path.strip_prefix("sessions/") else {
        let ask = path.strip_prefix("asks/")?.strip_suffix("/answer")?;
        let ask: AskId = decoded(ask)?.parse().ok()?;
        return Some(Target::Session(ask.session.to_string(), Part::Ask));
    };
    let (given, rest) = path.split_once('/').unwrap_or((path, ""));
    let (given, is_deletion) = (decoded(given)?, request.method() == Method::DELETE);
    let part = match rest {
        // These need no actor.
        "" if is_deletion => return None,
        "log" => return None,
        "move" => return Some(Target::Machine),
        "" => Part::Whole,
        "open" => Part::Opening,
        // A session is named only by its id.
        rest if given.parse::<SessionId>().is_ok() => Part::Rest(rest.to_owned()),
        _ => return None,
    };
    Some(Target::Session(given, part))
}

/// Forwards a request, unless it is to be handled here.
async fn forward(
    request: &mut ServiceRequest,
    host: &Host,
    fleet: &Fleet,
) -> Result<Option<HttpResponse>, ApiError> {
    // A machine sends requests only to the machine that they are for.
    if matches!(request.conn_data::<Peer>(), Some(Peer::Machine(_))) {
        return Ok(None);
    }
    match target_of(request.request()) {
        Some(Target::Session(given, part)) => {
            forward_to_owner(request, host, fleet, &given, part).await
        }
        Some(Target::Machine) => forward_to_named(request, host, fleet).await,
        None => Ok(None),
    }
}

/// Forwards a request that names another machine of the fleet.
async fn forward_to_named(
    request: &mut ServiceRequest,
    host: &Host,
    fleet: &Fleet,
) -> Result<Option<HttpResponse>, ApiError> {
    let body = read_body(request, host).await?;
    // A body that can't be read is refused by the handler here.
    let named = serde_json::from_slice::<Named>(&body).ok().and_then(|named| named.machine);
    let Some(machine) = named.filter(|machine| **machine != *fleet.name) else {
        return Ok(handle_here(request, body));
    };
    // It may wait for hours, until the session can be moved.
    let place = take_stream_place(request.request())?;
    let outgoing = Outgoing {
        method: http::Method::POST,
        path: request.path().to_owned(),
        body: without_supplies(&body),
    };
    let response = outgoing.send(request.request(), fleet, &machine).await?;
    let forwarded = Forwarded { fleet: fleet.clone(), machine, response };
    forwarded.reply(request.request(), host, Some(place)).map(Some)
}

/// Forwards a request for a session that another machine has. If the session is only saved, its home
/// can open it.
async fn forward_to_owner(
    request: &mut ServiceRequest,
    host: &Host,
    fleet: &Fleet,
    given: &str,
    part: Part,
) -> Result<Option<HttpResponse>, ApiError> {
    let is_rest = |is_it: fn(&str) -> bool| matches!(&part, Part::Rest(rest) if is_it(rest));
    let has_state = part == Part::Whole || is_rest(|rest| rest == "asks");
    let is_wait = is_rest(|rest| rest.starts_with("turns/"));
    let is_for_home = matches!(part, Part::Opening | Part::Ask);
    let locate = async |tried: &[String]| {
        // The handler here reports an error.
        let found = host.locator.locate(given).await.ok().flatten()?;
        if found.live {
            return Some(found);
        }
        let machine = fleet.opener(&found.machine, tried).filter(|_| is_for_home)?;
        Some(Elsewhere { machine, ..found })
    };
    let Some(mut owner) = locate(&[]).await else { return Ok(None) };
    // It may wait for hours, as a stream does.
    let place = if is_wait { Some(take_stream_place(request.request())?) } else { None };
    let body = read_body(request, host).await?;
    let is_prompt = is_rest(|rest| rest == "prompts");
    let body = if is_prompt { with_key(&body) } else { body };
    let (mut tried, mut first_error) = (Vec::new(), None);
    for _ in 0..MAX_TRIES {
        let Elsewhere { session, machine, live } = owner;
        let outgoing = Outgoing::to_owner(request.request(), &session, &part, &body);
        match outgoing.send(request.request(), fleet, &machine).await {
            Ok(response) if response.status() != http::StatusCode::MISDIRECTED_REQUEST => {
                let forwarded = Forwarded { fleet: fleet.clone(), machine, response };
                return forwarded.reply(request.request(), host, place).map(Some);
            }
            Ok(_) => {}
            // The database has the state, too.
            Err(SessionError::MachineUnreachable { .. })
                if has_state && request.method() == Method::GET =>
            {
                return Ok(handle_here(request, body));
            }
            // Another machine may have its place, and an answer can be saved.
            Err(error @ SessionError::MachineUnreachable { .. }) if !live => {
                tried.push(machine);
                if part != Part::Ask {
                    first_error.get_or_insert(error);
                }
            }
            // It has a key, so that it can be sent again.
            Err(error @ SessionError::Disconnected { .. })
                if is_prompt && first_error.is_none() =>
            {
                first_error = Some(error);
            }
            Err(error) => return Err(first_error.unwrap_or(error).into()),
        }
        match locate(&tried).await {
            Some(found) => owner = found,
            None => break,
        }
    }
    match first_error {
        // A prompt whose reply was lost may have been added.
        Some(error) => Err(error.into()),
        None => Ok(handle_here(request, body)),
    }
}

async fn read_body(request: &mut ServiceRequest, host: &Host) -> Result<Bytes, ApiError> {
    let mut payload = request.take_payload();
    read_bytes(request.request(), &mut payload, max_body_bytes(&host.limits)).await
}

/// Leaves a request, whose body was read, to the handler here.
fn handle_here(request: &mut ServiceRequest, body: Bytes) -> Option<HttpResponse> {
    request.set_payload(Payload::Stream { payload: Box::pin(once(ready(Ok(body)))) });
    None
}

/// A request to another machine.
struct Outgoing {
    method: http::Method,
    path: String,
    body: Bytes,
}

impl Outgoing {
    /// The request for a session of that machine. The supplies of a client stay on its machine.
    fn to_owner(request: &HttpRequest, session: &SessionId, part: &Part, body: &Bytes) -> Self {
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let method = request.method().as_str().parse().unwrap_or_default();
        let (path, body) = match part {
            Part::Whole => (format!("/v1/sessions/{session}"), body.clone()),
            Part::Opening => (format!("/v1/sessions/{session}/open"), Bytes::from_static(b"{}")),
            Part::Rest(rest) => {
                let body = if rest == "model" { without_supplies(body) } else { body.clone() };
                (format!("/v1/sessions/{session}/{rest}{query}"), body)
            }
            Part::Ask => (format!("{}{query}", request.path()), body.clone()),
        };
        Self { method, path, body }
    }

    /// Sends the request in the name of the client.
    async fn send(
        self,
        request: &HttpRequest,
        fleet: &Fleet,
        machine: &str,
    ) -> Result<Response, SessionError> {
        let header = |name: &'static str| Some((name, request.headers().get(name)?.to_str().ok()?));
        let headers: Vec<_> = HEADERS.into_iter().filter_map(header).collect();
        let Self { method, path, body } = self;
        send(fleet, machine, (method, &path), &headers, body).await
    }
}

/// Sends a request to another machine.
///
/// # Errors
/// [`SessionError::MachineUnreachable`] if the machine has not carried out the request;
/// [`SessionError::Disconnected`] if that is unknown.
pub(super) async fn send(
    fleet: &Fleet,
    machine: &str,
    (method, path): (http::Method, &str),
    headers: &[(&str, &str)],
    body: Bytes,
) -> Result<Response, SessionError> {
    let unreachable = |message: String| {
        let machine = machine.to_owned();
        SessionError::MachineUnreachable { machine, message }
    };
    let changes_nothing = method == http::Method::GET;
    let sent = fleet.request(machine, (method, path), headers, body).await;
    let response = sent.map_err(|error| match error {
        RequestFailed::Broken(message) if !changes_nothing => SessionError::Disconnected {
            message: format!("the machine `{machine}` did not reply: {message}"),
        },
        RequestFailed::Unreachable(_) if !fleet.knows(machine) => {
            SessionError::UnknownMachine { machine: machine.to_owned() }
        }
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

/// The body of a prompt with an idempotency key: its own or a new one.
fn with_key(body: &Bytes) -> Bytes {
    let Ok(mut request) = serde_json::from_slice::<serde_json::Map<_, Value>>(body) else {
        // The owner refuses it.
        return body.clone();
    };
    let key = request.entry("idempotencyKey").or_insert(Value::Null);
    if key.is_null() {
        *key = format!("{:016x}{:016x}", fastrand::u64(..), fastrand::u64(..)).into();
    }
    Value::Object(request).to_string().into()
}

/// A body without the environment, the provider settings and the keys of the client.
fn without_supplies(body: &Bytes) -> Bytes {
    let Ok(mut request) = serde_json::from_slice::<serde_json::Map<_, Value>>(body) else {
        // The owner refuses it.
        return Bytes::new();
    };
    request.remove("supplies");
    Value::Object(request).to_string().into()
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;

    #[test]
    fn requests_for_other_machines_are_known_by_their_path() {
        let check = |method: Method, path: &str, expected: Option<Target>| {
            let request = TestRequest::with_uri(path).method(method).to_http_request();
            assert_eq!(target_of(&request), expected, "{path}");
        };
        let session = |given: &str, part| Some(Target::Session(given.to_owned(), part));
        let id = "k3v9x2m7qa";
        check(Method::GET, "/v1/sessions/a%20b?x=1", session("a b", Part::Whole));
        check(Method::POST, "/v1/sessions/a%20b/open", session("a b", Part::Opening));
        let turn = session(id, Part::Rest("turns/7".to_owned()));
        check(Method::GET, "/v1/sessions/k3v9x2m7qa/turns/7", turn);
        check(Method::POST, "/v1/asks/k3v9x2m7qa.1/answer", session(id, Part::Ask));
        for named in ["/v1/sessions", "/v1/sessions/a%20b/move"] {
            check(Method::POST, named, Some(Target::Machine));
        }
        for here in ["/v1/asks", "/v1/stop", "/v1/asks/x/answer", "/v1/events"] {
            check(Method::POST, here, None);
        }
        check(Method::GET, "/v1/sessions", None);
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
}
