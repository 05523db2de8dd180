//! Copying sessions from one store to another.

use std::sync::Arc;

use holdpoint_common::Event;

use super::{
    NewLog, PAGE_FACTS, Pages, SavedSession, SessionLog, SessionPast, SessionStore, StoreError,
    last_seq_of,
};

/// The result of copying a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copied {
    /// The session is in the other store now.
    Whole,
    /// All facts of the session were there already.
    Known,
    /// The session stays where it is, for this reason.
    Refused(String),
}

/// Copies a session to another store, with its id, its facts and its unfinished answer. A copy that
/// was broken off is continued. A damaged session is not copied.
///
/// # Errors
/// [`StoreError`] if a store fails. A part of the session may have been copied.
pub async fn copy_session(
    from: &dyn SessionStore,
    to: &dyn SessionStore,
    SavedSession { summary, .. }: &SavedSession,
) -> Result<Copied, StoreError> {
    let refused = |why: &str| Ok(Copied::Refused(why.to_owned()));
    let id = &summary.id;
    let source = from.own(id).await?;
    // Before anything is copied.
    if !is_whole(&*source).await? {
        return refused("some of its events can't be read");
    }
    let mut page = source.page(0..u64::MAX, PAGE_FACTS).await?;
    let Some(first) = page.facts.first().cloned() else { return refused("it has no events") };
    let reserved = source.reserve(0).await?.start.saturating_sub(1);
    let contents = NewLog { first: Some((Arc::clone(&first), summary.clone())), reserved };
    let (copy, mut last, mut is_known) = match to.create(id, contents).await {
        Ok(copy) => (copy, first.seq, false),
        Err(StoreError::Taken { .. }) => match to.own(id).await {
            Ok(copy) if !agree(&*source, &*copy).await? => {
                return refused("the other store has another continuation of it");
            }
            Ok(copy) => {
                let last = newest(&*copy).await?.map_or(0, |newest| last_seq_of(&newest));
                (copy, last, true)
            }
            Err(error @ StoreError::Owned { .. }) => return refused(&error.to_string()),
            Err(error) => return Err(error),
        },
        Err(error) => return Err(error),
    };
    loop {
        let facts: Vec<_> = page.facts.into_iter().filter(|fact| fact.seq > last).collect();
        if let Some(newest) = facts.last().map(|fact| fact.seq) {
            copy.append(last, facts, summary.clone()).await?;
            (last, is_known) = (newest, false);
        }
        let Some(next) = page.next else { break };
        page = source.page(next..u64::MAX, PAGE_FACTS).await?;
    }
    copy_rest(&*source, &*copy).await?;
    Ok(if is_known { Copied::Known } else { Copied::Whole })
}

/// Whether all facts of a log can be read.
async fn is_whole(log: &dyn SessionPast) -> Result<bool, StoreError> {
    let mut pages = Pages::whole_log(log);
    while let Some(page) = pages.next().await? {
        if page.iter().any(|event| event.fact().is_none()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Copies the draft and the saved state of a log.
async fn copy_rest(source: &dyn SessionLog, copy: &dyn SessionLog) -> Result<(), StoreError> {
    let draft = source.draft().await?;
    if !draft.is_empty() {
        copy.keep_draft(draft).await?;
    }
    match source.state().await? {
        Some(state) => copy.keep_state(state).await,
        None => Ok(()),
    }
}

/// Whether one log is a continuation of the other, or equal to it.
async fn agree(one: &dyn SessionLog, other: &dyn SessionLog) -> Result<bool, StoreError> {
    let (Some(newest_of_one), Some(newest_of_other)) = (newest(one).await?, newest(other).await?)
    else {
        return Ok(true);
    };
    let (older, log) = match newest_of_one.seq < newest_of_other.seq {
        true => (newest_of_one, other),
        false => (newest_of_other, one),
    };
    let same = log.page(older.seq..older.seq + 1, 1).await?.facts;
    Ok(same.first() == Some(&older))
}

/// The newest fact of a log.
async fn newest(log: &dyn SessionPast) -> Result<Option<Arc<Event>>, StoreError> {
    let number = log.newest(0..u64::MAX, 1).await?;
    Ok(log.page(number..u64::MAX, 1).await?.facts.pop())
}
