//! Making room: unloading idle sessions until there is a place for another one.

use std::collections::BTreeSet;

use actix::prelude::*;
use holdpoint_common::{SessionId, Snapshot};
use tokio::sync::oneshot;

use super::{Entry, Life, Manager, stopped_error};
use crate::actor::{self, SessionActor};
use crate::error::SessionError;
use crate::session_env::EngineEnv;

/// The lock that is held while room is made and an actor is started.
pub(super) type StartLock = tokio::sync::Mutex<()>;

/// Unloads sessions until there is room for another one. Asks each of them once.
pub(super) async fn make_room(manager: &Addr<Manager>) -> Result<(), SessionError> {
    let mut refused = BTreeSet::new();
    loop {
        let (most, candidates) = match manager.send(GetRoom).await.map_err(stopped_error)? {
            RoomReply::Free => return Ok(()),
            RoomReply::Ending(id) => {
                manager.send(AwaitActorEnd(id)).await.map_err(stopped_error)?;
                continue;
            }
            RoomReply::Full { most, candidates } => (most, candidates),
        };
        let candidate = candidates.into_iter().find(|(id, _)| !refused.contains(id));
        let (id, actor) = candidate.ok_or(SessionError::TooManySessions { most })?;
        if actor.send(actor::Unload).await == Ok(true) {
            // The place is free only when the manager has handled the actor's end.
            manager.send(AwaitActorEnd(id)).await.map_err(stopped_error)?;
        } else {
            refused.insert(id);
        }
    }
}

/// Gets a free place, or the sessions that could make one.
#[derive(Message)]
#[rtype(result = "RoomReply")]
struct GetRoom;

/// A free place, or the sessions that could make one.
#[derive(MessageResponse)]
enum RoomReply {
    Free,
    /// The actor of this session has ended, and the manager is about to handle that.
    Ending(SessionId),
    Full {
        most: usize,
        /// The sessions that seem idle and have no clients, the least recently used first.
        candidates: Vec<(SessionId, Addr<SessionActor>)>,
    },
}

impl Handler<GetRoom> for Manager {
    type Result = RoomReply;

    fn handle(&mut self, _: GetRoom, _: &mut Self::Context) -> RoomReply {
        let most = self.engine.limits.max_sessions;
        // Room is made for the session that is starting. Only one that is being rebuilt still has
        // its place.
        let takes_place = |entry: &&Entry| match entry.life {
            Life::Live { .. } => true,
            Life::Starting { .. } => entry.env.is_some(),
            Life::Saved => false,
        };
        // Usually there are so few sessions that they need not be examined.
        if self.sessions.len() < most || self.sessions.values().filter(takes_place).count() < most {
            return RoomReply::Free;
        }
        let ending = self.sessions.iter().find(|(_, entry)| match &entry.life {
            Life::Live { actor, .. } => !actor.connected(),
            Life::Starting { .. } | Life::Saved => false,
        });
        if let Some((id, _)) = ending {
            return RoomReply::Ending(id.clone());
        }
        let mut candidates: Vec<_> = self
            .sessions
            .iter()
            .filter_map(|(id, entry)| match &entry.life {
                Life::Live { actor, .. } if is_free(&entry.shown.borrow(), &self.engine) => {
                    Some((entry.touched, id.clone(), actor.clone()))
                }
                _ => None,
            })
            .collect();
        candidates.sort_by_key(|(touched, ..)| *touched);
        let candidates = candidates.into_iter().map(|(_, id, actor)| (id, actor)).collect();
        RoomReply::Full { most, candidates }
    }
}

fn is_free(snapshot: &Snapshot, engine: &EngineEnv) -> bool {
    use holdpoint_common::{Hold, SessionStatus};
    snapshot.status == SessionStatus::Idle
        && snapshot.clients == 0
        && snapshot.queue.is_empty()
        && snapshot.jobs.is_empty()
        && snapshot.hold == Hold::Off
        && !engine.lacks_saves(snapshot)
}

/// Waits until a session's actor has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct AwaitActorEnd(SessionId);

impl Handler<AwaitActorEnd> for Manager {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, AwaitActorEnd(id): AwaitActorEnd, _: &mut Self::Context) -> Self::Result {
        let (ended, end) = oneshot::channel();
        match self.sessions.get_mut(&id) {
            Some(Entry { life: Life::Live { .. }, ends, .. }) => ends.push(ended),
            // The actor has ended already.
            _ => drop(ended),
        }
        Box::pin(async move {
            let _ = end.await;
        })
    }
}
