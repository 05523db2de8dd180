//! Handlers for sessions and their open asks: list, open, look at and delete.

use std::sync::Arc;

use holdpoint_common::api::{Inbox, SessionList};
use holdpoint_common::{Snapshot, Supplies};
use holdpoint_session::{OpenSession, SessionError};

use super::body::Body;
use super::caller::{AnyCaller, Caller};
use super::parts::{Id, ListParams, SessionRef};
use super::reply::{Done, Reply};
use crate::daemon::error::ApiError;

/// `GET sessions`, the same in all versions: `status` lists the sessions of any daemon.
pub(super) async fn list(
    AnyCaller(caller): AnyCaller,
    ListParams(query): ListParams,
) -> Result<Reply<SessionList>, ApiError> {
    Ok(Reply(caller.sessions().list_page(query).await?))
}

/// `POST sessions`
pub(super) async fn open(
    caller: Caller,
    Body(mut open): Body<OpenSession>,
) -> Result<Reply<Arc<Snapshot>>, ApiError> {
    // The daemon would resolve a relative path in its own folder.
    if !open.workspace.is_absolute() {
        let path = open.workspace.display().to_string();
        return Err(SessionError::Workspace {
            path,
            message: "the path is not absolute".to_owned(),
        }
        .into());
    }
    // `Sessions::open` uses the supplies of the handle and ignores those of the request.
    let supplies = std::mem::take(&mut open.supplies);
    Ok(Reply(caller.opening(supplies)?.open(open).await?.snapshot()))
}

/// `POST sessions/{session}/open`
pub(super) async fn reopen(
    caller: Caller,
    SessionRef(session): SessionRef,
    Body(supplies): Body<Supplies>,
) -> Result<Reply<Arc<Snapshot>>, ApiError> {
    Ok(Reply(caller.opening(supplies)?.get(&session).await?.snapshot()))
}

/// `GET sessions/{session}`
pub(super) async fn look(
    caller: Caller,
    SessionRef(session): SessionRef,
) -> Result<Reply<Arc<Snapshot>>, ApiError> {
    Ok(Reply(caller.sessions().look(&session).await?))
}

/// `DELETE sessions/{session}`
pub(super) async fn delete(
    caller: Caller,
    SessionRef(session): SessionRef,
) -> Result<Done, ApiError> {
    caller.sessions().delete(&session).await?;
    Ok(Done)
}

/// `GET asks`
pub(super) async fn inbox(caller: Caller) -> Result<Reply<Inbox>, ApiError> {
    Ok(Reply(Inbox { asks: caller.sessions().inbox().await? }))
}

/// `GET sessions/{id}/asks`
pub(super) async fn asks(caller: Caller, Id(id): Id) -> Result<Reply<Inbox>, ApiError> {
    Ok(Reply(Inbox { asks: caller.sessions().asks(&id).await? }))
}
