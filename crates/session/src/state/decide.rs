//! What each input does in each phase.

use holdpoint_common::{
    Answer, AnswerError, AnsweredBy, Ask, AskCloseCause, AskId, AskOrigin, AskRequest, AsksMode, CallId, CutCause,
    EndedProcesses, Fact, Hold, HoldCause, HoldShown, Job, JobEnd, Outcome, PauseKind, PauseResponse, PromptId,
    QuestionResponse, Receipt, RestoreCause, StoppedTool, ToolResult, ToolStatus, TurnId, Who,
};
use holdpoint_tools::AskReply;

use super::decision::{Decision, Effect, GateReply, Refused, Reply};
use super::input::{Clearance, Gate, Input, Moment, Report};
use super::{CallStage, Cut, Phase, Settled, State, Turn, queued};

/// Says what `input` does to `state`, without doing it.
///
/// # Errors
/// [`Refused`] if the input may not be; nothing changes then.
pub fn decide(state: &State, moment: Moment<'_>, input: Input) -> Result<Decision, Refused> {
    let mut draft = Draft { state, moment, facts: Vec::new(), effects: Vec::new() };
    let reply = match input {
        Input::Prompt { text, by } => draft.prompt(text, by)?,
        Input::Answer { ask, answer, by } => draft.answer(&ask, answer, by)?,
        Input::Interrupt { turn, by } => draft.interrupt(turn, by)?,
        Input::Hold { by } => draft.hold(by)?,
        Input::Release { .. } => draft.release()?,
        Input::Toggle { shown, by } => draft.toggle(shown, by)?,
        Input::Close { by } => draft.close(by)?,
        Input::Ask { turn, call, request } => draft.ask(turn, call, request),
        Input::JobStarted { turn, call, command } => draft.job_started(turn, call, command),
        Input::JobEnded { job, end } => draft.job_ended(job, end),
        Input::Gate { turn, gate } => Reply::Gate(draft.gate(turn, gate)),
        Input::Report { turn, report } => draft.report(turn, report),
        Input::Restored { cause } => draft.restored(cause),
    };
    Ok(Decision { facts: draft.facts, effects: draft.effects, reply })
}

/// A decision in the making.
struct Draft<'a> {
    state: &'a State,
    moment: Moment<'a>,
    facts: Vec<Fact>,
    effects: Vec<Effect>,
}

impl Draft<'_> {
    fn prompt(&mut self, text: String, by: Who) -> Result<Reply, Refused> {
        let limits = self.moment.limits;
        if text.trim().is_empty() {
            return Err(Refused::EmptyPrompt);
        }
        if text.len() > limits.max_prompt_bytes {
            return Err(Refused::PromptTooLong { bytes: text.len(), most: limits.max_prompt_bytes });
        }
        let prompt = self.state.next_prompt;
        let waiting = self.state.queue.len();
        let starts = match &self.state.phase {
            Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => return Err(Refused::Closed),
            Phase::Idle => !matches!(self.state.hold, Hold::Standing { .. }),
            Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => false,
        };
        if !starts && waiting >= limits.max_queued_prompts {
            return Err(Refused::QueueFull { waiting });
        }
        self.facts.push(Fact::PromptAccepted { prompt, text, by });
        if starts {
            self.start(prompt);
        }
        Ok(Reply::Prompted { prompt, position: if starts { 0 } else { waiting + 1 } })
    }

    fn start(&mut self, prompt: PromptId) {
        let turn = self.state.next_turn();
        self.facts.push(Fact::TurnStarted { turn, prompt });
        self.effects.push(Effect::Start { turn });
    }

    /// Starts the prompt that waits first, if any.
    fn start_next(&mut self) {
        if let Some(first) = self.state.queue.front().and_then(|event| queued(event)) {
            self.start(first.prompt);
        }
    }

    fn answer(&mut self, id: &AskId, answer: Answer, by: Who) -> Result<Reply, Refused> {
        let ours = id.session == *self.state.id();
        let Some(ask) = self.state.asks.iter().find(|ask| ours && ask.id == *id) else {
            let settled = self.state.settled.get(&id.seq).filter(|_| ours);
            return Err(Refused::Answer(match settled {
                Some(Settled::Answered(by)) => AnswerError::AlreadyAnswered { ask: id.clone(), by: by.clone() },
                Some(Settled::Closed(cause)) => AnswerError::Closed { ask: id.clone(), cause: *cause },
                None => AnswerError::Unknown { ask: id.clone() },
            }));
        };
        ask.request.accepts(&answer)?;
        // *Always* answers what stands behind it for the same reason, too.
        let always = ask.always.as_ref().filter(|_| matches!(answer, Answer::Approve { always: true }));
        let alike = |other: &&Ask| other.id != ask.id && always.is_some() && other.always.as_ref() == always;
        let answered: Vec<_> = std::iter::once(ask).chain(self.state.asks.iter().filter(alike)).cloned().collect();
        for ask in answered {
            self.settle_by(&ask, answer.clone(), AnsweredBy::Client(by.clone()));
        }
        Ok(Reply::Answered)
    }

    /// Answers an ask: its tool wakes, or its gate opens.
    fn settle_by(&mut self, ask: &Ask, answer: Answer, by: AnsweredBy) {
        if ask.origin == AskOrigin::Tool {
            let reply = reply_to(&ask.request, &answer, &by);
            self.effects.push(Effect::Wake { ask: ask.id.clone(), reply });
        }
        self.facts.push(Fact::AskAnswered { ask: ask.id.clone(), answer, by });
    }

    fn interrupt(&mut self, turn: Option<TurnId>, by: Who) -> Result<Reply, Refused> {
        match &self.state.phase {
            Phase::Closed => Err(Refused::Closed),
            Phase::Idle => Ok(Reply::NotRunning),
            Phase::Running(open) | Phase::Interrupting(open, _) if turn.is_some_and(|turn| turn != open.id) => {
                Ok(Reply::NotRunning)
            }
            Phase::Interrupting(open, _) => Ok(Reply::Interrupting { turn: open.id }),
            Phase::Running(open) => {
                let turn = open.id;
                self.cut(turn, CutCause::User { by }, AskCloseCause::Interrupted);
                Ok(Reply::Interrupting { turn })
            }
        }
    }

    /// Cuts the turn: nothing of it starts any more, its asks are answered, the queue is handed back.
    fn cut(&mut self, turn: TurnId, cause: CutCause, asks: AskCloseCause) {
        self.effects.push(Effect::Cancel { turn });
        self.facts.push(Fact::TurnCut { cause });
        self.close_asks(asks);
        self.return_queue();
        if self.state.hold != Hold::Off {
            self.facts.push(Fact::HoldChanged { hold: Hold::Off });
        }
    }

    fn close_asks(&mut self, cause: AskCloseCause) {
        for ask in &self.state.asks {
            self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause });
        }
    }

    fn return_queue(&mut self) {
        let waiting = self.state.queue.iter().filter_map(|event| queued(event));
        self.facts.extend(waiting.map(|queued| Fact::PromptReturned { prompt: queued.prompt, text: queued.text }));
    }

    fn hold(&mut self, by: Who) -> Result<Reply, Refused> {
        let since = self.moment.now;
        let hold = match (&self.state.phase, &self.state.hold) {
            (Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }), _) => return Err(Refused::Closed),
            (_, hold @ (Hold::Requested { .. } | Hold::Standing { .. })) => return Ok(Reply::Hold(hold.clone())),
            (Phase::Idle, Hold::Off) => Hold::Standing { cause: HoldCause::User { by }, since },
            (Phase::Running(_) | Phase::Interrupting(..), Hold::Off) => Hold::Requested { by, since },
        };
        self.facts.push(Fact::HoldChanged { hold: hold.clone() });
        Ok(Reply::Hold(hold))
    }

    fn release(&mut self) -> Result<Reply, Refused> {
        match (&self.state.phase, &self.state.hold) {
            (Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }), _) => return Err(Refused::Closed),
            (_, Hold::Off) => {}
            (Phase::Idle, Hold::Requested { .. } | Hold::Standing { .. }) => {
                self.facts.push(Fact::HoldChanged { hold: Hold::Off });
                self.start_next();
            }
            (Phase::Running(_) | Phase::Interrupting(..), Hold::Requested { .. } | Hold::Standing { .. }) => {
                self.facts.push(Fact::HoldChanged { hold: Hold::Off });
            }
        }
        Ok(Reply::Hold(Hold::Off))
    }

    fn toggle(&mut self, shown: HoldShown, by: Who) -> Result<Reply, Refused> {
        if self.state.hold.shown() != shown {
            return match &self.state.phase {
                Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => Err(Refused::Closed),
                Phase::Idle | Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => {
                    Ok(Reply::Hold(self.state.hold.clone()))
                }
            };
        }
        match shown {
            HoldShown::Off => self.hold(by),
            HoldShown::Requested | HoldShown::Standing => self.release(),
        }
    }

    fn close(&mut self, by: Who) -> Result<Reply, Refused> {
        match &self.state.phase {
            Phase::Closed => return Err(Refused::Closed),
            Phase::Idle => {
                self.return_queue();
                self.end_session(by);
            }
            Phase::Running(turn) => {
                let turn = turn.id;
                self.cut(turn, CutCause::Close { by }, AskCloseCause::SessionClosed);
            }
            // It is closing already.
            Phase::Interrupting(_, Cut { closing: Some(_), .. }) => {}
            Phase::Interrupting(_, Cut { closing: None, .. }) => {
                self.facts.push(Fact::TurnCut { cause: CutCause::Close { by } });
                self.return_queue();
            }
        }
        Ok(Reply::Closing)
    }

    fn end_session(&mut self, by: Who) {
        if self.state.hold != Hold::Off {
            self.facts.push(Fact::HoldChanged { hold: Hold::Off });
        }
        self.end_jobs(JobEnd::SessionClosed);
        self.facts.push(Fact::SessionClosed { by });
        self.effects.push(Effect::Stop);
    }

    fn ask(&mut self, turn: TurnId, call: CallId, request: AskRequest) -> Reply {
        match &self.state.phase {
            Phase::Running(open) if open.id == turn && open.has_begun(call) => {
                Reply::Asked(self.raise(call, AskOrigin::Tool, request, None))
            }
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => Reply::AskRefused,
        }
    }

    /// Opens an ask; where the session has nobody to ask, it is answered in the same breath.
    fn raise(&mut self, call: CallId, origin: AskOrigin, request: AskRequest, always: Option<String>) -> AskId {
        let id = AskId { session: self.state.id().clone(), seq: self.moment.next + self.facts.len() as u64 };
        let ask = Ask { id: id.clone(), call, origin, since: self.moment.now, request, always };
        self.facts.push(Fact::AskRaised { ask: ask.clone() });
        let asks = self.state.settings.asks;
        if let Some(answer) = answer_of_setting(asks, &ask.request) {
            self.settle_by(&ask, answer, AnsweredBy::Setting { asks });
        }
        id
    }

    fn job_started(&mut self, turn: TurnId, call: CallId, command: String) -> Reply {
        match &self.state.phase {
            Phase::Running(open) if open.id == turn && open.has_begun(call) && !self.state.has_job(call) => {
                let job = Job { id: call, turn, command, since: self.moment.now };
                self.facts.push(Fact::JobStarted { job });
                Reply::Noted
            }
            // It began before the cut and is ended with it.
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => Reply::Stale,
        }
    }

    fn job_ended(&mut self, job: CallId, end: JobEnd) -> Reply {
        if !self.state.has_job(job) {
            return Reply::Stale;
        }
        self.facts.push(Fact::JobEnded { job, end });
        Reply::Noted
    }

    fn end_jobs(&mut self, end: JobEnd) {
        self.facts.extend(self.state.jobs.iter().map(|job| Fact::JobEnded { job: job.id, end }));
    }

    fn gate(&mut self, turn: TurnId, gate: Gate) -> GateReply {
        match &self.state.phase {
            Phase::Running(open) if open.id == turn => match gate {
                Gate::Step => self.step_gate(open),
                Gate::Tool { call, clearance } => self.tool_gate(open, call, clearance),
            },
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => GateReply::Cut,
        }
    }

    fn step_gate(&mut self, turn: &Turn) -> GateReply {
        match &self.state.hold {
            Hold::Standing { .. } => GateReply::Wait,
            Hold::Requested { by, .. } if turn.step > 0 => {
                let cause = HoldCause::User { by: by.clone() };
                self.facts.push(Fact::HoldChanged { hold: Hold::Standing { cause, since: self.moment.now } });
                GateReply::Wait
            }
            Hold::Requested { .. } | Hold::Off => {
                self.facts.push(Fact::StepStarted);
                GateReply::Go
            }
        }
    }

    fn tool_gate(&mut self, turn: &Turn, call: CallId, clearance: Clearance) -> GateReply {
        let Some((_, stage)) = turn.call(call) else { return GateReply::Cut };
        match (stage, clearance) {
            (CallStage::Proposed, Clearance::Ask(confirm))
                if !confirm.always.as_ref().is_some_and(|always| self.state.always.contains(always)) =>
            {
                self.raise(call, AskOrigin::Policy, confirm.request(), confirm.always);
                match self.state.settings.asks {
                    AsksMode::Wait => GateReply::Wait,
                    AsksMode::Approve => self.go(call),
                    AsksMode::Deny => {
                        GateReply::Denied { reason: denial(None, &AnsweredBy::Setting { asks: AsksMode::Deny }) }
                    }
                }
            }
            (CallStage::Proposed, Clearance::Allow | Clearance::Ask(_)) => self.go(call),
            // After a restart, the call is judged anew: what stands may no longer be what would be done.
            (CallStage::Approved { shown }, Clearance::Ask(confirm)) if *shown != confirm.request() => {
                GateReply::Denied { reason: OUTDATED.to_owned() }
            }
            (CallStage::Approved { .. }, Clearance::Allow | Clearance::Ask(_)) => self.go(call),
            (CallStage::Asking, clearance) => self.still_asking(call, &clearance),
            (CallStage::Denied { reason, by }, _) => GateReply::Denied { reason: denial(reason.as_deref(), by) },
            // A call begins once.
            (CallStage::Started, _) => GateReply::Cut,
        }
    }

    /// A call whose Confirm stands: it waits, unless what was shown is no longer what would be done.
    fn still_asking(&mut self, call: CallId, clearance: &Clearance) -> GateReply {
        let of_call = |ask: &&Ask| ask.call == call && ask.origin == AskOrigin::Policy;
        match (self.state.asks.iter().find(of_call), clearance) {
            (Some(ask), Clearance::Ask(confirm)) if ask.request != confirm.request() => {
                self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause: AskCloseCause::Restart });
                GateReply::Denied { reason: OUTDATED.to_owned() }
            }
            _ => GateReply::Wait,
        }
    }

    fn go(&mut self, call: CallId) -> GateReply {
        self.facts.push(Fact::ToolStarted { call });
        GateReply::Go
    }

    fn report(&mut self, turn: TurnId, report: Report) -> Reply {
        let open = match &self.state.phase {
            Phase::Running(open) | Phase::Interrupting(open, _) if open.id == turn => open,
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => return Reply::Stale,
        };
        match report {
            Report::Answered(message) if message.is_empty() => {}
            Report::Answered(message) => self.facts.push(Fact::AssistantMessage(message)),
            Report::ToolFinished(result) => {
                if open.call(result.call).is_none() {
                    return Reply::Stale;
                }
                for ask in self.state.asks.iter().filter(|ask| ask.call == result.call) {
                    let cause = AskCloseCause::TurnEnded;
                    self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause });
                }
                self.facts.push(Fact::ToolFinished(result));
            }
            Report::StepFinished { usage, context } => self.facts.push(Fact::StepFinished { usage, context }),
            Report::Finished { outcome, error, tools, processes } => {
                self.finish(open, outcome, error, tools, processes);
            }
        }
        Reply::Noted
    }

    fn finish(
        &mut self,
        turn: &Turn,
        outcome: Outcome,
        error: Option<String>,
        tools: Vec<StoppedTool>,
        processes: EndedProcesses,
    ) {
        self.close_asks(AskCloseCause::TurnEnded);
        let cut = match &self.state.phase {
            Phase::Interrupting(_, cut) => Some(cut),
            Phase::Idle | Phase::Running(_) | Phase::Closed => None,
        };
        self.answer_open_calls(turn, if cut.is_some() { "the turn was interrupted" } else { "the turn ended" });
        let usage = turn.usage;
        self.facts.push(match cut {
            Some(cut) => Fact::TurnFinished {
                outcome: Outcome::Interrupted,
                error,
                cause: Some(cut.cause.clone()),
                receipt: Some(Receipt { tools, processes, asks: cut.asks.clone(), prompts: cut.prompts.clone() }),
                usage,
            },
            None => Fact::TurnFinished { outcome, error, cause: None, receipt: None, usage },
        });
        if let Some(by) = cut.and_then(|cut| cut.closing.clone()) {
            return self.end_session(by);
        }
        let waits = !self.state.queue.is_empty();
        match &self.state.hold {
            Hold::Requested { by, .. } if waits => {
                let cause = HoldCause::User { by: by.clone() };
                self.facts.push(Fact::HoldChanged { hold: Hold::Standing { cause, since: self.moment.now } });
            }
            Hold::Requested { .. } => self.facts.push(Fact::HoldChanged { hold: Hold::Off }),
            Hold::Standing { .. } => {}
            Hold::Off => self.start_next(),
        }
    }

    /// Gives every call without a result one that says what became of it.
    fn answer_open_calls(&mut self, turn: &Turn, why: &str) {
        for (call, stage) in &turn.calls {
            let told = match stage {
                CallStage::Started => format!("{why} before this call came back; what it did until then stands"),
                CallStage::Proposed | CallStage::Asking | CallStage::Approved { .. } | CallStage::Denied { .. } => {
                    format!("not run: {why}")
                }
            };
            self.facts.push(Fact::ToolFinished(ToolResult::unrun(call.id, ToolStatus::Interrupted, told)));
        }
    }

    fn restored(&mut self, cause: RestoreCause) -> Reply {
        self.facts.push(Fact::SessionRestored { cause });
        let (ask_cause, cut_cause, outcome) = match cause {
            RestoreCause::Panic => (AskCloseCause::Panicked, CutCause::Panic, Outcome::Panicked),
            RestoreCause::Restart | RestoreCause::Unloaded => {
                (AskCloseCause::Restart, CutCause::Restart, Outcome::Interrupted)
            }
        };
        match &self.state.phase {
            Phase::Idle | Phase::Closed => {}
            Phase::Running(turn) if cause != RestoreCause::Panic && turn.stands() => self.keep(turn),
            Phase::Running(turn) => self.bury(turn, ask_cause, outcome, cut_cause, Receipt::default()),
            // The cut was first: it keeps its cause, what it had released, and the close it was to end with.
            Phase::Interrupting(turn, cut) => {
                let receipt = Receipt { asks: cut.asks.clone(), prompts: cut.prompts.clone(), ..Receipt::default() };
                self.bury(turn, ask_cause, Outcome::Interrupted, cut.cause.clone(), receipt);
                if let Some(by) = cut.closing.clone() {
                    self.return_queue();
                    self.end_session(by);
                    return Reply::Noted;
                }
            }
        }
        self.end_jobs(JobEnd::Lost);
        let hold = match (&self.state.hold, self.state.queue.is_empty()) {
            (_, true) => Hold::Off,
            (hold @ Hold::Standing { cause: HoldCause::Restored, .. }, false) => hold.clone(),
            (_, false) => Hold::Standing { cause: HoldCause::Restored, since: self.moment.now },
        };
        if self.state.hold != hold {
            self.facts.push(Fact::HoldChanged { hold });
        }
        Reply::Noted
    }

    /// Keeps a turn of which a policy's Confirm stands: the tool of that call had not begun, and goes on when it is
    /// answered. What had begun, and what was not asked about yet, is not run again.
    fn keep(&mut self, turn: &Turn) {
        for ask in self.state.asks.iter().filter(|ask| ask.origin == AskOrigin::Tool) {
            self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause: AskCloseCause::Restart });
        }
        let calls = turn.calls.iter().filter(|(_, stage)| *stage != CallStage::Asking).cloned().collect();
        self.answer_open_calls(&Turn { calls, ..turn.clone() }, &CutCause::Restart.to_string());
        self.effects.push(Effect::Start { turn: turn.id });
    }

    /// Ends a turn whose runner is gone.
    fn bury(&mut self, turn: &Turn, asks: AskCloseCause, outcome: Outcome, cause: CutCause, mut receipt: Receipt) {
        self.close_asks(asks);
        self.answer_open_calls(turn, &cause.to_string());
        receipt.asks.extend(self.state.asks.iter().map(|ask| ask.id.clone()));
        let (cause, receipt, usage) = (Some(cause), Some(receipt), turn.usage);
        self.facts.push(Fact::TurnFinished { outcome, error: None, cause, receipt, usage });
    }
}

/// What the model is told when what was confirmed is no longer what the call would do.
const OUTDATED: &str = "not run: since it was shown to the user, what this call would do has changed; look again";

/// What a tool that waits is told.
fn reply_to(request: &AskRequest, answer: &Answer, by: &AnsweredBy) -> AskReply {
    match (request, answer) {
        (AskRequest::Pause(_), Answer::Approve { .. }) => AskReply::Pause(PauseResponse::Approved),
        (AskRequest::Pause(_), Answer::Deny { reason }) => {
            AskReply::Pause(PauseResponse::Denied { reason: reason.clone() })
        }
        (AskRequest::Pause(_), Answer::Resume | Answer::Reply { .. } | Answer::Cancel) => {
            AskReply::Pause(PauseResponse::Resumed)
        }
        (AskRequest::Question(request), Answer::Reply { answers }) => {
            let place = |id: &str| request.questions.iter().position(|question| question.id == id);
            let mut replies = answers.clone();
            replies.sort_by_key(|reply| place(&reply.id));
            AskReply::Question(QuestionResponse::Replied { replies })
        }
        (AskRequest::Question(_), _) => AskReply::Question(match by {
            AnsweredBy::Client(_) => QuestionResponse::Declined,
            AnsweredBy::Setting { .. } => QuestionResponse::Unanswerable,
        }),
    }
}

/// How a session answers by itself; `None` where a person does.
fn answer_of_setting(asks: AsksMode, request: &AskRequest) -> Option<Answer> {
    let approves = match asks {
        AsksMode::Wait => return None,
        AsksMode::Deny => false,
        AsksMode::Approve => true,
    };
    Some(match request {
        AskRequest::Question(_) => Answer::Cancel,
        AskRequest::Pause(pause) => match pause.kind {
            PauseKind::Continue => Answer::Resume,
            PauseKind::Confirm if approves => Answer::Approve { always: false },
            PauseKind::Confirm => Answer::Deny { reason: None },
        },
    })
}

/// What the model is told of a denied call.
fn denial(reason: Option<&str>, by: &AnsweredBy) -> String {
    match (by, reason) {
        (AnsweredBy::Setting { asks }, _) => format!("denied: nobody is there to confirm it (asks = {asks})"),
        (AnsweredBy::Client(_), Some(reason)) => format!("the user denied this: {reason}"),
        (AnsweredBy::Client(_), None) => "the user denied this".to_owned(),
    }
}
