//! The sessions that have been used from here: their handles, what was shown of them last, who is attached.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::join_all;
use holdpoint_common::api::SessionNews;
use holdpoint_common::{AskId, SessionId};
use holdpoint_session::{SessionError, SessionHandle, Sessions};
use tokio::task::JoinHandle;

use super::Place;
use crate::failure::Failure;
use crate::stream::Attached;

/// The sessions that have been used from here. Shared by the thread of JavaScript and what it has begun.
#[derive(Default)]
pub(crate) struct Known(Mutex<All>);

#[derive(Default)]
struct All {
    sessions: HashMap<SessionId, Used>,
    attachments: u32,
}

struct Used {
    handle: SessionHandle,
    /// It was closed from here, and waits for those who are attached until they have the end of it.
    closed: bool,
    /// The ask that was shown last, by an event or by being looked at.
    shown: Option<AskId>,
    /// Who is attached, by number.
    attached: HashMap<u32, Attached>,
}

impl Known {
    fn all(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The session of this id, if it has been used from here.
    pub(crate) fn get(&self, id: &str) -> Result<SessionHandle, Failure> {
        let used =
            |id: SessionId| self.all().sessions.get(&id).filter(|used| !used.closed).map(|used| used.handle.clone());
        id.parse().ok().and_then(used).ok_or_else(|| {
            Failure::from(SessionError::Unknown { what: id.to_owned() })
                .hint("what is read at once is of sessions that were opened, found or attached from here, and not closed since, by their id")
        })
    }

    /// Notes that a session is used, and gives the handle that it has: by the first one, which whoever is attached tells
    /// what comes.
    pub(super) fn insert(&self, handle: SessionHandle) -> SessionHandle {
        let mut all = self.all();
        let used = all.used(&handle);
        if used.closed {
            (used.handle, used.closed) = (handle, false);
        }
        used.handle.clone()
    }

    /// Notes that a session is closed, or deleted. Who is attached to it can be detached until they have its end.
    pub(super) fn forget(&self, id: &SessionId) {
        let mut all = self.all();
        if let Some(used) = all.sessions.get_mut(id) {
            (used.closed, used.shown) = (true, None);
            all.tidy(id);
        }
    }

    /// Notes which ask is shown now.
    pub(crate) fn show(&self, id: &SessionId, ask: Option<AskId>) {
        if let Some(used) = self.all().sessions.get_mut(id) {
            used.shown = ask;
        }
    }

    /// The asks that were shown last, of all sessions. What is shown later was not seen by who answers now, and whose
    /// session it is may have to be asked for.
    pub(super) fn shown(&self) -> HashMap<SessionId, AskId> {
        let all = self.all();
        all.sessions.iter().filter_map(|(id, used)| Some((id.clone(), used.shown.clone()?))).collect()
    }

    /// Notes that a callback is attached, and gives it a number.
    pub(super) fn attach(&self, session: &SessionHandle, attached: impl FnOnce(u32) -> Attached) -> u32 {
        let mut all = self.all();
        all.attachments += 1;
        let number = all.attachments;
        // It may have been closed just now.
        all.used(session).attached.insert(number, attached(number));
        number
    }

    /// Whether anyone is attached to a session from here.
    pub(super) fn is_attached(&self, id: &SessionId) -> bool {
        self.all().sessions.get(id).is_some_and(|used| !used.attached.is_empty())
    }

    /// Waits until whoever is attached to a session from here has the event of this number.
    pub(super) async fn reach(&self, id: &SessionId, seq: u64) {
        let reached: Vec<_> = match self.all().sessions.get(id) {
            Some(used) => used.attached.values().map(|attached| attached.reaches(seq)).collect(),
            None => return,
        };
        join_all(reached).await;
    }

    /// Which of those that are used from here is meant: of this id, else of this name, else of an id with this prefix. None
    /// if none is.
    pub(super) fn find(&self, what: &str) -> Result<Option<SessionId>, Failure> {
        let all = self.all();
        let ids = |meant: &dyn Fn(&SessionId, &Used) -> bool| {
            all.sessions.iter().filter(|(id, used)| meant(id, used)).map(|(id, _)| id.clone()).collect::<Vec<_>>()
        };
        let is_named = |used: &Used| used.handle.snapshot().settings.name == what;
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
            _ => Err(SessionError::Ambiguous { what: what.to_owned(), ids: found }.into()),
        }
    }

    /// Those who are attached to a session, or one of them: noted no longer.
    pub(crate) fn detach(&self, id: &SessionId, number: Option<u32>) -> Vec<Attached> {
        let mut all = self.all();
        let Some(used) = all.sessions.get_mut(id) else { return Vec::new() };
        let detached = match number {
            Some(number) => used.attached.remove(&number).into_iter().collect(),
            None => used.attached.drain().map(|(_, attached)| attached).collect(),
        };
        all.tidy(id);
        detached
    }
}

impl All {
    /// A session that is used: if it was not, as one that is closed.
    fn used(&mut self, handle: &SessionHandle) -> &mut Used {
        let fresh = || Used { handle: handle.clone(), closed: true, shown: None, attached: HashMap::new() };
        self.sessions.entry(handle.id().clone()).or_insert_with(fresh)
    }

    /// Forgets a session that is closed when nobody is attached any more.
    fn tidy(&mut self, id: &SessionId) {
        if self.sessions.get(id).is_some_and(|used| used.closed && used.attached.is_empty()) {
            self.sessions.remove(id);
        }
    }
}

/// Watches a daemon's sessions: those that are used from here are read again whenever one has changed.
#[derive(Default)]
pub(super) struct Watched(Mutex<Option<JoinHandle<()>>>);

impl Watched {
    /// Watches, unless it does.
    pub(super) fn ensure(&self, sessions: &Sessions, place: &Arc<Place>) {
        let mut watching = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if watching.as_ref().is_none_or(JoinHandle::is_finished) {
            // It ends with the last of those who use it.
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
                                tracing::debug!(%error, "a session that has changed can't be read");
                            }
                        }
                        SessionNews::Deleted(id) => place.known.forget(&id),
                    }
                }
            }));
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(watching) = self.0.get_mut().unwrap_or_else(PoisonError::into_inner) {
            watching.abort();
        }
    }
}
