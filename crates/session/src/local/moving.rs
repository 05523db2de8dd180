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
        Err(SessionError::UnknownMachine { machine: machine.to_owned() })
    }
}

/// Hands a session over as soon as nothing of it runs.
pub(super) async fn hand_over(
    target: Target,
    ByClient { verb, by }: ByClient<HandOverRequest>,
) -> Result<HandedOver, SessionError> {
    let HandOverRequest { machine, workspace } = verb;
    let (id, request) = (target.id().clone(), HandOver { machine, workspace, by });
    let sessions = LocalSessions(target.client().clone());
    let mut moving = Moving { sessions, id, asked: None, is_over: false };
    loop {
        match moving.ask(&request).await? {
            HandoverReply::Done { live } => {
                moving.is_over = true;
                return Ok(HandedOver { live });
            }
            // Without a publisher, the session has ended.
            HandoverReply::Waits { mut shown } => drop(shown.changed().await),
        }
    }
}

type FutureReply = BoxFuture<'static, Result<HandoverReply, SessionError>>;

/// A session that is to move. If its client is gone before, it continues where it is.
struct Moving {
    sessions: LocalSessions,
    id: SessionId,
    /// The request in progress.
    asked: Option<FutureReply>,
    is_over: bool,
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
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        if self.is_over {
            return;
        }
        let (sessions, id, asked) = (self.sessions.clone(), self.id.clone(), self.asked.take());
        runtime.spawn(async move {
            if let Some(asked) = asked
                && let Ok(HandoverReply::Done { live: true }) = asked.await
            {
                // It is too late. Another machine opens the session itself.
                let _ = sessions.get(id.as_str()).await;
                return;
            }
            // The session may have moved.
            let Ok(shown) = sessions.look(id.as_str()).await else { return };
            if shown.hold.is_for_move() {
                let _ = sessions.act(&id, ReleaseRequest {}).await;
            }
        });
    }
}
