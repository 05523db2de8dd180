//! Handlers for turns and runs: start, interrupt, hold and release.

use holdpoint_common::Hold;
use holdpoint_common::api::{
    InterruptReply, InterruptRequest, PromptRequest, Prompted, RunRequest, RunStarted, ToggleRequest, TurnEnd,
};
use holdpoint_session::Interruption;

use super::body::Body;
use super::caller::Caller;
use super::error::ApiError;
use super::parts::{Id, Turn};
use super::reply::Reply;

/// `POST sessions/{id}/prompts`
pub(super) async fn prompt(
    caller: Caller,
    Id(id): Id,
    Body(request): Body<PromptRequest>,
) -> Result<Reply<Prompted>, ApiError> {
    Ok(Reply(caller.session(&id).await?.prompt(request.text).await?))
}

/// `POST sessions/{id}/run`
pub(super) async fn run(
    caller: Caller,
    Id(id): Id,
    Body(request): Body<RunRequest>,
) -> Result<Reply<RunStarted>, ApiError> {
    Ok(Reply(caller.session(&id).await?.start_run(request).await?))
}

/// `POST sessions/{id}/interrupt`: answers with the receipt, unless the client does not wait for
/// it.
pub(super) async fn interrupt(
    caller: Caller,
    Id(id): Id,
    Body(InterruptRequest { turn, no_wait }): Body<InterruptRequest>,
) -> Result<Reply<InterruptReply>, ApiError> {
    let session = caller.session(&id).await?;
    let after = session.snapshot().seq;
    let cut = match session.interrupt(turn).await? {
        Interruption::Interrupting(cut) => cut,
        Interruption::RunEnded => return Ok(Reply(InterruptReply { run: true, after, ..InterruptReply::default() })),
        Interruption::NotRunning => return Ok(Reply(InterruptReply { after, ..InterruptReply::default() })),
    };
    let turn = Some(cut.turn);
    let end = if no_wait { None } else { Some(cut.end().await?) };
    Ok(Reply(InterruptReply { turn, run: false, after, end }))
}

/// `GET sessions/{id}/turns/{turn}`
pub(super) async fn end(caller: Caller, Turn(id, turn): Turn) -> Result<Reply<Option<TurnEnd>>, ApiError> {
    Ok(Reply(caller.sessions().turn_end(&id, turn).await?))
}

/// `POST sessions/{id}/hold`
pub(super) async fn hold(caller: Caller, Id(id): Id) -> Result<Reply<Hold>, ApiError> {
    Ok(Reply(caller.session(&id).await?.hold().await?))
}

/// `POST sessions/{id}/release`
pub(super) async fn release(caller: Caller, Id(id): Id) -> Result<Reply<Hold>, ApiError> {
    Ok(Reply(caller.session(&id).await?.release().await?))
}

/// `POST sessions/{id}/toggle`
pub(super) async fn toggle(
    caller: Caller,
    Id(id): Id,
    Body(request): Body<ToggleRequest>,
) -> Result<Reply<Hold>, ApiError> {
    Ok(Reply(caller.session(&id).await?.toggle_hold(request.shown).await?))
}
