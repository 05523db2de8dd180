//! Handlers for the verbs of a session.

use std::time::Duration;

use holdpoint_common::api::{AnswerRequest, Answered, InterruptReply, InterruptRequest, TurnEnd};
use holdpoint_common::{Answer, SessionStatus};
use holdpoint_session::{SessionError, SessionVerb};

use super::body::Body;
use super::caller::Caller;
use super::parts::{AskParam, Id, Turn};
use super::reply::{Reply, VerbResponse};
use crate::daemon::error::ApiError;

/// The time after which a cut is visible in the session's status.
const CUT_SHOWS_WITHIN: Duration = Duration::from_secs(1);

/// `POST` to the path of the verb. A session that is only saved is not opened for it, because the
/// client chooses the supplies that a session is opened with.
pub(super) async fn act<V: SessionVerb>(
    caller: Caller,
    Id(id): Id,
    Body(verb): Body<V>,
) -> Result<VerbResponse<V::Reply>, ApiError> {
    Ok(VerbResponse(caller.sessions().act(&id, verb).await?))
}

/// `POST sessions/{id}/interrupt`: replies with the end of the turn, unless the client does not
/// wait for it.
pub(super) async fn interrupt(
    caller: Caller,
    Id(id): Id,
    Body(request): Body<InterruptRequest>,
) -> Result<Reply<InterruptReply>, ApiError> {
    let waits = !request.no_wait;
    let mut reply = caller.sessions().act(&id, request).await?;
    if let Some(turn) = reply.turn.filter(|_| waits) {
        let end = caller.sessions().turn_end(&id, turn).await?;
        reply.end = Some(end.ok_or(SessionError::Gone { session: id })?);
    }
    Ok(Reply(reply))
}

/// `GET sessions/{id}/turns/{turn}`: takes a place among the streams, because it may wait for
/// hours. If all places are taken, it waits only for a turn that is being cut, so that an interrupt
/// always gets its receipt.
pub(super) async fn turn_end(
    caller: Caller,
    Turn(id, turn): Turn,
) -> Result<Reply<Option<TurnEnd>>, ApiError> {
    let sessions = caller.sessions();
    let end = sessions.turn_end(&id, turn);
    let too_many = match caller.take_stream_place() {
        Ok(_place) => return Ok(Reply(end.await?)),
        Err(error) => error,
    };
    let not_being_cut = async {
        loop {
            tokio::time::sleep(CUT_SHOWS_WITHIN).await;
            match sessions.look(id.as_str()).await {
                Ok(session) if session.status == SessionStatus::Interrupted => {}
                _ => return,
            }
        }
    };
    tokio::select! {
        biased;
        end = end => Ok(Reply(end?)),
        () = not_being_cut => Err(too_many),
    }
}

/// `POST asks/{ask}/answer`
pub(super) async fn answer(
    caller: Caller,
    AskParam(ask): AskParam,
    Body(answer): Body<Answer>,
) -> Result<Reply<Answered>, ApiError> {
    let given = answer.kind_name();
    let request = AnswerRequest { ask: ask.clone(), answer };
    let answered = caller.sessions().act(&ask.session, request).await.map_err(ApiError::from);
    match &answered {
        Ok(_) => {
            tracing::info!(peer = %caller.peer, client = caller.who.name, %ask, given, "answer accepted")
        }
        Err(fault) => {
            tracing::warn!(peer = %caller.peer, client = caller.who.name, %ask, given, why = fault.code(), "answer refused");
        }
    }
    answered.map(Reply)
}
