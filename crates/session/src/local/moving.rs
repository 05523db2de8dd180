//! Moving a session to another folder: it is handed over, which waits until it can be, and opened
//! there.

use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use holdpoint_common::api::{HandOverRequest, HandedOver, MoveRequest, ReleaseRequest};
use holdpoint_common::{SessionError, SessionId};

use super::LocalSessions;
use super::verbs::{Target, ask_manager};
use crate::backend::Backend;
use crate::manager::{HandSessionOver, HandoverReply, ResolveFolder};
use crate::state::{ByClient, HandOver};

impl LocalSessions {
    /// Hands a session over to a folder of this machine. Returns its id.
    pub(crate) async fn move_here(
        &self,
        given: &str,
        request: MoveRequest,
    ) -> Result<(SessionId, HandedOver), SessionError> {
        self.check_machine(request.machine.as_deref()).await?;
        let settings = Arc::clone(&self.look(given).await?.settings);
        let folder = request.workspace.unwrap_or_else(|| settings.workspace.clone().into());
        let workspace = ask_manager(&self.0, ResolveFolder(folder)).await?;
        let machine = self.engine().await?.store.machine().map(str::to_owned);
        let request = HandOverRequest { machine, workspace };
        let handed_over = self.act(&settings.id, request).await?;
        Ok((settings.id.clone(), handed_over))
    }

    /// Checks that a request names this machine, if it names one.
    pub(super) async fn check_machine(&self, named: Option<&str>) -> Result<(), SessionError> {
        let Some(machine) = named else { return Ok(()) };
        if self.engine().await?.store.machine() == named {
            return Ok(());
        }
        let message = "it is in no fleet with this one".to_owned();
        Err(SessionError::MachineUnreachable { machine: machine.to_owned(), message })
    }
}

/// Hands a session over as soon as nothing of it runs.
pub(super) async fn hand_over(
    target: Target,
    ByClient { verb, by }: ByClient<HandOverRequest>,
) -> Result<HandedOver, SessionError> {
    let HandOverRequest { machine, workspace } = verb;
    let (id, request) = (target.id().clone(), HandOver { machine, workspace, by });
    let mut moving = Moving {
        sessions: LocalSessions(target.client().clone()),
        id,
        asked: None,
        is_held: false,
    };
    loop {
        match moving.ask(&request).await? {
            HandoverReply::Done { live } => {
                let held = std::mem::take(&mut moving.is_held);
                return Ok(HandedOver { live, held });
            }
            HandoverReply::Waits { holds, mut shown } => {
                moving.is_held |= holds;
                // Without a publisher, the session has ended.
                let _ = shown.changed().await;
            }
        }
    }
}

type FutureReply = BoxFuture<'static, Result<HandoverReply, SessionError>>;

/// A session that is to move. If it does not, because its client is gone, the hold is released that was
/// only for the move.
struct Moving {
    sessions: LocalSessions,
    id: SessionId,
    /// The request in progress.
    asked: Option<FutureReply>,
    is_held: bool,
}

impl Moving {
    async fn ask(&mut self, request: &HandOver) -> Result<HandoverReply, SessionError> {
        let (client, id, request) = (self.sessions.0.clone(), self.id.clone(), request.clone());
        let asking = async move { ask_manager(&client, HandSessionOver { id, request }).await };
        let reply = self.asked.insert(asking.boxed()).await;
        self.asked = None;
        reply
    }
}

impl Drop for Moving {
    fn drop(&mut self) {
        let (asked, is_held) = (self.asked.take(), self.is_held);
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if asked.is_none() && !is_held {
            return;
        }
        let (sessions, id) = (self.sessions.clone(), self.id.clone());
        runtime.spawn(async move {
            let holds = match asked {
                Some(asked) => matches!(asked.await, Ok(HandoverReply::Waits { holds: true, .. })),
                None => false,
            };
            if is_held || holds {
                // The session may have ended.
                let _ = sessions.act(&id, ReleaseRequest {}).await;
            }
        });
    }
}
