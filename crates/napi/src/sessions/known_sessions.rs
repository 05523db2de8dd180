//! The sessions that were used through one object: handles, shown asks and attachments.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{AskId, SessionId};
use holdpoint_session::{SessionError, SessionHandle, Sessions};
use tokio::task::JoinHandle;

use super::NodeClient;
use crate::failure::Failure;
use crate::stream::Attached;

/// The known sessions, shared by the JavaScript thread and the tasks that it started.
#[derive(Default)]
pub(crate) struct KnownSessions(Mutex<KnownState>);

#[derive(Default)]
struct KnownState {
    sessions: HashMap<SessionId, KnownSession>,
    last_attachment: u32,
}

struct KnownSession {
    handle: SessionHandle,
    /// Whether the session was closed or deleted. Its entry stays only until its attachments have
    /// got the end.
    closed: bool,
    /// Ask that was shown last, by an event or by reading the session.
    shown: Option<AskId>,
    /// Attachments, by number.
    attached: HashMap<u32, Attached>,
}

impl KnownSessions {
    fn lock(&self) -> MutexGuard<'_, KnownState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the known session with this id.
    pub(crate) fn get(&self, id: &str) -> Result<SessionHandle, Failure> {
        let open_handle = |id: SessionId| {
            self.lock()
                .sessions
                .get(&id)
                .filter(|known| !known.closed)
                .map(|known| known.handle.clone())
        };
        id.parse().ok().and_then(open_handle).ok_or_else(|| {
            Failure::from(SessionError::UnknownSession { given: id.to_owned() }).hint(
                "pass the id of a session that was opened, found or attached by this program, and not closed since",
            )
        })
    }

    /// Records that a session is used, and returns its handle. An open session keeps its first
    /// handle, which its attachments update.
    pub(super) fn insert(&self, handle: SessionHandle) -> SessionHandle {
        let mut state = self.lock();
        let known = state.entry(&handle);
        if known.closed {
            (known.handle, known.closed) = (handle, false);
        }
        known.handle.clone()
    }

    /// Records that a session was closed or deleted. Its attachments can be detached until they
    /// have got the end.
    pub(super) fn forget(&self, id: &SessionId) {
        let mut state = self.lock();
        if let Some(known) = state.sessions.get_mut(id) {
            (known.closed, known.shown) = (true, None);
            state.remove_if_unused(id);
        }
    }

    /// Records the ask that is shown now.
    pub(crate) fn show(&self, id: &SessionId, ask: Option<AskId>) {
        if let Some(known) = self.lock().sessions.get_mut(id) {
            known.shown = ask;
        }
    }

    /// Returns the ask that was shown last of each session. It is read before the session is looked
    /// up: an answer must not go to an ask that is shown later.
    pub(super) fn shown(&self) -> HashMap<SessionId, AskId> {
        let state = self.lock();
        state
            .sessions
            .iter()
            .filter_map(|(id, known)| Some((id.clone(), known.shown.clone()?)))
            .collect()
    }

    /// Records an attachment and returns its number.
    pub(super) fn attach(
        &self,
        session: &SessionHandle,
        attached: impl FnOnce(u32) -> Attached,
    ) -> u32 {
        let mut state = self.lock();
        state.last_attachment += 1;
        let number = state.last_attachment;
        // If the session was closed meanwhile, its new entry remains marked as closed.
        state.entry(session).attached.insert(number, attached(number));
        number
    }

    /// Whether a session has attachments here.
    pub(super) fn is_attached(&self, id: &SessionId) -> bool {
        self.lock().sessions.get(id).is_some_and(|known| !known.attached.is_empty())
    }

    /// Waits until all attachments to a session have got the event with this number.
    pub(super) async fn wait_delivered(&self, id: &SessionId, seq: u64) {
        let reached: Vec<_> = match self.lock().sessions.get(id) {
            Some(known) => {
                known.attached.values().map(|attached| attached.wait_delivered(seq)).collect()
            }
            None => return,
        };
        join_all(reached).await;
    }

    /// Finds a known session: by id, else by name, else by a prefix of its id.
    pub(super) fn find(&self, given: &str) -> Result<Option<SessionId>, Failure> {
        let state = self.lock();
        let ids = |matches: &dyn Fn(&SessionId, &KnownSession) -> bool| {
            state
                .sessions
                .iter()
                .filter(|(id, known)| matches(id, known))
                .map(|(id, _)| id.clone())
                .collect::<Vec<_>>()
        };
        let is_named = |known: &KnownSession| known.handle.snapshot().settings.name == given;
        let mut found = ids(&|id, _| id.as_str() == given);
        if found.is_empty() {
            found = ids(&|_, known| !known.closed && is_named(known));
        }
        if found.is_empty() {
            found = ids(&|_, known| is_named(known));
        }
        if found.is_empty() {
            found = ids(&|id, _| id.has_prefix(given));
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(SessionError::Ambiguous { given: given.to_owned(), ids: found }.into()),
        }
    }

    /// Removes and returns one or all attachments of a session.
    pub(crate) fn detach(&self, id: &SessionId, number: Option<u32>) -> Vec<Attached> {
        let mut state = self.lock();
        let Some(known) = state.sessions.get_mut(id) else { return Vec::new() };
        let detached = match number {
            Some(number) => known.attached.remove(&number).into_iter().collect(),
            None => known.attached.drain().map(|(_, attached)| attached).collect(),
        };
        state.remove_if_unused(id);
        detached
    }
}

impl KnownState {
    /// Returns the entry of a session. A new entry is marked as closed, until `insert` opens it.
    fn entry(&mut self, handle: &SessionHandle) -> &mut KnownSession {
        let new_entry = || KnownSession {
            handle: handle.clone(),
            closed: true,
            shown: None,
            attached: HashMap::new(),
        };
        self.sessions.entry(handle.id().clone()).or_insert_with(new_entry)
    }

    /// Removes a closed session without attachments.
    fn remove_if_unused(&mut self, id: &SessionId) {
        if self.sessions.get(id).is_some_and(|known| known.closed && known.attached.is_empty()) {
            self.sessions.remove(id);
        }
    }
}

/// The task that watches a daemon's sessions, and refreshes the known ones that have changed.
#[derive(Default)]
pub(super) struct SessionWatcher(Mutex<Option<JoinHandle<()>>>);

impl SessionWatcher {
    /// Starts the task, unless it runs.
    pub(super) fn ensure_running(&self, sessions: &Sessions, client: &Arc<NodeClient>) {
        let mut watching = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.as_ref().is_none_or(JoinHandle::is_finished) {
            // The task ends when the client is dropped.
            let (sessions, client) = (sessions.clone(), Arc::downgrade(client));
            *watching = Some(tokio::spawn(async move {
                let Ok(mut watch) = sessions.watch().await else { return };
                while let Some(news) = watch.next().await {
                    let Some(client) = client.upgrade() else { return };
                    match news {
                        SessionNews::Session(session) => {
                            if let Ok(session) = client.known.get(session.id.as_str())
                                && let Err(error) = session.refresh().await
                            {
                                tracing::debug!(%error, "a changed session could not be refreshed");
                            }
                        }
                        SessionNews::Deleted(id) => client.known.forget(&id),
                    }
                }
            }));
        }
    }
}

impl Drop for SessionWatcher {
    fn drop(&mut self) {
        if let Some(watching) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            watching.abort();
        }
    }
}
