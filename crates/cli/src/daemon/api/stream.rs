//! A stream of Server-Sent Events to one client: written in batches, kept alive, and ended for who does not read.

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

/// How often a client hears that the stream is alive.
const BEAT: Duration = Duration::from_secs(15);

/// How long a client may take no bytes. With two beats before it is noticed, it is gone within a minute.
pub(super) const STALL: Duration = Duration::from_secs(30);

/// Bytes that are written at once, or a little more.
const CHUNK: usize = 64 * 1024;

/// What a client reads.
pub(super) struct Stream(mpsc::Receiver<Bytes>);

/// The end at which it is written. One piece waits to be taken; nothing is kept beyond it.
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
    /// A stream, and where it is written.
    pub(super) fn new(connection: Weak<Connection>, place: StreamPlace) -> (Writer, Self) {
        let (pieces, taken) = mpsc::channel(1);
        let mut beat = interval_at(tokio::time::Instant::now() + BEAT, BEAT);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        (Writer { pieces, piece: Vec::new(), beat, connection, _place: place }, Self(taken))
    }
}

impl Writer {
    /// Waits for `work`, and lets the client know meanwhile that the stream is alive.
    ///
    /// # Errors
    /// [`Gone`], as soon as it is.
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

    /// Adds an event: of this kind, if it is not the usual one; with this number, if it has one.
    ///
    /// # Errors
    /// [`Gone`], if what has come together by now could not be written.
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

    /// Writes what has come together.
    ///
    /// # Errors
    /// [`Gone`], also if the client takes nothing for too long: then its connection is cut.
    pub(super) async fn flush(&mut self) -> Result<(), Gone> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let Ok(place) = tokio::time::timeout(STALL, self.pieces.reserve()).await else {
            tracing::warn!("a client takes nothing, its connection is cut");
            if let Some(connection) = self.connection.upgrade() {
                connection.cut();
            }
            return Err(Gone);
        };
        let size = self.piece.len();
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(size.min(CHUNK)));
        place.map_err(|_| Gone)?.send(piece.into());
        Ok(())
    }
}

/// Writes an event as a frame.
fn frame(piece: &mut Vec<u8>, kind: Option<&str>, number: Option<u64>, data: &impl Serialize) -> io::Result<()> {
    if let Some(kind) = kind {
        writeln!(piece, "event: {kind}")?;
    }
    if let Some(number) = number {
        writeln!(piece, "id: {number}")?;
    }
    piece.extend_from_slice(b"data: ");
    // There is no line break in it.
    serde_json::to_writer(&mut *piece, data)?;
    piece.extend_from_slice(b"\n\n");
    Ok(())
}

impl Responder for Stream {
    type Body = BoxBody;

    fn respond_to(mut self, _: &HttpRequest) -> HttpResponse {
        let pieces = poll_fn(move |context| self.0.poll_recv(context).map(|piece| piece.map(Ok::<_, Error>)));
        HttpResponse::Ok()
            .insert_header((CACHE_CONTROL, "no-cache"))
            .content_type("text/event-stream")
            .streaming(pieces)
    }
}
