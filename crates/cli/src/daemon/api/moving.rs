//! The handler for sessions that move to a folder of this machine.

use std::path::PathBuf;
use std::sync::Arc;

use actix_web::web::Bytes;
use holdpoint_common::api::{CLIENT_HEADER, HandOverRequest, HandedOver, MoveRequest, Verb};
use holdpoint_common::{SessionId, Snapshot};
use holdpoint_session::SessionError;
use holdpoint_session::remote::{self, http};

use super::body::Body;
use super::caller::Caller;
use super::forward::send;
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
    let sessions = caller.opening(std::mem::take(&mut request.supplies))?;
    let host = &caller.host;
    let here = host.store.machine();
    let is_here = request.machine.as_deref().is_none_or(|machine| Some(machine) == here);
    let elsewhere = match host.store.fleet() {
        Some(_) if is_here => host.locator.locate(&given).await?,
        _ => None,
    };
    let Some(owner) = elsewhere.filter(|found| found.live) else {
        return Ok(Reply(sessions.move_session(&given, request).await?));
    };
    let present = sessions.look(owner.session.as_str()).await?;
    let folder = request.workspace.unwrap_or_else(|| PathBuf::from(&present.settings.workspace));
    let workspace = host.locator.folder(folder).await?;
    let request = HandOverRequest { machine: here.map(str::to_owned), workspace };
    let handed_over = caller.ask_to_hand_over(&owner.machine, &owner.session, &request).await?;
    Ok(Reply(sessions.receive(&owner.session, handed_over).await?))
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
        let unreachable = || SessionError::MachineUnreachable {
            machine: machine.to_owned(),
            message: "this machine is in no fleet".to_owned(),
        };
        let fleet = self.host.store.fleet().ok_or_else(unreachable)?;
        let body = serde_json::to_vec(request).map_err(ApiError::failed)?;
        let path = format!("/v1{}", request.path(session));
        let name = remote::client_header(&self.who.name);
        let headers = [(CLIENT_HEADER, &*name)];
        let asked = (http::Method::POST, &*path);
        let response = send(fleet, machine, asked, &headers, Bytes::from(body)).await?;
        Ok(remote::reply_of(response).await?)
    }
}
