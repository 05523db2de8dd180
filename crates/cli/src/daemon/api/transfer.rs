//! Handlers that export and import sessions as text. A thread at the other end of a pipe reads and
//! writes the text.

use std::future::{Ready, ready};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::net::UnixStream as Pipe;
use std::sync::Arc;

use actix_web::body::BoxBody;
use actix_web::dev::Payload;
use actix_web::web::Bytes;
use actix_web::{Error, FromRequest, HttpRequest, HttpResponse, Responder, rt};
use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use holdpoint_common::api::RequestError;
use holdpoint_common::{SessionError, Snapshot};
use holdpoint_session::transfer::ImportError;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::body::BODY_TIMEOUT;
use super::caller::Caller;
use super::operation::{DescribeInput, DescribeOutput, Operation};
use super::parts::SessionRef;
use super::reply::Reply;
use super::stream::STALL_TIMEOUT;
use crate::daemon::error::ApiError;
use crate::daemon::host::MAX_IMPORTS;

/// The size of the buffers at both ends of the pipe in bytes.
const CHUNK: usize = 64 * 1024;

/// The media type of the text.
const MEDIA: &str = "application/x-ndjson";

/// The text of an exported session.
pub(super) struct TextOut(mpsc::Receiver<io::Result<Bytes>>);

/// The text of a session to import.
pub(super) struct TextIn(Payload);

/// `GET sessions/{session}/log`: a text without its last line is incomplete.
pub(super) async fn export(
    caller: Caller,
    SessionRef(session): SessionRef,
) -> Result<TextOut, ApiError> {
    let place = caller.take_stream_place()?;
    let id = caller.sessions().look(&session).await?.settings.id.clone();
    let (ours, theirs) = pipe().map_err(ApiError::failed)?;
    let (sessions, runtime) = (caller.sessions(), Handle::current());
    spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(CHUNK, theirs);
        if let Err(error) = runtime.block_on(sessions.export(id.as_str(), &mut out)) {
            tracing::warn!(session = %id, %error, "a session was not exported completely");
        }
    });
    let (pieces, receiver) = mpsc::channel(1);
    rt::spawn(async move {
        let _place = place;
        while let Some(piece) = read(&ours).await.transpose() {
            match timeout(STALL_TIMEOUT, pieces.reserve()).await {
                Ok(Ok(permit)) => permit.send(piece),
                // The client is gone.
                Ok(Err(_)) => return,
                Err(_) => {
                    tracing::warn!("a client does not read an export: its connection is cut");
                    if let Some(connection) = caller.connection.upgrade() {
                        connection.cut();
                    }
                    return;
                }
            }
        }
    });
    Ok(TextOut(receiver))
}

/// `POST import`: a text that breaks off has no last line and is not imported. The text stays in
/// memory until it is saved, so the number of concurrent imports is limited.
pub(super) async fn import(
    caller: Caller,
    TextIn(mut text): TextIn,
) -> Result<Reply<Arc<Snapshot>>, ApiError> {
    let place = Arc::clone(&caller.host.importing)
        .try_acquire_owned()
        .map_err(|_| ApiError::from(RequestError::TooManyImports { limit: MAX_IMPORTS }))?;
    let (ours, theirs) = pipe().map_err(ApiError::failed)?;
    let (sessions, runtime) = (caller.sessions(), Handle::current());
    let importing = spawn_blocking(move || {
        // The import continues if the client disconnects, and keeps its place.
        let _place = place;
        let mut text = BufReader::with_capacity(CHUNK, theirs);
        runtime.block_on(sessions.import(&mut text))
    });
    // Dropping our end of the pipe ends the text, which is then incomplete.
    while let Some(Ok(piece)) = timeout(BODY_TIMEOUT, text.next())
        .await
        .map_err(|_| ApiError::from(RequestError::TooSlow))?
    {
        // A reader that stops has found an error in the text.
        if write_all(&ours, &piece).await.is_err() {
            break;
        }
    }
    drop(ours);
    let id = importing.await.map_err(ApiError::failed)?.map_err(|error| match error {
        ImportError::Line { .. } | ImportError::Io(_) => ApiError::malformed(error),
        ImportError::Session(error) => error.into(),
        ImportError::Store(error) => SessionError::from(error).into(),
        error => ApiError::failed(error),
    })?;
    Ok(Reply(caller.sessions().look(id.as_str()).await?))
}

/// Creates a pipe with one end for a task and one for a thread.
fn pipe() -> io::Result<(UnixStream, Pipe)> {
    let (ours, theirs) = Pipe::pair()?;
    ours.set_nonblocking(true)?;
    Ok((UnixStream::from_std(ours)?, theirs))
}

async fn write_all(pipe: &UnixStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        pipe.writable().await?;
        match pipe.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Reads the available bytes; `None` at the end.
async fn read(pipe: &UnixStream) -> io::Result<Option<Bytes>> {
    let mut bytes = Vec::with_capacity(CHUNK);
    loop {
        pipe.readable().await?;
        match pipe.try_read_buf(&mut bytes) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(bytes.into())),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

impl Responder for TextOut {
    type Body = BoxBody;

    fn respond_to(self, _: &HttpRequest) -> HttpResponse {
        let mut receiver = self.0;
        let pieces = poll_fn(move |context| {
            receiver.poll_recv(context).map(|piece| piece.map(|piece| piece.map_err(Error::from)))
        });
        HttpResponse::Ok().content_type(MEDIA).streaming(pieces)
    }
}

impl FromRequest for TextIn {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(_: &HttpRequest, payload: &mut Payload) -> Self::Future {
        ready(Ok(Self(payload.take())))
    }
}

impl DescribeInput for TextIn {
    fn describe(operation: &mut Operation<'_>) {
        operation.body::<String>(MEDIA);
    }
}

impl DescribeOutput for TextOut {
    fn describe(operation: &mut Operation<'_>) {
        let description =
            "The session as JSON lines: a header, its facts, and a last line with their checksum.";
        operation.response::<String>("200", MEDIA, description);
    }
}
