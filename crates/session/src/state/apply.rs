//! What each fact does to the state.

use std::sync::Arc;

use holdpoint_common::{
    Answer, Ask, AskId, AskOrigin, AssistantMessage, BlockKind, CallId, CutCause, Delta, Event, Fact, Gap, Hold,
    HoldCause, ItemId, LastRun, LastTurn, MAX_TITLE, PromptId, RestoreCause, Run, SessionStatus, Timestamp, TurnId,
    Usage,
};

use holdpoint_tools::secrets::mask;

use super::{CallStage, Cut, Lost, OpenStep, Phase, Settled, State, Turn, queued};

impl State {
    /// Takes a fact in. Facts come in the order of their numbers. A delta changes nothing; only a log's gap has numbers
    /// that were given, to facts that can't be read.
    pub fn apply(&mut self, event: &Arc<Event>) {
        if let Some(Delta::Gap { from, to }) = event.delta() {
            self.last = self.last.max(*to);
            // It may have been given something in there.
            self.given = self.last;
            self.lost.add(to.saturating_sub(*from).saturating_add(1));
            self.gaps.add(Gap { from: *from, to: *to });
        }
        let Some(fact) = event.fact() else { return };
        let before = self.status();
        self.last = event.seq;
        self.know(event.turn, fact);
        self.restarted = self.restarted && is_left_by_restarts(fact);
        match fact {
            Fact::SessionOpened { settings } => self.settings = Arc::new(settings.clone()),
            Fact::SessionRestored { cause } => {
                self.restarted = *cause == RestoreCause::Restart;
                // Nobody worked since the last fact.
                self.stop_work(self.last_at);
                self.always.clear();
                if matches!(self.phase, Phase::Closed) {
                    self.phase = Phase::Idle;
                }
            }
            Fact::SessionClosed { .. } => {
                self.phase = Phase::Closed;
                // Where a log has lost its turn's end, nobody is left who asks.
                self.asks.clear();
            }
            Fact::SessionRenamed { name, .. } => {
                Arc::make_mut(&mut self.settings).name.clone_from(name);
                self.title = Some(name.clone());
            }
            Fact::ModelChanged { model, .. } => {
                Arc::make_mut(&mut self.settings).model.clone_from(model);
                self.remember(event);
            }
            Fact::DebugChanged { enabled, .. } => self.debug = *enabled,
            Fact::PromptAccepted { prompt, text, .. } => {
                if self.title.is_none() {
                    self.title = title_of(text);
                }
                (self.next_prompt, self.lost.prompts) = (prompt.next(), 0);
                self.given = event.seq;
                self.queue.push_back(Arc::clone(event));
            }
            Fact::PromptReturned { prompt, .. } => {
                self.queue.retain(|event| queued(event).is_none_or(|(queued, _)| queued != *prompt));
                if let Phase::Interrupting(_, cut) = &mut self.phase {
                    cut.prompts.push(*prompt);
                }
            }
            Fact::TurnStarted { turn, prompt } => {
                self.take_queued(*prompt);
                self.start_turn(*turn, Some(*prompt));
            }
            Fact::RunStarted { run, .. } => {
                if self.title.is_none() {
                    self.title = title_of(&run.goal);
                }
                self.run = Some(Run::begun(run.clone()));
                self.given = event.seq;
                self.closed_before_run = self.tasks.counts().closed();
                self.remember(event);
            }
            Fact::IterationStarted { turn, iteration, resumed } => {
                if let Some(run) = &mut self.run {
                    run.progress.iteration = *iteration;
                    (run.waits_until, run.cut) = (None, false);
                }
                if !resumed {
                    self.history.begin_iteration();
                }
                self.remember(event);
                self.start_turn(*turn, None);
            }
            Fact::PromptDelivered { prompt, .. } => {
                self.take_queued(*prompt);
            }
            Fact::RunWaiting { until } => self.run.iter_mut().for_each(|run| run.waits_until = Some(*until)),
            Fact::RunExtended { limits } => {
                self.run.iter_mut().for_each(|run| (run.limits, run.failures) = (*limits, 0));
            }
            Fact::RunFinished { end, progress, .. } => {
                self.run = None;
                let turn = self.last_turn.as_ref().map(|last| last.turn);
                self.last_run = Some(LastRun { end: *end, turn, progress: *progress });
                // What is said from now on is not said to the run.
                self.remember(event);
            }
            Fact::TaskAdded { .. } | Fact::TaskMoved { .. } | Fact::NoteTaken { .. } => {
                self.tasks.apply(fact);
                self.remember(event);
            }
            Fact::StepStarted => {
                if let Some(turn) = self.turn_mut() {
                    turn.step = turn.step.saturating_add(1);
                    turn.open_step = Some(OpenStep::default());
                }
            }
            Fact::AssistantMessage(message) => {
                let items = message.blocks.iter().map(|block| block.item);
                let calls = message.calls.iter().map(|call| call.id.item());
                let newest = items.chain(calls).map(ItemId::next).max();
                if let Some(next) = newest.filter(|next| *next > self.next_item) {
                    (self.next_item, self.lost.items) = (next, 0);
                }
                if let Some(turn) = self.turn_mut() {
                    turn.open_step = turn.open_step.map(|_| OpenStep { said: said(message), usage: message.usage });
                    turn.calls.extend(message.calls.iter().map(|call| (call.clone(), CallStage::Proposed)));
                }
                if let Some(line) = last_line_of(message) {
                    self.last_line = Some(line);
                }
                self.remember(event);
            }
            Fact::ToolStarted { call } => self.stage(*call, CallStage::Started),
            Fact::ToolFinished(result) => {
                if let Some(turn) = self.turn_mut() {
                    turn.calls.retain(|(call, _)| call.id != result.call);
                }
                let marks = result.read.iter().chain(&result.wrote);
                self.files_seen.extend(marks.map(|mark| (mark.path.clone(), mark.clone())));
                if !result.wrote.is_empty() {
                    let wrote = result.wrote.iter().map(|mark| mark.path.clone());
                    Arc::make_mut(&mut self.files_modified).extend(wrote);
                }
                self.remember(event);
            }
            Fact::FilesChanged { paths } => Arc::make_mut(&mut self.files_modified).extend(paths.iter().cloned()),
            Fact::JobStarted { job } => self.jobs.push(job.clone()),
            Fact::JobEnded { job, .. } => self.jobs.retain(|running| running.id != *job),
            Fact::StepFinished { usage, context, refused, omitted } => {
                if *refused || omitted.is_some() {
                    self.remember(event);
                }
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
            // Notices for readers.
            Fact::HistoryCut(_) | Fact::ProjectCut { .. } => {}
            // Where a log has lost its turn's beginning, nobody is left who asks.
            Fact::AskRaised { .. } if self.turn().is_none() => {}
            Fact::AskRaised { ask } => {
                if ask.origin == AskOrigin::Policy {
                    self.stage(ask.call, CallStage::Asking);
                }
                self.asks.push_back(ask.clone());
            }
            Fact::AskAnswered { ask, answer, by } => {
                // A log may have lost that it was asked.
                let ask = self.settle(ask, Settled::Answered(by.clone()));
                match (answer, ask) {
                    (Answer::Approve { always }, Some(ask)) => {
                        self.always.extend(ask.always.filter(|_| *always));
                        if ask.origin == AskOrigin::Policy {
                            self.stage(ask.call, CallStage::Approved { shown: ask.request });
                        }
                    }
                    (Answer::Deny { reason }, Some(ask)) if ask.origin == AskOrigin::Policy => {
                        self.stage(ask.call, CallStage::Denied { reason: reason.clone(), by: by.clone() });
                    }
                    _ => {}
                }
            }
            Fact::AskClosed { ask, cause } => {
                // Its call is asked about no more. Nor is it run: what has closed the ask ends the call.
                if let Some(Ask { call, origin: AskOrigin::Policy, .. }) = self.settle(ask, Settled::Closed(*cause)) {
                    self.stage(call, CallStage::Proposed);
                }
                if let Phase::Interrupting(_, cut) = &mut self.phase {
                    cut.asks.push(ask.clone());
                }
            }
            Fact::HoldChanged { hold } => {
                self.hold = hold.clone();
                if let (Hold::Standing { .. }, Some(run)) = (hold, &mut self.run) {
                    // Released, it goes on at once.
                    run.waits_until = None;
                }
            }
            Fact::TurnCut { cause } => self.cut(cause),
            Fact::TurnFinished { outcome, error, cause, .. } => {
                if let Some(turn) = self.turn().map(|turn| turn.id) {
                    let (cause, error) = (cause.clone(), error.clone());
                    self.last_turn = Some(LastTurn { turn, outcome: *outcome, cause, error });
                }
                self.run = self.run.as_ref().map(|run| run.after(*outcome, cause.as_ref()));
                // Where a log has lost how they were settled, they are over with their turn.
                self.asks.clear();
                self.phase = Phase::Idle;
            }
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

    /// Knows the names that a fact mentions, where the fact that gave them is lost.
    fn know(&mut self, turn: Option<TurnId>, fact: &Fact) {
        if let Some(turn) = turn.filter(|turn| self.next_turn <= *turn) {
            self.next_turn = turn.next();
        }
        let prompt = match fact {
            Fact::PromptReturned { prompt, .. }
            | Fact::PromptDelivered { prompt, .. }
            | Fact::TurnStarted { prompt, .. } => Some(*prompt),
            _ => None,
        };
        if let Some(prompt) = prompt.filter(|prompt| self.next_prompt <= *prompt) {
            self.next_prompt = prompt.next();
        }
        let call = match fact {
            Fact::ToolStarted { call } => Some(*call),
            Fact::ToolFinished(result) => Some(result.call),
            Fact::AskRaised { ask } => Some(ask.call),
            Fact::JobStarted { job } => Some(job.id),
            _ => None,
        };
        if let Some(item) = call.map(CallId::item).filter(|item| self.next_item <= *item) {
            self.next_item = item.next();
        }
    }

    fn start_turn(&mut self, turn: TurnId, prompt: Option<PromptId>) {
        self.given = self.last;
        (self.next_turn, self.lost.turns) = (turn.next(), 0);
        self.asks.clear();
        let (calls, usage) = (Vec::new(), Usage::default());
        self.phase = Phase::Running(Turn { id: turn, prompt, step: 0, calls, usage, open_step: None });
    }

    /// A prompt waits no longer, and is part of the conversation; not where a log has lost it.
    fn take_queued(&mut self, prompt: PromptId) {
        let of = |event: &Arc<Event>| queued(event).is_some_and(|(queued, _)| queued == prompt);
        if let Some(event) = self.queue.iter().position(of).and_then(|at| self.queue.remove(at)) {
            self.remember(&event);
        }
    }

    /// It works, and so does its run.
    fn start_work(&mut self, at: Timestamp) {
        self.working_since.get_or_insert(at);
        if let Some(run) = &mut self.run {
            run.progress.working_since.get_or_insert(at);
        }
    }

    /// It waits for a person, or for nothing any more.
    fn stop_work(&mut self, at: Timestamp) {
        let worked = |since: Timestamp| u64::try_from(at.since(since).as_millis()).unwrap_or(u64::MAX);
        self.worked_ms = self.worked_ms.saturating_add(self.working_since.take().map_or(0, worked));
        if let Some(run) = &mut self.run {
            let since = run.progress.working_since.take().map_or(0, worked);
            run.progress.worked_ms = run.progress.worked_ms.saturating_add(since);
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

    fn stage(&mut self, call: CallId, to: CallStage) {
        if let Some(stage) = self.turn_mut().and_then(|turn| turn.stage_mut(call)) {
            *stage = to;
        }
    }

    fn settle(&mut self, id: &AskId, how: Settled) -> Option<Ask> {
        let at = self.asks.iter().position(|ask| ask.id == *id)?;
        self.settled.insert(id.seq, how);
        self.asks.remove(at)
    }

    fn remember(&mut self, event: &Arc<Event>) {
        self.history.push(event);
    }

    /// The next turn's name: none that a lost fact may have given.
    pub(super) fn next_turn(&self) -> TurnId {
        TurnId(self.next_turn.0.saturating_add(self.lost.turns))
    }

    /// The next prompt's name: none that a lost fact may have given.
    pub(super) fn next_prompt(&self) -> PromptId {
        PromptId(self.next_prompt.0.saturating_add(self.lost.prompts))
    }
}

/// Items that an answer is taken to have at most for each number that is lost with it. A block takes a number for each
/// of its pieces, and a call one for its result; but its result may never have come.
const ITEMS: u64 = 16;

impl Lost {
    /// So many facts are lost, or fewer: each may have named a turn or a prompt, or some items.
    fn add(&mut self, facts: u64) {
        self.turns = self.turns.saturating_add(facts);
        self.prompts = self.prompts.saturating_add(facts);
        self.items = self.items.saturating_add(facts.saturating_mul(ITEMS));
    }
}

/// Characters of a line that are looked through for secrets: one that begins in a title may end far behind it.
const LOOKED_THROUGH: usize = 4_096;

/// The last line of what a model has said to the user, if it has said anything.
fn last_line_of(message: &AssistantMessage) -> Option<String> {
    let said = message.blocks.iter().rev().filter(|block| block.kind == BlockKind::Text);
    said.flat_map(|block| block.text.lines().rev()).map(str::trim).find(|line| !line.is_empty()).map(listed)
}

/// Bytes of what a model has said: its words, and what it wants called.
pub(super) fn said(message: &AssistantMessage) -> u64 {
    let words: usize = message.blocks.iter().map(|block| block.text.len()).sum();
    let calls: usize = message.calls.iter().map(|call| call.name.len() + call.input.to_string().len()).sum();
    (words + calls) as u64
}

/// Whether a fact is of those that end what a restart has cut. Any other begins something, or is a person's.
fn is_left_by_restarts(fact: &Fact) -> bool {
    match fact {
        Fact::AssistantMessage(message) => message.partial,
        Fact::HoldChanged { hold: Hold::Standing { cause, .. } } => *cause == HoldCause::Restored,
        Fact::SessionRestored { .. }
        | Fact::StepFinished { .. }
        | Fact::ToolFinished(_)
        | Fact::AskClosed { .. }
        | Fact::JobEnded { .. }
        | Fact::RunFinished { .. }
        | Fact::TurnFinished { .. } => true,
        _ => false,
    }
}

/// What a session is called for its first words: their first line.
fn title_of(words: &str) -> Option<String> {
    words.lines().map(str::trim).find(|line| !line.is_empty()).map(listed)
}

/// The beginning of a line, as a list has it: without secrets.
fn listed(line: &str) -> String {
    let beginning: String = line.chars().take(LOOKED_THROUGH).collect();
    mask(&beginning).chars().take(MAX_TITLE).collect()
}
