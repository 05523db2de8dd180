//! What a session's log comes to.

use std::ops::Range;
use std::sync::Arc;

use holdpoint_common::{Event, SessionId};

use crate::actor::NUMBERS;
use crate::error::SessionError;
use crate::outfit::Base;
use crate::state::{Phase, Refused, State};
use crate::store::{Pages, SessionLog};

/// What a log comes to.
pub(super) struct Found {
    pub(super) state: State,
    /// What was saved of an answer that never ended.
    pub(super) draft: Vec<Arc<Event>>,
    /// Numbers for what happens from now on.
    pub(super) numbers: Range<u64>,
}

/// Reads what a log comes to, for an owner that goes on with it.
pub(super) async fn find(id: &SessionId, log: &dyn SessionLog) -> Result<Found, SessionError> {
    // Behind whatever the owner before has still under way: read sooner, the log would end before it.
    let numbers = log.reserve(NUMBERS).await?;
    let state = fold(id, log).await?;
    let draft = match state.turn() {
        Some(_) => log.draft().await?,
        None => Vec::new(),
    };
    Ok(Found { state, draft, numbers })
}

/// The state that a log's facts come to. Without facts there is no session: it was deleted, or its opening never saved.
pub(super) async fn fold(id: &SessionId, log: &dyn SessionLog) -> Result<State, SessionError> {
    let mut state: Option<State> = None;
    let mut pages = Pages::of(log);
    while let Some(page) = pages.next().await? {
        match (&mut state, page.is_empty()) {
            (Some(state), _) => state.follow(&page),
            (None, false) => state = Some(State::fold(&page).ok_or_else(damaged)?),
            (None, true) => {}
        }
    }
    state.ok_or_else(|| SessionError::Unknown { what: id.to_string() })
}

/// Why there is no actor of a session that the manager does not know: it was closed, it is only saved, or it never was.
pub(super) async fn unknown(base: &Base, id: SessionId) -> SessionError {
    let folded = match base.store.open(&id).await {
        Ok(log) => fold(&id, &*log).await,
        Err(error) => return error.into(),
    };
    match folded {
        Ok(state) if matches!(state.phase(), Phase::Closed) => SessionError::Refused(Refused::Closed),
        Ok(_) => SessionError::NotLive { session: id },
        Err(error) => error,
    }
}

/// What is in the log is no session.
pub(super) fn damaged() -> SessionError {
    let message = "the log does not begin with the session's opening".to_owned();
    SessionError::Store(crate::store::StoreError::Io { message })
}
