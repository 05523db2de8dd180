//! Folding the log of a session into its state.

use std::sync::Arc;

use holdpoint_common::{Event, Refused, SessionError, SessionId};

use crate::state::{Phase, State};
use crate::store::{
    Pages, SavedSession, SavedState, SessionLog, SessionPast, SessionStore, StoreError,
};

/// A session as it was found in its log.
pub(crate) struct LoadedSession {
    pub(crate) log: Arc<dyn SessionLog>,
    pub(crate) state: State,
    /// The facts after the saved state.
    pub(crate) tail: Tail,
    /// The saved part of an answer that never ended.
    pub(crate) draft: Vec<Arc<Event>>,
    /// The first number that was never reserved for an owner.
    pub(crate) next: u64,
}

/// Folds a log for an owner that continues it.
pub(crate) async fn load_for_owner(
    id: &SessionId,
    log: Arc<dyn SessionLog>,
) -> Result<LoadedSession, SessionError> {
    // Waits for the writes of the previous owner. An earlier read could miss their facts.
    let next = log.reserve(0).await?.start;
    let Folded { state, tail } = fold(id, &*log).await?;
    let draft = match state.turn() {
        Some(_) => log.draft().await?,
        None => Vec::new(),
    };
    Ok(LoadedSession { log, state, tail, draft, next })
}

/// A session as its log describes it.
pub(crate) struct Folded {
    pub(crate) state: State,
    /// The facts after the saved state: all facts, if there is none.
    pub(crate) tail: Tail,
}

/// The facts after a saved state: how many, and their size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Tail {
    pub(crate) facts: usize,
    pub(crate) bytes: usize,
    /// The size of the saved state in bytes.
    pub(crate) state_bytes: usize,
}

impl Tail {
    pub(crate) fn add(&mut self, fact: &Event) {
        self.facts += 1;
        self.bytes += fact.weight();
    }
}

/// Folds the facts of a log, beginning with its saved state if it has one. A log without facts
/// belongs to no session: the session was deleted, or its opening was never saved.
pub(crate) async fn fold(id: &SessionId, log: &dyn SessionPast) -> Result<Folded, SessionError> {
    let (mut state, state_bytes) = saved_state(id, log).await.unzip();
    // Whether at least one fact could be read.
    let mut has_facts = state.is_some();
    let mut tail = Tail { state_bytes: state_bytes.unwrap_or_default(), ..Tail::default() };
    let from = state.as_ref().map_or(0, |state| state.last() + 1);
    let mut pages = Pages::within(log, from..u64::MAX);
    while let Some(page) = pages.next().await? {
        has_facts |= page.iter().any(|event| event.fact().is_some());
        page.iter().for_each(|event| tail.add(event));
        match (&mut state, page.is_empty()) {
            (Some(state), _) => state.follow(&page),
            (None, false) => state = Some(fold_first_page(id, log, &page).await?),
            (None, true) => {}
        }
    }
    match state {
        Some(mut state) if has_facts => {
            if let Some(part) = state.unread(u64::MAX).filter(|_| state.needs_conversation()) {
                state.read(&part, &read_facts(log, part.seqs()).await?);
            }
            Ok(Folded { state, tail })
        }
        Some(state) => {
            Err(damaged_error(id, format!("none of its events 1 to {} can be read", state.last())))
        }
        None => Err(SessionError::UnknownSession { given: id.to_string() }),
    }
}

/// The saved state of a log, and its size in bytes; `None` if there is none that can be used.
async fn saved_state(id: &SessionId, log: &dyn SessionPast) -> Option<(State, usize)> {
    let SavedState { upto, text } = match log.state().await {
        Ok(saved) => saved?,
        Err(error) => {
            tracing::warn!(session = %id, %error, "the saved state can't be read; all facts are folded");
            return None;
        }
    };
    let state = State::from_saved(&text)?;
    (state.id() == id && state.last() == upto).then_some((state, text.len()))
}

/// The most numbers between two facts of a read that are read with them.
const MAX_SKIPPED: u64 = 256;

/// Reads the facts with these numbers, in the order of their numbers, and the gaps among them.
pub(crate) async fn read_facts(
    log: &dyn SessionPast,
    numbers: &[u64],
) -> Result<Vec<Arc<Event>>, StoreError> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    let mut facts = Vec::new();
    for near in numbers.chunk_by(|before, after| after - before <= MAX_SKIPPED) {
        let mut pages = Pages::within(log, near[0]..near[near.len() - 1].saturating_add(1));
        while let Some(mut page) = pages.next().await? {
            page.retain(|event| event.fact().is_none() || near.binary_search(&event.seq).is_ok());
            facts.append(&mut page);
        }
    }
    Ok(facts)
}

/// Folds the first facts of a log. If the very first is lost, the saved summary identifies the
/// session.
async fn fold_first_page(
    id: &SessionId,
    log: &dyn SessionPast,
    facts: &[Arc<Event>],
) -> Result<State, SessionError> {
    if let Some(state) = State::fold(facts) {
        return Ok(state);
    }
    let Some(SavedSession { summary, opened, .. }) =
        log.saved().await?.filter(|saved| saved.summary.id == *id)
    else {
        let message = "neither its first event nor its saved summary can be read".to_owned();
        return Err(damaged_error(id, message));
    };
    tracing::warn!(session = %id, "first fact can't be read; opening the session from its saved summary");
    let mut state = State::without_opening(&summary, opened);
    state.follow(facts);
    Ok(state)
}

/// Why a session has no actor: it was closed, it is only saved, or it never existed.
pub(crate) async fn why_not_live(store: &dyn SessionStore, id: SessionId) -> SessionError {
    let folded = match store.open(&id).await {
        Ok(log) => fold(&id, &*log).await,
        Err(error) => return error.into(),
    };
    match folded {
        Ok(Folded { state, .. }) if matches!(state.phase(), Phase::Closed) => {
            SessionError::Refused(Refused::Closed)
        }
        Ok(_) => SessionError::NotLive { session: id },
        Err(error) => error,
    }
}

/// The error for a session that has lost too much.
pub(crate) fn damaged_error(id: &SessionId, message: String) -> SessionError {
    SessionError::Damaged { session: id.clone(), message }
}
