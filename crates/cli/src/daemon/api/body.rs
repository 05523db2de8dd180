//! The body of a request: JSON of a bounded size, whatever the client calls it.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use actix_web::body::MessageBody;
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::middleware::Next;
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest};
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::once;
use holdpoint_common::{Limits, unknown};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::fault::Fault;
use super::operation::{Operation, Takes};
use crate::daemon::host::Host;

/// Bytes that anything but a prompt may take: an environment, above all.
const ROOM: usize = 4 * 1024 * 1024;

/// Bytes that JSON takes for one byte of a prompt, at most (`\u001b`).
const ESCAPED: usize = 6;

/// How long a body may take to come.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes of a body that is read before its request is looked at.
const SMALL: usize = 64 * 1024;

/// A body, read. None at all is read as `{}`, and so is `null`.
pub(super) struct Body<T>(pub(super) T);

/// Bytes of a body, at most.
pub(super) fn most(limits: &Limits) -> usize {
    limits.max_prompt_bytes.saturating_mul(ESCAPED).saturating_add(ROOM)
}

/// How long its body is, as a request says.
fn announced(request: &HttpRequest) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Reads a small body before its request is looked at: a connection is of use after a refusal only if nothing of what
/// was refused is left in it.
pub(in crate::daemon) async fn read_ahead<B: MessageBody>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<B>, Error> {
    if announced(request.request()).is_some_and(|length| (1..=SMALL as u64).contains(&length)) {
        let mut payload = request.take_payload();
        let body = whole(request.request(), &mut payload, SMALL).await?;
        request.set_payload(Payload::Stream { payload: Box::pin(once(ready(Ok(body)))) });
    }
    next.call(request).await
}

/// All of a body that comes, of at most so many bytes.
pub(super) async fn whole(request: &HttpRequest, payload: &mut Payload, most: usize) -> Result<Bytes, Fault> {
    if announced(request).is_some_and(|length| length > most as u64) {
        return Err(Fault::too_large(most));
    }
    let reading = async {
        let mut whole = BytesMut::new();
        while let Some(piece) = payload.next().await {
            let piece = piece.map_err(|error| Fault::malformed(format!("the body broke off: {error}")))?;
            if whole.len() + piece.len() > most {
                return Err(Fault::too_large(most));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap_or_else(|_| Err(Fault::too_slow()))
}

fn read<T: DeserializeOwned>(body: &[u8]) -> Result<T, Fault> {
    let text = std::str::from_utf8(body)
        .map_err(|error| Fault::malformed(format!("the body is not UTF-8 at byte {}", error.valid_up_to())))?;
    if text.starts_with('\u{feff}') {
        return Err(Fault::malformed("the body begins with a byte order mark"));
    }
    let text = if matches!(text.trim_ascii(), "" | "null") { "{}" } else { text };
    let mut given = serde_json::Deserializer::from_str(text);
    match unknown::read(&mut given).and_then(|read| given.end().map(|()| read)) {
        Ok((value, None)) => Ok(value),
        // A rule under a wrong name would not be kept.
        Ok((_, Some(path))) => Err(Fault::malformed(format!("the body has a field that nobody knows: `{path}`"))),
        Err(error) => Err(Fault::malformed(format!("the body can't be read: {error}"))),
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = Fault;
    type Future = Pin<Box<dyn Future<Output = Result<Self, Fault>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let most = request.app_data::<Data<Host>>().map_or(ROOM, |host| most(&host.limits));
            read(&whole(&request, &mut payload, most).await?).map(Self)
        })
    }
}

impl<T: JsonSchema> Takes for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.body::<T>("application/json");
    }
}
