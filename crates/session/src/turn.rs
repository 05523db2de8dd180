//! The runner of one turn, which repeats a step of a model request and its tool calls until the
//! turn is done or cut. A runner shares no state, and sends all its reports to the actor through
//! the lane.

mod answer;
mod arguments;
mod call;
mod calls;
mod order;
mod pieces;
mod refusal;
mod request;
mod retry;
mod schema;
mod sourced;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use actix::WeakRecipient;
use futures_util::FutureExt;
use holdpoint_common::{
    ContextFill, EndedProcesses, HistoryLimit, ItemId, Omitted, Outcome, StoppedTool, ToolCall,
    TurnId, Usage,
};
use holdpoint_tools::{BackgroundJobs, SourceContext, ToolRequest, ToolSpec, Toolbox};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::context::{Bounds, Counter};
use crate::instructions::{self, Instructions};
use crate::lane::{GateAnswer, LaneMessage};
use crate::model::ModelError;
use crate::repository::Repository;
use crate::session_env::SessionEnv;
use crate::state::{Conversation, Gate, Report};
use answer::ModelAnswer;
use order::Order;
pub(crate) use pieces::Ticks;
use refusal::Refusal;
pub(crate) use request::count_ahead;
use retry::Tries;

/// The parts of a runner that the next one of the session uses again.
pub(crate) struct Kept {
    pub(crate) toolbox: Toolbox,
    /// The token counter, with the counts of the last request. Created when it is first needed.
    pub(crate) counter: Option<Counter>,
}

/// The arguments of a runner.
pub(crate) struct TurnSetup {
    pub(crate) turn: TurnId,
    /// Whether the turn is an iteration of a run.
    pub(crate) iteration: bool,
    pub(crate) first_item: ItemId,
    /// How many steps the turn took before a restart.
    pub(crate) step: u32,
    /// The calls of the last step that have no result yet. The turn continues with them.
    pub(crate) pending_calls: Vec<ToolCall>,
    /// The usage of that step.
    pub(crate) used: Usage,
    pub(crate) env: Arc<SessionEnv>,
    pub(crate) kept: Kept,
    pub(crate) background: BackgroundJobs,
    /// Cancelled at the cut.
    pub(crate) cancel: CancellationToken,
    pub(crate) lane: mpsc::Sender<LaneMessage>,
    /// Receives the asks of the turn's tools.
    pub(crate) asks: WeakRecipient<ToolRequest>,
    /// Held until everything of the turn has ended.
    pub(crate) alive: mpsc::Sender<()>,
}

/// Runs a turn to its end, and reports the end to the actor.
pub(crate) async fn run(setup: TurnSetup) {
    let lane = setup.lane.clone();
    let _alive = setup.alive.clone();
    let TurnSetup { turn, iteration, first_item, step, pending_calls, used, env, .. } = setup;
    let TurnSetup { kept, background, cancel, lane: to_actor, asks, alive, .. } = setup;
    let Kept { toolbox, counter } = kept;
    let specs = toolbox.specs().cloned().collect();
    let workspace = env.workspace();
    let processes = env.processes(&workspace, env.limits.grace(), &[]);
    let source = SourceContext { workspace, processes, background: background.clone() };
    // A cut in the meantime takes effect at the first gate.
    let system = match cancel.run_until_cancelled(instructions::read(&env)).await {
        None => Arc::clone(&env.system),
        Some(Instructions { system, files, notice }) => {
            let cut = notice.map(|reason| Report::ProjectCut { reason });
            for report in [Report::InstructionsRead(files)].into_iter().chain(cut) {
                // If the actor is gone, the token is cancelled.
                let _ = to_actor.send(LaneMessage::Report(report)).await;
            }
            system
        }
    };
    let repository_before =
        if iteration { cancel.run_until_cancelled(Repository::now(&env)).await } else { None };
    let repository_before = repository_before.flatten();
    let runner = Runner {
        turn,
        is_iteration: iteration,
        repository_before,
        env,
        specs,
        system,
        next_item: first_item,
        continues: false,
        left_out: None,
        omissible: Vec::new(),
        refusals: 0,
        results_omitted: false,
        counter,
        source,
        background,
        cancel,
        lane: to_actor,
        asks,
        alive,
    };
    let end = AssertUnwindSafe(Box::pin(runner.run(step, (pending_calls, used), toolbox)))
        .catch_unwind()
        .await;
    let end = end.unwrap_or_else(|panic| End {
        outcome: Outcome::Panicked,
        error: Some(format!("the turn's runner panicked: {}", panic_text(&*panic))),
        ..End::default()
    });
    let End { outcome, error, tools, processes } = end;
    // The actor may be gone.
    let _ =
        lane.send(LaneMessage::Report(Report::Finished { outcome, error, tools, processes })).await;
}

/// The message of a panic.
fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

/// The end of a turn, for its receipt.
struct End {
    outcome: Outcome,
    error: Option<String>,
    tools: Vec<StoppedTool>,
    processes: EndedProcesses,
}

impl Default for End {
    fn default() -> Self {
        Self {
            outcome: Outcome::Done,
            error: None,
            tools: Vec::new(),
            processes: EndedProcesses::default(),
        }
    }
}

impl End {
    fn with_outcome(outcome: Outcome) -> Self {
        Self { outcome, ..Self::default() }
    }

    fn failed(error: String) -> Self {
        let error = reason(error);
        tracing::warn!(error, "turn failed");
        Self { error: Some(error), ..Self::with_outcome(Outcome::Failed) }
    }
}

/// The most bytes of a reason that a tool, a server or an agent gives.
const MAX_REASON: usize = 8 * 1024;

/// A reason, or its beginning if it is too long.
fn reason(mut text: String) -> String {
    if text.len() > MAX_REASON {
        text.truncate(text.floor_char_boundary(MAX_REASON));
        text.push_str(" …");
    }
    text
}

/// A turn in progress.
struct Runner {
    turn: TurnId,
    /// Whether the turn is an iteration of a run.
    is_iteration: bool,
    /// In a run, the repository of the workspace as it was before the turn.
    repository_before: Option<Repository>,
    env: Arc<SessionEnv>,
    specs: Arc<[Arc<ToolSpec>]>,
    /// The system prompt of this turn, with the project's instructions.
    system: Arc<str>,
    next_item: ItemId,
    /// Whether the next answer continues one that broke off.
    continues: bool,
    /// The last reported cut of the conversation: its limit, and whether it also left out results.
    left_out: Option<(HistoryLimit, bool)>,
    /// The parts of the last request that can be left out if it is refused, and the number of
    /// refusals since the last answer.
    omissible: Vec<Omitted>,
    refusals: u32,
    /// Whether results have been left out in this turn.
    results_omitted: bool,
    /// The token counter, created when it is first needed.
    counter: Option<Counter>,
    /// The parts of the session that a source of tools works with.
    source: SourceContext,
    background: BackgroundJobs,
    cancel: CancellationToken,
    lane: mpsc::Sender<LaneMessage>,
    asks: WeakRecipient<ToolRequest>,
    alive: mpsc::Sender<()>,
}

impl Runner {
    async fn run(
        mut self,
        step: u32,
        pending: (Vec<ToolCall>, Usage),
        mut toolbox: Toolbox,
    ) -> End {
        if !pending.0.is_empty() {
            self.refresh_tools(&mut toolbox).await;
        }
        let mut end = match self.resume_calls(pending, &mut toolbox).await {
            Some(end) => end,
            None => self.steps(step, &mut toolbox).await,
        };
        end.processes.add(toolbox.end_turn(self.cancel.is_cancelled()).await);
        self.report_file_changes().await;
        // If the actor is gone, so are its tools.
        let kept = Kept { toolbox, counter: self.counter.take() };
        let _ = self.lane.send(LaneMessage::Kept(kept)).await;
        end
    }

    /// Reports which files have changed, including changes by commands. Stops at a cut.
    async fn report_file_changes(&self) {
        let before = self.repository_before.as_ref();
        let Some(before) = before.filter(|_| !self.cancel.is_cancelled()) else { return };
        let changed = tokio::select! {
            () = self.cancel.cancelled() => return,
            changed = before.changed_since(&self.env) => changed,
        };
        self.report(Report::FilesChanged(changed)).await;
    }

    /// Continues with the calls that a restart left, in a step with this usage. `Some` if the turn
    /// ends with them.
    async fn resume_calls(
        &self,
        (pending_calls, used): (Vec<ToolCall>, Usage),
        toolbox: &mut Toolbox,
    ) -> Option<End> {
        if pending_calls.is_empty() {
            return None;
        }
        let end = self.calls(pending_calls, Vec::new(), toolbox).await;
        self.report_step_end(used, None).await;
        end
    }

    async fn steps(&mut self, mut step: u32, toolbox: &mut Toolbox) -> End {
        loop {
            let conversation = match self.gate(Gate::Step).await {
                GateAnswer::Step(conversation) => conversation,
                GateAnswer::Limit(reason) => {
                    return End { error: Some(reason), ..End::with_outcome(Outcome::Limit) };
                }
                GateAnswer::Call { .. } | GateAnswer::Denied(_) | GateAnswer::Cut => {
                    return End::with_outcome(Outcome::Interrupted);
                }
            };
            step += 1;
            let span = tracing::info_span!("step", step);
            if let Some(end) = self.step(conversation, toolbox).instrument(span).await {
                return end;
            }
        }
    }

    /// Takes one step. Returns `Some` if it was the last.
    async fn step(&mut self, conversation: Conversation, toolbox: &mut Toolbox) -> Option<End> {
        self.refresh_tools(toolbox).await;
        let request = match self.add_content(&conversation, toolbox).await {
            Ok(content) => self.request(conversation, content.as_deref()).await,
            Err(end) => Err(end),
        };
        let request = match request {
            Ok(request) => request,
            Err(end) => {
                self.report_step_end(Usage::default(), None).await;
                return Some(end);
            }
        };
        let ModelAnswer { message, usage, stop, refused } = self.answer(&request).await;
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
        self.report_step_end(usage, refusal.as_ref()).await;
        match stop {
            answer::Stop::Whole => called.unwrap_or_else(|| Some(End::default())),
            answer::Stop::Cut => Some(End::with_outcome(Outcome::Interrupted)),
            answer::Stop::Limit => {
                let error = "the answer reached its token limit; its tool calls were not run";
                Some(End {
                    outcome: Outcome::Limit,
                    error: Some(error.to_owned()),
                    ..End::default()
                })
            }
            answer::Stop::Broken(error) => self.continue_answer(error).await,
            answer::Stop::Failed(error) => Some(End::failed(error)),
            answer::Stop::Refused(_) => refusal.and_then(Refusal::end),
        }
    }

    /// Handles an answer that broke off: its text is kept, and the model is asked, once, to
    /// continue. Returns `Some` if the model is not asked again.
    async fn continue_answer(&mut self, error: ModelError) -> Option<End> {
        if std::mem::replace(&mut self.continues, true) {
            return Some(End::failed(error.to_string()));
        }
        // Clients see the continuation as the second of two tries.
        match self.wait_for_retry(&mut Tries::default(), 2, error).await {
            None => None,
            Some(answer::Stop::Failed(error)) => Some(End::failed(error)),
            Some(_) => Some(End::with_outcome(Outcome::Interrupted)),
        }
    }

    fn take_item_id(&mut self) -> ItemId {
        let item = self.next_item;
        self.next_item = item.next();
        item
    }

    /// Waits at a gate. If the actor is gone, the turn is cut.
    async fn gate(&self, gate: Gate) -> GateAnswer {
        let (sender, receiver) = oneshot::channel();
        if self.lane.send(LaneMessage::Gate(gate, sender)).await.is_err() {
            return GateAnswer::Cut;
        }
        receiver.await.unwrap_or(GateAnswer::Cut)
    }

    /// Waits at the gate of a call, after the earlier calls of the answer have reached theirs.
    async fn gate_in_order(&self, mut order: Order, gate: Gate) -> GateAnswer {
        order.wait_for_earlier().await;
        let (sender, receiver) = oneshot::channel();
        let sent = self.lane.send(LaneMessage::Gate(gate, sender)).await;
        drop(order);
        if sent.is_err() {
            return GateAnswer::Cut;
        }
        receiver.await.unwrap_or(GateAnswer::Cut)
    }

    /// Sends a report. If the actor is gone, its cancelled token ends the runner.
    async fn report(&self, report: Report) {
        let _ = self.lane.send(LaneMessage::Report(report)).await;
    }

    /// Reports the end of a step. `refusal` is the consequence if the provider refused the step's
    /// request.
    async fn report_step_end(&self, usage: Usage, refusal: Option<&Refusal>) {
        let (refused, omitted) = match refusal {
            Some(Refusal::Omit(omission)) => (false, Some(omission.clone())),
            Some(Refusal::DropPrompts(_)) => (true, None),
            Some(Refusal::KeepPrompts(_)) | None => (false, None),
        };
        let bounds = Bounds::new(&self.env.limits, &self.env.model.settings());
        let filled = usage.total() > 0 && self.env.model.has_context();
        let context = filled.then_some(ContextFill { tokens: usage.total(), limit: bounds.tokens });
        self.report(Report::StepFinished { usage, context, refused, omitted }).await;
    }
}
