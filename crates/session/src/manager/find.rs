//! Finding sessions by id or name, live and saved, and listing them.

use std::collections::{BTreeSet, HashSet};
use std::num::NonZeroUsize;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use holdpoint_common::api::{ListQuery, SessionCursor, SessionList};
use holdpoint_common::{Gaps, SessionError, SessionId, SessionSummary, Snapshot, Supplies};

use super::Live;
use super::registry::Registry;
use crate::saved::{self, Folded};
use crate::store::{Home, SavedPage, SavedSession, SessionStore};

/// How long the first list waits for the check of the store.
const CHECK_WAIT: Duration = Duration::from_millis(200);

/// A snapshot of a session that was not opened for it.
pub(crate) struct SeenSnapshot {
    pub(crate) snapshot: Arc<Snapshot>,
    /// Whether the session has an actor.
    pub(crate) live: bool,
}

/// A session of another machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The id of the session.
    pub session: SessionId,
    /// The name of the machine or, if the session is not live and this machine does not have its place,
    /// of the place.
    pub machine: String,
    /// Whether the machine has the session: it is live there, or is being changed. Otherwise, the
    /// session is only saved, and its folder is there.
    pub live: bool,
}

/// The manager's knowledge about an id or name that a client gave.
pub(super) enum KnownIds {
    /// The session with this id.
    Exactly(SessionId),
    /// The session that holds this name, and the same text as an id, if it can be one: a saved
    /// session may have that id.
    Named(SessionId, Option<SessionId>),
    /// No session with this id or name is known without the store. These are the known ids that
    /// begin with the text; there may be none.
    Prefix(BTreeSet<SessionId>),
}

impl Registry {
    /// Gets the session with this id, name or unique prefix of an id, with an actor.
    pub(super) async fn find(
        self: &Rc<Self>,
        given: &str,
        supplies: &Supplies,
    ) -> Result<Live, SessionError> {
        let id = match self.match_ids(given) {
            KnownIds::Exactly(id) => id,
            known => {
                self.mended().await;
                resolve_id(given, known, &*self.engine.store).await?
            }
        };
        self.reopen(&id, supplies).await
    }

    /// Gets the snapshot of the session with this id, name or unique prefix of an id, without
    /// starting an actor.
    pub(super) async fn snapshot(&self, given: &str) -> Result<SeenSnapshot, SessionError> {
        let known = self.match_ids(given);
        let engine = &self.engine;
        if !matches!(known, KnownIds::Exactly(_)) {
            self.mended().await;
        }
        let id = resolve_id(given, known, &*engine.store).await?;
        if let Some(seen) = self.known_snapshot(&id) {
            return Ok(seen);
        }
        let folded = match engine.store.open(&id).await {
            Ok(log) => saved::fold(&id, &*log).await,
            Err(error) => Err(error.into()),
        };
        // The session may have become live while the store was read.
        if let Some(seen) = self.known_snapshot(&id) {
            return Ok(seen);
        }
        let Folded { state, .. } = folded?;
        let mut snapshot = state.snapshot(state.last(), 0, engine.not_saved());
        // Jobs do not run without an actor. A process that was killed could not log their ends.
        snapshot.jobs.clear();
        Ok(SeenSnapshot { snapshot: Arc::new(snapshot), live: false })
    }

    /// The other machine that has the session with this id, name or unique prefix of an id, or that is
    /// its home.
    pub(super) async fn locate(&self, given: &str) -> Result<Option<Elsewhere>, SessionError> {
        let store = &*self.engine.store;
        let known = self.match_ids(given);
        let is_live_here = match &known {
            KnownIds::Exactly(id) | KnownIds::Named(id, _) => self.lifecycle().is_live(id),
            KnownIds::Prefix(_) => false,
        };
        if store.machine().is_none() || is_live_here {
            return Ok(None);
        }
        let session = resolve_id(given, known, store).await?;
        let Some(saved) = store.open(&session).await?.saved().await? else { return Ok(None) };
        self.forget_changed(&saved);
        let (live, machine) = match (saved.owner, saved.home) {
            // Another machine may be ending the cut work of a session of this one.
            (_, Home::Here { shared: None }) | (None, Home::Here { .. }) => return Ok(None),
            (Some(owner), _) => (true, owner),
            (None, Home::Elsewhere(home)) => (false, home),
        };
        Ok(Some(Elsewhere { session, machine, live }))
    }

    /// Forgets a session without an actor that another machine may have changed since it had one here.
    /// Facts that were not saved here are dropped, as those of an owner that was replaced.
    fn forget_changed(&self, SavedSession { summary, home, owner, .. }: &SavedSession) {
        if self.engine.store.machine().is_none() || self.lifecycle().is_live(&summary.id) {
            return;
        }
        let plain = |summary: SessionSummary| SessionSummary {
            live: false,
            gaps: Gaps::default(),
            ..summary
        };
        let has_changed = self.read_record(&summary.id, |record| {
            plain(SessionSummary::from(&**record.shown.borrow())) != plain(summary.clone())
        });
        let is_elsewhere = owner.is_some() || matches!(home, Home::Elsewhere(_));
        if is_elsewhere || has_changed == Some(true) {
            self.forget_saved(&summary.id);
        }
    }

    /// The snapshot of a session that is or was live in this process.
    fn known_snapshot(&self, id: &SessionId) -> Option<SeenSnapshot> {
        let mut snapshot = self.read_record(id, |record| record.shown.borrow().clone())?;
        let gaps = self.engine.store.gaps(id);
        if !gaps.is_empty() {
            Arc::make_mut(&mut snapshot).gaps.merge(&gaps);
        }
        Some(SeenSnapshot { snapshot, live: self.lifecycle().is_live(id) })
    }

    /// Lists sessions: live ones first, then the newest first.
    pub(super) async fn list(
        self: &Rc<Self>,
        query: &ListQuery,
    ) -> Result<SessionList, SessionError> {
        self.mended().await;
        self.check_store().await;
        let store = &self.engine.store;
        let ListQuery { limit, after } = query;
        let limit = limit.map_or(usize::MAX, NonZeroUsize::get);
        // The store may list sessions that are live here among the others, and one shows that more
        // follow.
        let live_here = self.lifecycle().records().filter(|(_, phase, _)| phase.is_live()).count();
        let page = SavedPage {
            after: after.clone(),
            limit: limit.saturating_add(live_here).saturating_add(1),
        };
        let saved = store.list_page(page.clone()).await?;
        // If the store has more, all of its sessions up to this one are in the list.
        let last = saved.last().filter(|_| saved.len() == page.limit).map(SavedSession::cursor);
        // The records are read last: a session may have become live while the store was read.
        saved.iter().for_each(|saved| self.forget_changed(saved));
        let mut listed = self.list_known(&saved, page == SavedPage::ALL);
        listed.retain(|(cursor, _)| after.as_ref().is_none_or(|after| cursor < after));
        listed.extend(saved.into_iter().filter_map(|saved| self.list_saved(saved)));
        listed.sort_by(|(one, _), (next, _)| next.cmp(one));
        let next = match limit < listed.len() {
            true => limit.checked_sub(1).map(|last| listed[last].0.clone()),
            false => last,
        };
        listed.truncate(limit);
        let sessions = listed.into_iter().map(|(_, mut summary)| {
            summary.gaps.merge(&store.gaps(&summary.id));
            summary
        });
        Ok(SessionList { sessions: sessions.collect(), next })
    }

    /// The sessions that are live here. If `saved` are all sessions of the store, also those that were
    /// live here and are not in it: they were opened and closed while it was read.
    fn list_known(
        &self,
        saved: &[SavedSession],
        are_all: bool,
    ) -> Vec<(SessionCursor, SessionSummary)> {
        let saved: HashSet<_> = match are_all {
            true => saved.iter().map(|saved| &saved.summary.id).collect(),
            false => HashSet::new(),
        };
        let lifecycle = self.lifecycle();
        let known = lifecycle.records().filter_map(|(id, phase, record)| {
            let live = phase.is_live();
            if !live && (!are_all || saved.contains(id)) {
                return None;
            }
            let cursor = SessionCursor { live, opened: record.opened, id: id.clone() };
            let summary = SessionSummary::from(&**record.shown.borrow());
            Some((cursor, SessionSummary { live, ..summary }))
        });
        known.collect()
    }

    /// A session of the store; `None` if it is live here. One that was live here is listed as it was
    /// seen last.
    fn list_saved(&self, saved: SavedSession) -> Option<(SessionCursor, SessionSummary)> {
        let cursor = saved.cursor();
        let lifecycle = self.lifecycle();
        if lifecycle.is_live(&cursor.id) {
            return None;
        }
        let record = lifecycle.get(&cursor.id).and_then(|session| session.record.as_ref());
        // Another machine knows more about a session that it has.
        if let Some(record) = record.filter(|_| !cursor.live) {
            let summary = SessionSummary::from(&**record.shown.borrow());
            return Some((cursor, SessionSummary { live: false, ..summary }));
        }
        let SavedSession { mut summary, home, owner, away, .. } = saved;
        let machine = match (owner, home) {
            (None, Home::Here { shared }) => {
                summary.workspace = shared.unwrap_or(summary.workspace);
                None
            }
            (Some(machine), _) | (None, Home::Elsewhere(machine)) => Some(machine),
        };
        // A session that another machine has is live there.
        let live = cursor.live;
        Some((cursor, SessionSummary { live, machine, away, ..summary }))
    }

    /// Checks the store for damage, the first time. In a large store, clients that watch the list
    /// are notified at the end.
    async fn check_store(self: &Rc<Self>) {
        if self.checked.replace(true) {
            return;
        }
        let mut check = self.engine.store.check();
        if tokio::time::timeout(CHECK_WAIT, &mut check).await.is_err() {
            let registry = Rc::clone(self);
            actix_rt::spawn(async move {
                check.await;
                registry.roster.borrow_mut().saved_changed();
            });
        }
    }

    /// The session with this id or name, determined without the store.
    pub(super) fn match_ids(&self, given: &str) -> KnownIds {
        let lifecycle = self.lifecycle();
        let id = given.parse::<SessionId>().ok();
        let is_known =
            |id: &&SessionId| lifecycle.get(id).is_some_and(|session| session.record.is_some());
        if let Some(id) = id.as_ref().filter(is_known) {
            return KnownIds::Exactly(id.clone());
        }
        // A new session that is not open yet has no record, and may never get one.
        match lifecycle.names.holder(given).filter(is_known).cloned() {
            Some(named) => KnownIds::Named(named, id),
            None => {
                let ids = lifecycle.records().map(|(id, ..)| id);
                KnownIds::Prefix(ids.filter(|id| id.has_prefix(given)).cloned().collect())
            }
        }
    }
}

/// Chooses the session with this id, else with this name, else with this prefix of its id.
pub(super) async fn resolve_id(
    given: &str,
    known: KnownIds,
    store: &dyn SessionStore,
) -> Result<SessionId, SessionError> {
    let known = match known {
        KnownIds::Exactly(id) => return Ok(id),
        KnownIds::Named(named, None) => return Ok(named),
        // A session that can't be read does not hide a live one.
        KnownIds::Named(named, Some(id)) => {
            return Ok(if store.open(&id).await.is_ok() { id } else { named });
        }
        KnownIds::Prefix(ids) => ids,
    };
    // A damaged session may be in the store but not in its list.
    if let Ok(id) = given.parse()
        && store.open(&id).await.is_ok()
    {
        return Ok(id);
    }
    let saved = store.list().await?;
    let is_named = |saved: &&SavedSession| saved.summary.name == given;
    // The first one in the list is meant: one that is live on another machine, or the newest.
    if let Some(meant) = saved.iter().find(is_named) {
        return Ok(meant.summary.id.clone());
    }
    let prefixed = saved.iter().map(|saved| &saved.summary.id).filter(|id| id.has_prefix(given));
    let ids: BTreeSet<_> = known.into_iter().chain(prefixed.cloned()).collect();
    match ids.len() {
        0 => Err(SessionError::UnknownSession { given: given.to_owned() }),
        1 => ids.into_iter().next().ok_or(SessionError::Stopped),
        _ => {
            Err(SessionError::Ambiguous { given: given.to_owned(), ids: ids.into_iter().collect() })
        }
    }
}

/// Like [`resolve_id`], for operations that can't be undone. Refuses a prefix of an id, and a name
/// that several sessions have.
pub(super) async fn resolve_id_exact(
    given: &str,
    known: KnownIds,
    store: &dyn SessionStore,
) -> Result<SessionId, SessionError> {
    let is_live = matches!(known, KnownIds::Named(..));
    let chosen = resolve_id(given, known, store).await?;
    if chosen.as_str() == given {
        return Ok(chosen);
    }
    let saved = store.list().await?.into_iter().filter(|saved| saved.summary.name == given);
    let mut ids: BTreeSet<_> = saved.map(|saved| saved.summary.id).collect();
    if ids.is_empty() && !is_live {
        return Err(SessionError::Inexact { given: given.to_owned(), session: chosen });
    }
    ids.insert(chosen.clone());
    match ids.len() {
        1 => Ok(chosen),
        _ => {
            Err(SessionError::Ambiguous { given: given.to_owned(), ids: ids.into_iter().collect() })
        }
    }
}
