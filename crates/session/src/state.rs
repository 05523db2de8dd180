//! The state of one session: folded from facts, nothing else.
//!
//! [`decide`] says what an input does, [`State::apply`] does it. Both are pure: no clock, no I/O, no tasks.
//! Whoever owns a state numbers the facts, saves them, applies them and carries out the effects.
//!
//! Three parts are independent of each other: the [`Phase`], the queue of asks, and the hold. The status is
//! computed from them.

mod apply;
mod conversation;
mod decide;
mod decision;
mod input;
mod phase;
mod shown;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use holdpoint_common::{
    AnsweredBy, Ask, AskCloseCause, AskRequest, AsksMode, CallId, ContextFill, Event, Fact, FileMark, Gaps, Hold,
    ItemId, Job, LastRun, LastTurn, PolicyMode, PolicyRules, PromptId, Run, SessionId, SessionSettings, SessionStatus,
    SessionSummary, Tasks, Timestamp, TurnId, Usage,
};

pub use conversation::{Conversation, KEPT};
pub use decide::decide;
pub use decision::{Decision, Effect, GateReply, Refused, Reply};
pub use input::{Clearance, Confirm, Gate, Input, Moment, Report};
pub use phase::{CallStage, Cut, OpenStep, Phase, Turn};

/// The state of one session.
#[derive(Debug, Clone, PartialEq)]
pub struct State {
    settings: Arc<SessionSettings>,
    /// The first line of the first prompt, or the name it was given since.
    title: Option<String>,
    /// The last line that the model has said.
    last_line: Option<String>,
    /// It is logged at debug level.
    debug: bool,
    /// When it was first opened.
    opened: Timestamp,
    /// The number of the last fact, and its time.
    last: u64,
    last_at: Timestamp,
    /// Since when the status is what it is.
    since: Timestamp,
    /// How long it has worked, in milliseconds, and since when it does.
    worked_ms: u64,
    working_since: Option<Timestamp>,
    phase: Phase,
    /// It was rebuilt after a restart, and nothing has begun since.
    restarted: bool,
    /// The number of the last fact that gave it something to do, or began that: of a prompt, a run or a turn.
    given: u64,
    /// Open asks, in the order they were raised.
    asks: VecDeque<Ask>,
    /// How every ask that is no longer open was settled, by its number.
    settled: BTreeMap<u64, Settled>,
    /// What *always* was said to, in this life of the session.
    always: BTreeSet<String>,
    hold: Hold,
    /// The accepted prompts that wait: each a `PromptAccepted`.
    queue: VecDeque<Arc<Event>>,
    /// The run that is under way, and how the one before ended.
    run: Option<Run>,
    last_run: Option<LastRun>,
    tasks: Tasks,
    /// How many of them were done or dropped when the last run began.
    closed_before_run: usize,
    /// The background jobs that run, the oldest first.
    jobs: Vec<Job>,
    /// The names after the newest that are known.
    next_turn: TurnId,
    next_prompt: PromptId,
    next_item: ItemId,
    /// How many may have been given behind those.
    lost: Lost,
    /// The facts that a log has lost.
    gaps: Gaps,
    /// The prompts that were started, answers and results. Shared with the runner.
    history: Conversation,
    usage: Usage,
    context: Option<ContextFill>,
    last_turn: Option<LastTurn>,
    files_modified: Arc<BTreeSet<String>>,
    /// Every file a call has read or written, as it was then.
    files_seen: BTreeMap<String, FileMark>,
}

/// Names that facts may have given that a log has lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Lost {
    turns: u64,
    prompts: u64,
    items: u64,
}

/// How an ask was settled.
#[derive(Debug, Clone, PartialEq)]
enum Settled {
    Answered(AnsweredBy),
    Closed(AskCloseCause),
}

impl State {
    /// The state after a session's first fact; `None` if that is no `SessionOpened`.
    #[must_use]
    pub fn open(first: &Event) -> Option<Self> {
        let Some(Fact::SessionOpened { settings }) = first.fact() else { return None };
        Some(Self { last: first.seq, ..Self::fresh(settings.clone(), first.at) })
    }

    /// The state of a session whose first fact can't be read, to take the others in: by what a list has of it, and when
    /// it was opened. Of what that fact alone has said, the most careful is taken: it asks, and a person answers.
    pub(crate) fn without_opening(listed: &SessionSummary, opened: Timestamp) -> Self {
        let settings = SessionSettings {
            id: listed.id.clone(),
            name: listed.name.clone(),
            workspace: listed.workspace.clone(),
            model: listed.model.clone(),
            asks: AsksMode::Wait,
            policy: PolicyMode::Ask,
            rules: PolicyRules::default(),
            max_steps: 0,
            max_turn_tokens: 0,
        };
        // Without a title, a list has the name.
        let title = Some(&listed.title).filter(|title| **title != listed.name);
        Self { title: title.cloned(), ..Self::fresh(settings, opened) }
    }

    fn fresh(settings: SessionSettings, opened: Timestamp) -> Self {
        Self {
            settings: Arc::new(settings),
            title: None,
            last_line: None,
            debug: false,
            opened,
            last: 0,
            last_at: opened,
            since: opened,
            worked_ms: 0,
            working_since: None,
            phase: Phase::Idle,
            restarted: false,
            given: 0,
            asks: VecDeque::new(),
            settled: BTreeMap::new(),
            always: BTreeSet::new(),
            hold: Hold::Off,
            queue: VecDeque::new(),
            run: None,
            last_run: None,
            tasks: Tasks::default(),
            closed_before_run: 0,
            jobs: Vec::new(),
            next_turn: TurnId(1),
            next_prompt: PromptId(1),
            next_item: ItemId(1),
            lost: Lost::default(),
            gaps: Gaps::default(),
            history: Conversation::default(),
            usage: Usage::default(),
            context: None,
            last_turn: None,
            files_modified: Arc::default(),
            files_seen: BTreeMap::new(),
        }
    }

    /// The state that the facts of a whole log come to; `None` if they do not begin with the session's opening.
    #[must_use]
    pub fn fold(facts: &[Arc<Event>]) -> Option<Self> {
        let (first, rest) = facts.split_first()?;
        let mut state = Self::open(first)?;
        state.follow(rest);
        Some(state)
    }

    /// Takes in the facts of a log that come next.
    pub fn follow(&mut self, facts: &[Arc<Event>]) {
        facts.iter().for_each(|fact| self.apply(fact));
    }

    /// What the session was opened with, under the name and with the model that it has now.
    #[must_use]
    pub fn settings(&self) -> &Arc<SessionSettings> {
        &self.settings
    }

    /// The session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.settings.id
    }

    /// When it was first opened.
    #[must_use]
    pub fn opened(&self) -> Timestamp {
        self.opened
    }

    /// Whether it is logged at debug level.
    #[must_use]
    pub fn is_debug_enabled(&self) -> bool {
        self.debug
    }

    /// The number of the last fact.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// What the session is at.
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

    /// The usage of a step: the provider's count, else an estimate by the size of request and answer.
    pub(crate) fn used(&self, step: OpenStep, moment: Moment<'_>) -> Usage {
        step.usage.unwrap_or_else(|| {
            let usage = Usage::estimate(moment.fixed_bytes + self.history.words(), step.said);
            // No request is larger.
            Usage { input: usage.input.min(moment.limits.max_history_tokens), ..usage }
        })
    }

    /// The open asks; the first is the one to show.
    #[must_use]
    pub fn asks(&self) -> &VecDeque<Ask> {
        &self.asks
    }

    /// What the user was shown of a call that has not begun, and has approved.
    #[must_use]
    pub fn approved(&self, call: CallId) -> Option<&AskRequest> {
        match self.turn()?.call(call)? {
            (_, CallStage::Approved { shown }) => Some(shown),
            _ => None,
        }
    }

    /// Whether the session is held.
    #[must_use]
    pub fn hold(&self) -> &Hold {
        &self.hold
    }

    /// The run that is under way.
    #[must_use]
    pub fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    /// How many prompts wait.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// The background jobs that run, the oldest first.
    pub(crate) fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// The tasks and notes.
    #[must_use]
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// The conversation so far, as much of it as may be sent; in a run, that of its iteration.
    #[must_use]
    pub fn history(&self) -> Conversation {
        self.history.clone()
    }

    /// Every file a call has read or written, as it was then.
    pub fn files_seen(&self) -> impl Iterator<Item = &FileMark> {
        self.files_seen.values()
    }

    /// The next item's name: none that a lost fact may have given.
    #[must_use]
    pub fn next_item(&self) -> ItemId {
        ItemId(self.next_item.0.saturating_add(self.lost.items))
    }

    /// The names after the newest prompt, turn and item that are known. In a log, the next may be these: what a gap before
    /// them stands for was something else.
    pub(crate) fn after_known(&self) -> (PromptId, TurnId, ItemId) {
        (self.next_prompt, self.next_turn, self.next_item)
    }

    /// What the session is doing, in one word.
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
            Phase::Running(_) => SessionStatus::Running,
            Phase::Idle if self.run.is_some() => SessionStatus::Running,
            Phase::Idle => SessionStatus::Idle,
        }
    }

    /// Whether a background job of this name runs.
    fn has_job(&self, job: CallId) -> bool {
        self.jobs.iter().any(|running| running.id == job)
    }

    /// Whether an ask waits for a person. Where the setting answers, none does, not even between its two facts.
    fn waits_for_answer(&self) -> bool {
        !self.asks.is_empty() && self.settings.asks == AsksMode::Wait
    }

    /// Whether nothing would be lost if the actor ended now: no turn, no run, no queue, no hold, no background job.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        matches!(self.phase, Phase::Idle)
            && self.run.is_none()
            && self.queue.is_empty()
            && self.hold == Hold::Off
            && self.jobs.is_empty()
    }

    /// Whether it has something to do, or was given or has begun something behind the fact of this number. What runs in the
    /// background does not count.
    fn is_used_since(&self, since: u64) -> bool {
        self.turn().is_some() || self.run.is_some() || !self.queue.is_empty() || self.given > since
    }

    /// The turn and step an upcoming fact belongs to.
    #[must_use]
    pub fn place(&self, fact: &Fact) -> (Option<TurnId>, Option<u32>) {
        match fact {
            Fact::SessionOpened { .. }
            | Fact::SessionRestored { .. }
            | Fact::SessionClosed { .. }
            | Fact::SessionRenamed { .. }
            | Fact::ModelChanged { .. }
            | Fact::DebugChanged { .. }
            | Fact::PromptAccepted { .. }
            | Fact::PromptReturned { .. }
            | Fact::RunStarted { .. }
            | Fact::RunWaiting { .. }
            | Fact::RunExtended { .. }
            | Fact::RunFinished { .. }
            // It may be of a turn that is long over.
            | Fact::JobEnded { .. } => (None, None),
            Fact::TurnStarted { turn, .. } | Fact::IterationStarted { turn, .. } => (Some(*turn), None),
            // Its turn may be over by then.
            Fact::JobStarted { job } => {
                let open = self.turn().filter(|turn| turn.id == job.turn);
                (open.map(|turn| turn.id), open.map(|turn| turn.step).filter(|step| *step > 0))
            }
            Fact::StepStarted => (self.turn().map(|turn| turn.id), self.turn().map(|turn| turn.step + 1)),
            Fact::AssistantMessage(_)
            | Fact::ToolStarted { .. }
            | Fact::ToolFinished(_)
            | Fact::StepFinished { .. }
            | Fact::AskRaised { .. }
            | Fact::AskAnswered { .. }
            | Fact::AskClosed { .. }
            | Fact::HoldChanged { .. }
            | Fact::PromptDelivered { .. }
            | Fact::FilesChanged { .. }
            | Fact::HistoryCut(_)
            | Fact::ProjectCut { .. }
            | Fact::TaskAdded { .. }
            | Fact::TaskMoved { .. }
            | Fact::NoteTaken { .. }
            | Fact::TurnCut { .. }
            | Fact::TurnFinished { .. } => {
                (self.turn().map(|turn| turn.id), self.turn().map(|turn| turn.step).filter(|step| *step > 0))
            }
        }
    }
}

/// A `PromptAccepted` as it waits.
fn queued(event: &Event) -> Option<(PromptId, &Arc<str>)> {
    match event.fact() {
        Some(Fact::PromptAccepted { prompt, text, .. }) => Some((*prompt, text)),
        _ => None,
    }
}
