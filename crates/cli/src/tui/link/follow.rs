//! Follows one session: replays its past, then streams its events, and continues after the last
//! event when the stream breaks.

use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, Fact, Refused, SessionFact};
use holdpoint_session::{AttachFrom, SessionError, SessionHandle};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::super::message::Message;
use super::daemon::Backoff;
use super::{Shared, branch, error_line};

const BATCH: usize = 1024;
/// How many times a stream that ends without events is attached again.
const TRIES: u32 = 5;

pub(super) async fn follow(
    shared: Shared,
    session: SessionHandle,
    attachment: u64,
    mut from: AttachFrom,
) {
    let mut tries = 0;
    let mut backoff = Backoff::default();
    let mut closed = false;
    let branch_refresh = Arc::new(Notify::new());
    let events_message = |batch: &mut Vec<Arc<Event>>| {
        let events = std::mem::take(batch);
        Message::Events { attachment, events, snapshot: session.snapshot() }
    };
    loop {
        let mut stream = match session.attach(from).await {
            Ok(stream) => stream,
            // Attaching does not open a session that was only reached.
            Err(SessionError::Refused(Refused::Closed) | SessionError::NotLive { .. }) => {
                return shared.send(Message::Closed { attachment }).await;
            }
            Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }) => {
                shared.send(Message::Lost { attachment }).await;
                shared.handle_unreachable(&mut backoff).await;
                continue;
            }
            // The daemon is stopping and still answers.
            Err(SessionError::Stopped) => {
                shared.send(Message::Lost { attachment }).await;
                shared.wait_while_stopped(&mut backoff).await;
                continue;
            }
            Err(error) => {
                let why = error_line(error);
                return shared.send(Message::NotOpened { attachment, why }).await;
            }
        };
        shared.mark_running();
        let (id, snapshot) = (session.id().clone(), Arc::clone(stream.snapshot()));
        let folder = PathBuf::from(&snapshot.settings.workspace);
        shared.send(Message::Attached { attachment, id, snapshot }).await;
        // The tasks of this set end with the stream.
        let mut stream_tasks = JoinSet::new();
        let refresh = Arc::clone(&branch_refresh);
        stream_tasks.spawn(branch::watch(shared.clone(), attachment, folder, refresh));
        let mut batch = Vec::with_capacity(BATCH);
        let mut live = false;
        let mut has_events = false;
        loop {
            let count = match live {
                false => stream.next_past(&mut batch, BATCH).await,
                true => stream.next_batch(&mut batch, BATCH).await,
            };
            if count == 0 && !live {
                live = true;
                shared.send(Message::ReplayEnded { attachment }).await;
                continue;
            }
            let Some(last) = batch.last() else { break };
            tries = 0;
            has_events = true;
            from = AttachFrom::after(last.seq);
            closed |= has_close(&batch, stream.snapshot().seq);
            if live && branch::may_change(&batch) {
                branch_refresh.notify_one();
            }
            shared.send(events_message(&mut batch)).await;
        }
        if closed || shared.messages.is_closed() {
            return shared.send(Message::Closed { attachment }).await;
        }
        shared.send(Message::Lost { attachment }).await;
        match stream.end() {
            ClientEnd::Stopped => shared.wait_while_stopped(&mut backoff).await,
            ClientEnd::Disconnected { .. } if !has_events => {
                shared.handle_break(&mut backoff).await
            }
            ClientEnd::Ended if tries == TRIES => {
                return shared.send(Message::Closed { attachment }).await;
            }
            ClientEnd::Ended => tries += 1,
            ClientEnd::Disconnected { .. }
            | ClientEnd::Lagged { .. }
            | ClientEnd::Moved { .. }
            | ClientEnd::Detached => {}
        }
    }
}

/// Whether an event newer than `attached`, the newest one at the attachment, closes the session. A
/// session that was closed earlier is open again.
fn has_close(batch: &[Arc<Event>], attached: u64) -> bool {
    let mut later = batch.iter().filter(|event| event.seq > attached);
    later.any(|event| matches!(event.fact(), Some(Fact::Session(SessionFact::Closed { .. }))))
}
