//! The responses of other machines, which are passed on to the client.

use std::sync::Arc;
use std::time::Duration;

use actix_web::http::StatusCode;
use actix_web::http::header::CONTENT_TYPE;
use actix_web::web::{Bytes, BytesMut};
use actix_web::{HttpRequest, HttpResponse, Responder, rt};
use futures_util::FutureExt;
use futures_util::stream::try_unfold;
use holdpoint_common::api::RequestError;
use holdpoint_session::ClientEnd;
use holdpoint_session::remote::http::{self, Response};
use tokio::time::timeout;

use super::events::send_end;
use super::stream::{BEAT, Gone, Stream, Writer};
use crate::daemon::connection::{Connection, MAX_STREAMS, StreamPlace};
use crate::daemon::error::ApiError;
use crate::daemon::fleet::Fleet;
use crate::daemon::host::{Host, StopSubscription};

/// The longest time without data in a stream of events: some signs of life are missing.
const SILENCE: Duration = BEAT.saturating_mul(3);

/// The content type of a stream of events.
const EVENT_STREAM: &str = "text/event-stream";

/// Takes a place among the streams of this machine.
pub(super) fn take_stream_place(request: &HttpRequest) -> Result<StreamPlace, ApiError> {
    let connection = request.conn_data::<Arc<Connection>>();
    let place = connection.and_then(|connection| connection.take_stream_place());
    place.ok_or_else(|| RequestError::TooManyStreams { limit: MAX_STREAMS }.into())
}

/// A response of another machine.
pub(super) struct Forwarded {
    pub(super) fleet: Fleet,
    pub(super) machine: String,
    pub(super) response: Response,
}

impl Forwarded {
    /// The next piece of the body. `None` at its end, or if the machine has no lease any more.
    async fn chunk(&mut self) -> Result<Option<Bytes>, http::HttpError> {
        tokio::select! {
            chunk = self.response.chunk() => chunk,
            () = self.fleet.lost(&self.machine) => Ok(None),
        }
    }

    /// The reply to the client. `place` is kept until it is sent.
    pub(super) fn reply(
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
    use super::*;

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
