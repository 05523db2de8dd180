//! Sessions that have no actor, changed all the same: decided, numbered and saved, with nothing that runs.

use std::ops::Range;
use std::sync::Arc;

use actix::prelude::*;
use holdpoint_common::{Body, EndedProcesses, Event, Limits, Outcome, SessionId, SessionSummary, Snapshot, Who};
use tokio::sync::OwnedMutexGuard;

use super::restore::{Found, find};
use super::room::{Room, stopped};
use super::{CloseSession, Life, Manager};
use crate::actor::now;
use crate::error::SessionError;
use crate::outfit::Base;
use crate::state::{Input, Moment, Phase, Refused, Report, State, decide};
use crate::store::{SessionLog, SessionStore};

/// A log that is written on, by whoever has it alone.
pub(super) struct Scribe {
    log: Arc<dyn SessionLog>,
    /// What was saved of an answer that never ended.
    pub(super) draft: Vec<Arc<Event>>,
    state: State,
    numbers: Range<u64>,
    /// The last fact of the log.
    last: u64,
    facts: Vec<Arc<Event>>,
}

impl Scribe {
    /// Reads what the log of this session comes to.
    pub(super) async fn of(store: &dyn SessionStore, id: &SessionId) -> Result<Self, SessionError> {
        let log = store.open(id).await?;
        let Found { state, draft, numbers } = find(id, &*log).await?;
        Ok(Self { log, draft, last: state.last(), state, numbers, facts: Vec::new() })
    }

    /// Takes an input in. Of its effects there is nobody to carry them out.
    pub(super) fn take(&mut self, input: Input) -> Result<(), Refused> {
        let moment = Moment { now: now(), next: self.numbers.start, limits: &Limits::default() };
        for fact in decide(&self.state, moment, input)?.facts {
            let (turn, step) = self.state.place(&fact);
            // Far more are set aside than a decision takes.
            let Some(seq) = self.numbers.next() else { break };
            let event = Arc::new(Event { seq, at: moment.now, turn, step, body: Body::Fact(fact) });
            self.state.apply(&event);
            self.facts.push(event);
        }
        Ok(())
    }

    /// Saves what has come of it; what the session is then, and how many facts that took.
    pub(super) async fn save(self) -> Result<(State, usize), SessionError> {
        let Self { log, state, last, facts, .. } = self;
        let count = facts.len();
        if count > 0 {
            let summary =
                SessionSummary { live: false, ..SessionSummary::from(&state.snapshot(state.last(), 0, true)) };
            log.append(last, facts, summary).await?;
        }
        Ok((state, count))
    }
}

/// A session that has no actor, as far as is known.
pub(super) struct Saved {
    pub(super) id: SessionId,
    pub(super) manager: Addr<Manager>,
    base: Arc<Base>,
    room: Arc<Room>,
    mending: Arc<tokio::sync::Mutex<()>>,
}

impl Manager {
    /// The session of this id, which has no actor.
    pub(super) fn saved(&self, id: SessionId, ctx: &Context<Self>) -> Saved {
        let (base, room, mending) = (Arc::clone(&self.base), Arc::clone(&self.room), Arc::clone(&self.mending));
        Saved { id, manager: ctx.address(), base, room, mending }
    }
}

impl Saved {
    /// Nobody gives it an actor as long as this is held; nothing, if it has one already.
    pub(super) async fn alone(&self) -> Result<Option<OwnedMutexGuard<()>>, SessionError> {
        drop(self.mending.lock().await);
        let alone = Arc::clone(&self.room).lock_owned().await;
        let has_actor = self.manager.send(HasActor(self.id.clone())).await.map_err(stopped)??;
        Ok((!has_actor).then_some(alone))
    }

    /// Ends it: what it waits with is handed back, what it asks is answered.
    pub(super) async fn close(self, by: Who) -> Result<(), SessionError> {
        let Some(_alone) = self.alone().await? else {
            let close = CloseSession { id: self.id, by };
            return self.manager.send(close).await.map_err(stopped)?;
        };
        let mut scribe = Scribe::of(&*self.base.store, &self.id).await?;
        scribe.take(Input::Close { by })?;
        if let Phase::Interrupting(turn, _) = scribe.state.phase() {
            // It has no runner, whose end there would be to wait for.
            let (turn, tools, processes) = (turn.id, Vec::new(), EndedProcesses::default());
            let report = Report::Finished { outcome: Outcome::Interrupted, error: None, tools, processes };
            scribe.take(Input::Report { turn, report })?;
        }
        self.save(scribe).await
    }

    /// Calls it something else.
    pub(super) async fn rename(&self, name: String, by: Who) -> Result<(), SessionError> {
        let mut scribe = Scribe::of(&*self.base.store, &self.id).await?;
        scribe.take(Input::Rename { name, by })?;
        self.save(scribe).await
    }

    async fn save(&self, scribe: Scribe) -> Result<(), SessionError> {
        let (state, _) = scribe.save().await?;
        let closed = matches!(state.phase(), Phase::Closed);
        let snapshot = Arc::new(state.snapshot(state.last(), 0, true));
        self.manager.send(Rewritten { snapshot, closed }).await.map_err(stopped)
    }
}

/// Whether a session has an actor, or is about to.
#[derive(Message)]
#[rtype(result = "Result<bool, SessionError>")]
struct HasActor(SessionId);

impl Handler<HasActor> for Manager {
    type Result = Result<bool, SessionError>;

    fn handle(&mut self, HasActor(id): HasActor, _: &mut Self::Context) -> Self::Result {
        match self.sessions.get(&id) {
            // The log lacks its end.
            Some(entry) if entry.closed && !entry.shown.borrow().saved => Err(SessionError::Refused(Refused::Closed)),
            Some(entry) => Ok(!matches!(entry.life, Life::Saved)),
            None => Ok(false),
        }
    }
}

/// A session without an actor has changed.
#[derive(Message)]
#[rtype(result = "()")]
struct Rewritten {
    snapshot: Arc<Snapshot>,
    closed: bool,
}

impl Handler<Rewritten> for Manager {
    type Result = ();

    fn handle(&mut self, Rewritten { snapshot, closed }: Rewritten, _: &mut Self::Context) {
        self.roster.changed();
        if let Some(entry) = self.sessions.get_mut(&snapshot.settings.id) {
            entry.name.clone_from(&snapshot.settings.name);
            entry.closed = closed;
            entry.shown.send_replace(snapshot);
        }
    }
}
