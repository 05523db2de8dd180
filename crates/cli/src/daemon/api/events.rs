//! Streams of one session's events, and of the changes of all sessions.

use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::body::BoxBody;
use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest, HttpResponse, Responder, rt};
use holdpoint_common::api::{ClientEnd, EventsQuery, SessionNews, StreamFrame};
use holdpoint_common::{Event, SessionId};
use holdpoint_session::{AttachFrom, Attachment, SessionHandle, Watch};

use super::caller::Caller;
use super::operation::{DescribeInput, DescribeOutput, Operation};
use super::parts::{Id, parse_query};
use super::stream::{Gone, Stream, Writer};
use crate::daemon::error::ApiError;
use crate::daemon::peer::Peer;

/// The header in which a returning client sends the last number it has, as browsers do on their
/// own.
pub(super) const LAST_EVENT_HEADER: &str = "last-event-id";

/// The parameters of an attach, for errors.
const EVENTS_PARAMETERS: &str =
    "`after` and `limit`, whole numbers, and `snapshots`, true or false";

/// The maximum number of events handled at once.
const BATCH: usize = 256;

/// The parameters of an attach, from the query and the header.
pub(super) struct AttachParams(EventsQuery);

/// The stream of one session's events.
pub(super) struct Events(Stream);

/// The stream of the changes of all sessions.
pub(super) struct News(Stream);

/// `GET sessions/{id}/events`: attaches. Closing the connection detaches.
pub(super) async fn attach(
    caller: Caller,
    Id(id): Id,
    AttachParams(query): AttachParams,
) -> Result<Events, ApiError> {
    let from = AttachFrom { limit: query.limit, ..AttachFrom::after(query.after.unwrap_or(0)) };
    let place = caller.take_stream_place()?;
    let attached = open_attachment(&caller, &id, from).await;
    let Caller { peer, who, .. } = &caller;
    match &attached {
        Ok(_) => {
            tracing::info!(%peer, client = who.name, session = %id, after = from.after, "attach accepted")
        }
        Err(fault) => {
            tracing::warn!(%peer, client = who.name, session = %id, why = fault.code(), "attach refused")
        }
    }
    let (session, attachment) = attached?;
    let peer = caller.peer;
    let (mut writer, stream) = Stream::new(caller.connection, place);
    let mut stopping = caller.host.stopping.subscribe();
    rt::spawn(async move {
        let end = tokio::select! {
            end = send_events(&mut writer, &session, attachment, query.snapshots) => end,
            () = stopping.deadline_passed() => Ok(ClientEnd::Stopped),
        };
        // A client that is gone needs no end event.
        let Ok(end) = end else { return };
        // The daemon of the client's own machine runs. It sees that the stream breaks.
        if matches!(peer, Peer::Machine(_)) && (end == ClientEnd::Stopped || stopping.has_begun()) {
            return;
        }
        // Once the daemon is stopping, every stream reports that as its end.
        let _ = send_end(&mut writer, if stopping.has_begun() { ClientEnd::Stopped } else { end })
            .await;
    });
    Ok(Events(stream))
}

async fn open_attachment(
    caller: &Caller,
    id: &SessionId,
    from: AttachFrom,
) -> Result<(SessionHandle, Attachment), ApiError> {
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
    let mut sent = Arc::clone(attachment.snapshot());
    writer.put(Some("snapshot"), None, &sent).await?;
    writer.flush().await?;
    let mut batch: Vec<Arc<Event>> = Vec::new();
    while writer.wait(attachment.next_past(&mut batch, BATCH)).await? > 0 {
        put_events(writer, &mut batch).await?;
    }
    writer.put(Some("live"), None, &()).await?;
    writer.flush().await?;
    while writer.wait(attachment.next_batch(&mut batch, BATCH)).await? > 0 {
        if snapshots {
            // Sent before the events, because it already includes their changes.
            let snapshot = session.snapshot();
            // `>=`: a change of the save state or of the clients has no number of its own.
            if snapshot.seq >= sent.seq && !snapshot.differs_in_number_only(&sent) {
                writer.put(Some("snapshot"), None, &snapshot).await?;
                sent = snapshot;
            }
        }
        put_events(writer, &mut batch).await?;
    }
    Ok(attachment.end())
}

pub(super) async fn send_end(writer: &mut Writer, end: ClientEnd) -> Result<(), Gone> {
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
pub(super) async fn watch(caller: Caller) -> Result<News, ApiError> {
    let place = caller.take_stream_place()?;
    let watch = caller.sessions().watch().await?;
    tracing::info!(peer = %caller.peer, client = caller.who.name, "watch");
    let (mut writer, stream) = Stream::new(caller.connection, place);
    let mut stopping = caller.host.stopping.subscribe();
    rt::spawn(async move {
        // No end event is sent: a client that is still there sees the end of the stream.
        let _ = tokio::select! {
            sent = send_news(&mut writer, watch) => sent,
            () = stopping.deadline_passed() => Ok(()),
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

impl FromRequest for AttachParams {
    type Error = ApiError;
    type Future = Ready<Result<Self, ApiError>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(attach_params(request).map(Self))
    }
}

fn attach_params(request: &HttpRequest) -> Result<EventsQuery, ApiError> {
    let mut query: EventsQuery = parse_query(request, EVENTS_PARAMETERS)?;
    if let Some(last) = request.headers().get(LAST_EVENT_HEADER) {
        let number = last.to_str().ok().and_then(|last| last.trim().parse().ok());
        query.after =
            Some(number.ok_or_else(|| ApiError::malformed("Last-Event-ID is not a number"))?);
    }
    Ok(query)
}

impl DescribeInput for AttachParams {
    fn describe(operation: &mut Operation<'_>) {
        operation.query::<EventsQuery>();
        operation.header::<u64>(
            LAST_EVENT_HEADER,
            "Send only events after this number. Takes precedence over `after`.",
        );
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

impl DescribeOutput for Events {
    fn describe(operation: &mut Operation<'_>) {
        let description = "A stream of events. The schema describes each event as an object with \
            the SSE fields `event` and `data`; `id` is the number of a session's event. A line that \
            begins with a colon, sent every 15 s, only shows that the stream is alive.";
        operation.response::<StreamFrame>("200", "text/event-stream", description);
    }
}

impl DescribeOutput for News {
    fn describe(operation: &mut Operation<'_>) {
        let description = "A stream: first every session in its current state, then each session \
            that changes. The schema describes each event as an object with the SSE fields `event` \
            and `data`.";
        operation.response::<SessionNews>("200", "text/event-stream", description);
    }
}
