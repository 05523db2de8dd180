//! Handlers for asks: the inbox, the asks of one session, and answers.

use holdpoint_common::Answer;
use holdpoint_common::api::{Answered, Inbox};

use super::body::Body;
use super::caller::Caller;
use super::error::ApiError;
use super::parts::{AskPart, Id};
use super::reply::Reply;

/// `GET asks`
pub(super) async fn inbox(caller: Caller) -> Result<Reply<Inbox>, ApiError> {
    Ok(Reply(Inbox { asks: caller.sessions().inbox().await? }))
}

/// `GET sessions/{id}/asks`
pub(super) async fn of_session(caller: Caller, Id(id): Id) -> Result<Reply<Inbox>, ApiError> {
    Ok(Reply(Inbox { asks: caller.sessions().asks(&id).await? }))
}

/// `POST asks/{ask}/answer`
pub(super) async fn answer(
    caller: Caller,
    AskPart(ask): AskPart,
    Body(answer): Body<Answer>,
) -> Result<Reply<Answered>, ApiError> {
    let given = answer.kind_name();
    let answered = caller.sessions().answer_live(&ask, answer).await.map_err(ApiError::from);
    match &answered {
        Ok(_) => tracing::info!(peer = %caller.peer, client = caller.who.name, %ask, given, "answer accepted"),
        Err(fault) => {
            tracing::warn!(peer = %caller.peer, client = caller.who.name, %ask, given, why = fault.code(), "answer refused");
        }
    }
    answered.map(Reply)
}
