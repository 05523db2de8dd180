//! A stream of Server-Sent Events to one client: written in batches, kept alive, and cut if the
//! client does not read.

use std::future::Future;
use std::io::{self, Write};
use std::pin::pin;
use std::sync::Weak;
use std::time::Duration;

use actix_web::body::BoxBody;
use actix_web::http::header::CACHE_CONTROL;
use actix_web::web::Bytes;
use actix_web::{Error, HttpRequest, HttpResponse, Responder};
use futures_util::stream::poll_fn;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval_at};

use crate::daemon::connection::{Connection, StreamPlace};

/// How often the client is sent a sign of life.
pub(super) const BEAT: Duration = Duration::from_secs(15);

/// How long a piece may wait for a client that does not read before its connection is cut. A piece
/// waits only when the buffer of the socket is full. Beats alone fill it in about an hour.
pub(super) const STALL_TIMEOUT: Duration = Duration::from_secs(30);

/// The approximate number of bytes written at once.
const CHUNK: usize = 64 * 1024;

/// The reading end of a stream, which is sent to the client.
pub(super) struct Stream(mpsc::Receiver<Bytes>);

/// The writing end of a stream. At most one piece waits to be sent.
pub(super) struct Writer {
    pieces: mpsc::Sender<Bytes>,
    piece: Vec<u8>,
    beat: Interval,
    connection: Weak<Connection>,
    _place: StreamPlace,
}

/// The client is gone.
pub(super) struct Gone;

impl Stream {
    /// Creates both ends of a stream.
    pub(super) fn new(connection: Weak<Connection>, place: StreamPlace) -> (Writer, Self) {
        let (pieces, receiver) = mpsc::channel(1);
        let mut beat = interval_at(tokio::time::Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        (Writer { pieces, piece: Vec::new(), beat, connection, _place: place }, Self(receiver))
    }
}

impl Writer {
    /// Waits for `work`, sending signs of life meanwhile.
    ///
    /// # Errors
    /// Returns [`Gone`] as soon as the client is gone.
    pub(super) async fn wait<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Gone> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = self.pieces.closed() => return Err(Gone),
                _ = self.beat.tick() => {
                    self.piece.extend_from_slice(b":\n\n");
                    self.flush().await?;
                }
            }
        }
    }

    /// Adds an event. Events of a session have a number and no kind, all others a kind and no
    /// number.
    ///
    /// # Errors
    /// Returns [`Gone`] if the collected bytes can't be written.
    pub(super) async fn put(
        &mut self,
        kind: Option<&str>,
        number: Option<u64>,
        data: &impl Serialize,
    ) -> Result<(), Gone> {
        frame(&mut self.piece, kind, number, data).map_err(|error| {
            tracing::error!(%error, "an event can't be written");
            Gone
        })?;
        if self.piece.len() < CHUNK { Ok(()) } else { self.flush().await }
    }

    /// Writes whole events that are frames already.
    ///
    /// # Errors
    /// Returns [`Gone`] if they can't be written.
    pub(super) async fn copy(&mut self, frames: &[u8]) -> Result<(), Gone> {
        self.piece.extend_from_slice(frames);
        self.flush().await
    }

    /// Writes the collected bytes.
    ///
    /// # Errors
    /// Returns [`Gone`] if the client is gone, or accepts no bytes for too long and is cut.
    pub(super) async fn flush(&mut self) -> Result<(), Gone> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let Ok(permit) = tokio::time::timeout(STALL_TIMEOUT, self.pieces.reserve()).await else {
            tracing::warn!("a client does not read: its connection is cut");
            if let Some(connection) = self.connection.upgrade() {
                connection.cut();
            }
            return Err(Gone);
        };
        let size = self.piece.len();
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(size.min(CHUNK)));
        permit.map_err(|_| Gone)?.send(piece.into());
        Ok(())
    }
}

/// Writes an event as a frame.
fn frame(
    piece: &mut Vec<u8>,
    kind: Option<&str>,
    number: Option<u64>,
    data: &impl Serialize,
) -> io::Result<()> {
    if let Some(kind) = kind {
        writeln!(piece, "event: {kind}")?;
    }
    if let Some(number) = number {
        writeln!(piece, "id: {number}")?;
    }
    piece.extend_from_slice(b"data: ");
    // This JSON contains no line breaks.
    serde_json::to_writer(&mut *piece, data)?;
    piece.extend_from_slice(b"\n\n");
    Ok(())
}

impl Responder for Stream {
    type Body = BoxBody;

    fn respond_to(mut self, _: &HttpRequest) -> HttpResponse {
        let pieces = poll_fn(move |context| {
            self.0.poll_recv(context).map(|piece| piece.map(Ok::<_, Error>))
        });
        HttpResponse::Ok()
            .insert_header((CACHE_CONTROL, "no-cache"))
            .content_type("text/event-stream")
            .streaming(pieces)
    }
}
