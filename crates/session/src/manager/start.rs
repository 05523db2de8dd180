//! Starting session actors, and the next one after a failure.

use std::rc::Rc;
use std::sync::Arc;

use actix::dev::channel;
use actix::prelude::*;
use futures_util::FutureExt as _;
use holdpoint_common::{
    Body, Event, Fact, ItemId, RestoreCause, SessionError, SessionFact, SessionId, Who,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument;

use super::lifecycle::{ActorEnd, Input, RESTART_DELAY};
use super::owned::Owned;
use super::registry::{Record, Registry, RunningActor, wait_for_end};
use super::{FutureEnd, Live};
use crate::actor::{ActorArgs, Restored, SessionActor, now};
use crate::saved::{LoadedSession, Tail, load_for_owner};
use crate::session_env::SessionEnv;
use crate::state::State;
use crate::store::{Numbers, SessionLog};

/// How many messages wait in a session's mailbox before senders wait.
const MAILBOX: usize = 16;

/// The data that an actor starts with.
pub(super) struct StartState {
    pub(super) state: State,
    /// The facts after the saved state.
    pub(super) tail: Tail,
    pub(super) numbers: Numbers,
    pub(super) log: Arc<dyn SessionLog>,
    pub(super) restored: Option<Restored>,
    pub(super) env: Arc<SessionEnv>,
}

impl Owned {
    /// Starts the session's actor.
    pub(super) async fn start(
        &mut self,
        seen: u64,
        start: StartState,
    ) -> Result<Live, SessionError> {
        self.start_actor(start).await?;
        self.registry.roster.borrow_mut().became_live();
        self.registry.live(&self.id, seen)
    }

    /// Starts the next actor of a session that failed, from its log and with the same environment.
    /// While the log can't be read, the session's state is unknown, so the start is tried again.
    pub(super) async fn rebuild(mut self) {
        while let Err(error) = self.try_rebuild().await {
            tracing::error!(session = %self.id, %error, "session could not be rebuilt");
            if !matches!(error, SessionError::Store { .. }) {
                self.registry.edit_record(&self.id, |record| record.env = None);
                if matches!(error, SessionError::NotOwner { .. }) {
                    self.registry.forget_record(&self.id);
                }
                self.failed = Some(error);
                break;
            }
            self.registry.input(Input::RebuildFailed { id: self.id.clone(), error });
            tokio::time::sleep(RESTART_DELAY).await;
        }
        self.registry.roster.borrow().changed();
    }

    async fn try_rebuild(&mut self) -> Result<(), SessionError> {
        let log = self.registry.engine.store.own(&self.id).await?;
        let LoadedSession { log, state, tail, draft, .. } = load_for_owner(&self.id, log).await?;
        let numbers = Numbers::reserve(&*log).await?;
        let restored = Some(Restored {
            cause: RestoreCause::Panic,
            draft,
            first_item: first_item(&state, &numbers),
        });
        let env = self.registry.read_record(&self.id, |record| record.env.clone()).flatten();
        let env = env.ok_or(SessionError::Stopped)?;
        self.start_actor(StartState { state, tail, numbers, log, restored, env }).await
    }

    /// Starts the actor on an arbiter and watches it.
    async fn start_actor(&mut self, start: StartState) -> Result<(), SessionError> {
        let (registry, id) = (&self.registry, &self.id);
        let StartState { mut state, tail, mut numbers, log, restored, env } = start;
        let mut corrections = Vec::new();
        // The actor that failed may have changed the model or the policy without saving that.
        if env.model.name() != state.settings().model {
            corrections.push(Fact::Session(SessionFact::ModelChanged {
                model: env.model.name().to_owned(),
                by: Who::named("holdpoint"),
            }));
        }
        let policy = env.workspace().policy().mode();
        if policy != state.settings().policy {
            corrections.push(Fact::Session(SessionFact::PolicyChanged {
                policy,
                by: Who::named("holdpoint"),
            }));
        }
        let logged_name = &state.settings().name;
        let name = registry.claim_numbered_name(id, logged_name).await?;
        if name != *logged_name {
            corrections
                .push(Fact::Session(SessionFact::Renamed { name, by: Who::named("holdpoint") }));
        }
        log_corrections(corrections, &mut state, &mut numbers, &*log).await?;
        if registry.is_stopping() {
            return Err(SessionError::Stopped);
        }

        let not_saved = env.not_saved.clone();
        // Newer than any snapshot of the previous actor, so that a client notices that the session
        // is open again.
        let snapshot = Arc::new(state.snapshot(numbers.last_used(), 0, not_saved));
        let opened = state.opened();
        let shown = registry
            .read_record(id, |record| record.shown.clone())
            .unwrap_or_else(|| watch::Sender::new(Arc::clone(&snapshot)));
        shown.send_replace(snapshot);
        let (alive, all_alive) = mpsc::channel(1);
        let (on_end, reported) = oneshot::channel();
        let args = ActorArgs {
            state,
            tail,
            numbers,
            log,
            shown: shown.clone(),
            env: Arc::clone(&env),
            restored,
            alive,
            on_end,
        };
        // The address is made first, so that senders need not wait for the arbiter.
        let (address, mailbox) = channel::channel(MAILBOX);
        let (starts, started) = oneshot::channel();
        let span = tracing::info_span!("session", %id, debug = tracing::field::Empty);
        let spawned = registry.next_arbiter().is_some_and(|arbiter| {
            arbiter.spawn_fn(move || {
                let context = Context::with_receiver(mailbox);
                let actor = context.into_future(SessionActor::new(args)).instrument(span);
                // Only a stopped engine has no receiver.
                let _ = starts.send(actix_rt::spawn(actor));
            })
        });
        if !spawned {
            return Err(SessionError::Stopped);
        }
        let end = registry.watch_actor(id.clone(), started, reported);
        let actor = Some(RunningActor { address: Addr::new(address), alive: all_alive, end });
        if let Some(session) = registry.lifecycle().get_mut(id) {
            session.record = Some(Record { opened, shown, env: Some(env), actor });
        }
        registry.input(Input::Started { id: id.clone() });
        self.started = true;
        self.registry.remove_unused();
        Ok(())
    }
}

impl Registry {
    /// Waits for the end of an actor. The returned future is ready once everything it started has
    /// ended, or at once after a failure.
    fn watch_actor(
        self: &Rc<Self>,
        id: SessionId,
        started: oneshot::Receiver<JoinHandle<()>>,
        mut reported: oneshot::Receiver<ActorEnd>,
    ) -> FutureEnd {
        let registry = Rc::clone(self);
        let watching = actix_rt::spawn(async move {
            let has_panicked = match started.await {
                Ok(actor) => actor.await.is_err(),
                Err(_) => true,
            };
            let end = match reported.try_recv() {
                _ if has_panicked => ActorEnd::Failed,
                Ok(end) => end,
                Err(_) => ActorEnd::Unloaded,
            };
            let alive = registry.actor_ended(&id, end);
            // Boxed, so that a live session needs no memory for this timeout.
            wait_for_end(alive, registry.end_timeout()).boxed_local().await;
            end
        });
        let end: fn(Result<ActorEnd, JoinError>) -> ActorEnd =
            |end| end.unwrap_or(ActorEnd::Failed);
        watching.map(end).shared()
    }
}

/// Logs the changes that a start makes, for example a new name if another live session has taken
/// the old one.
async fn log_corrections(
    facts: Vec<Fact>,
    state: &mut State,
    numbers: &mut Numbers,
    log: &dyn SessionLog,
) -> Result<(), SessionError> {
    if facts.is_empty() {
        return Ok(());
    }
    let last = state.last();
    let event = |fact| {
        Arc::new(Event {
            seq: numbers.take(),
            at: now(),
            turn: None,
            step: None,
            body: Body::Fact(fact),
        })
    };
    let events: Vec<_> = facts.into_iter().map(event).collect();
    state.follow(&events);
    log.append(last, events, state.summary()).await?;
    Ok(())
}

/// The first item id that clients have not seen. One id is skipped for each event number after the
/// last fact: if the last owner saved all facts, every item that is missing from the log took one
/// of these numbers. If not, it gave back none of its reserved numbers, and far more ids are
/// skipped than clients have seen.
pub(super) fn first_item(state: &State, numbers: &Numbers) -> ItemId {
    let unsaved = numbers.last_used().saturating_sub(state.last());
    ItemId(state.next_item().0.saturating_add(unsaved))
}
