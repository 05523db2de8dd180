//! Streams: of one session's events, and of what becomes of all sessions.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::body::BoxBody;
use actix_web::dev::Payload;
use actix_web::error::QueryPayloadError;
use actix_web::web::Query;
use actix_web::{FromRequest, HttpRequest, HttpResponse, Responder, rt};
use holdpoint_common::api::{ClientEnd, EventsQuery, SessionNews, StreamFrame};
use holdpoint_common::{Event, SessionId};
use holdpoint_session::{AttachFrom, Attachment, SessionHandle, Watch};

use super::caller::Caller;
use super::fault::Fault;
use super::operation::{Gives, Operation, Takes};
use super::parts::Id;
use super::stream::{Gone, Stream, Writer};

/// The header in which a client that comes back says the last number it has, as browsers do by themselves.
const LAST_EVENT: &str = "last-event-id";

/// Events that are taken at once.
const BATCH: usize = 256;

/// How a client attaches: as the query says it, and the header.
pub(super) struct Attaching(EventsQuery);

/// The stream of one session's events.
pub(super) struct Events(Stream);

/// The stream of what becomes of all sessions.
pub(super) struct News(Stream);

/// `GET sessions/{id}/events`: attaches. Closing the connection detaches.
pub(super) async fn attach(caller: Caller, Id(id): Id, Attaching(query): Attaching) -> Result<Events, Fault> {
    let from = AttachFrom { limit: query.limit, ..AttachFrom::after(query.after.unwrap_or(0)) };
    let place = caller.stream()?;
    let attached = begin(&caller, &id, from).await;
    let Caller { peer, who, .. } = &caller;
    match &attached {
        Ok(_) => tracing::info!(%peer, client = who.name, session = %id, after = from.after, "attach accepted"),
        Err(fault) => tracing::warn!(%peer, client = who.name, session = %id, why = fault.code(), "attach refused"),
    }
    let (session, attachment) = attached?;
    let (mut writer, stream) = Stream::new(caller.connection, place);
    let mut stopping = caller.host.stopping.told();
    rt::spawn(async move {
        let end = tokio::select! {
            end = send_events(&mut writer, &session, attachment, query.snapshots) => end,
            () = stopping.over() => Ok(ClientEnd::Stopped),
        };
        // Whoever is gone needs no last word.
        let Ok(end) = end else { return };
        let _ = send_end(&mut writer, if stopping.has_begun() { ClientEnd::Stopped } else { end }).await;
    });
    Ok(Events(stream))
}

async fn begin(caller: &Caller, id: &SessionId, from: AttachFrom) -> Result<(SessionHandle, Attachment), Fault> {
    let session = caller.session(id).await?;
    let attachment = session.attach(from).await?;
    Ok((session, attachment))
}

async fn send_events(
    writer: &mut Writer,
    session: &SessionHandle,
    mut attachment: Attachment,
    snapshots: bool,
) -> Result<ClientEnd, Gone> {
    let mut shown = Arc::clone(attachment.snapshot());
    writer.put(Some("snapshot"), None, &shown).await?;
    writer.flush().await?;
    let mut batch: Vec<Arc<Event>> = Vec::new();
    while writer.wait(attachment.next_past(&mut batch, BATCH)).await? > 0 {
        put_events(writer, &mut batch).await?;
    }
    writer.put(Some("live"), None, &()).await?;
    writer.flush().await?;
    while writer.wait(attachment.next_batch(&mut batch, BATCH)).await? > 0 {
        if snapshots {
            // What is published by now has all that these events have changed.
            let now = session.snapshot();
            // Whether it is saved, and who is attached, changes without a number.
            if now.seq >= shown.seq && !now.differs_in_number_only(&shown) {
                writer.put(Some("snapshot"), None, &now).await?;
                shown = now;
            }
        }
        put_events(writer, &mut batch).await?;
    }
    Ok(attachment.end())
}

async fn send_end(writer: &mut Writer, end: ClientEnd) -> Result<(), Gone> {
    writer.put(Some("end"), None, &end).await?;
    writer.flush().await
}

async fn put_events(writer: &mut Writer, batch: &mut Vec<Arc<Event>>) -> Result<(), Gone> {
    for event in batch.drain(..) {
        writer.put(None, Some(event.seq), &event).await?;
    }
    writer.flush().await
}

/// `GET events`: watches all sessions.
pub(super) async fn watch(caller: Caller) -> Result<News, Fault> {
    let place = caller.stream()?;
    let watch = caller.sessions().watch().await?;
    tracing::info!(peer = %caller.peer, client = caller.who.name, "watch");
    let (mut writer, stream) = Stream::new(caller.connection, place);
    let mut stopping = caller.host.stopping.told();
    rt::spawn(async move {
        // Whoever is gone needs no last word, and for the others the end is one.
        let _ = tokio::select! {
            sent = send_news(&mut writer, watch) => sent,
            () = stopping.over() => Ok(()),
        };
    });
    Ok(News(stream))
}

async fn send_news(writer: &mut Writer, mut watch: Watch) -> Result<(), Gone> {
    while let Some(news) = writer.wait(watch.next()).await? {
        match news {
            SessionNews::Session(session) => writer.put(Some("session"), None, &session).await?,
            SessionNews::Deleted(id) => writer.put(Some("deleted"), None, &id).await?,
        }
        writer.flush().await?;
    }
    Ok(())
}

impl FromRequest for Attaching {
    type Error = Fault;
    type Future = Ready<Result<Self, Fault>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(attaching(request).map(Self))
    }
}

fn attaching(request: &HttpRequest) -> Result<EventsQuery, Fault> {
    let mut query = query(request.query_string())?;
    if let Some(last) = request.headers().get(LAST_EVENT) {
        let number = last.to_str().ok().and_then(|last| last.trim().parse().ok());
        query.after = Some(number.ok_or_else(|| Fault::malformed("Last-Event-ID is no number"))?);
    }
    Ok(query)
}

/// Reads a query; an error says which part of it is wrong.
fn query(text: &str) -> Result<EventsQuery, Fault> {
    let read = |text: &str| Query::<EventsQuery>::from_query(text).map(Query::into_inner);
    read(text).map_err(|error| {
        let part = text.split('&').find(|part| read(part).is_err()).unwrap_or(text);
        let why = match &error {
            QueryPayloadError::Deserialize(why) => why.to_string(),
            error => error.to_string(),
        };
        Fault::malformed(format!("the query can't be read at `{part}`: {why}"))
            .hint("there are `after` and `limit`, whole numbers, and `snapshots`, true or false")
    })
}

impl Takes for Attaching {
    fn describe(operation: &mut Operation<'_>) {
        operation.query::<EventsQuery>();
        operation.header::<u64>(LAST_EVENT, "Only what comes after this number; goes before `after`.");
    }
}

impl Responder for Events {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        self.0.respond_to(request)
    }
}

impl Responder for News {
    type Body = BoxBody;

    fn respond_to(self, request: &HttpRequest) -> HttpResponse {
        self.0.respond_to(request)
    }
}

impl Gives for Events {
    fn describe(operation: &mut Operation<'_>) {
        let what = "A stream of events. Here each is an object with the SSE fields `event` and `data`; `id` is the \
                    number of a session's event. A line that begins with a colon, every 15 s, says no more than that the \
                    stream is alive.";
        operation.answer::<StreamFrame>("200", "text/event-stream", what);
    }
}

impl Gives for News {
    fn describe(operation: &mut Operation<'_>) {
        let what = "A stream: first every session as it is, then whichever has changed. Here each event is an object \
                    with the SSE fields `event` and `data`.";
        operation.answer::<SessionNews>("200", "text/event-stream", what);
    }
}
