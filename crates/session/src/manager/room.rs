//! Making room: unloading idle sessions until there is place for one more.

use std::collections::BTreeSet;

use actix::prelude::*;
use holdpoint_common::{SessionId, Snapshot};
use tokio::sync::oneshot;

use super::{Entry, Life, Manager, stopped};
use crate::actor::{self, SessionActor};
use crate::error::SessionError;
use crate::outfit::Base;

/// Held while room is made and an actor started: one at a time.
pub(super) type Room = tokio::sync::Mutex<()>;

/// Unloads sessions until there is room for one more. Each is asked once.
pub(super) async fn make_room(manager: &Addr<Manager>) -> Result<(), SessionError> {
    let mut refused = BTreeSet::new();
    loop {
        let (most, candidates) = match manager.send(GetRoom).await.map_err(stopped)? {
            Places::Free => return Ok(()),
            Places::Ending(id) => {
                manager.send(AwaitEnd(id)).await.map_err(stopped)?;
                continue;
            }
            Places::Full { most, candidates } => (most, candidates),
        };
        let candidate = candidates.into_iter().find(|(id, _)| !refused.contains(id));
        let (id, actor) = candidate.ok_or(SessionError::TooManySessions { most })?;
        if actor.send(actor::Unload).await == Ok(true) {
            // Until the manager knows, the place is not free.
            manager.send(AwaitEnd(id)).await.map_err(stopped)?;
        } else {
            refused.insert(id);
        }
    }
}

/// Whether there is room for one more.
#[derive(Message)]
#[rtype(result = "Places")]
struct GetRoom;

/// Room for one more, or who might make it.
#[derive(MessageResponse)]
enum Places {
    Free,
    /// This one's actor has ended, and the manager is about to hear of it.
    Ending(SessionId),
    Full {
        most: usize,
        /// Idle as far as is known, nobody attached, the longest untouched first.
        candidates: Vec<(SessionId, Addr<SessionActor>)>,
    },
}

impl Handler<GetRoom> for Manager {
    type Result = Places;

    fn handle(&mut self, _: GetRoom, _: &mut Self::Context) -> Places {
        let most = self.base.limits.max_sessions;
        // A session that is starting is the one that room is made for; but one that is rebuilt, which has its place still.
        let takes_place = |entry: &&Entry| match entry.life {
            Life::Live { .. } => true,
            Life::Starting { .. } => entry.outfit.is_some(),
            Life::Saved => false,
        };
        // Few are known at all, as a rule: then none has to be looked at.
        if self.sessions.len() < most || self.sessions.values().filter(takes_place).count() < most {
            return Places::Free;
        }
        let ending = self.sessions.iter().find(|(_, entry)| match &entry.life {
            Life::Live { actor, .. } => !actor.connected(),
            Life::Starting { .. } | Life::Saved => false,
        });
        if let Some((id, _)) = ending {
            return Places::Ending(id.clone());
        }
        let mut candidates: Vec<_> = self
            .sessions
            .iter()
            .filter_map(|(id, entry)| match &entry.life {
                Life::Live { actor, .. } if is_free(&entry.shown.borrow(), &self.base) => {
                    Some((entry.touched, id.clone(), actor.clone()))
                }
                _ => None,
            })
            .collect();
        candidates.sort_by_key(|(touched, ..)| *touched);
        let candidates = candidates.into_iter().map(|(_, id, actor)| (id, actor)).collect();
        Places::Full { most, candidates }
    }
}

fn is_free(snapshot: &Snapshot, base: &Base) -> bool {
    use holdpoint_common::{Hold, SessionStatus};
    snapshot.status == SessionStatus::Idle
        && snapshot.clients == 0
        && snapshot.queue.is_empty()
        && snapshot.jobs.is_empty()
        && snapshot.hold == Hold::Off
        && !base.lacks_saves(snapshot)
}

/// Waits until a session's actor has ended.
#[derive(Message)]
#[rtype(result = "()")]
struct AwaitEnd(SessionId);

impl Handler<AwaitEnd> for Manager {
    type Result = ResponseFuture<()>;

    fn handle(&mut self, AwaitEnd(id): AwaitEnd, _: &mut Self::Context) -> Self::Result {
        let (ended, end) = oneshot::channel();
        match self.sessions.get_mut(&id) {
            Some(Entry { life: Life::Live { .. }, ends, .. }) => ends.push(ended),
            // It has ended already.
            _ => drop(ended),
        }
        Box::pin(async move {
            let _ = end.await;
        })
    }
}
