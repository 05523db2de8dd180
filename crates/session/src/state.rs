//! The state of one session, folded from its facts alone.
//!
//! [`decide`] turns an input into a decision, and [`State::apply`] changes the state by one fact.
//! Both are pure: no clock, no I/O, no tasks. The owner of a state numbers the facts, saves them,
//! applies them and carries out the effects.
//!
//! A state has three independent parts: the [`Phase`], the open asks and the hold. The status is
//! computed from them.

mod apply;
mod conversation;
mod decide;
mod decision;
mod input;
mod phase;
mod saved;
mod shown;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use holdpoint_common::{
    Answer, AnsweredBy, Ask, AskCloseCause, AskRequest, AsksMode, CallId, ContextFill, Event, Fact,
    FileMark, Gaps, Hold, IdempotencyKey, InstructionFile, ItemId, Job, JobFact, LastRun, LastTurn,
    PolicyMode, PolicyRules, PromptFact, PromptId, Run, RunFact, SandboxSettings, SessionFact,
    SessionId, SessionSettings, SessionStatus, SessionSummary, Tasks, Timestamp, TurnFact, TurnId,
    Usage,
};
use serde::{Deserialize, Serialize};

pub use conversation::{Conversation, MAX_CONVERSATION_BYTES, UnreadPart};
pub use decide::decide;
pub use decision::{Decision, Effect, GateReply, Handover, Reception};
pub use input::{
    AnswerAway, ByClient, ChangeTasks, Clearance, Confirm, Decide, Gate, HandOver, Input, JobEnded,
    JobStarted, Moment, PassGate, RaiseAsk, Report, Restore, RunnerReport, Shutdown, WaitOver,
    WithdrawAsk,
};
pub use phase::{CallStage, Cut, OpenStep, Phase, Turn};

/// The state of one session, as the machine folds it from the session's facts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct State {
    settings: Arc<SessionSettings>,
    /// The first line of the first prompt or goal, or the name given by the last rename.
    title: Option<String>,
    /// The last line of text in the newest answer that has any.
    last_line: Option<String>,
    /// Whether the session is logged at debug level.
    debug: bool,
    /// The own session of the agent that the session hosts.
    agent_session: Option<String>,
    /// When the session was first opened.
    opened: Timestamp,
    /// The number and the time of the last fact.
    last: u64,
    last_at: Timestamp,
    /// When the status last changed.
    since: Timestamp,
    /// The time worked so far in milliseconds, and when the current stretch of work began.
    worked_ms: u64,
    working_since: Option<Timestamp>,
    phase: Phase,
    /// Whether the state was restored after a restart and has begun no work since.
    restarted: bool,
    /// Whether the first opening continues the open turn: the session was moved, or an ask was answered
    /// while its machine did not respond, and it was not opened since.
    continues: bool,
    /// Whether the open turn has moved since its last step began: its Confirms are asked again if their
    /// calls have another effect in the new folder.
    turn_moved: bool,
    /// The number of the last fact that gave the session work or began it: a prompt, a run or a
    /// turn, or a gap that may contain one.
    last_work: u64,
    /// The open asks, oldest first.
    asks: VecDeque<Ask>,
    /// How each ask that is no longer open was settled, by the number of the ask.
    settled: BTreeMap<u64, Settled>,
    /// The answers given with *always*, by the key of their calls. A restore removes approvals. A
    /// change of the policy mode and the end of the session remove all answers.
    always: BTreeMap<String, Answer>,
    hold: Hold,
    /// The accepted prompts that wait, each as its [`PromptFact::Accepted`].
    queue: VecDeque<Arc<Event>>,
    /// The newest prompts with a key, oldest first. A second request with the same key adds no prompt.
    keyed_prompts: VecDeque<(IdempotencyKey, PromptId)>,
    /// The run in progress, and the end of the one before.
    run: Option<Run>,
    last_run: Option<LastRun>,
    tasks: Tasks,
    /// How many tasks were already done or dropped when the last run began.
    closed_before_run: usize,
    /// The running background jobs, oldest first.
    jobs: Vec<Job>,
    /// The ids after the newest known ones.
    next_turn: TurnId,
    next_prompt: PromptId,
    next_item: ItemId,
    /// How many more ids the lost facts may have used.
    lost: LostIds,
    /// The ranges of facts that the log has lost.
    gaps: Gaps,
    /// The started prompts, answers and results. Shared with the runner.
    history: Conversation,
    usage: Usage,
    context: Option<ContextFill>,
    last_turn: Option<LastTurn>,
    /// The instruction files that the last turn found.
    instructions: Arc<Vec<InstructionFile>>,
    files_modified: Arc<BTreeSet<String>>,
    /// The newest mark of every file that a call has read or written, by path.
    files_seen: BTreeMap<String, FileMark>,
    /// The MCP servers whose tools have succeeded.
    servers_used: BTreeSet<String>,
    /// The id of the needs with which the user has last let the hosted agent start.
    approved_start: Option<String>,
}

/// Upper bounds of the ids that lost facts may have used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct LostIds {
    turns: u64,
    prompts: u64,
    items: u64,
}

/// How an ask was settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Settled {
    Answered(AnsweredBy),
    Closed(AskCloseCause),
}

impl State {
    /// Builds the state from a session's first fact; `None` if that is not [`SessionFact::Opened`].
    #[must_use]
    pub fn open(first: &Event) -> Option<Self> {
        let Some(Fact::Session(SessionFact::Opened { settings })) = first.fact() else {
            return None;
        };
        Some(Self { last: first.seq, ..Self::fresh(settings.clone(), first.at) })
    }

    /// Builds the state of a session whose first fact cannot be read, from the session's summary
    /// and the time it was opened. The asks mode and the policy, which only that fact recorded, get
    /// their most cautious values: the policy asks, and a person answers.
    pub(crate) fn without_opening(summary: &SessionSummary, opened: Timestamp) -> Self {
        let settings = SessionSettings {
            id: summary.id.clone(),
            name: summary.name.clone(),
            workspace: summary.workspace.clone(),
            model: summary.model.clone(),
            agent: None,
            asks: AsksMode::Wait,
            policy: PolicyMode::Ask,
            rules: PolicyRules::default(),
            sandbox: SandboxSettings::off(),
            max_steps: 0,
            max_turn_tokens: 0,
        };
        // The summary repeats the name if there is no title.
        let title = Some(&summary.title).filter(|title| **title != summary.name);
        Self { title: title.cloned(), ..Self::fresh(settings, opened) }
    }

    fn fresh(settings: SessionSettings, opened: Timestamp) -> Self {
        Self {
            settings: Arc::new(settings),
            title: None,
            last_line: None,
            agent_session: None,
            debug: false,
            opened,
            last: 0,
            last_at: opened,
            since: opened,
            worked_ms: 0,
            working_since: None,
            phase: Phase::Idle,
            restarted: false,
            continues: false,
            turn_moved: false,
            last_work: 0,
            asks: VecDeque::new(),
            settled: BTreeMap::new(),
            always: BTreeMap::new(),
            hold: Hold::Off,
            queue: VecDeque::new(),
            keyed_prompts: VecDeque::new(),
            run: None,
            last_run: None,
            tasks: Tasks::default(),
            closed_before_run: 0,
            jobs: Vec::new(),
            next_turn: TurnId(1),
            next_prompt: PromptId(1),
            next_item: ItemId(1),
            lost: LostIds::default(),
            gaps: Gaps::default(),
            history: Conversation::default(),
            usage: Usage::default(),
            context: None,
            last_turn: None,
            instructions: Arc::default(),
            files_modified: Arc::default(),
            files_seen: BTreeMap::new(),
            servers_used: BTreeSet::new(),
            approved_start: None,
        }
    }

    /// Folds the facts of a whole log; `None` if the first is not [`SessionFact::Opened`].
    #[must_use]
    pub fn fold(facts: &[Arc<Event>]) -> Option<Self> {
        let (first, rest) = facts.split_first()?;
        let mut state = Self::open(first)?;
        state.follow(rest);
        Some(state)
    }

    /// Applies the next facts of the log, in order.
    pub fn follow(&mut self, facts: &[Arc<Event>]) {
        facts.iter().for_each(|fact| self.apply(fact));
    }

    /// The settings the session was opened with, except that name and model are the current ones.
    #[must_use]
    pub fn settings(&self) -> &Arc<SessionSettings> {
        &self.settings
    }

    /// The id of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.settings.id
    }

    /// When the session was first opened.
    #[must_use]
    pub fn opened(&self) -> Timestamp {
        self.opened
    }

    /// Whether the session is logged at debug level.
    #[must_use]
    pub fn is_debug_enabled(&self) -> bool {
        self.debug
    }

    /// The number of the last fact.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The current phase of the session.
    #[must_use]
    pub fn phase(&self) -> &Phase {
        &self.phase
    }

    /// The open turn, cut or not.
    #[must_use]
    pub fn turn(&self) -> Option<&Turn> {
        match &self.phase {
            Phase::Running(turn) | Phase::Interrupting(turn, _) => Some(turn),
            Phase::Idle | Phase::Closed => None,
        }
    }

    /// About how many bytes of messages the next request has.
    pub(crate) fn request_bytes(&self) -> u64 {
        self.history.text_bytes()
    }

    /// The usage of a step: the provider's count, or else an estimate from the sizes of request and
    /// answer.
    pub(crate) fn step_usage(&self, step: OpenStep, moment: Moment<'_>) -> Usage {
        step.usage.unwrap_or_else(|| {
            let usage =
                Usage::estimate(moment.fixed_bytes + self.request_bytes(), step.answer_bytes);
            // No request is larger than the limit.
            Usage { input: usage.input.min(moment.limits.max_history_tokens), ..usage }
        })
    }

    /// The open asks, oldest first; clients show the first.
    #[must_use]
    pub fn asks(&self) -> &VecDeque<Ask> {
        &self.asks
    }

    /// The ask that the user approved for a call that has not started yet, and whether with *always*.
    #[must_use]
    pub fn approved(&self, call: CallId) -> Option<(&AskRequest, bool)> {
        match self.turn()?.call(call)? {
            (_, CallStage::Approved { shown, always }) => Some((shown, *always)),
            _ => None,
        }
    }

    /// The session's hold, which may be off.
    #[must_use]
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// The id of the own session of the agent that the session hosts, once it has one.
    #[must_use]
    pub fn agent_session(&self) -> Option<&str> {
        self.agent_session.as_deref()
    }

    /// The id of the needs with which the user has last let the hosted agent start.
    pub(crate) fn approved_start(&self) -> Option<&str> {
        self.approved_start.as_deref()
    }

    /// The ranges of facts that the log has lost, as far as they are known.
    pub(crate) fn gaps(&self) -> &Gaps {
        &self.gaps
    }

    /// The MCP servers whose tools have succeeded in the session.
    pub(crate) fn servers_used(&self) -> &BTreeSet<String> {
        &self.servers_used
    }

    /// The run in progress, if any.
    #[must_use]
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// The number of queued prompts.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The running background jobs, oldest first.
    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The session's tasks and notes.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The conversation that the next request draws on; in a run, only that of the current
    /// iteration.
    #[must_use]
    pub fn history(&self) -> Conversation {
        self.history.clone()
    }

    /// The newest mark of every file that a call has read or written.
    pub fn files_seen(&self) -> impl Iterator<Item = &FileMark> {
        self.files_seen.values()
    }

    /// The next item's id, beyond any that a lost fact may have used.
    #[must_use]
    pub fn next_item(&self) -> ItemId {
        ItemId(self.next_item.0.saturating_add(self.lost.items))
    }

    /// The ids after the newest known prompt, turn and item. A log may continue with them even
    /// after a gap, because the lost facts may not have used any id.
    pub(crate) fn next_known_ids(&self) -> (PromptId, TurnId, ItemId) {
        (self.next_prompt, self.next_turn, self.next_item)
    }

    /// The status, computed from the phase, the asks and the hold.
    #[must_use]
    pub fn status(&self) -> SessionStatus {
        match &self.phase {
            Phase::Interrupting(..) => SessionStatus::Interrupted,
            Phase::Closed => SessionStatus::Idle,
            Phase::Idle | Phase::Running(_)
                if self.waits_for_answer() || matches!(self.hold, Hold::Standing { .. }) =>
            {
                SessionStatus::Paused
            }
            // It has no actor.
            Phase::Running(_) if self.continues => SessionStatus::Paused,
            Phase::Running(_) => SessionStatus::Running,
            Phase::Idle if self.run.is_some() => SessionStatus::Running,
            Phase::Idle => SessionStatus::Idle,
        }
    }

    fn has_job(&self, job: CallId) -> bool {
        self.jobs.iter().any(|running| running.id == job)
    }

    /// Whether an ask waits for a person. If the asks mode answers by itself, no ask ever waits,
    /// not even between the facts that raise and answer it.
    fn waits_for_answer(&self) -> bool {
        !self.asks.is_empty() && self.settings.asks == AsksMode::Wait
    }

    /// Whether the actor could end now without losing anything: no turn, run, queue, hold or
    /// background job.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Idle)
            && self.run.is_none()
            && self.queue.is_empty()
            && self.hold == Hold::Off
            && self.jobs.is_empty()
    }

    /// Whether the first opening continues the open turn, if there is one. No crash has cut it.
    #[must_use]
    pub(crate) fn continues_when_opened(&self) -> bool {
        self.continues
    }

    /// Whether the session has work now, or was given or began work after the fact with this
    /// number. Background jobs do not count.
    fn is_used_since(&self, since: u64) -> bool {
        self.turn().is_some()
            || self.run.is_some()
            || !self.queue.is_empty()
            || self.last_work > since
    }

    /// The turn and step that an upcoming fact belongs to.
    #[must_use]
    pub fn turn_and_step(&self, fact: &Fact) -> (Option<TurnId>, Option<u32>) {
        let turn = self.turn();
        let id = turn.map(|turn| turn.id);
        let current = (id, turn.map(|turn| turn.step).filter(|step| *step > 0));
        if let Some(started) = fact.started_turn() {
            return (Some(started), None);
        }
        match fact {
            Fact::Turn(TurnFact::StepStarted) => (id, turn.map(|turn| turn.step + 1)),
            // The turn of a job may have ended before the job starts, and long before it ends.
            Fact::Job(JobFact::Started { job }) if id == Some(job.turn) => current,
            Fact::Turn(_)
            | Fact::Tool(_)
            | Fact::Ask(_)
            | Fact::Task(_)
            | Fact::Session(SessionFact::HoldChanged { .. })
            | Fact::Prompt(PromptFact::Delivered { .. })
            | Fact::Run(RunFact::FilesChanged { .. }) => current,
            Fact::Session(_) | Fact::Prompt(_) | Fact::Run(_) | Fact::Job(_) => (None, None),
        }
    }
}

/// The id and the text of a queued [`PromptFact::Accepted`].
fn queued(event: &Event) -> Option<(PromptId, &Arc<str>)> {
    match event.fact() {
        Some(Fact::Prompt(PromptFact::Accepted { prompt, text, .. })) => Some((*prompt, text)),
        _ => None,
    }
}
