//! Folding the log of a session into its state.

use std::sync::Arc;

use holdpoint_common::{Event, Refused, SessionError, SessionId};

use crate::state::{Phase, State};
use crate::store::{Pages, SavedSession, SessionLog, SessionStore};

/// A session as it was found in its log.
pub(crate) struct LoadedSession {
    pub(crate) log: Arc<dyn SessionLog>,
    pub(crate) state: State,
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
    let state = fold(id, &*log).await?;
    let draft = match state.turn() {
        Some(_) => log.draft().await?,
        None => Vec::new(),
    };
    Ok(LoadedSession { log, state, draft, next })
}

/// Folds the facts of a log. A log without facts belongs to no session: the session was deleted, or
/// its opening was never saved.
pub(crate) async fn fold(id: &SessionId, log: &dyn SessionLog) -> Result<State, SessionError> {
    let mut state: Option<State> = None;
    // Whether at least one fact could be read.
    let mut has_facts = false;
    let mut pages = Pages::whole_log(log);
    while let Some(page) = pages.next().await? {
        has_facts |= page.iter().any(|event| event.fact().is_some());
        match (&mut state, page.is_empty()) {
            (Some(state), _) => state.follow(&page),
            (None, false) => state = Some(fold_first_page(id, log, &page).await?),
            (None, true) => {}
        }
    }
    match state {
        Some(state) if has_facts => Ok(state),
        Some(state) => {
            Err(damaged_error(id, format!("none of its events 1 to {} can be read", state.last())))
        }
        None => Err(SessionError::UnknownSession { given: id.to_string() }),
    }
}

/// Folds the first facts of a log. If the very first is lost, the saved summary identifies the
/// session.
async fn fold_first_page(
    id: &SessionId,
    log: &dyn SessionLog,
    facts: &[Arc<Event>],
) -> Result<State, SessionError> {
    if let Some(state) = State::fold(facts) {
        return Ok(state);
    }
    let Some(SavedSession { summary, opened }) =
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
        Ok(state) if matches!(state.phase(), Phase::Closed) => {
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
