//! Follows one session: its past, then what happens, and on where it left off when the stream breaks.

use std::path::PathBuf;
use std::sync::Arc;

use holdpoint_common::api::ClientEnd;
use holdpoint_common::{Event, Fact};
use holdpoint_session::state::Refused;
use holdpoint_session::{AttachFrom, SessionError, SessionHandle};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::super::message::Message;
use super::daemon::Pace;
use super::{Shared, branch, why};

/// Events that are taken at once.
const BATCH: usize = 1024;
/// How often a stream that ends at once is begun again.
const TRIES: u32 = 5;

pub(super) async fn follow(shared: Shared, session: SessionHandle, attachment: u64, mut from: AttachFrom) {
    let mut tries = 0;
    let mut pace = Pace::default();
    let mut closed = false;
    let look = Arc::new(Notify::new());
    let happened = |batch: &mut Vec<Arc<Event>>| {
        let events = std::mem::take(batch);
        Message::Happened { attachment, events, snapshot: session.snapshot() }
    };
    loop {
        let mut stream = match session.attach(from).await {
            Ok(stream) => stream,
            // A session that was only reached is not opened by attaching to it.
            Err(SessionError::Refused(Refused::Closed) | SessionError::NotLive { .. }) => {
                return shared.tell(Message::Closed { attachment }).await;
            }
            Err(SessionError::Unreachable { .. } | SessionError::Disconnected { .. }) => {
                shared.tell(Message::Lost { attachment }).await;
                shared.unreachable(&mut pace).await;
                continue;
            }
            // It is being stopped, and still answers.
            Err(SessionError::Stopped) => {
                shared.tell(Message::Lost { attachment }).await;
                shared.rest(&mut pace).await;
                continue;
            }
            Err(error) => return shared.tell(Message::NotOpened { attachment, why: why(error) }).await,
        };
        shared.answers();
        let (id, snapshot) = (session.id().clone(), Arc::clone(stream.snapshot()));
        let folder = PathBuf::from(&snapshot.settings.workspace);
        shared.tell(Message::Attached { attachment, id, snapshot }).await;
        // Ends with the stream.
        let mut beside = JoinSet::new();
        beside.spawn(branch::watch(shared.clone(), attachment, folder, Arc::clone(&look)));
        let mut batch = Vec::with_capacity(BATCH);
        let (mut live, mut came) = (false, false);
        loop {
            let count = match live {
                false => stream.next_past(&mut batch, BATCH).await,
                true => stream.next_batch(&mut batch, BATCH).await,
            };
            if count == 0 && !live {
                live = true;
                shared.tell(Message::Live { attachment }).await;
                continue;
            }
            let Some(last) = batch.last() else { break };
            (tries, came) = (0, true);
            from = AttachFrom::after(last.seq);
            // One that was closed before is open again.
            let is_new = |event: &Arc<Event>| event.seq > stream.snapshot().seq;
            let closes = |event: &Arc<Event>| matches!(event.fact(), Some(Fact::SessionClosed { .. }));
            closed |= batch.iter().any(|event| is_new(event) && closes(event));
            if live && branch::may_change(&batch) {
                look.notify_one();
            }
            shared.tell(happened(&mut batch)).await;
        }
        if closed || shared.words.is_closed() {
            return shared.tell(Message::Closed { attachment }).await;
        }
        shared.tell(Message::Lost { attachment }).await;
        match stream.end() {
            ClientEnd::Stopped => shared.rest(&mut pace).await,
            ClientEnd::Disconnected { .. } if !came => shared.broke(&mut pace).await,
            ClientEnd::Ended => {
                tries += 1;
                if tries > TRIES {
                    return shared.tell(Message::Closed { attachment }).await;
                }
            }
            ClientEnd::Disconnected { .. } | ClientEnd::Lagged { .. } | ClientEnd::Detached => {}
        }
    }
}
