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
    /// Whether the session was closed here, and stays only until its attachments have got the end.
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
        let used = |id: SessionId| {
            self.lock()
                .sessions
                .get(&id)
                .filter(|used| !used.closed)
                .map(|used| used.handle.clone())
        };
        id.parse().ok().and_then(used).ok_or_else(|| {
            Failure::from(SessionError::UnknownSession { given: id.to_owned() }).hint(
                "pass the id of a session that was opened, found or attached by this program, and not closed since",
            )
        })
    }

    /// Records that a session is used, and returns its handle. An open session keeps its first
    /// handle, which its attachments update.
    pub(super) fn insert(&self, handle: SessionHandle) -> SessionHandle {
        let mut all = self.lock();
        let used = all.entry(&handle);
        if used.closed {
            (used.handle, used.closed) = (handle, false);
        }
        used.handle.clone()
    }

    /// Records that a session was closed or deleted. Its attachments can be detached until they
    /// have got the end.
    pub(super) fn forget(&self, id: &SessionId) {
        let mut all = self.lock();
        if let Some(used) = all.sessions.get_mut(id) {
            (used.closed, used.shown) = (true, None);
            all.remove_if_unused(id);
        }
    }

    /// Records the ask that is shown now.
    pub(crate) fn show(&self, id: &SessionId, ask: Option<AskId>) {
        if let Some(used) = self.lock().sessions.get_mut(id) {
            used.shown = ask;
        }
    }

    /// Returns the ask that was shown last of each session. It is read before the session is looked
    /// up: an answer must not go to an ask that is shown later.
    pub(super) fn shown(&self) -> HashMap<SessionId, AskId> {
        let all = self.lock();
        all.sessions
            .iter()
            .filter_map(|(id, used)| Some((id.clone(), used.shown.clone()?)))
            .collect()
    }

    /// Records an attachment and returns its number.
    pub(super) fn attach(
        &self,
        session: &SessionHandle,
        attached: impl FnOnce(u32) -> Attached,
    ) -> u32 {
        let mut all = self.lock();
        all.last_attachment += 1;
        let number = all.last_attachment;
        // The session may have been closed just now.
        all.entry(session).attached.insert(number, attached(number));
        number
    }

    /// Whether a session has attachments here.
    pub(super) fn is_attached(&self, id: &SessionId) -> bool {
        self.lock().sessions.get(id).is_some_and(|used| !used.attached.is_empty())
    }

    /// Waits until all attachments to a session have got the event with this number.
    pub(super) async fn wait_delivered(&self, id: &SessionId, seq: u64) {
        let reached: Vec<_> = match self.lock().sessions.get(id) {
            Some(used) => {
                used.attached.values().map(|attached| attached.wait_delivered(seq)).collect()
            }
            None => return,
        };
        join_all(reached).await;
    }

    /// Finds a known session: by id, else by name, else by a prefix of its id.
    pub(super) fn find(&self, what: &str) -> Result<Option<SessionId>, Failure> {
        let all = self.lock();
        let ids = |meant: &dyn Fn(&SessionId, &KnownSession) -> bool| {
            all.sessions
                .iter()
                .filter(|(id, used)| meant(id, used))
                .map(|(id, _)| id.clone())
                .collect::<Vec<_>>()
        };
        let is_named = |used: &KnownSession| used.handle.snapshot().settings.name == what;
        let mut found = ids(&|id, _| id.as_str() == what);
        if found.is_empty() {
            found = ids(&|_, used| !used.closed && is_named(used));
        }
        if found.is_empty() {
            found = ids(&|_, used| is_named(used));
        }
        if found.is_empty() {
            found = ids(&|id, _| id.has_prefix(what));
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(SessionError::Ambiguous { given: what.to_owned(), ids: found }.into()),
        }
    }

    /// Removes and returns one or all attachments of a session.
    pub(crate) fn detach(&self, id: &SessionId, number: Option<u32>) -> Vec<Attached> {
        let mut all = self.lock();
        let Some(used) = all.sessions.get_mut(id) else { return Vec::new() };
        let detached = match number {
            Some(number) => used.attached.remove(&number).into_iter().collect(),
            None => used.attached.drain().map(|(_, attached)| attached).collect(),
        };
        all.remove_if_unused(id);
        detached
    }
}

impl KnownState {
    /// Returns the entry of a session. A new entry is marked as closed.
    fn entry(&mut self, handle: &SessionHandle) -> &mut KnownSession {
        let fresh = || KnownSession {
            handle: handle.clone(),
            closed: true,
            shown: None,
            attached: HashMap::new(),
        };
        self.sessions.entry(handle.id().clone()).or_insert_with(fresh)
    }

    /// Removes a closed session without attachments.
    fn remove_if_unused(&mut self, id: &SessionId) {
        if self.sessions.get(id).is_some_and(|used| used.closed && used.attached.is_empty()) {
            self.sessions.remove(id);
        }
    }
}

/// The task that watches a daemon's sessions, and refreshes the known ones that have changed.
#[derive(Default)]
pub(super) struct SessionWatcher(Mutex<Option<JoinHandle<()>>>);

impl SessionWatcher {
    /// Starts the task, unless it runs.
    pub(super) fn ensure_running(&self, sessions: &Sessions, place: &Arc<NodeClient>) {
        let mut watching = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.as_ref().is_none_or(JoinHandle::is_finished) {
            // The task ends when the client is dropped.
            let (sessions, place) = (sessions.clone(), Arc::downgrade(place));
            *watching = Some(tokio::spawn(async move {
                let Ok(mut watch) = sessions.watch().await else { return };
                while let Some(news) = watch.next().await {
                    let Some(place) = place.upgrade() else { return };
                    match news {
                        SessionNews::Session(session) => {
                            if let Ok(session) = place.known.get(session.id.as_str())
                                && let Err(error) = session.refresh().await
                            {
                                tracing::debug!(%error, "a changed session could not be refreshed");
                            }
                        }
                        SessionNews::Deleted(id) => place.known.forget(&id),
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
