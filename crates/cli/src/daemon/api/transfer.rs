//! Sessions as text: written out, and taken in. The text is read and written on a thread of its own, a pipe away.

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
use holdpoint_common::Snapshot;
use holdpoint_session::transfer::ImportError;
use tokio::net::UnixStream;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::body::PATIENCE;
use super::caller::Caller;
use super::fault::Fault;
use super::operation::{Gives, Operation, Takes};
use super::parts::What;
use super::reply::Reply;
use super::stream::STALL;

/// Bytes of a text that are in the pipe, or read from it at once.
const CHUNK: usize = 64 * 1024;

/// Texts that are taken in at once.
pub(in crate::daemon) const MOST_IMPORTS: usize = 4;

/// The text's form.
const MEDIA: &str = "application/x-ndjson";

/// A text that is written out.
pub(super) struct TextOut(mpsc::Receiver<io::Result<Bytes>>);

/// A text that comes in.
pub(super) struct TextIn(Payload);

/// `GET sessions/{what}/log`. If it has no last line, something went wrong on the way.
pub(super) async fn export(caller: Caller, What(what): What) -> Result<TextOut, Fault> {
    let place = caller.stream()?;
    let id = caller.sessions().look(&what).await?.settings.id.clone();
    let (ours, theirs) = pipe().map_err(Fault::failed)?;
    let (sessions, runtime) = (caller.sessions(), Handle::current());
    spawn_blocking(move || {
        let mut out = BufWriter::with_capacity(CHUNK, theirs);
        if let Err(error) = runtime.block_on(sessions.export(id.as_str(), &mut out)) {
            tracing::warn!(session = %id, %error, "a session was not wholly written out");
        }
    });
    let (pieces, taken) = mpsc::channel(1);
    rt::spawn(async move {
        let _place = place;
        while let Some(piece) = read(&ours).await.transpose() {
            match timeout(STALL, pieces.reserve()).await {
                Ok(Ok(place)) => place.send(piece),
                // It is gone.
                Ok(Err(_)) => return,
                Err(_) => {
                    tracing::warn!("a client takes nothing of a text, its connection is cut");
                    if let Some(connection) = caller.connection.upgrade() {
                        connection.cut();
                    }
                    return;
                }
            }
        }
    });
    Ok(TextOut(taken))
}

/// `POST import`. A text that breaks off has no last line, and nothing is taken in. All of it is in memory until it is
/// saved, so that only so many are taken in at once.
pub(super) async fn import(caller: Caller, TextIn(mut text): TextIn) -> Result<Reply<Arc<Snapshot>>, Fault> {
    let _place = caller.host.importing.try_acquire().map_err(|_| Fault::too_many_imports(MOST_IMPORTS))?;
    let (ours, theirs) = pipe().map_err(Fault::failed)?;
    let (sessions, runtime) = (caller.sessions(), Handle::current());
    let taken = spawn_blocking(move || {
        let mut text = BufReader::with_capacity(CHUNK, theirs);
        runtime.block_on(sessions.import(&mut text))
    });
    // Whatever of it is dropped ends the text, which is not whole then.
    while let Some(Ok(piece)) = timeout(PATIENCE, text.next()).await.map_err(|_| Fault::too_slow())? {
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
        let mut taken = self.0;
        let pieces =
            poll_fn(move |context| taken.poll_recv(context).map(|piece| piece.map(|piece| piece.map_err(Error::from))));
        HttpResponse::Ok().content_type(MEDIA).streaming(pieces)
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
