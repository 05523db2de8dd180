//! What each fact does to the state.

use std::sync::Arc;

use holdpoint_common::{Answer, Ask, AskId, AskOrigin, CutCause, Event, Fact, ItemId, LastTurn, TurnId, Usage};

use super::{CallStage, Cut, Phase, Settled, State, Turn, queued};

impl State {
    /// Takes a fact in. Facts come in the order of their numbers; a delta changes nothing.
    pub fn apply(&mut self, event: &Arc<Event>) {
        let Some(fact) = event.fact() else { return };
        let before = self.status();
        self.last = event.seq;
        match fact {
            Fact::SessionOpened { settings } => self.settings = Arc::new(settings.clone()),
            Fact::SessionRestored { .. } => {
                self.always.clear();
                if matches!(self.phase, Phase::Closed) {
                    self.phase = Phase::Idle;
                }
            }
            Fact::SessionClosed { .. } => self.phase = Phase::Closed,
            Fact::SessionRenamed { name, .. } => {
                Arc::make_mut(&mut self.settings).name.clone_from(name);
                self.title = Some(name.clone());
            }
            Fact::PromptAccepted { prompt, text, .. } => {
                if self.title.is_none() {
                    self.title = text.lines().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned);
                }
                self.next_prompt = prompt.next();
                self.queue.push_back(Arc::clone(event));
            }
            Fact::PromptReturned { prompt, .. } => {
                self.queue.retain(|event| queued(event).is_none_or(|queued| queued.prompt != *prompt));
                if let Phase::Interrupting(_, cut) = &mut self.phase {
                    cut.prompts.push(*prompt);
                }
            }
            Fact::TurnStarted { turn, prompt } => {
                self.next_turn = turn.next();
                if let Some(event) = self.queue.pop_front() {
                    self.remember(&event);
                }
                let turn = Turn { id: *turn, prompt: *prompt, step: 0, calls: Vec::new(), usage: Usage::default() };
                self.phase = Phase::Running(turn);
            }
            Fact::StepStarted => {
                if let Some(turn) = self.turn_mut() {
                    turn.step += 1;
                }
            }
            Fact::AssistantMessage(message) => {
                let items = message.blocks.iter().map(|block| block.item);
                let calls = message.calls.iter().map(|call| call.id.item());
                self.next_item = items.chain(calls).map(ItemId::next).chain([self.next_item]).max().unwrap_or_default();
                if let Some(turn) = self.turn_mut() {
                    turn.calls.extend(message.calls.iter().map(|call| (call.clone(), CallStage::Proposed)));
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
            Fact::JobStarted { job } => self.jobs.push(job.clone()),
            Fact::JobEnded { job, .. } => self.jobs.retain(|running| running.id != *job),
            Fact::StepFinished { usage, context, refused } => {
                if *refused {
                    self.remember(event);
                }
                self.usage += *usage;
                self.context = context.or(self.context);
                if let Some(turn) = self.turn_mut() {
                    turn.usage += *usage;
                }
            }
            Fact::AskRaised { ask } => {
                if ask.origin == AskOrigin::Policy {
                    self.stage(ask.call, CallStage::Asking);
                }
                self.asks.push_back(ask.clone());
            }
            Fact::AskAnswered { ask, answer, by } => {
                let Some(ask) = self.settle(ask, Settled::Answered(by.clone())) else { return };
                match answer {
                    Answer::Approve { always } => {
                        self.always.extend(ask.always.filter(|_| *always));
                        if ask.origin == AskOrigin::Policy {
                            self.stage(ask.call, CallStage::Approved { shown: ask.request });
                        }
                    }
                    Answer::Deny { reason } if ask.origin == AskOrigin::Policy => {
                        self.stage(ask.call, CallStage::Denied { reason: reason.clone(), by: by.clone() });
                    }
                    Answer::Deny { .. } | Answer::Resume | Answer::Reply { .. } | Answer::Cancel => {}
                }
            }
            Fact::AskClosed { ask, cause } => {
                self.settle(ask, Settled::Closed(*cause));
                if let Phase::Interrupting(_, cut) = &mut self.phase {
                    cut.asks.push(ask.clone());
                }
            }
            Fact::HoldChanged { hold } => self.hold = hold.clone(),
            Fact::TurnCut { cause } => self.cut(cause),
            Fact::TurnFinished { outcome, error, cause, .. } => {
                if let Some(turn) = self.turn().map(|turn| turn.id) {
                    let (cause, error) = (cause.clone(), error.clone());
                    self.last_turn = Some(LastTurn { turn, outcome: *outcome, cause, error });
                }
                self.phase = Phase::Idle;
            }
        }
        if self.status() != before {
            self.since = event.at;
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

    fn stage(&mut self, call: holdpoint_common::CallId, to: CallStage) {
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

    /// The next turn's name.
    pub(super) fn next_turn(&self) -> TurnId {
        self.next_turn
    }
}
