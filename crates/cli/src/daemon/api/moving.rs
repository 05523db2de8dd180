//! The handler for sessions that move to a folder of this machine.

use std::path::PathBuf;
use std::sync::Arc;

use actix_web::ResponseError;
use actix_web::http::StatusCode;
use actix_web::web::Bytes;
use holdpoint_common::api::{CLIENT_HEADER, HandOverRequest, HandedOver, MoveRequest, Verb};
use holdpoint_common::{SessionId, Snapshot};
use holdpoint_session::remote::{self, http};
use holdpoint_session::{SessionError, Sessions};

use super::body::Body;
use super::caller::Caller;
use super::forward::{MAX_TRIES, send};
use super::parts::{Id, SessionRef};
use super::reply::Reply;
use crate::daemon::error::ApiError;
use crate::daemon::peer::Peer;

/// `POST sessions/{session}/move`: if another machine has the session, asks it to hand the session over.
pub(super) async fn move_here(
    caller: Caller,
    SessionRef(given): SessionRef,
    Body(mut request): Body<MoveRequest>,
) -> Result<Reply<Arc<Snapshot>>, ApiError> {
    if request.machine.is_none() && request.workspace.is_none() {
        return Err(ApiError::malformed("a move needs a machine or a folder".to_owned()));
    }
    let sessions = caller.opening(std::mem::take(&mut request.supplies))?;
    for _ in 1..MAX_TRIES {
        match try_move(&caller, &sessions, &given, request.clone()).await {
            // It has changed its machine meanwhile.
            Err(error) if error.status_code() == StatusCode::MISDIRECTED_REQUEST => {}
            moved => return moved.map(Reply),
        }
    }
    try_move(&caller, &sessions, &given, request).await.map(Reply)
}

async fn try_move(
    caller: &Caller,
    sessions: &Sessions,
    given: &str,
    request: MoveRequest,
) -> Result<Arc<Snapshot>, ApiError> {
    let host = &caller.host;
    let here = host.store.machine();
    let is_here = request.machine.as_deref().is_none_or(|machine| Some(machine) == here);
    let elsewhere = match host.store.fleet() {
        Some(_) if is_here => host.locator.locate(given).await?,
        _ => None,
    };
    let Some(owner) = elsewhere.filter(|found| found.live) else {
        return Ok(sessions.move_session(given, request).await?);
    };
    let present = sessions.look(owner.session.as_str()).await?;
    let folder = request.workspace.unwrap_or_else(|| PathBuf::from(&present.settings.workspace));
    let workspace = host.locator.folder(folder).await?;
    let request = HandOverRequest { machine: here.map(str::to_owned), workspace };
    let handed_over = caller.ask_to_hand_over(&owner.machine, &owner.session, &request).await?;
    Ok(sessions.receive(&owner.session, handed_over).await?)
}

/// `POST sessions/{id}/handover`
pub(super) async fn hand_over(
    caller: Caller,
    Id(id): Id,
    Body(request): Body<HandOverRequest>,
) -> Result<Reply<HandedOver>, ApiError> {
    let machine = match &caller.peer {
        Peer::Machine(machine) => Some(&*machine.name),
        Peer::Process { .. } => caller.host.store.machine(),
    };
    if request.machine.as_deref() != machine {
        let why = "a session is handed over only to the machine that asks for it";
        return Err(ApiError::malformed(why.to_owned()));
    }
    Ok(Reply(caller.sessions().act(&id, request).await?))
}

impl Caller {
    /// Asks another machine to hand a session over.
    async fn ask_to_hand_over(
        &self,
        machine: &str,
        session: &SessionId,
        request: &HandOverRequest,
    ) -> Result<HandedOver, ApiError> {
        let unknown = || SessionError::UnknownMachine { machine: machine.to_owned() };
        let fleet = self.host.store.fleet().ok_or_else(unknown)?;
        let body = serde_json::to_vec(request).map_err(ApiError::failed)?;
        let path = format!("/v1{}", request.path(session));
        let name = remote::client_header(&self.who.name);
        let headers = [(CLIENT_HEADER, &*name)];
        let asked = (http::Method::POST, &*path);
        let response = send(fleet, machine, asked, &headers, Bytes::from(body)).await?;
        Ok(remote::reply_of(response).await?)
    }
}
