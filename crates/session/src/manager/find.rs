//! Finding sessions, live and saved: by id, by name, and all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use actix::prelude::*;
use futures_util::future::BoxFuture;
use holdpoint_common::{SessionId, SessionSummary, Snapshot, Supplies, Timestamp};

use super::entries::Keep;
use super::room::Room;
use super::{Life, Live, Manager, Reach, start, stopped};
use crate::error::SessionError;
use crate::outfit::Base;
use crate::saved;
use crate::state::Refused;
use crate::store::{SavedSession, SessionStore};

/// The session of this id, name, or unique prefix of an id, with an actor.
#[derive(Message)]
#[rtype(result = "Result<Live, SessionError>")]
pub(crate) struct Find {
    pub(crate) what: String,
    /// What it has if it has to be opened.
    pub(crate) supplies: Arc<Supplies>,
}

/// The session of this id, name, or unique prefix of an id, as it is: without giving it an actor.
#[derive(Message)]
#[rtype(result = "Result<Seen, SessionError>")]
pub(crate) struct Look {
    pub(crate) what: String,
}

/// A session that was looked at.
pub(crate) struct Seen {
    pub(crate) snapshot: Arc<Snapshot>,
    /// It has an actor, or is about to.
    pub(crate) live: bool,
}

/// How long the first list waits for the store to be checked.
const CHECK_WAIT: Duration = Duration::from_millis(500);

/// The store was read through: lists may name more gaps.
#[derive(Message)]
#[rtype(result = "()")]
struct Checked;

impl Handler<Checked> for Manager {
    type Result = ();

    fn handle(&mut self, _: Checked, _: &mut Self::Context) {
        self.roster.saved_changed();
    }
}

/// Waits for a check at most for a time; returns the check if it is still running.
async fn wait_for(mut check: BoxFuture<'static, ()>, most: Duration) -> Result<(), BoxFuture<'static, ()>> {
    tokio::time::timeout(most, &mut check).await.map_err(|_| check)
}

/// Every session.
#[derive(Message)]
#[rtype(result = "Result<Vec<SessionSummary>, SessionError>")]
pub(crate) struct List;

impl Handler<Find> for Manager {
    type Result = ResponseFuture<Result<Live, SessionError>>;

    fn handle(&mut self, Find { what, supplies }: Find, ctx: &mut Self::Context) -> Self::Result {
        let (manager, base, room) = (ctx.address(), Arc::clone(&self.base), Arc::clone(&self.room));
        let known = match self.known(&what) {
            Known::Exactly(id) => {
                if let Some(entry) = self.sessions.get_mut(&id) {
                    entry.closed = false;
                }
                let reached = self.reach(id.clone(), 0, Some(Arc::clone(&supplies)), ctx);
                return Box::pin(async move {
                    match reached.await {
                        // Its actor ended with a close: what is saved of it can be opened.
                        Err(SessionError::Refused(Refused::Closed)) => open(&manager, &base, &room, id, supplies).await,
                        reached => reached,
                    }
                });
            }
            known => known,
        };
        let mending = Arc::clone(&self.mending);
        Box::pin(async move {
            drop(mending.lock().await);
            let id = choose(&what, known, &*base.store).await?;
            match open(&manager, &base, &room, id.clone(), Arc::clone(&supplies)).await {
                Err(SessionError::Refused(Refused::Closed)) => open(&manager, &base, &room, id, supplies).await,
                opened => opened,
            }
        })
    }
}

/// Opens the session of this id, or reaches it if the manager knows it.
///
/// Refused as closed if the session's actor is just ending with a close; the next try opens it.
async fn open(
    manager: &Addr<Manager>,
    base: &Arc<Base>,
    room: &Room,
    id: SessionId,
    supplies: Arc<Supplies>,
) -> Result<Live, SessionError> {
    if let Some(_held) = manager.send(Keep(id.clone())).await.map_err(stopped)? {
        return manager.send(Reach { id, seen: 0, supplies: Some(supplies) }).await.map_err(stopped)?;
    }
    start::load(manager, base, room, id, supplies).await
}

impl Handler<Look> for Manager {
    type Result = ResponseFuture<Result<Seen, SessionError>>;

    fn handle(&mut self, Look { what }: Look, _: &mut Self::Context) -> Self::Result {
        let known = self.known(&what);
        let ids = match &known {
            Known::Exactly(id) => std::slice::from_ref(id).iter().collect::<Vec<_>>(),
            Known::Named(id, _) => vec![id],
            Known::Prefix(ids) => ids.iter().collect(),
        };
        let shown = |id: &SessionId| {
            let entry = self.sessions.get(id)?;
            Some((id.clone(), (entry.shown.subscribe(), !matches!(entry.life, Life::Saved))))
        };
        let shown: BTreeMap<_, _> = ids.into_iter().filter_map(shown).collect();
        let (base, mending) = (Arc::clone(&self.base), Arc::clone(&self.mending));
        Box::pin(async move {
            if !matches!(known, Known::Exactly(_)) {
                drop(mending.lock().await);
            }
            let id = choose(&what, known, &*base.store).await?;
            if let Some((shown, live)) = shown.get(&id) {
                let mut snapshot = shown.borrow().clone();
                let found = base.store.gaps(&id);
                if !found.is_empty() {
                    Arc::make_mut(&mut snapshot).gaps.merge(&found);
                }
                return Ok(Seen { snapshot, live: *live });
            }
            let state = saved::fold(&id, &*base.store.open(&id).await?).await?;
            let mut snapshot = state.snapshot(state.last(), 0, base.not_saved());
            // Nothing runs without an actor: that they ended was not written down by who was killed.
            snapshot.jobs.clear();
            Ok(Seen { snapshot: Arc::new(snapshot), live: false })
        })
    }
}

/// What the manager knows of what somebody named.
pub(super) enum Known {
    /// The session of this id.
    Exactly(SessionId),
    /// The session of this name, unless a saved one has this id.
    Named(SessionId, Option<SessionId>),
    /// None; it is a prefix of the ids of these.
    Prefix(BTreeSet<SessionId>),
}

impl Manager {
    /// The session that is meant by `what`, as far as it can be told without the store.
    pub(super) fn known(&self, what: &str) -> Known {
        let id = what.parse::<SessionId>().ok();
        if let Some(id) = id.as_ref().filter(|id| self.sessions.contains_key(id)) {
            return Known::Exactly(id.clone());
        }
        match self.names.get(what).cloned() {
            Some(named) => Known::Named(named, id),
            None => {
                let begins = |id: &&SessionId| id.has_prefix(what);
                Known::Prefix(self.sessions.keys().filter(begins).cloned().collect())
            }
        }
    }
}

/// The session that is meant by `what`: of this id, else of this name, else of an id with this prefix.
pub(super) async fn choose(what: &str, known: Known, store: &dyn SessionStore) -> Result<SessionId, SessionError> {
    let known = match known {
        Known::Exactly(id) => return Ok(id),
        Known::Named(named, None) => return Ok(named),
        // What can't be read hides no live session.
        Known::Named(named, Some(id)) => return Ok(if store.open(&id).await.is_ok() { id } else { named }),
        Known::Prefix(ids) => ids,
    };
    // One that is damaged may be in the store and not in its list.
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

/// The same for what can't be undone: a prefix of an id is refused, and so is a name that several sessions have.
pub(super) async fn choose_only(what: &str, known: Known, store: &dyn SessionStore) -> Result<SessionId, SessionError> {
    let is_live = matches!(known, Known::Named(..));
    let chosen = choose(what, known, store).await?;
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
        let (base, mending) = (Arc::clone(&self.base), Arc::clone(&self.mending));
        let first = !std::mem::replace(&mut self.listed, true);
        let (check, manager) = (first.then(|| base.store.check()), ctx.address());
        Box::pin(async move {
            drop(mending.lock().await);
            if let Some(check) = check
                && let Err(check) = wait_for(check, CHECK_WAIT).await
            {
                // A large store: clients that watch the list are notified at the end.
                actix_rt::spawn(async move {
                    check.await;
                    manager.do_send(Checked);
                });
            }
            let known: BTreeSet<_> = sessions.iter().map(|(.., summary)| summary.id.clone()).collect();
            let saved = base.store.list().await?.into_iter().filter(|saved| !known.contains(&saved.summary.id));
            sessions.extend(saved.map(|saved| (false, saved.opened, saved.summary)));
            for (.., summary) in &mut sessions {
                summary.gaps.merge(&base.store.gaps(&summary.id));
            }
            // Live ones first, the newest first.
            sessions.sort_by(|left, right| (right.0, right.1, &right.2.id).cmp(&(left.0, left.1, &left.2.id)));
            Ok(sessions.into_iter().map(|(.., summary)| summary).collect())
        })
    }
}
