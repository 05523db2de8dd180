//! A saved session's log, written on where the session has no actor.

use std::sync::Arc;
use std::time::SystemTime;

use holdpoint_common::{Body, Event, Limits, RestoreCause, SessionId};

use super::fold::{Found, for_owner};
use crate::error::SessionError;
use crate::outfit::Base;
use crate::state::{Input, Moment, Refused, State, decide};
use crate::store::{Numbers, SessionLog};

/// A log that is written on, by whoever has it alone.
pub(crate) struct Scribe<'a> {
    log: Arc<dyn SessionLog>,
    /// Those of the engine: by others, the same log would come to something else.
    limits: &'a Limits,
    /// About how many bytes every request of the session has, where it is known.
    fixed_bytes: u64,
    /// What was saved of an answer that never ended.
    draft: Vec<Arc<Event>>,
    state: State,
    numbers: Numbers,
    /// The last fact of the log.
    last: u64,
    facts: Vec<Arc<Event>>,
}

impl<'a> Scribe<'a> {
    /// Reads what the log of this session comes to.
    pub(crate) async fn of(base: &'a Base, id: &SessionId) -> Result<Self, SessionError> {
        let log = base.store.open(id).await?;
        let Found { log, state, draft, next } = for_owner(id, log).await?;
        let numbers = Numbers::from(next);
        let (limits, fixed_bytes) = (&*base.limits, base.fixed_bytes(state.settings(), &base.system));
        Ok(Self { log, limits, fixed_bytes, draft, last: state.last(), state, numbers, facts: Vec::new() })
    }

    /// A log that has nothing yet of these facts, which come to this state.
    pub(crate) fn of_unsaved(
        log: Arc<dyn SessionLog>,
        limits: &'a Limits,
        state: State,
        facts: Vec<Arc<Event>>,
    ) -> Self {
        let numbers = Numbers::from(state.last() + 1);
        Self { log, limits, fixed_bytes: 0, draft: Vec::new(), last: 0, state, numbers, facts }
    }

    /// What it comes to by now.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Ends what can't go on without an actor.
    pub(crate) fn end_what_is_open(&mut self) -> Result<(), Refused> {
        let draft = std::mem::take(&mut self.draft);
        self.take(Input::Restored { cause: RestoreCause::Restart, draft })
    }

    /// Takes an input in. Of its effects there is nobody to carry them out.
    pub(crate) fn take(&mut self, input: Input) -> Result<(), Refused> {
        let Self { limits, fixed_bytes, .. } = *self;
        let moment = Moment { now: SystemTime::now().into(), next: self.numbers.next(), limits, fixed_bytes };
        for fact in decide(&self.state, moment, input)?.facts {
            let (turn, step) = self.state.place(&fact);
            let event =
                Arc::new(Event { seq: self.numbers.take(), at: moment.now, turn, step, body: Body::Fact(fact) });
            self.state.apply(&event);
            self.facts.push(event);
        }
        Ok(())
    }

    /// Saves what has come of it; what the session is then, and how many facts that took.
    pub(crate) async fn save(self) -> Result<(State, usize), SessionError> {
        let Self { log, state, last, facts, .. } = self;
        let count = facts.len();
        if count > 0 {
            log.append(last, facts, state.summary()).await?;
        }
        Ok((state, count))
    }
}
