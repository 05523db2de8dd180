//! The actor of one session: the one owner of its state.
//!
//! A message becomes an [`Input`], the machine decides, the facts are numbered, applied and saved, and what
//! follows from them leaves through the outbox. Handlers never block and never wait.

mod ask;
mod client;
mod close;
mod debug;
mod draft;
mod gate;
mod hold;
mod interrupt;
mod model;
mod outbox;
mod prompt;
mod queue;
mod rename;
pub(crate) mod ring;
mod run;
mod runner;

use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use actix::dev::{MessageResponse, OneshotSender};
use actix::prelude::*;
use futures_util::FutureExt;
use holdpoint_common::{
    Body, Delta, Event, Fact, ItemId, RestoreCause, SessionStatus, Snapshot, Timestamp, ToolResult, ToolStatus,
};
use holdpoint_tools::{Background, Toolbox};
use tokio::sync::{mpsc, oneshot, watch};

use crate::outfit::Outfit;
use crate::state::{Effect, Input, Phase, Refused, Reply, State, decide};
use crate::store::{NUMBERS, Numbers, SessionLog, StoreError};
use ask::ToolAsks;
use draft::Draft;
use gate::Gates;
use interrupt::Ends;
use outbox::{Action, Outbox, Parcel, RETRY};
use ring::Ring;
use runner::Runner;

pub(crate) use ask::AnswerAsk;
pub(crate) use client::{Attach, Attached, ClientQueue, Older};
#[cfg(feature = "test-support")]
pub(crate) use close::PanicNow;
pub(crate) use close::{Close, Shutdown, Unload};
pub(crate) use debug::ChangeDebug;
pub(crate) use hold::{Hold, Release, ToggleHold};
pub(crate) use interrupt::{AwaitEnd, Interrupt, Interrupted};
pub(crate) use model::ChangeModel;
pub(crate) use prompt::Prompt;
pub(crate) use rename::Rename;
pub(crate) use run::StartRun;

/// One session.
pub(crate) struct SessionActor {
    /// What the machine decides on and facts are applied to.
    state: State,
    /// The numbers of the events to come.
    numbers: Numbers,
    /// More numbers have been asked for.
    reserving: bool,
    /// No item gets a name before this one.
    first_item: ItemId,
    /// Where the facts are saved.
    log: Arc<dyn SessionLog>,
    /// What waits for saves.
    outbox: Outbox,
    /// What is not saved of an answer that is still coming.
    draft: Draft,
    /// The newest events, for those who attach.
    ring: Ring,
    /// Those who are attached.
    clients: client::Clients,
    /// The last snapshot published. It outlives this actor: the manager has the other end.
    shown: watch::Sender<Arc<Snapshot>>,
    /// The status that clients were last told.
    told: SessionStatus,
    /// The runner of the open turn.
    runner: Option<Runner>,
    /// The session's tools, while no runner has them.
    toolbox: Option<Toolbox>,
    /// Its background jobs. They end with it, however it ends.
    background: Background,
    /// Runners that wait to begin something.
    gates: Gates,
    /// The asks of tools.
    asks: ToolAsks,
    /// Those who wait for a turn's end.
    ends: Ends,
    /// What had ended the actor before this one, if there was one, and what it had saved of an answer.
    restored: Option<Restored>,
    /// What the session works with.
    outfit: Arc<Outfit>,
    /// Held by every runner of the session: when all are dropped, nothing of it runs any more.
    alive: mpsc::Sender<()>,
    /// Told when it ends and the session is closed.
    closes: Option<oneshot::Sender<()>>,
}

/// What an actor is made of.
pub(crate) struct Parts {
    pub(crate) state: State,
    pub(crate) numbers: Numbers,
    pub(crate) log: Arc<dyn SessionLog>,
    pub(crate) shown: watch::Sender<Arc<Snapshot>>,
    pub(crate) outfit: Arc<Outfit>,
    pub(crate) restored: Option<Restored>,
    pub(crate) alive: mpsc::Sender<()>,
    pub(crate) closes: oneshot::Sender<()>,
}

/// What an actor is rebuilt after.
pub(crate) struct Restored {
    /// What had ended the one before.
    pub(crate) cause: RestoreCause,
    /// What it had saved of an answer that was still coming.
    pub(crate) draft: Vec<Arc<Event>>,
    /// No item gets a name before this one: the one before may have told of items that nobody saved.
    pub(crate) first_item: ItemId,
}

impl SessionActor {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { state, numbers, log, shown, outfit, restored, alive, closes } = parts;
        Self {
            first_item: restored.as_ref().map_or(ItemId(1), |restored| restored.first_item),
            outbox: Outbox::after(state.last()),
            draft: Draft::default(),
            ring: Ring::new(&outfit.limits, numbers.used()),
            clients: client::Clients::default(),
            told: state.status(),
            runner: None,
            toolbox: None,
            background: Background::new(Arc::new(alive.clone())),
            gates: Gates::default(),
            asks: ToolAsks::default(),
            ends: Ends::default(),
            state,
            numbers,
            reserving: false,
            log,
            shown,
            restored,
            outfit,
            alive,
            closes: Some(closes),
        }
    }

    /// Takes an input in: decides, applies, and sends what follows on its way.
    fn take(&mut self, input: Input, ctx: &mut Context<Self>) -> Result<Reply, Refused> {
        let moment = self.outfit.moment(self.numbers.next());
        let decision = decide(&self.state, moment, input)?;
        let settled = !decision.facts.is_empty();
        self.enact(decision.facts, decision.effects, Vec::new(), ctx);
        if settled {
            self.ask_gates_again(ctx);
        }
        Ok(decision.reply)
    }

    /// Makes facts of a decision: numbers them, applies them, and sends them and the effects on their way.
    fn enact(&mut self, facts: Vec<Fact>, mut effects: Vec<Effect>, mut actions: Vec<Action>, ctx: &mut Context<Self>) {
        let at = now();
        // First of all: whoever wakes because its ask is closed has to see that it was cut.
        for cut in effects.extract_if(.., |effect| matches!(effect, Effect::Cancel { .. } | Effect::Abandon)) {
            match cut {
                Effect::Cancel { turn } => self.cancel_runner(turn),
                _ => self.end_runner(ctx),
            }
        }
        let mut numbered = Vec::with_capacity(facts.len());
        for mut fact in facts {
            if let Fact::ToolFinished(result) = &mut fact {
                self.keep_output(result);
            }
            let (turn, step) = self.state.place(&fact);
            let event = Arc::new(Event { seq: self.number(ctx), at, turn, step, body: Body::Fact(fact) });
            self.state.apply(&event);
            match event.fact() {
                Some(Fact::AssistantMessage(_)) => self.end_draft(ctx),
                Some(Fact::AskClosed { ask, .. }) => self.asks.close(ask),
                Some(Fact::TurnFinished { outcome, receipt, .. }) => {
                    self.end_draft(ctx);
                    self.end_runner(ctx);
                    actions.extend(turn.map(|turn| Action::TurnOver(turn, *outcome, receipt.clone())));
                }
                _ => {}
            }
            numbered.push(event);
        }
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
        if self.state.status() != self.told {
            self.told = self.state.status();
            tracing::debug!(status = %self.told, "status");
            let (turn, step) = (self.state.turn().map(|turn| turn.id), None);
            let body = Body::Delta(Delta::Status { status: self.told });
            events.push(Arc::new(Event { seq: self.number(ctx), at, turn, step, body }));
        }
        let snapshot = (!numbered.is_empty()).then(|| {
            let seq = events.last().map_or(0, |event| event.seq);
            self.state.snapshot(seq, self.clients.len(), None)
        });
        if !events.is_empty() || !actions.is_empty() {
            self.dispatch(numbered, Parcel { events, snapshot, actions }, ctx);
        }
    }

    /// Gives a call that was ended in its runner's place the output that was sent on its way already.
    fn keep_output(&self, result: &mut ToolResult) {
        if result.status != ToolStatus::Interrupted || !result.output.is_empty() {
            return;
        }
        let item = result.call.item();
        let mut output = self.ring.output(item);
        self.outbox.events().filter_map(|event| ring::added_text(event, item)).for_each(|text| output.push(text));
        result.output = output.finish();
    }

    /// Numbers a delta of the open turn and sends it on its way.
    fn tell(&mut self, delta: Delta, ctx: &mut Context<Self>) {
        let turn = self.state.turn();
        let (turn, step) = (turn.map(|turn| turn.id), turn.map(|turn| turn.step).filter(|step| *step > 0));
        let event = Arc::new(Event { seq: self.number(ctx), at: now(), turn, step, body: Body::Delta(delta) });
        self.drafted(&event, ctx);
        if self.outbox.is_empty() {
            self.publish(event);
        } else {
            self.dispatch(Vec::new(), Parcel { events: vec![event], ..Parcel::default() }, ctx);
        }
    }

    /// The next number. New ones are set aside well before the last is used, and asked for again if that fails.
    fn number(&mut self, ctx: &mut Context<Self>) -> u64 {
        let next = self.numbers.take();
        if self.numbers.run_low() && !self.reserving {
            self.reserving = true;
            let mut reserving = self.log.reserve(NUMBERS);
            match (&mut reserving).now_or_never() {
                Some(reserved) => self.reserved(reserved, ctx),
                None => {
                    ctx.spawn(reserving.into_actor(self).map(|reserved, actor, ctx| actor.reserved(reserved, ctx)));
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
            Err(error) => {
                tracing::error!(%error, "no numbers could be set aside");
                ctx.run_later(RETRY, |actor, _| actor.reserving = false);
            }
        }
    }

    /// Answers a message once what it did is saved.
    fn reply<R: Send + 'static>(
        &mut self,
        make: impl FnOnce(bool) -> R + 'static,
        ctx: &mut Context<Self>,
    ) -> Replied<R> {
        if self.outbox.is_empty() {
            return Replied::Now(make(self.outbox.is_saved() && self.outfit.not_saved.is_none()));
        }
        let (told, reply) = oneshot::channel();
        let action = Action::Reply(Box::new(move |saved| {
            // Who asked may be gone.
            let _ = told.send(make(saved));
        }));
        self.dispatch(Vec::new(), Parcel { actions: vec![action], ..Parcel::default() }, ctx);
        Replied::Later(reply)
    }

    /// Replaces what clients see.
    fn show(&self, snapshot: Snapshot) {
        self.shown.send_replace(Arc::new(snapshot));
    }
}

impl Actor for SessionActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.outfit.workspace.files().recall(self.state.files_seen().cloned());
        if self.state.is_debug_enabled() {
            self.log_debug(true);
        }
        let seq = self.numbers.used();
        self.show(self.state.snapshot(seq, 0, self.outfit.not_saved.clone()));
        if let Some(Restored { cause, draft, .. }) = self.restored.take() {
            // `Restored` is never refused.
            let _ = self.take(Input::Restored { cause, draft }, ctx);
        }
    }

    fn stopped(&mut self, _: &mut Self::Context) {
        // One unsaved fact may name many items that clients have seen.
        if self.outbox.is_saved() {
            actix_rt::spawn(self.numbers.give_back(&*self.log));
        }
        if matches!(self.state.phase(), Phase::Closed)
            && let Some(closes) = self.closes.take()
        {
            // Who watches it may be gone.
            let _ = closes.send(());
        }
    }
}

impl Drop for SessionActor {
    fn drop(&mut self) {
        self.background.close();
    }
}

/// The answer to a message: at once, or when what it did is saved.
pub(crate) enum Replied<R> {
    Now(R),
    Later(oneshot::Receiver<R>),
    /// Whoever asks learns that the actor has ended.
    Never,
}

impl<R, M> MessageResponse<SessionActor, M> for Replied<R>
where
    R: Send + 'static,
    M: Message<Result = R>,
{
    fn handle(self, _: &mut Context<SessionActor>, told: Option<OneshotSender<R>>) {
        let Some(told) = told else { return };
        match self {
            Self::Now(reply) => {
                // Who asked may be gone.
                let _ = told.send(reply);
            }
            Self::Never => {}
            Self::Later(reply) => {
                actix_rt::spawn(async move {
                    if let Ok(reply) = reply.await {
                        let _ = told.send(reply);
                    }
                });
            }
        }
    }
}

/// The time as events carry it.
pub(crate) fn now() -> Timestamp {
    SystemTime::now().into()
}
