//! Finding sessions by id or name, live and saved, and listing them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::BoxFuture;
use holdpoint_common::{SessionId, SessionSummary, Snapshot, Supplies, Timestamp};

use super::entries::KeepEntry;
use super::room::StartLock;
use super::{Life, Live, Manager, Reach, start, stopped_error};
use crate::error::SessionError;
use crate::saved;
use crate::session_env::EngineEnv;
use crate::state::Refused;
use crate::store::{SavedSession, SessionStore};

/// Gets the session with this id, name or unique prefix of an id, with an actor.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Find {
    pub(crate) what: String,
    /// The supplies to open it with, if necessary.
    pub(crate) supplies: Arc<Supplies>,
}

/// Gets the snapshot of the session with this id, name or unique prefix of an id, without starting
/// an actor.
#[derive(Message)]
#[rtype(result = "Result<SeenSnapshot, SessionError>")]
pub(crate) struct GetSnapshot {
    pub(crate) what: String,
}

/// The reply to [`GetSnapshot`].
pub(crate) struct SeenSnapshot {
    pub(crate) snapshot: Arc<Snapshot>,
    /// Whether the session has an actor, or is about to.
    pub(crate) live: bool,
}

/// How long the first list waits for the check of the store.
const CHECK_WAIT: Duration = Duration::from_millis(500);

/// The store was checked, so lists may show more gaps.
#[derive(Message)]
#[rtype(result = "()")]
struct Checked;

impl Handler<Checked> for Manager {
    type Result = ();

    fn handle(&mut self, _: Checked, _: &mut Self::Context) {
        self.roster.saved_changed();
    }
}

/// Waits for the check, at most for `most`. Returns the check if it is still running.
async fn wait_for_check(mut check: BoxFuture<'static, ()>, most: Duration) -> Result<(), BoxFuture<'static, ()>> {
    tokio::time::timeout(most, &mut check).await.map_err(|_| check)
}

/// Lists all sessions.
#[derive(Message)]
#[rtype(result = "Result<Vec<SessionSummary>, SessionError>")]
pub(crate) struct List;

impl Handler<Find> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Find { what, supplies }: Find, ctx: &mut Self::Context) -> Self::Result {
        let (manager, engine, room) = (ctx.address(), Arc::clone(&self.engine), Arc::clone(&self.room));
        let known = match self.match_entries(&what) {
            EntryMatch::Exactly(id) => {
                if let Some(entry) = self.sessions.get_mut(&id) {
                    entry.closed = false;
                }
                let reached = self.reach(id.clone(), 0, Some(Arc::clone(&supplies)), ctx);
                return Box::pin(async move {
                    match reached.await {
                        // The actor ended with a close, so the saved session can be opened.
                        Err(SessionError::Refused(Refused::Closed)) => {
                            open(&manager, &engine, &room, id, supplies).await
                        }
                        reached => reached,
                    }
                });
            }
            known => known,
        };
        let mending = Arc::clone(&self.mending);
        Box::pin(async move {
            drop(mending.lock().await);
            let id = resolve_id(&what, known, &*engine.store).await?;
            match open(&manager, &engine, &room, id.clone(), Arc::clone(&supplies)).await {
                Err(SessionError::Refused(Refused::Closed)) => open(&manager, &engine, &room, id, supplies).await,
                opened => opened,
            }
        })
    }
}

/// Reaches the session with this id if it has an entry, or opens it from the store.
///
/// Refused as closed if the session's actor is just ending with a close. A second try opens it.
async fn open(
    manager: &Addr<Manager>,
    engine: &Arc<EngineEnv>,
    room: &StartLock,
    id: SessionId,
    supplies: Arc<Supplies>,
) -> Result<Live, SessionError> {
    if let Some(_held) = manager.send(KeepEntry(id.clone())).await.map_err(stopped_error)? {
        return manager.send(Reach { id, seen: 0, supplies: Some(supplies) }).await.map_err(stopped_error)?;
    }
    start::open_saved(manager, engine, room, id, supplies).await
}

impl Handler<GetSnapshot> for Manager {
    type Result = ResponseFuture<Result<SeenSnapshot, SessionError>>;

    fn handle(&mut self, GetSnapshot { what }: GetSnapshot, _: &mut Self::Context) -> Self::Result {
        let known = self.match_entries(&what);
        let ids = match &known {
            EntryMatch::Exactly(id) => std::slice::from_ref(id).iter().collect::<Vec<_>>(),
            EntryMatch::Named(id, _) => vec![id],
            EntryMatch::Prefix(ids) => ids.iter().collect(),
        };
        let shown = |id: &SessionId| {
            let entry = self.sessions.get(id)?;
            Some((id.clone(), (entry.shown.subscribe(), !matches!(entry.life, Life::Saved))))
        };
        let shown: BTreeMap<_, _> = ids.into_iter().filter_map(shown).collect();
        let (engine, mending) = (Arc::clone(&self.engine), Arc::clone(&self.mending));
        Box::pin(async move {
            if !matches!(known, EntryMatch::Exactly(_)) {
                drop(mending.lock().await);
            }
            let id = resolve_id(&what, known, &*engine.store).await?;
            if let Some((shown, live)) = shown.get(&id) {
                let mut snapshot = shown.borrow().clone();
                let found = engine.store.gaps(&id);
                if !found.is_empty() {
                    Arc::make_mut(&mut snapshot).gaps.merge(&found);
                }
                return Ok(SeenSnapshot { snapshot, live: *live });
            }
            let state = saved::fold(&id, &*engine.store.open(&id).await?).await?;
            let mut snapshot = state.snapshot(state.last(), 0, engine.not_saved());
            // Jobs do not run without an actor. A process that was killed could not log their ends.
            snapshot.jobs.clear();
            Ok(SeenSnapshot { snapshot: Arc::new(snapshot), live: false })
        })
    }
}

/// The manager's knowledge about an id or name that a client gave.
pub(super) enum EntryMatch {
    /// The session with this id.
    Exactly(SessionId),
    /// The session with this name, unless a saved one has this id.
    Named(SessionId, Option<SessionId>),
    /// No session, but a prefix of these ids.
    Prefix(BTreeSet<SessionId>),
}

impl Manager {
    /// The session with this id or name, determined without the store.
    pub(super) fn match_entries(&self, what: &str) -> EntryMatch {
        let id = what.parse::<SessionId>().ok();
        if let Some(id) = id.as_ref().filter(|id| self.sessions.contains_key(id)) {
            return EntryMatch::Exactly(id.clone());
        }
        match self.names.get(what).cloned() {
            Some(named) => EntryMatch::Named(named, id),
            None => {
                let begins = |id: &&SessionId| id.has_prefix(what);
                EntryMatch::Prefix(self.sessions.keys().filter(begins).cloned().collect())
            }
        }
    }
}

/// Chooses the session with this id, else with this name, else with this prefix of its id.
pub(super) async fn resolve_id(
    what: &str,
    known: EntryMatch,
    store: &dyn SessionStore,
) -> Result<SessionId, SessionError> {
    let known = match known {
        EntryMatch::Exactly(id) => return Ok(id),
        EntryMatch::Named(named, None) => return Ok(named),
        // A session that can't be read does not hide a live one.
        EntryMatch::Named(named, Some(id)) => return Ok(if store.open(&id).await.is_ok() { id } else { named }),
        EntryMatch::Prefix(ids) => ids,
    };
    // A damaged session may be in the store but not in its list.
    if let Ok(id) = what.parse()
        && store.open(&id).await.is_ok()
    {
        return Ok(id);
    }
    let saved = store.list().await?;
    let named = |saved: &&SavedSession| saved.summary.name == what;
    if let Some(newest) = saved.iter().filter(named).max_by_key(|saved| saved.opened) {
        return Ok(newest.summary.id.clone());
    }
    let saved = saved.iter().map(|saved| &saved.summary.id).filter(|id| id.has_prefix(what));
    let ids: BTreeSet<_> = known.into_iter().chain(saved.cloned()).collect();
    match ids.len() {
        0 => Err(SessionError::Unknown { what: what.to_owned() }),
        1 => ids.into_iter().next().ok_or(SessionError::Stopped),
        _ => Err(SessionError::Ambiguous { what: what.to_owned(), ids: ids.into_iter().collect() }),
    }
}

/// As [`resolve_id`], for operations that can't be undone. Refuses a prefix of an id, and a name
/// that several sessions have.
pub(super) async fn resolve_id_exact(
    what: &str,
    known: EntryMatch,
    store: &dyn SessionStore,
) -> Result<SessionId, SessionError> {
    let is_live = matches!(known, EntryMatch::Named(..));
    let chosen = resolve_id(what, known, store).await?;
    if chosen.as_str() == what {
        return Ok(chosen);
    }
    let saved = store.list().await?.into_iter().filter(|saved| saved.summary.name == what);
    let mut ids: BTreeSet<_> = saved.map(|saved| saved.summary.id).collect();
    if ids.is_empty() && !is_live {
        return Err(SessionError::Inexact { what: what.to_owned(), session: chosen });
    }
    ids.insert(chosen.clone());
    match ids.len() {
        1 => Ok(chosen),
        _ => Err(SessionError::Ambiguous { what: what.to_owned(), ids: ids.into_iter().collect() }),
    }
}

impl Handler<List> for Manager {
    type Result = ResponseFuture<Result<Vec<SessionSummary>, SessionError>>;

    fn handle(&mut self, _: List, ctx: &mut Self::Context) -> Self::Result {
        let known = self.sessions.values().map(|entry| {
            let live = !matches!(entry.life, Life::Saved);
            (live, entry.opened, SessionSummary { live, ..SessionSummary::from(&**entry.shown.borrow()) })
        });
        let mut sessions: Vec<(bool, Timestamp, SessionSummary)> = known.collect();
        let (engine, mending) = (Arc::clone(&self.engine), Arc::clone(&self.mending));
        let first = !std::mem::replace(&mut self.listed, true);
        let (check, manager) = (first.then(|| engine.store.check()), ctx.address());
        Box::pin(async move {
            drop(mending.lock().await);
            if let Some(check) = check
                && let Err(check) = wait_for_check(check, CHECK_WAIT).await
            {
                // In a large store, clients that watch the list are notified at the end.
                actix_rt::spawn(async move {
                    check.await;
                    manager.do_send(Checked);
                });
            }
            let known: BTreeSet<_> = sessions.iter().map(|(.., summary)| summary.id.clone()).collect();
            let saved = engine.store.list().await?.into_iter().filter(|saved| !known.contains(&saved.summary.id));
            sessions.extend(saved.map(|saved| (false, saved.opened, saved.summary)));
            for (.., summary) in &mut sessions {
                summary.gaps.merge(&engine.store.gaps(&summary.id));
            }
            // Live ones first, the newest first.
            sessions.sort_by(|left, right| (right.0, right.1, &right.2.id).cmp(&(left.0, left.1, &left.2.id)));
            Ok(sessions.into_iter().map(|(.., summary)| summary).collect())
        })
    }
}
