//! Request bodies: JSON of bounded size, whatever their content type.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Payload, ServiceRequest, ServiceResponse};
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::middleware::Next;
use actix_web::web::{Bytes, BytesMut, Data};
use actix_web::{Error, FromRequest, HttpMessage, HttpRequest, ResponseError};
use futures_util::StreamExt;
use futures_util::future::ready;
use futures_util::stream::once;
use holdpoint_common::api::RequestError;
use holdpoint_common::{Limits, unknown};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use super::operation::{DescribeInput, Operation};
use crate::daemon::connection::Connection;
use crate::daemon::error::ApiError;
use crate::daemon::host::Host;

/// The maximum number of bytes of everything except a prompt, mostly an environment.
const MAX_OTHER_BYTES: usize = 4 * 1024 * 1024;

/// The maximum number of JSON bytes for one byte of a prompt (`\u001b`).
const MAX_JSON_BYTES_PER_BYTE: usize = 6;

/// The timeout for receiving a body.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The maximum size of a body that is read before its request is handled, in bytes.
const MAX_READ_AHEAD_BYTES: usize = 64 * 1024;

/// The body of a request. A missing body and `null` are read as `{}`.
pub(super) struct Body<T>(pub(super) T);

/// The maximum size of a body in bytes.
pub(super) fn max_body_bytes(limits: &Limits) -> usize {
    limits.max_prompt_bytes.saturating_mul(MAX_JSON_BYTES_PER_BYTE).saturating_add(MAX_OTHER_BYTES)
}

/// The announced length of the request's body.
fn announced_length(request: &HttpRequest) -> Option<u64> {
    request.headers().get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok())
}

/// Reads a small body before its request is handled: after a refusal, the connection can be used
/// again only if nothing of the refused request is left in it.
pub(in crate::daemon) async fn read_ahead<B: MessageBody>(
    mut request: ServiceRequest,
    next: Next<B>,
) -> Result<ServiceResponse<EitherBody<B>>, Error> {
    if announced_length(request.request())
        .is_some_and(|length| (1..=MAX_READ_AHEAD_BYTES as u64).contains(&length))
    {
        let mut payload = request.take_payload();
        let body = match read_bytes(request.request(), &mut payload, MAX_READ_AHEAD_BYTES).await {
            Ok(body) => body,
            Err(error) => {
                return Ok(request.into_response(error.error_response()).map_into_right_body());
            }
        };
        request.set_payload(Payload::Stream { payload: Box::pin(once(ready(Ok(body)))) });
    }
    Ok(next.call(request).await?.map_into_left_body())
}

/// Reads a body of at most `max_bytes` bytes.
pub(super) async fn read_bytes(
    request: &HttpRequest,
    payload: &mut Payload,
    max_bytes: usize,
) -> Result<Bytes, ApiError> {
    if announced_length(request).is_some_and(|length| length > max_bytes as u64) {
        return Err(ApiError::from(RequestError::TooLarge { limit: max_bytes }));
    }
    let connection = request.conn_data::<Arc<Connection>>();
    let receiving = connection.map(|connection| connection.receive());
    let reading = async {
        let mut whole = BytesMut::new();
        while let Some(piece) = payload.next().await {
            let piece = piece
                .map_err(|error| ApiError::malformed(format!("the body is incomplete: {error}")))?;
            if whole.len() + piece.len() > max_bytes {
                return Err(ApiError::from(RequestError::TooLarge { limit: max_bytes }));
            }
            whole.extend_from_slice(&piece);
        }
        Ok(whole.freeze())
    };
    let body = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    drop(receiving);
    body.unwrap_or_else(|_| Err(ApiError::from(RequestError::TooSlow)))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let text = std::str::from_utf8(body).map_err(|error| {
        ApiError::malformed(format!("the body is not UTF-8 at byte {}", error.valid_up_to()))
    })?;
    if text.starts_with('\u{feff}') {
        return Err(ApiError::malformed("the body begins with a byte order mark"));
    }
    let text = if matches!(text.trim_ascii(), "" | "null") { "{}" } else { text };
    let mut given = serde_json::Deserializer::from_str(text);
    match unknown::deserialize(&mut given).and_then(|read| given.end().map(|()| read)) {
        Ok((value, None)) => Ok(value),
        // An unknown field is an error: a rule under a wrong name would have no effect.
        Ok((_, Some(path))) => {
            Err(ApiError::malformed(format!("the body has an unknown field: `{path}`")))
        }
        Err(error) => Err(ApiError::malformed(format!("the body can't be read: {error}"))),
    }
}

impl<T: DeserializeOwned + 'static> FromRequest for Body<T> {
    type Error = ApiError;
    type Future = Pin<Box<dyn Future<Output = Result<Self, ApiError>>>>;

    fn from_request(request: &HttpRequest, payload: &mut Payload) -> Self::Future {
        let (request, mut payload) = (request.clone(), payload.take());
        Box::pin(async move {
            let max_bytes = request
                .app_data::<Data<Host>>()
                .map_or(MAX_OTHER_BYTES, |host| max_body_bytes(&host.limits));
            parse(&read_bytes(&request, &mut payload, max_bytes).await?).map(Self)
        })
    }
}

impl<T: JsonSchema> DescribeInput for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        operation.body::<T>("application/json");
    }
}
