//! What a session's log comes to.

use std::sync::Arc;

use holdpoint_common::{Event, SessionId};

use crate::error::SessionError;
use crate::state::{Phase, Refused, State};
use crate::store::{Pages, SavedSession, SessionLog, SessionStore};

/// What a log comes to.
pub(crate) struct Found {
    pub(crate) log: Arc<dyn SessionLog>,
    pub(crate) state: State,
    /// What was saved of an answer that never ended.
    pub(crate) draft: Vec<Arc<Event>>,
    /// The first number that was never set aside for an owner.
    pub(crate) next: u64,
}

/// Reads what a log comes to, for an owner that goes on with it.
pub(crate) async fn for_owner(id: &SessionId, log: Arc<dyn SessionLog>) -> Result<Found, SessionError> {
    // Behind whatever the owner before has still under way: read sooner, the log would end before it.
    let next = log.reserve(0).await?.start;
    let state = fold(id, &*log).await?;
    let draft = match state.turn() {
        Some(_) => log.draft().await?,
        None => Vec::new(),
    };
    Ok(Found { log, state, draft, next })
}

/// The state that a log's facts come to. Without facts there is no session: it was deleted, or its opening never saved.
pub(crate) async fn fold(id: &SessionId, log: &dyn SessionLog) -> Result<State, SessionError> {
    let mut state: Option<State> = None;
    // At least one can be read.
    let mut has_facts = false;
    let mut pages = Pages::of(log);
    while let Some(page) = pages.next().await? {
        has_facts |= page.iter().any(|event| event.fact().is_some());
        match (&mut state, page.is_empty()) {
            (Some(state), _) => state.follow(&page),
            (None, false) => state = Some(begin(id, log, &page).await?),
            (None, true) => {}
        }
    }
    match state {
        Some(state) if has_facts => Ok(state),
        Some(state) => {
            Err(damaged(id, format!("of all that happened in it, events 1 to {}, nothing can be read", state.last())))
        }
        None => Err(SessionError::Unknown { what: id.to_string() }),
    }
}

/// The state that the first facts of a log come to. Where the very first is lost, the list knows what session it is.
async fn begin(id: &SessionId, log: &dyn SessionLog, facts: &[Arc<Event>]) -> Result<State, SessionError> {
    if let Some(state) = State::fold(facts) {
        return Ok(state);
    }
    let Some(SavedSession { summary, opened }) = log.saved().await?.filter(|saved| saved.summary.id == *id) else {
        let message = "its first event can't be read, nor what the list had of it: nothing says what it was".to_owned();
        return Err(damaged(id, message));
    };
    tracing::warn!(session = %id, "its first fact can't be read: it is opened by what the list has of it");
    let mut state = State::without_opening(&summary, opened);
    state.follow(facts);
    Ok(state)
}

/// Why there is no actor of a session that is at most saved: it was closed, it is only saved, or it never was.
pub(crate) async fn unknown(store: &dyn SessionStore, id: SessionId) -> SessionError {
    let folded = match store.open(&id).await {
        Ok(log) => fold(&id, &*log).await,
        Err(error) => return error.into(),
    };
    match folded {
        Ok(state) if matches!(state.phase(), Phase::Closed) => SessionError::Refused(Refused::Closed),
        Ok(_) => SessionError::NotLive { session: id },
        Err(error) => error,
    }
}

/// Too much of it is lost.
pub(crate) fn damaged(id: &SessionId, message: String) -> SessionError {
    SessionError::Damaged { session: id.clone(), message }
}
