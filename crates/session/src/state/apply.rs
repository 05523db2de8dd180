//! The change that each fact makes to the state.

use std::collections::VecDeque;
use std::sync::Arc;

use holdpoint_common::{
    Answer, AnsweredBy, Ask, AskFact, AskId, AskOrigin, AssistantMessage, BlockKind, CallId,
    CutCause, Delta, Event, Fact, Gap, Hold, HoldCause, ItemId, JobFact, LastRun, LastTurn,
    MAX_TITLE, PromptFact, PromptId, RestoreCause, Run, RunFact, SessionFact, SessionStatus,
    Timestamp, ToolCall, ToolFact, ToolStatus, TurnFact, TurnId, Usage,
};

use holdpoint_tools::secrets::mask_in_list;

use super::conversation::belongs_to_conversation;
use super::decide::denial;
use super::{CallStage, Cut, LostIds, OpenStep, Phase, Settled, State, Turn, queued};
use crate::agent_start;
use crate::gone_servers::server_of;

/// How many keys of prompts are known.
const MAX_KEYED_PROMPTS: usize = 64;

impl State {
    /// Applies one fact. Facts must be applied in the order of their numbers. A delta changes
    /// nothing, except for a log's gap: its numbers belong to facts that cannot be read.
    pub fn apply(&mut self, event: &Arc<Event>) {
        if let Some(Delta::Gap { from, to }) = event.delta() {
            self.last = self.last.max(*to);
            // The lost facts may include a prompt, a run or a turn.
            self.last_work = self.last;
            self.continues = false;
            self.lost.add(to.saturating_sub(*from).saturating_add(1));
            self.gaps.add(Gap { from: *from, to: *to });
        }
        let Some(fact) = event.fact() else { return };
        let before = self.status();
        self.last = event.seq;
        self.advance_ids(event.turn, fact);
        self.restarted = self.restarted && is_restart_cleanup(fact);
        self.continues = self.continues && is_change_before_opening(fact);
        match fact {
            Fact::Session(fact) => self.apply_session_fact(fact),
            Fact::Prompt(fact) => self.apply_prompt_fact(fact, event),
            Fact::Run(fact) => self.apply_run_fact(fact),
            Fact::Task(fact) => self.tasks.apply(fact),
            Fact::Turn(fact) => self.apply_turn_fact(fact),
            Fact::Tool(fact) => self.apply_tool_fact(fact),
            Fact::Job(JobFact::Started { job }) => self.jobs.push(job.clone()),
            Fact::Job(JobFact::Ended { job, .. }) => self.jobs.retain(|running| running.id != *job),
            Fact::Ask(fact) => self.apply_ask_fact(fact),
        }
        if belongs_to_conversation(fact) {
            self.history.push(event);
        }
        if self.status() != before {
            self.since = event.at;
        }
        match self.status() {
            SessionStatus::Running | SessionStatus::Interrupted => self.start_work(event.at),
            SessionStatus::Idle | SessionStatus::Paused => self.stop_work(event.at),
        }
        self.last_at = event.at;
    }

    fn apply_session_fact(&mut self, fact: &SessionFact) {
        match fact {
            SessionFact::Opened { settings } => self.settings = Arc::new(settings.clone()),
            SessionFact::Restored { cause } => {
                self.restarted = *cause == RestoreCause::Restart;
                // The session did no work after its last fact.
                self.stop_work(self.last_at);
                // Nothing is approved silently after a restart; a denial is safe to keep.
                self.always.retain(|_, answer| matches!(answer, Answer::Deny { .. }));
                if matches!(self.phase, Phase::Closed) {
                    self.phase = Phase::Idle;
                }
            }
            SessionFact::Closed { .. } => {
                self.phase = Phase::Closed;
                self.always.clear();
                // The turn's end clears the asks, but a damaged log may lack it.
                self.asks.clear();
            }
            SessionFact::Renamed { name, .. } => {
                Arc::make_mut(&mut self.settings).name.clone_from(name);
                self.title = Some(name.clone());
            }
            SessionFact::Moved { workspace, .. } => {
                Arc::make_mut(&mut self.settings).workspace.clone_from(workspace);
                (self.continues, self.turn_moved) = (true, self.turn().is_some());
                // They were approved for another folder, and are asked about again.
                let calls = self.turn_mut().into_iter().flat_map(|turn| &mut turn.calls);
                for (_, stage) in
                    calls.filter(|(_, stage)| matches!(stage, CallStage::Approved { .. }))
                {
                    *stage = CallStage::Proposed;
                }
            }
            SessionFact::ModelChanged { model, .. } => {
                Arc::make_mut(&mut self.settings).model.clone_from(model);
            }
            SessionFact::DebugChanged { enabled, .. } => self.debug = *enabled,
            SessionFact::ClientRefused(_) => {}
            SessionFact::AsksChanged { asks, .. } => {
                Arc::make_mut(&mut self.settings).asks = *asks;
            }
            SessionFact::PolicyChanged { policy, .. } => {
                Arc::make_mut(&mut self.settings).policy = *policy;
                self.always.clear();
            }
            SessionFact::HoldChanged { hold } => {
                self.hold = hold.clone();
                if let (Hold::Standing { .. }, Some(run)) = (hold, &mut self.run) {
                    // A released run continues at once, without the rest of its wait.
                    run.waits_until = None;
                }
            }
        }
    }

    fn apply_prompt_fact(&mut self, fact: &PromptFact, event: &Arc<Event>) {
        match fact {
            PromptFact::Accepted { prompt, text, idempotency_key, .. } => {
                if self.title.is_none() {
                    self.title = title_of(text);
                }
                self.next_prompt = prompt.next();
                self.lost.prompts = 0;
                self.last_work = self.last;
                self.queue.push_back(Arc::clone(event));
                if let Some(key) = idempotency_key {
                    self.keyed_prompts.push_back((key.clone(), *prompt));
                    if self.keyed_prompts.len() > MAX_KEYED_PROMPTS {
                        self.keyed_prompts.pop_front();
                    }
                }
            }
            PromptFact::Returned { prompt, .. } => {
                self.queue
                    .retain(|event| queued(event).is_none_or(|(queued, _)| queued != *prompt));
                if let Phase::Interrupting(_, cut) = &mut self.phase {
                    cut.prompts.push(*prompt);
                }
            }
            PromptFact::Delivered { prompt, .. } => self.take_queued(*prompt),
        }
    }

    fn apply_run_fact(&mut self, fact: &RunFact) {
        match fact {
            RunFact::Started { run, .. } => {
                if self.title.is_none() {
                    self.title = title_of(&run.goal);
                }
                self.run = Some(Run::new(run.clone()));
                self.last_work = self.last;
                self.closed_before_run = self.tasks.counts().closed();
            }
            RunFact::IterationStarted { turn, iteration, resumed } => {
                if let Some(run) = &mut self.run {
                    run.progress.iteration = *iteration;
                    run.waits_until = None;
                    run.cut = false;
                }
                if !resumed {
                    self.history.begin_iteration();
                }
                self.start_turn(*turn, None);
            }
            RunFact::Waiting { until } => {
                self.run.iter_mut().for_each(|run| run.waits_until = Some(*until))
            }
            RunFact::Extended { limits } => {
                if let Some(run) = &mut self.run {
                    run.limits = *limits;
                    run.failures = 0;
                }
            }
            RunFact::Finished { end, progress, .. } => {
                self.run = None;
                let turn = self.last_turn.as_ref().map(|last| last.turn);
                self.last_run = Some(LastRun { end: *end, turn, progress: *progress });
            }
            RunFact::FilesChanged { paths } => {
                Arc::make_mut(&mut self.files_modified).extend(paths.iter().cloned())
            }
        }
    }

    fn apply_turn_fact(&mut self, fact: &TurnFact) {
        match fact {
            TurnFact::Started { turn, prompt } => {
                self.take_queued(*prompt);
                self.start_turn(*turn, Some(*prompt));
            }
            TurnFact::StepStarted => {
                self.turn_moved = false;
                if let Some(turn) = self.turn_mut() {
                    turn.step = turn.step.saturating_add(1);
                    turn.open_step = Some(OpenStep::default());
                }
            }
            TurnFact::AssistantMessage(message) => self.add_answer(message),
            TurnFact::StepFinished { usage, context, .. } => {
                self.usage += *usage;
                if let Some(run) = &mut self.run {
                    run.progress.tokens = run.progress.tokens.saturating_add(usage.total());
                }
                self.context = context.or(self.context);
                if let Some(turn) = self.turn_mut() {
                    turn.usage += *usage;
                    turn.open_step = None;
                }
            }
            TurnFact::AgentStarted { session, .. } => self.agent_session = Some(session.clone()),
            TurnFact::InstructionsRead { files } => self.instructions = Arc::new(files.clone()),
            // Notices to readers; they change no state.
            TurnFact::HistoryCut(_)
            | TurnFact::ProjectCut { .. }
            | TurnFact::ToolsMissing { .. }
            // Part of the conversation.
            | TurnFact::ContentAdded { .. } => {}
            TurnFact::Cut { cause } => self.cut(cause),
            TurnFact::Finished { outcome, error, cause, .. } => {
                if let Some(turn) = self.turn().map(|turn| turn.id) {
                    let (cause, error) = (cause.clone(), error.clone());
                    self.last_turn = Some(LastTurn { turn, outcome: *outcome, cause, error });
                }
                self.run = self.run.as_ref().map(|run| run.after_turn(*outcome, cause.as_ref()));
                self.turn_moved = false;
                // A damaged log may lack the facts that settled these asks; they end with their
                // turn.
                self.asks.clear();
                self.phase = Phase::Idle;
            }
        }
    }

    fn add_answer(&mut self, message: &AssistantMessage) {
        let items = message.blocks.iter().map(|block| block.item);
        let calls = message.calls.iter().map(|call| call.id.item());
        let next = items.chain(calls).map(ItemId::next).max();
        if let Some(next) = next.filter(|next| *next > self.next_item) {
            self.next_item = next;
            self.lost.items = 0;
        }
        if let Some(turn) = self.turn_mut() {
            turn.open_step = turn
                .open_step
                .map(|_| OpenStep { answer_bytes: answer_bytes(message), usage: message.usage });
            let proposed = message.calls.iter().map(|call| (call.clone(), CallStage::Proposed));
            turn.calls.extend(proposed);
        }
        if let Some(line) = last_line_of(message) {
            self.last_line = Some(line);
        }
    }

    fn apply_tool_fact(&mut self, fact: &ToolFact) {
        match fact {
            ToolFact::Started { call } => self.set_stage(*call, CallStage::Started),
            ToolFact::Finished(result) => {
                let ended = self.turn_mut().and_then(|turn| {
                    let of_call = |(call, _): &(ToolCall, _)| call.id == result.call;
                    turn.calls.remove(turn.calls.iter().position(of_call)?)
                });
                if let (Some((call, _)), ToolStatus::Ok) = (ended, result.status) {
                    self.note_success(&call);
                }
                let marks = result.read.iter().chain(&result.wrote);
                self.files_seen.extend(marks.map(|mark| (mark.path.clone(), mark.clone())));
                if !result.wrote.is_empty() {
                    let wrote = result.wrote.iter().map(|mark| mark.path.clone());
                    Arc::make_mut(&mut self.files_modified).extend(wrote);
                }
            }
        }
    }

    /// Keeps what later turns need to know of this call.
    fn note_success(&mut self, call: &ToolCall) {
        self.servers_used.extend(server_of(&call.name).map(str::to_owned));
        let requested = agent_start::requested(&call.input);
        if let Some(needs) = requested.filter(|_| self.settings.agent.is_some()) {
            self.approved_start = Some(needs.to_owned());
        }
    }

    fn apply_ask_fact(&mut self, fact: &AskFact) {
        match fact {
            // A damaged log may lack the beginning of the ask's turn. No tool waits for the answer
            // then.
            AskFact::Raised { .. } if self.turn().is_none() => {}
            AskFact::Raised { ask } => {
                if ask.origin == AskOrigin::Policy {
                    self.set_stage(ask.call, CallStage::Asking);
                }
                self.asks.push_back(ask.clone());
            }
            AskFact::Answered { ask, answer, by, while_away } => {
                // A damaged log may lack the ask.
                if let Some(ask) = self.settle(ask, Settled::Answered(by.clone())) {
                    self.apply_answer(ask, answer, by);
                    self.continues |= *while_away;
                }
            }
            AskFact::Closed { ask, cause } => {
                // The call is no longer asked about. It does not run either: the event that closed
                // the ask also ends the call.
                if let Some(Ask { call, origin: AskOrigin::Policy, .. }) =
                    self.settle(ask, Settled::Closed(*cause))
                {
                    self.set_stage(call, CallStage::Proposed);
                }
                if let Phase::Interrupting(_, cut) = &mut self.phase {
                    cut.asks.push(ask.clone());
                }
            }
        }
    }

    /// Only a policy Confirm has a key for *always*, and a call that waits for its answer.
    fn apply_answer(&mut self, ask: Ask, answer: &Answer, by: &AnsweredBy) {
        if ask.origin != AskOrigin::Policy {
            return;
        }
        let key = ask.always.filter(|_| answer.is_always());
        let stage = match answer {
            Answer::Approve { always } => {
                CallStage::Approved { shown: ask.request, always: *always }
            }
            Answer::Deny { reason, .. } => {
                CallStage::Denied { why: denial(reason.as_deref(), key.is_some(), by) }
            }
            Answer::Resume | Answer::Reply { .. } | Answer::Cancel => return,
        };
        self.set_stage(ask.call, stage);
        self.always.extend(key.map(|key| (key, answer.clone())));
    }

    /// Moves the next ids past those that a fact mentions, in case the facts that introduced them
    /// are lost.
    fn advance_ids(&mut self, turn: Option<TurnId>, fact: &Fact) {
        if let Some(turn) = turn.filter(|turn| self.next_turn <= *turn) {
            self.next_turn = turn.next();
        }
        let prompt = match fact {
            Fact::Prompt(
                PromptFact::Returned { prompt, .. } | PromptFact::Delivered { prompt, .. },
            )
            | Fact::Turn(TurnFact::Started { prompt, .. }) => Some(*prompt),
            _ => None,
        };
        if let Some(prompt) = prompt.filter(|prompt| self.next_prompt <= *prompt) {
            self.next_prompt = prompt.next();
        }
        let call = match fact {
            Fact::Tool(ToolFact::Started { call }) => Some(*call),
            Fact::Tool(ToolFact::Finished(result)) => Some(result.call),
            Fact::Ask(AskFact::Raised { ask }) => Some(ask.call),
            Fact::Job(JobFact::Started { job }) => Some(job.id),
            _ => None,
        };
        if let Some(item) = call.map(CallId::item).filter(|item| self.next_item <= *item) {
            self.next_item = item.next();
        }
    }

    fn start_turn(&mut self, turn: TurnId, prompt: Option<PromptId>) {
        self.last_work = self.last;
        self.next_turn = turn.next();
        self.lost.turns = 0;
        self.asks.clear();
        self.phase = Phase::Running(Turn {
            id: turn,
            prompt,
            step: 0,
            calls: VecDeque::new(),
            usage: Usage::default(),
            open_step: None,
        });
    }

    /// Moves a prompt from the queue to the conversation, unless a damaged log lacks it.
    fn take_queued(&mut self, prompt: PromptId) {
        let is_prompt =
            |event: &Arc<Event>| queued(event).is_some_and(|(queued, _)| queued == prompt);
        let position = self.queue.iter().position(is_prompt);
        if let Some(event) = position.and_then(|at| self.queue.remove(at)) {
            self.history.push(&event);
        }
    }

    /// Starts the work clocks of the session and of its run.
    fn start_work(&mut self, at: Timestamp) {
        self.working_since.get_or_insert(at);
        if let Some(run) = &mut self.run {
            run.progress.working_since.get_or_insert(at);
        }
    }

    /// Stops the work clocks: the session waits for a person or is idle.
    fn stop_work(&mut self, at: Timestamp) {
        let ms_since =
            |since: Timestamp| u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX);
        let worked_ms = self.working_since.take().map_or(0, ms_since);
        self.worked_ms = self.worked_ms.saturating_add(worked_ms);
        if let Some(run) = &mut self.run {
            let worked_ms = run.progress.working_since.take().map_or(0, ms_since);
            run.progress.worked_ms = run.progress.worked_ms.saturating_add(worked_ms);
        }
    }

    fn cut(&mut self, cause: &CutCause) {
        let (closing, stopping) = match cause {
            CutCause::Close { by } => (Some(by.clone()), false),
            CutCause::Shutdown => (None, true),
            CutCause::User { .. } | CutCause::Restart | CutCause::Panic => (None, false),
        };
        self.phase = match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Running(turn) => Phase::Interrupting(
                turn,
                Cut { cause: cause.clone(), asks: vec![], prompts: vec![], closing, stopping },
            ),
            Phase::Interrupting(turn, cut) => Phase::Interrupting(
                turn,
                Cut { closing: cut.closing.or(closing), stopping: cut.stopping || stopping, ..cut },
            ),
            phase @ (Phase::Idle | Phase::Closed) => phase,
        };
    }

    fn turn_mut(&mut self) -> Option<&mut Turn> {
        match &mut self.phase {
            Phase::Running(turn) | Phase::Interrupting(turn, _) => Some(turn),
            Phase::Idle | Phase::Closed => None,
        }
    }

    fn set_stage(&mut self, call: CallId, to: CallStage) {
        if let Some(stage) = self.turn_mut().and_then(|turn| turn.stage_mut(call)) {
            *stage = to;
        }
    }

    fn settle(&mut self, id: &AskId, how: Settled) -> Option<Ask> {
        let at = self.asks.iter().position(|ask| ask.id == *id)?;
        self.settled.insert(id.seq, how);
        self.asks.remove(at)
    }

    /// The next turn's id, beyond any that a lost fact may have used.
    pub(super) fn next_turn(&self) -> TurnId {
        TurnId(self.next_turn.0.saturating_add(self.lost.turns))
    }

    /// The next prompt's id, beyond any that a lost fact may have used.
    pub(super) fn next_prompt(&self) -> PromptId {
        PromptId(self.next_prompt.0.saturating_add(self.lost.prompts))
    }
}

/// The most items that one lost fact is assumed to have introduced. A block takes an item id for
/// each of its pieces, and a call takes one for its result, but the result may never have arrived.
const ITEMS_PER_LOST_FACT: u64 = 16;

impl LostIds {
    /// Counts up to `facts` lost facts. Each may have introduced a turn, a prompt or some items.
    fn add(&mut self, facts: u64) {
        self.turns = self.turns.saturating_add(facts);
        self.prompts = self.prompts.saturating_add(facts);
        self.items = self.items.saturating_add(facts.saturating_mul(ITEMS_PER_LOST_FACT));
    }
}

/// How many characters of a line are searched for secrets. A secret that begins inside a title may
/// end far beyond it.
const SEARCHED_CHARS: usize = 4_096;

/// The last line of text in an answer, if it has any.
fn last_line_of(message: &AssistantMessage) -> Option<String> {
    let text_blocks = message.blocks.iter().rev().filter(|block| block.kind == BlockKind::Text);
    text_blocks
        .flat_map(|block| block.text.lines().rev())
        .map(str::trim)
        .find(|line| !line.is_empty())
        .map(masked_line)
}

/// The size of an answer in bytes: its text, and the names and arguments of its calls.
pub(super) fn answer_bytes(message: &AssistantMessage) -> u64 {
    let text_bytes: usize = message.blocks.iter().map(|block| block.text.len()).sum();
    let call_bytes: usize =
        message.calls.iter().map(|call| call.name.len() + call.input.to_string().len()).sum();
    (text_bytes + call_bytes) as u64
}

/// Whether a fact only changes a setting or answers an ask, also before a session is opened. An actor
/// begins with [`SessionFact::Restored`].
fn is_change_before_opening(fact: &Fact) -> bool {
    matches!(
        fact,
        Fact::Session(
            SessionFact::Moved { .. }
                | SessionFact::Renamed { .. }
                | SessionFact::ModelChanged { .. }
                | SessionFact::PolicyChanged { .. }
        ) | Fact::Ask(AskFact::Answered { while_away: true, .. })
    )
}

/// Whether a fact only ends work that a restart has cut. Any other fact begins something or is
/// caused by a person.
fn is_restart_cleanup(fact: &Fact) -> bool {
    match fact {
        Fact::Turn(TurnFact::AssistantMessage(message)) => message.partial,
        Fact::Session(SessionFact::HoldChanged { hold: Hold::Standing { cause, .. } }) => {
            *cause == HoldCause::Restored
        }
        Fact::Session(SessionFact::Restored { .. })
        | Fact::Turn(TurnFact::StepFinished { .. } | TurnFact::Finished { .. })
        | Fact::Tool(ToolFact::Finished(_))
        | Fact::Ask(AskFact::Closed { .. })
        | Fact::Job(JobFact::Ended { .. })
        | Fact::Run(RunFact::Finished { .. }) => true,
        _ => false,
    }
}

/// The title of a session that begins with this text: its first line that is not blank.
fn title_of(text: &str) -> Option<String> {
    text.lines().map(str::trim).find(|line| !line.is_empty()).map(masked_line)
}

/// The beginning of a line as lists show it, with secrets masked.
fn masked_line(line: &str) -> String {
    let beginning: String = line.chars().take(SEARCHED_CHARS).collect();
    mask_in_list(&beginning).chars().take(MAX_TITLE).collect()
}
