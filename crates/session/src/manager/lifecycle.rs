//! The lifecycle of all sessions of an engine: the phase of each, the owner of its log, and the
//! callers that wait.
//!
//! A pure state machine: no clock, no I/O and no actors. The manager gives it inputs and carries
//! out the effects.
//!
//! ```text
//!            access             place              started
//!   Saved ───────────▶ Owned ───────────▶ Starting ─────────▶ Live ──▶ Ending
//!     ▲      released    │    released        │ ▲     failed   │          │
//!     ├──────────────────┴────────────────────┘ └──────────────┼──────────┤
//!     └────────────────────────────────────────────────────────┴──────────┘
//!                               unloaded, closed
//! ```

mod failures;
mod names;
mod places;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use holdpoint_common::{Refused, SessionError, SessionId};

pub(super) use failures::RESTART_DELAY;

use failures::Failures;
use names::Names;
use places::{Places, Step};

/// Types of the host that the lifecycle stores but never inspects.
pub(super) trait Host {
    /// A caller that waits for [`Granted`].
    type Caller;
    /// A caller that waits for a place.
    type PlaceCaller;
    /// The data of a session that was live.
    type Record;
}

/// The lifecycle of all sessions of an engine.
pub(super) struct Lifecycle<H: Host> {
    sessions: HashMap<SessionId, Session<H>>,
    pub(super) names: Names,
    places: Places<H::PlaceCaller>,
    unused: MaybeUnused,
    /// The number of the newest actor of all sessions.
    last_actor: u64,
    stopping: bool,
}

/// A session that has a record, or a phase other than saved.
pub(super) struct Session<H: Host> {
    phase: Phase,
    /// The number of its newest actor, or 0.
    pub(super) actor: u64,
    failures: Failures,
    /// Whether a client closed the session, which then opens again only on request.
    pub(super) closed: bool,
    /// The callers that wait for the end of a phase.
    waiting: VecDeque<(Access, H::Caller)>,
    pub(super) record: Option<H::Record>,
}

/// The phase of a session's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The session is only in its log.
    Saved,
    /// The session is only in its log, and one caller has the log for itself: to change it, or to
    /// start an actor.
    Owned,
    /// The session has a place and is about to have an actor.
    Starting {
        /// Whether its last actor failed.
        rebuilding: bool,
    },
    /// The session has an actor.
    Live,
    /// The actor has ended. It is not known yet how.
    Ending,
}

/// The use that a caller wants to make of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Access {
    /// The number of the actor that the caller has seen end, or 0.
    pub(super) seen: u64,
    pub(super) if_saved: IfSaved,
}

/// What a caller does with a session that is only saved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IfSaved {
    /// Return an error.
    Fail,
    /// Open it, unless it is closed.
    Open,
    /// Open it, even if it is closed.
    Reopen,
    /// Change its log.
    Change,
}

/// The reply to an [`Access`].
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Granted {
    /// The session has an actor.
    Actor,
    /// The session is only saved, and the caller has its log for itself until it is released.
    Log,
}

/// How an actor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ActorEnd {
    /// The session is saved and can be opened again.
    Unloaded,
    /// The session was closed.
    Closed,
    /// The session has moved, or another machine has taken it over.
    Lost,
    /// The actor panicked.
    Failed,
}

pub(super) enum Input<H: Host> {
    /// From now on, actors may start.
    Ready,
    /// A caller needs a session.
    Access { id: SessionId, access: Access, caller: H::Caller },
    /// The owner of a log needs a place for an actor.
    NeedPlace { id: SessionId, caller: H::PlaceCaller },
    /// A session that was starting has its actor.
    Started { id: SessionId },
    /// The owner of a log is done with it, or an actor could not be started.
    Released { id: SessionId, failed: Option<SessionError> },
    /// A session could not be rebuilt, which is tried again later.
    RebuildFailed { id: SessionId, error: SessionError },
    /// The session does not unload, because it is in use.
    RefusedUnload { id: SessionId },
    /// A message to the session's actor failed.
    Disconnected { id: SessionId },
    /// A session's actor has ended.
    Ended { id: SessionId, end: ActorEnd, now: Instant },
    /// The engine stops.
    Stop,
}

pub(super) enum Effect<H: Host> {
    /// Reply to a caller.
    Grant(H::Caller, Result<Granted, SessionError>),
    /// Reply to the owner of a log, which may now start an actor.
    GrantPlace(H::PlaceCaller, Result<(), SessionError>),
    /// Ask the session's actor to unload.
    Unload(SessionId),
    /// Start the next actor of a session that failed, after a delay.
    Rebuild { id: SessionId, delay: Duration },
}

type Effects<H> = Vec<Effect<H>>;

impl<H: Host> Lifecycle<H> {
    pub(super) fn new(max_live: usize) -> Self {
        Self {
            sessions: HashMap::new(),
            names: Names::default(),
            places: Places::new(max_live),
            unused: MaybeUnused::default(),
            last_actor: 0,
            stopping: false,
        }
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Whether the session has an actor, or is about to have the next one.
    pub(super) fn is_live(&self, id: &SessionId) -> bool {
        self.sessions.get(id).is_some_and(|session| session.phase.is_live())
    }

    pub(super) fn get(&self, id: &SessionId) -> Option<&Session<H>> {
        self.sessions.get(id)
    }

    pub(super) fn get_mut(&mut self, id: &SessionId) -> Option<&mut Session<H>> {
        self.sessions.get_mut(id)
    }

    /// Whether the last actor of the session failed; `None` if it had none.
    pub(super) fn last_failed(&self, id: &SessionId) -> Option<bool> {
        let session = self.sessions.get(id)?;
        session.record.as_ref().map(|_| session.has_failed(session.actor))
    }

    /// The sessions that have a record, in any order.
    pub(super) fn records(&self) -> impl Iterator<Item = (&SessionId, Phase, &H::Record)> {
        self.sessions
            .iter()
            .filter_map(|(id, session)| Some((id, session.phase, session.record.as_ref()?)))
    }

    pub(super) fn records_mut(&mut self) -> impl Iterator<Item = &mut H::Record> {
        self.sessions.values_mut().filter_map(|session| session.record.as_mut())
    }

    /// Handles an input.
    pub(super) fn handle(&mut self, input: Input<H>) -> Effects<H> {
        let mut effects = Vec::new();
        match input {
            Input::Ready => self.places.open(),
            Input::Access { id, access, caller } => self.access(id, access, caller, &mut effects),
            Input::NeedPlace { id, caller } => self.need_place(id, caller, &mut effects),
            Input::Started { id } => self.started(&id, &mut effects),
            Input::Released { id, failed } => self.released(&id, failed, &mut effects),
            Input::RebuildFailed { id, error } => self.rebuild_failed(&id, &error, &mut effects),
            Input::RefusedUnload { id } => self.places.refused_unload(&id),
            Input::Disconnected { id } => self.disconnected(&id),
            Input::Ended { id, end, now } => self.ended(&id, end, now, &mut effects),
            Input::Stop => self.stop(&mut effects),
        }
        self.use_places(&mut effects);
        effects
    }

    fn access(
        &mut self,
        id: SessionId,
        access: Access,
        caller: H::Caller,
        effects: &mut Effects<H>,
    ) {
        if self.stopping {
            effects.push(Effect::Grant(caller, Err(SessionError::Stopped)));
            return;
        }
        let session = match self.sessions.get_mut(&id) {
            Some(session) => session,
            None if access.if_saved == IfSaved::Fail => {
                effects.push(Effect::Grant(caller, Err(SessionError::NotLive { session: id })));
                return;
            }
            None => self.sessions.entry(id.clone()).or_insert_with(Session::new),
        };
        let granted = match session.phase {
            Phase::Live if session.actor != access.seen => {
                self.places.touch(&id);
                Ok(Granted::Actor)
            }
            Phase::Saved => match access.if_saved {
                IfSaved::Fail | IfSaved::Open if session.closed => {
                    Err(SessionError::Refused(Refused::Closed))
                }
                IfSaved::Fail => Err(SessionError::NotLive { session: id }),
                IfSaved::Open | IfSaved::Reopen | IfSaved::Change => {
                    session.phase = Phase::Owned;
                    Ok(Granted::Log)
                }
            },
            Phase::Live | Phase::Owned | Phase::Starting { .. } | Phase::Ending => {
                session.waiting.push_back((access, caller));
                return;
            }
        };
        effects.push(Effect::Grant(caller, granted));
    }

    fn need_place(&mut self, id: SessionId, caller: H::PlaceCaller, effects: &mut Effects<H>) {
        if self.stopping {
            effects.push(Effect::GrantPlace(caller, Err(SessionError::Stopped)));
        } else if self.sessions.get(&id).is_some_and(|session| session.phase == Phase::Owned) {
            self.places.request(id, caller);
        } else {
            effects.push(Effect::GrantPlace(caller, Err(SessionError::NotLive { session: id })));
        }
    }

    fn started(&mut self, id: &SessionId, effects: &mut Effects<H>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        let Phase::Starting { rebuilding } = session.phase else { return };
        self.last_actor += 1;
        session.actor = self.last_actor;
        session.phase = Phase::Live;
        session.closed = false;
        self.places.started(id, rebuilding);
        self.resume_waiting(id, effects);
    }

    fn released(&mut self, id: &SessionId, failed: Option<SessionError>, effects: &mut Effects<H>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        match session.phase {
            Phase::Owned => self.places.cancel(id),
            Phase::Starting { rebuilding } => self.places.start_failed(rebuilding),
            Phase::Saved | Phase::Live | Phase::Ending => return,
        }
        self.names.release(id);
        session.phase = Phase::Saved;
        if let Some(error) = failed {
            // A change does not need an actor.
            self.fail_waiting(id, &error, |access| access.if_saved != IfSaved::Change, effects);
        }
        self.resume_waiting(id, effects);
    }

    fn rebuild_failed(&mut self, id: &SessionId, error: &SessionError, effects: &mut Effects<H>) {
        if let Some(Session { phase: Phase::Starting { rebuilding: true }, .. }) =
            self.sessions.get(id)
        {
            self.fail_waiting(id, error, |_| true, effects);
        }
    }

    fn disconnected(&mut self, id: &SessionId) {
        if let Some(session) = self.sessions.get_mut(id)
            && session.phase == Phase::Live
        {
            session.phase = Phase::Ending;
        }
    }

    fn ended(&mut self, id: &SessionId, end: ActorEnd, now: Instant, effects: &mut Effects<H>) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        if !matches!(session.phase, Phase::Live | Phase::Ending) {
            return;
        }
        if end == ActorEnd::Failed {
            let delay = session.failures.add(session.actor, now);
            session.phase = Phase::Starting { rebuilding: true };
            self.places.failed(id);
            effects.push(Effect::Rebuild { id: id.clone(), delay });
            return;
        }
        session.phase = Phase::Saved;
        session.closed = end == ActorEnd::Closed;
        self.places.ended(id);
        self.names.release(id);
        self.resume_waiting(id, effects);
    }

    fn stop(&mut self, effects: &mut Effects<H>) {
        self.stopping = true;
        for session in self.sessions.values_mut() {
            // An owned or starting session keeps its phase until its owner releases it.
            if matches!(session.phase, Phase::Live | Phase::Ending) {
                session.phase = Phase::Saved;
            }
            let waiting = session.waiting.drain(..);
            effects.extend(
                waiting.map(|(_, caller)| Effect::Grant(caller, Err(SessionError::Stopped))),
            );
        }
        let waiting = self.places.close();
        effects
            .extend(waiting.map(|caller| Effect::GrantPlace(caller, Err(SessionError::Stopped))));
    }

    /// Serves the callers that wait for a session, until one of them makes the others wait again.
    fn resume_waiting(&mut self, id: &SessionId, effects: &mut Effects<H>) {
        let waiting = self.sessions.get(id).map_or(0, |session| session.waiting.len());
        for _ in 0..waiting {
            if let Some(session) = self.sessions.get_mut(id)
                && matches!(session.phase, Phase::Saved | Phase::Live)
                && let Some((access, caller)) = session.waiting.pop_front()
            {
                self.access(id.clone(), access, caller, effects);
            }
        }
    }

    /// Replies with an error to the callers that wait for a session and whose access `fails`.
    fn fail_waiting(
        &mut self,
        id: &SessionId,
        error: &SessionError,
        fails: impl Fn(&Access) -> bool,
        effects: &mut Effects<H>,
    ) {
        let Some(session) = self.sessions.get_mut(id) else { return };
        for (access, caller) in std::mem::take(&mut session.waiting) {
            if fails(&access) {
                effects.push(Effect::Grant(caller, Err(error.clone())));
            } else {
                session.waiting.push_back((access, caller));
            }
        }
    }

    /// Gives the free places to the sessions that wait for one, or makes room for them.
    fn use_places(&mut self, effects: &mut Effects<H>) {
        while let Some(step) = self.places.next_step() {
            match step {
                Step::Grant(id, caller) => {
                    if let Some(session) = self.sessions.get_mut(&id) {
                        session.phase = Phase::Starting { rebuilding: false };
                    }
                    effects.push(Effect::GrantPlace(caller, Ok(())));
                }
                Step::Unload(id) => effects.push(Effect::Unload(id)),
                Step::Refuse(caller, limit) => {
                    effects.push(Effect::GrantPlace(
                        caller,
                        Err(SessionError::TooManySessions { limit }),
                    ));
                }
            }
        }
    }

    /// Removes the session if it is only saved and has no record, or its record `is_unused`, which
    /// also receives whether the session is closed. A saved session that stays is checked again
    /// later.
    pub(super) fn remove_if(
        &mut self,
        id: &SessionId,
        is_unused: impl Fn(&H::Record, bool) -> bool,
    ) {
        let Some(session) = self.sessions.get(id).filter(|session| session.phase == Phase::Saved)
        else {
            return;
        };
        match &session.record {
            Some(record) if !is_unused(record, session.closed) => self.unused.add(id),
            _ => drop(self.sessions.remove(id)),
        }
    }

    /// Removes sessions that are only saved and have no record, or whose record `is_unused`. Checks
    /// those that were checked longest ago, and at most `max`.
    pub(super) fn remove_unused(
        &mut self,
        max: usize,
        is_unused: impl Fn(&H::Record, bool) -> bool,
    ) {
        for _ in 0..max.min(self.unused.order.len()) {
            if let Some(id) = self.unused.next() {
                self.remove_if(&id, &is_unused);
            }
        }
    }
}

/// The sessions that are checked, one after the other, for being unused.
#[derive(Default)]
struct MaybeUnused {
    order: VecDeque<SessionId>,
    listed: HashSet<SessionId>,
}

impl MaybeUnused {
    fn add(&mut self, id: &SessionId) {
        if self.listed.insert(id.clone()) {
            self.order.push_back(id.clone());
        }
    }

    fn next(&mut self) -> Option<SessionId> {
        let id = self.order.pop_front()?;
        self.listed.remove(&id);
        Some(id)
    }
}

impl<H: Host> Session<H> {
    fn new() -> Self {
        Self {
            phase: Phase::Saved,
            actor: 0,
            failures: Failures::default(),
            closed: false,
            waiting: VecDeque::new(),
            record: None,
        }
    }

    /// Whether the actor with this number has failed.
    pub(super) fn has_failed(&self, actor: u64) -> bool {
        self.failures.contains(actor)
    }
}

impl Phase {
    /// Whether the session has an actor, or is about to have the next one.
    pub(super) fn is_live(self) -> bool {
        match self {
            Self::Live | Self::Ending | Self::Starting { rebuilding: true } => true,
            Self::Saved | Self::Owned | Self::Starting { rebuilding: false } => false,
        }
    }
}
