//! The runner of one turn: steps of a model request and its tool calls, until nothing is left to do or the
//! turn is cut. Owns nothing shared; all it does, it tells the actor through its lane.

mod answer;
mod arguments;
mod call;
mod calls;
mod order;
mod refusal;
mod request;
mod retry;
mod schema;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix::WeakRecipient;
use futures_util::FutureExt;
use holdpoint_common::{
    ContextFill, EndedProcesses, HistoryLimit, ItemId, Omitted, Outcome, StoppedTool, ToolCall, TurnId, Usage,
};
use holdpoint_tools::{Background, ToolRequest, ToolSpec, Toolbox};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::context::{Bounds, Counter};
use crate::lane::{Lane, Passage};
use crate::model::ModelError;
use crate::outfit::Outfit;
use crate::project;
use crate::repository::Repository;
use crate::state::{Conversation, Gate, Report};
use answer::Answered;
use order::Order;
use refusal::Refusal;
use retry::Tries;

/// What a runner is given.
pub(crate) struct TurnJob {
    pub(crate) turn: TurnId,
    /// It is of a run.
    pub(crate) iteration: bool,
    pub(crate) first_item: ItemId,
    /// The steps it has taken already.
    pub(crate) step: u32,
    /// The calls of its last step that have no result yet: it goes on with them.
    pub(crate) standing: Vec<ToolCall>,
    /// The usage of that step.
    pub(crate) used: Usage,
    pub(crate) outfit: Arc<Outfit>,
    pub(crate) toolbox: Toolbox,
    /// The session's background jobs.
    pub(crate) background: Background,
    /// Cancelled at the cut.
    pub(crate) cancel: CancellationToken,
    pub(crate) lane: mpsc::Sender<Lane>,
    /// Where the turn's tools ask.
    pub(crate) asks: WeakRecipient<ToolRequest>,
    /// Held until nothing of the turn runs any more.
    pub(crate) alive: mpsc::Sender<()>,
}

/// Runs a turn to its end, and tells the actor of it.
pub(crate) async fn run(job: TurnJob) {
    let lane = job.lane.clone();
    let _alive = job.alive.clone();
    let TurnJob { turn, iteration, first_item, step, standing, used, outfit, toolbox, .. } = job;
    let TurnJob { background, cancel, lane: to_actor, asks, alive, .. } = job;
    let specs = toolbox.specs().cloned().collect();
    // Who is cut meanwhile learns it at the first gate.
    let system = cancel.run_until_cancelled(project::system_prompt(&outfit.system, outfit.workspace.root())).await;
    let (system, cut) = system.unwrap_or_else(|| (Arc::clone(&outfit.system), None));
    if let Some(reason) = cut {
        // If the actor is gone, the token is cancelled.
        let _ = to_actor.send(Lane::Report(Report::ProjectCut { reason })).await;
    }
    let before = if iteration { cancel.run_until_cancelled(Repository::now(&outfit.workspace)).await } else { None };
    let before = before.flatten();
    let runner = Runner {
        turn,
        before,
        outfit,
        specs,
        system,
        next_item: first_item,
        continues: false,
        left_out: None,
        omissible: Vec::new(),
        refusals: 0,
        results_omitted: false,
        counter: None,
        background,
        cancel,
        lane: to_actor,
        asks,
        alive,
    };
    let end = AssertUnwindSafe(Box::pin(runner.run(step, (standing, used), toolbox))).catch_unwind().await;
    let end = end.unwrap_or_else(|panic| End {
        outcome: Outcome::Panicked,
        error: Some(format!("the turn's runner panicked: {}", panic_text(&*panic))),
        ..End::default()
    });
    let End { outcome, error, tools, processes } = end;
    // If the actor is gone, nobody is left to be told.
    let _ = lane.send(Lane::Report(Report::Finished { outcome, error, tools, processes })).await;
}

/// What a panic said.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// How a turn ended, for its receipt.
struct End {
    outcome: Outcome,
    error: Option<String>,
    tools: Vec<StoppedTool>,
    processes: EndedProcesses,
}

impl Default for End {
    fn default() -> Self {
        Self { outcome: Outcome::Done, error: None, tools: Vec::new(), processes: EndedProcesses::default() }
    }
}

impl End {
    fn of(outcome: Outcome) -> Self {
        Self { outcome, ..Self::default() }
    }

    fn failed(error: String) -> Self {
        tracing::warn!(error, "the turn failed");
        Self { error: Some(error), ..Self::of(Outcome::Failed) }
    }
}

/// A turn that runs.
struct Runner {
    turn: TurnId,
    /// In a run: the repository of the workspace as it was before.
    before: Option<Repository>,
    outfit: Arc<Outfit>,
    specs: Arc<[ToolSpec]>,
    /// What the model is told about itself in this turn, the project's words included.
    system: Arc<str>,
    next_item: ItemId,
    /// The answer to come goes on with one that broke.
    continues: bool,
    /// The cut of the conversation that was reported last: the limit, and whether results were cut, too.
    left_out: Option<(HistoryLimit, bool)>,
    /// Parts that can be left out of the last request if it is refused, and refusals since the last answer.
    omissible: Vec<Omitted>,
    refusals: u32,
    /// Results were left out in this turn already.
    results_omitted: bool,
    /// Counts tokens, once they have to be.
    counter: Option<Counter>,
    background: Background,
    cancel: CancellationToken,
    lane: mpsc::Sender<Lane>,
    asks: WeakRecipient<ToolRequest>,
    alive: mpsc::Sender<()>,
}

impl Runner {
    async fn run(mut self, step: u32, stood: (Vec<ToolCall>, Usage), mut toolbox: Toolbox) -> End {
        let end = match self.stood(stood, &mut toolbox).await {
            Some(end) => end,
            None => self.steps(step, &mut toolbox).await,
        };
        self.tell_changes().await;
        // If the actor is gone, so are its tools.
        let _ = self.lane.send(Lane::Tools(toolbox)).await;
        end
    }

    /// Tells which files have changed, also by commands. A cut waits for nothing.
    async fn tell_changes(&self) {
        let Some(before) = self.before.as_ref().filter(|_| !self.cancel.is_cancelled()) else { return };
        let changed = tokio::select! {
            () = self.cancel.cancelled() => return,
            changed = before.changed_since(&self.outfit.workspace) => changed,
        };
        self.report(Report::FilesChanged(changed)).await;
    }

    /// Goes on with the calls that a restart has left, of a step that had used so much; `Some` if the turn ends with them.
    async fn stood(&self, (standing, used): (Vec<ToolCall>, Usage), toolbox: &mut Toolbox) -> Option<End> {
        if standing.is_empty() {
            return None;
        }
        let end = self.calls(standing, Vec::new(), toolbox).await;
        self.step_finished(used).await;
        end
    }

    async fn steps(&mut self, mut step: u32, toolbox: &mut Toolbox) -> End {
        loop {
            let history = match self.gate(Gate::Step).await {
                Passage::Step(history) => history,
                Passage::Limit(reason) => return End { error: Some(reason), ..End::of(Outcome::Limit) },
                Passage::Call { .. } | Passage::Denied(_) | Passage::Cut => return End::of(Outcome::Interrupted),
            };
            step += 1;
            let span = tracing::info_span!("step", step);
            if let Some(end) = self.step(history, toolbox).instrument(span).await {
                return end;
            }
        }
    }

    /// One step; `Some` if it was the last.
    async fn step(&mut self, history: Conversation, toolbox: &mut Toolbox) -> Option<End> {
        let request = match self.request(history).await {
            Ok(request) => request,
            Err(end) => {
                self.step_finished(Usage::default()).await;
                return Some(end);
            }
        };
        let Answered { message, usage, stop, refused } = self.answer(&request).await;
        let calls = message.calls.clone();
        self.report(Report::Answered(message)).await;
        let called = match stop {
            answer::Stop::Whole if !calls.is_empty() => {
                self.continues = false;
                Some(self.calls(calls, refused, toolbox).await)
            }
            _ => None,
        };
        let refusal = match &stop {
            answer::Stop::Refused(error) => Some(self.after_refusal(error, &request)),
            _ => None,
        };
        self.step_ended(usage, refusal.as_ref()).await;
        match stop {
            answer::Stop::Whole => called.unwrap_or_else(|| Some(End::default())),
            answer::Stop::Cut => Some(End::of(Outcome::Interrupted)),
            answer::Stop::Limit => {
                let error = "the answer reached the most tokens that one may have; what it wanted to call was not run";
                Some(End { outcome: Outcome::Limit, error: Some(error.to_owned()), ..End::default() })
            }
            answer::Stop::Broken(error) => self.go_on(error).await,
            answer::Stop::Failed(error) => Some(End::failed(error)),
            answer::Stop::Refused(_) => refusal.and_then(Refusal::end),
        }
    }

    /// After an answer that broke in the middle: what was said is kept, and the model is asked, once, to go on.
    /// `Some`: it is not.
    async fn go_on(&mut self, error: ModelError) -> Option<End> {
        if std::mem::replace(&mut self.continues, true) {
            return Some(End::failed(error.to_string()));
        }
        match self.again(&mut Tries::default(), 2, error).await {
            None => None,
            Some(answer::Stop::Failed(error)) => Some(End::failed(error)),
            Some(_) => Some(End::of(Outcome::Interrupted)),
        }
    }

    fn item(&mut self) -> ItemId {
        let item = self.next_item;
        self.next_item = item.next();
        item
    }

    /// Waits at a gate. An actor that is gone lets nothing through.
    async fn gate(&self, gate: Gate) -> Passage {
        let (runner, passage) = oneshot::channel();
        if self.lane.send(Lane::Gate(gate, runner)).await.is_err() {
            return Passage::Cut;
        }
        passage.await.unwrap_or(Passage::Cut)
    }

    /// The same for a call, when those before it in its answer have come to theirs.
    async fn gate_in(&self, mut order: Order, gate: Gate) -> Passage {
        order.comes().await;
        let (runner, passage) = oneshot::channel();
        let sent = self.lane.send(Lane::Gate(gate, runner)).await;
        drop(order);
        if sent.is_err() {
            return Passage::Cut;
        }
        passage.await.unwrap_or(Passage::Cut)
    }

    /// Tells the actor. If it is gone, its token is cancelled, and the runner ends by that.
    async fn report(&self, report: Report) {
        let _ = self.lane.send(Lane::Report(report)).await;
    }

    async fn step_finished(&self, usage: Usage) {
        self.step_ended(usage, None).await;
    }

    /// `refusal`: the consequence of the provider's refusal, if it refused the step's request.
    async fn step_ended(&self, usage: Usage, refusal: Option<&Refusal>) {
        let (refused, omitted) = match refusal {
            Some(Refusal::Omit(omission)) => (false, Some(omission.clone())),
            Some(Refusal::DropWords(_)) => (true, None),
            Some(Refusal::Keep(_)) | None => (false, None),
        };
        let bounds = Bounds::of(&self.outfit.limits, &self.outfit.model.settings());
        let filled = usage.total() > 0 && self.outfit.model.has_context();
        let context = filled.then_some(ContextFill { tokens: usage.total(), limit: bounds.tokens });
        self.report(Report::StepFinished { usage, context, refused, omitted }).await;
    }
}
