//! Sessions as text: written out, and taken in. The text is read and written on a thread of its own, a pipe away.

use std::future::{Ready, ready};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::net::UnixStream as Pipe;
use std::sync::Arc;

use actix_web::body::BoxBody;
use actix_web::dev::Payload;
use actix_web::web::Bytes;
use actix_web::{Error, FromRequest, HttpRequest, HttpResponse, Responder};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use holdpoint_common::Snapshot;
use holdpoint_session::transfer::{self, ImportError};
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use super::caller::Caller;
use super::fault::Fault;
use super::openapi::{Gives, Operation, Takes};
use super::parts::What;
use super::reply::Reply;

/// Bytes of a text that are in the pipe, or read from it at once.
const CHUNK: usize = 64 * 1024;

/// The text's form.
const MEDIA: &str = "application/x-ndjson";

/// A text that is written out.
pub(super) struct TextOut(UnixStream);

/// A text that comes in.
pub(super) struct TextIn(Payload);

/// `GET sessions/{what}/log`. If it has no last line, something went wrong on the way.
pub(super) async fn export(caller: Caller, What(what): What) -> Result<TextOut, Fault> {
    let id = caller.sessions().look(&what).await?.settings.id.clone();
    let (ours, theirs) = pipe().map_err(Fault::failed)?;
    let (store, runtime) = (caller.host.store.clone(), Handle::current());
    spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(CHUNK, theirs);
        if let Err(error) = runtime.block_on(transfer::export(&store, &id, &mut out)) {
            tracing::warn!(session = %id, %error, "a session was not wholly written out");
        }
    });
    Ok(TextOut(ours))
}

/// `POST import`. A text that breaks off has no last line, and nothing is taken in.
pub(super) async fn import(caller: Caller, TextIn(mut text): TextIn) -> Result<Reply<Arc<Snapshot>>, Fault> {
    let (ours, theirs) = pipe().map_err(Fault::failed)?;
    let (store, runtime) = (caller.host.store.clone(), Handle::current());
    let taken = spawn_blocking(move || {
        let mut text = BufReader::with_capacity(CHUNK, theirs);
        runtime.block_on(transfer::import(&store, &mut text))
    });
    while let Some(Ok(piece)) = text.next().await {
        // Who does not read on has found something wrong.
        if write_all(&ours, &piece).await.is_err() {
            break;
        }
    }
    drop(ours);
    let id = taken.await.map_err(Fault::failed)?.map_err(|error| match error {
        ImportError::Line { .. } | ImportError::Io(_) => Fault::malformed(error),
        error => Fault::failed(error),
    })?;
    Ok(Reply(caller.sessions().look(id.as_str()).await?))
}

/// A pipe: an end for a task, and one for a thread.
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

/// What has come; nothing at the end.
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
        let pieces = unfold(self.0, |pipe| async {
            let piece = read(&pipe).await.transpose()?;
            Some((piece.map_err(Error::from), pipe))
        });
        HttpResponse::Ok().content_type(MEDIA).streaming(Box::pin(pieces))
    }
}

impl FromRequest for TextIn {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(_: &HttpRequest, payload: &mut Payload) -> Self::Future {
        ready(Ok(Self(payload.take())))
    }
}

impl Takes for TextIn {
    fn describe(operation: &mut Operation<'_>) {
        operation.body::<String>(MEDIA);
    }
}

impl Gives for TextOut {
    fn describe(operation: &mut Operation<'_>) {
        let what = "The session as JSON lines: a header, its facts, and a last line with their check sum.";
        operation.answer::<String>("200", MEDIA, what);
    }
}
