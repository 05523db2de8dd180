//! Appends to the log of a session that has no running actor.

use std::sync::Arc;
use std::time::SystemTime;

use holdpoint_common::{Body, Event, Limits, Refused, RestoreCause, SessionError, SessionId};

use super::fold::{LoadedSession, load_for_owner};
use crate::session_env::EngineEnv;
use crate::state::{Input, Moment, Restore, State, decide};
use crate::store::{Home, Numbers, SessionLog};

/// Appends to the log of a session without an actor. The caller must be the log's only writer.
pub(crate) struct OfflineSession<'a> {
    log: Arc<dyn SessionLog>,
    /// The engine's limits. With other limits, the same inputs would be decided differently.
    limits: &'a Limits,
    /// The approximate size in bytes of the part that all requests of the session share, or 0 if it
    /// is unknown.
    fixed_bytes: u64,
    /// The saved part of an answer that never ended.
    draft: Vec<Arc<Event>>,
    state: State,
    numbers: Numbers,
    /// The number of the last fact in the log.
    last: u64,
    facts: Vec<Arc<Event>>,
}

impl<'a> OfflineSession<'a> {
    /// Loads the session from its log.
    pub(crate) async fn load(engine: &'a EngineEnv, id: &SessionId) -> Result<Self, SessionError> {
        let log = engine.store.own(id).await?;
        Ok(Self::of(engine, load_for_owner(id, log).await?))
    }

    /// Starts with a session that is loaded.
    pub(crate) fn of(engine: &'a EngineEnv, loaded: LoadedSession) -> Self {
        let LoadedSession { log, state, draft, next, .. } = loaded;
        let fixed_bytes = engine.fixed_bytes(state.settings(), &engine.system);
        Self {
            log,
            limits: &engine.limits,
            fixed_bytes,
            draft,
            last: state.last(),
            state,
            numbers: Numbers::unreserved_from(next),
            facts: Vec::new(),
        }
    }

    /// Starts with an empty log, to which all of `facts` are still to be appended. `state` is the
    /// fold of `facts`.
    pub(crate) fn new_unsaved(
        log: Arc<dyn SessionLog>,
        limits: &'a Limits,
        state: State,
        facts: Vec<Arc<Event>>,
    ) -> Self {
        let numbers = Numbers::unreserved_from(state.last() + 1);
        Self { log, limits, fixed_bytes: 0, draft: Vec::new(), last: 0, state, numbers, facts }
    }

    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The home of the session.
    pub(crate) fn home(&self) -> Home {
        self.log.home()
    }

    /// Ends everything that a crash has cut. A turn that the first opening continues is not cut.
    pub(crate) fn end_cut_work(&mut self) -> Result<(), Refused> {
        if self.state.continues_when_opened() {
            return Ok(());
        }
        self.end_open_work()
    }

    /// Ends everything that can't continue without an actor.
    pub(crate) fn end_open_work(&mut self) -> Result<(), Refused> {
        let draft = std::mem::take(&mut self.draft);
        self.handle_input(Restore { cause: RestoreCause::Restart, draft })
    }

    /// Decides an input and applies its facts. Its effects are dropped, because there is no actor
    /// for them.
    pub(crate) fn handle_input<I: Input>(&mut self, input: I) -> Result<(), Refused> {
        let Self { limits, fixed_bytes, .. } = *self;
        let moment = Moment {
            now: SystemTime::now().into(),
            next: self.numbers.next(),
            limits,
            fixed_bytes,
        };
        for fact in decide(&self.state, moment, input)?.facts {
            let (turn, step) = self.state.turn_and_step(&fact);
            let event = Arc::new(Event {
                seq: self.numbers.take(),
                at: moment.now,
                turn,
                step,
                body: Body::Fact(fact),
            });
            self.state.apply(&event);
            self.facts.push(event);
        }
        Ok(())
    }

    /// Appends the new facts. Returns the state, and how many facts were appended.
    pub(crate) async fn save(self) -> Result<(State, usize), SessionError> {
        let Self { log, state, last, facts, .. } = self;
        let count = facts.len();
        if count > 0 {
            log.append(last, facts, state.summary()).await?;
        }
        Ok((state, count))
    }
}
