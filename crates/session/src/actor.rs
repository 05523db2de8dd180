//! The actor of one session, the only owner of its state.
//!
//! A message becomes an [`Input`], and the machine decides. The actor numbers, applies and saves
//! the facts, and their consequences leave through the outbox. Handlers never block and never wait.

mod ask;
mod client;
mod conversation;
mod draft;
mod gate;
mod lease;
mod model;
mod outbox;
mod policy;
mod queue;
mod refused;
pub(crate) mod ring;
mod run;
mod runner;
mod saving;
mod shutdown;
mod state_saves;
mod turn_end;
mod verbs;

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use actix::dev::{MessageResponse, OneshotSender};
use actix::prelude::*;
use futures_util::FutureExt;
use holdpoint_common::{
    AskFact, Body, Delta, Event, Fact, ItemId, Refused, RestoreCause, SessionStatus, Snapshot,
    Timestamp, ToolFact, ToolResult, ToolStatus, TurnFact,
};
use holdpoint_tools::BackgroundJobs;
use tokio::sync::{mpsc, oneshot, watch};

use crate::manager::ActorEnd;
use crate::saved::Tail;
use crate::session_env::SessionEnv;
use crate::state::{Effect, Input, Phase, Restore, State, decide};
use crate::store::{NUMBER_BLOCK, Numbers, SessionLog, StoreError};
use crate::turn::Kept;
use ask::ToolAsks;
use conversation::ConversationReads;
use draft::Draft;
use gate::Gates;
use outbox::{Action, Outbox, Parcel};
use ring::Ring;
use runner::Runner;
use saving::RETRY_DELAY;
use state_saves::StateSaves;
use turn_end::TurnEndWaiters;

pub(crate) use client::{Attach, Attached, ClientQueue, OlderFacts};
pub(crate) use lease::CheckOwner;
pub(crate) use model::UseModel;
pub(crate) use policy::UsePolicy;
pub(crate) use refused::RecordRefusal;
#[cfg(feature = "test-support")]
pub(crate) use shutdown::PanicNow;
pub(crate) use shutdown::Unload;
pub(crate) use turn_end::AwaitEnd;
pub(crate) use verbs::Act;

/// The actor of one session.
pub(crate) struct SessionActor {
    state: State,
    /// The reserved event numbers.
    numbers: Numbers,
    /// Whether a reservation of more numbers is under way, or waits for its retry.
    reserving: bool,
    /// The lowest item id that a runner of this actor may use.
    first_item: ItemId,
    log: Arc<dyn SessionLog>,
    outbox: Outbox,
    /// When the state is saved next.
    state_saves: StateSaves,
    /// The reading of a restored conversation.
    conversation: ConversationReads,
    /// The unsaved part of the answer that is streaming.
    draft: Draft,
    /// The newest events, for clients that attach.
    ring: Ring,
    clients: client::Clients,
    /// The last published snapshot. The manager has a sender too, so the snapshot outlives this
    /// actor.
    shown: watch::Sender<Arc<Snapshot>>,
    /// The status that was last published to clients.
    published_status: SessionStatus,
    runner: Option<Runner>,
    /// The session's tools and token counter, unless a runner has them.
    kept: Option<Kept>,
    /// The session's background jobs, which end when this actor is dropped.
    background: BackgroundJobs,
    gates: Gates,
    asks: ToolAsks,
    ends: TurnEndWaiters,
    /// Information about the previous actor, if there was one. Taken when this actor starts.
    restored: Option<Restored>,
    env: Arc<SessionEnv>,
    /// Cloned into every runner, so that the manager can wait until all of them have ended.
    alive: mpsc::Sender<()>,
    /// Whether a check of the lease is scheduled.
    watching_lease: bool,
    /// How often the lease had lapsed when the session's processes began to run.
    lapses: u64,
    /// Whether the session has moved to another folder, where its next actor is.
    handed_over: bool,
    /// Receives how this actor ends, unless it is unloaded or fails.
    on_end: Option<oneshot::Sender<ActorEnd>>,
}

/// The arguments of [`SessionActor::new`].
pub(crate) struct ActorArgs {
    pub(crate) state: State,
    /// The facts after the saved state.
    pub(crate) tail: Tail,
    pub(crate) numbers: Numbers,
    pub(crate) log: Arc<dyn SessionLog>,
    pub(crate) shown: watch::Sender<Arc<Snapshot>>,
    pub(crate) env: Arc<SessionEnv>,
    pub(crate) restored: Option<Restored>,
    pub(crate) alive: mpsc::Sender<()>,
    pub(crate) on_end: oneshot::Sender<ActorEnd>,
}

/// The information that a new actor has about the one before it.
pub(crate) struct Restored {
    /// Why the previous actor ended.
    pub(crate) cause: RestoreCause,
    /// The saved part of an answer that was still streaming.
    pub(crate) draft: Vec<Arc<Event>>,
    /// The lowest free item id. The previous actor may have published items that were never saved.
    pub(crate) first_item: ItemId,
}

impl SessionActor {
    pub(crate) fn new(args: ActorArgs) -> Self {
        let ActorArgs { state, tail, numbers, log, shown, env, restored, alive, on_end } = args;
        Self {
            first_item: restored.as_ref().map_or(ItemId(1), |restored| restored.first_item),
            outbox: Outbox::after(state.last()),
            state_saves: StateSaves::after(tail),
            conversation: ConversationReads::default(),
            draft: Draft::default(),
            ring: Ring::new(&env.limits, numbers.last_used()),
            clients: client::Clients::default(),
            published_status: state.status(),
            runner: None,
            kept: None,
            background: BackgroundJobs::new(Arc::new(alive.clone())),
            gates: Gates::default(),
            asks: ToolAsks::default(),
            ends: TurnEndWaiters::default(),
            state,
            numbers,
            reserving: false,
            log,
            shown,
            restored,
            env,
            alive,
            watching_lease: false,
            lapses: 0,
            handed_over: false,
            on_end: Some(on_end),
        }
    }

    /// Handles an input: decides, applies the facts and dispatches their consequences.
    fn handle_input<I: Input>(
        &mut self,
        input: I,
        ctx: &mut Context<Self>,
    ) -> Result<I::Reply, Refused> {
        let moment = self.env.moment(self.numbers.next());
        let decision = decide(&self.state, moment, input)?;
        let has_changed = !decision.facts.is_empty();
        self.apply_decision(decision.facts, decision.effects, Vec::new(), ctx);
        if has_changed {
            self.ask_gates_again(ctx);
        }
        Ok(decision.reply)
    }

    /// Carries out a decision: numbers and applies its facts, and dispatches them with the effects
    /// and `actions`.
    fn apply_decision(
        &mut self,
        facts: Vec<Fact>,
        mut effects: Vec<Effect>,
        mut actions: Vec<Action>,
        ctx: &mut Context<Self>,
    ) {
        let at = now();
        // Cuts go first: a tool that wakes because its ask was closed must already see the cut.
        for cut in effects
            .extract_if(.., |effect| matches!(effect, Effect::Cancel { .. } | Effect::Abandon))
        {
            match cut {
                Effect::Cancel { turn } => self.cancel_runner(turn),
                _ => self.end_runner(ctx),
            }
        }
        let mut numbered = Vec::with_capacity(facts.len());
        for mut fact in facts {
            if let Fact::Tool(ToolFact::Finished(result)) = &mut fact {
                self.keep_output(Arc::make_mut(result));
            }
            let (turn, step) = self.state.turn_and_step(&fact);
            let event = Arc::new(Event {
                seq: self.take_number(ctx),
                at,
                turn,
                step,
                body: Body::Fact(fact),
            });
            self.state.apply(&event);
            match event.fact() {
                Some(Fact::Turn(TurnFact::AssistantMessage(_))) => self.end_draft(ctx),
                Some(Fact::Ask(AskFact::Closed { ask, .. })) => self.asks.close(ask),
                Some(Fact::Turn(TurnFact::Finished { outcome, receipt, .. })) => {
                    self.end_draft(ctx);
                    self.end_runner(ctx);
                    actions
                        .extend(turn.map(|turn| Action::TurnOver(turn, *outcome, receipt.clone())));
                }
                _ => {}
            }
            numbered.push(event);
        }
        self.start_cut_turn(ctx);
        for effect in effects {
            match effect {
                // Done above.
                Effect::Cancel { .. } | Effect::Abandon => {}
                Effect::Start { turn } => actions.push(Action::Start(turn)),
                Effect::Wait { turn, wait_ms } => actions.push(Action::Wait(turn, wait_ms)),
                Effect::Wake { ask, reply } => actions.push(Action::Wake(ask, reply)),
                Effect::Stop => actions.push(Action::Stop),
            }
        }
        let mut events = numbered.clone();
        if self.state.status() != self.published_status {
            self.published_status = self.state.status();
            tracing::debug!(status = %self.published_status, "status");
            let turn = self.state.turn().map(|turn| turn.id);
            let body = Body::Delta(Delta::Status { status: self.published_status });
            let seq = self.take_number(ctx);
            events.push(Arc::new(Event { seq, at, turn, step: None, body }));
        }
        let snapshot = (!numbered.is_empty()).then(|| {
            let seq = events.last().map_or(0, |event| event.seq);
            self.state.snapshot(seq, self.clients.len(), None)
        });
        if !events.is_empty() || !actions.is_empty() {
            self.dispatch(numbered, Parcel { events, snapshot, actions }, ctx);
        }
    }

    /// Adds the output to the result of a call that was ended by the session, not by its runner.
    /// The output is the text in the ring and in the outbox.
    fn keep_output(&self, result: &mut ToolResult) {
        let has_begun = self.state.turn().is_some_and(|turn| turn.has_begun(result.call));
        if result.status != ToolStatus::Interrupted || !result.output.is_empty() || !has_begun {
            return;
        }
        let item = result.call.item();
        let mut output = self.ring.output(item);
        self.outbox
            .events()
            .filter_map(|event| ring::added_text(event, item))
            .for_each(|text| output.push(text));
        result.output = output.finish();
    }

    /// Numbers a delta of the open turn and publishes it, behind the parcels in the outbox.
    fn publish_delta(&mut self, delta: Delta, ctx: &mut Context<Self>) {
        let open = self.state.turn();
        let turn = open.map(|open| open.id);
        // Step 0 means that no step has begun.
        let step = open.map(|open| open.step).filter(|step| *step > 0);
        let event = Arc::new(Event {
            seq: self.take_number(ctx),
            at: now(),
            turn,
            step,
            body: Body::Delta(delta),
        });
        self.add_to_draft(&event, ctx);
        if self.outbox.is_empty() {
            self.publish(event);
        } else {
            self.dispatch(Vec::new(), Parcel { events: vec![event], ..Parcel::default() }, ctx);
        }
    }

    /// Returns the next number. More are reserved long before the last one is used, and a failed
    /// reservation is retried.
    fn take_number(&mut self, ctx: &mut Context<Self>) -> u64 {
        let next = self.numbers.take();
        if self.numbers.run_low() && !self.reserving {
            self.reserving = true;
            let mut reserving = self.log.reserve(NUMBER_BLOCK);
            match (&mut reserving).now_or_never() {
                Some(reserved) => self.reserved(reserved, ctx),
                None => {
                    ctx.spawn(
                        reserving
                            .into_actor(self)
                            .map(|reserved, actor, ctx| actor.reserved(reserved, ctx)),
                    );
                }
            }
        }
        next
    }

    fn reserved(&mut self, reserved: Result<Range<u64>, StoreError>, ctx: &mut Context<Self>) {
        match reserved {
            Ok(reserved) => {
                self.reserving = false;
                self.numbers.extend(&reserved);
            }
            Err(error) if self.end_if_fenced(&error, ctx) => {}
            Err(error) => {
                tracing::error!(%error, "event numbers could not be reserved");
                ctx.run_later(RETRY_DELAY, |actor, _| actor.reserving = false);
            }
        }
    }

    /// Replies to a message once its facts are saved. The argument of `make` says whether they are.
    fn reply<R: Send + 'static>(
        &mut self,
        make: impl FnOnce(bool) -> R + 'static,
        ctx: &mut Context<Self>,
    ) -> Replied<R> {
        if self.outbox.is_empty() {
            return Replied::Now(make(self.outbox.is_saved() && self.env.not_saved.is_none()));
        }
        let (sender, receiver) = oneshot::channel();
        let action = Action::Reply(Box::new(move |saved| {
            // The client may be gone.
            let _ = sender.send(make(saved));
        }));
        self.dispatch(Vec::new(), Parcel { actions: vec![action], ..Parcel::default() }, ctx);
        Replied::Later(receiver)
    }

    /// Reports how this actor ends, unless that was reported before.
    fn end_as(&mut self, end: ActorEnd) {
        if let Some(on_end) = self.on_end.take() {
            // The receiver may be gone.
            let _ = on_end.send(end);
        }
    }

    /// Records the field `debug` in the session's span. Everything the session does, on any thread,
    /// is logged inside this span, and the program's subscriber decides which lines to write.
    fn record_debug(&self, enabled: bool) {
        tracing::Span::current().record("debug", enabled);
    }

    /// Publishes a new snapshot.
    fn publish_snapshot(&self, snapshot: Snapshot) {
        self.shown.send_replace(Arc::new(snapshot));
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.env.workspace().files().recall(self.state.files_seen().cloned());
        if self.state.is_debug_enabled() {
            self.record_debug(true);
        }
        let seq = self.numbers.last_used();
        self.publish_snapshot(self.state.snapshot(seq, 0, self.env.not_saved.clone()));
        if let Some(Restored { cause, draft, .. }) = self.restored.take() {
            // Never refused.
            let _ = self.handle_input(Restore { cause, draft }, ctx);
        }
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        // With unsaved facts, the numbers stay reserved: the next actor then skips more item ids
        // than clients have seen.
        if self.outbox.is_saved() {
            actix_rt::spawn(self.numbers.give_back(&*self.log));
        }
        if matches!(self.state.phase(), Phase::Closed) {
            self.end_as(ActorEnd::Closed);
        }
        if self.handed_over && self.outbox.is_saved() {
            self.move_clients();
            self.end_as(ActorEnd::Lost);
        }
    }
}

impl Drop for SessionActor {
    fn drop(&mut self) {
        self.background.close();
    }
}

/// The reply to a message: sent at once, or when the facts of the message are saved.
pub(crate) enum Replied<R> {
    Now(R),
    Later(oneshot::Receiver<R>),
    /// No reply is sent, and the sender learns that the actor has ended.
    Never,
}

impl<R, M> MessageResponse<SessionActor, M> for Replied<R>
where
    R: Send + 'static,
    M: Message<Result = R>,
{
    fn handle(self, _: &mut Context<SessionActor>, sender: Option<OneshotSender<R>>) {
        let Some(sender) = sender else { return };
        match self {
            Self::Now(reply) => {
                // The sender may be gone.
                let _ = sender.send(reply);
            }
            Self::Never => {}
            Self::Later(reply) => {
                actix_rt::spawn(async move {
                    if let Ok(reply) = reply.await {
                        let _ = sender.send(reply);
                    }
                });
            }
        }
    }
}

/// The current time, as events carry it.
pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}
