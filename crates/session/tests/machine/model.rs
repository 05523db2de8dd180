//! What a session is, naively: plain numbers and lists, told every input, and what it would answer.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_common::api::RunRequest;
use holdpoint_common::{
    Answer, AskCloseCause, AskRequest, AsksMode, Fact, HoldAt, HoldShown, Outcome, PauseKind, RestoreCause,
    SessionStatus, TaskId, TaskRequest, TaskState, TurnId, Who,
};
use holdpoint_session::state::{CallStage, Clearance, Gate, GateReply, Input, Phase, Refused, Reply, Report, State};

use super::bench::{LONGEST, pause, session};
use super::words;

#[derive(Debug, Clone, Copy, PartialEq)]
enum At {
    Idle,
    Running,
    Cut,
    Closing,
    Closed,
}

#[derive(Debug)]
struct OpenAsk {
    seq: u64,
    call: u64,
    /// Words for the answers it takes.
    takes: &'static str,
    /// The policy's, and what *always* would remember.
    policy: Option<Option<String>>,
}

/// What holds a run by itself.
#[derive(Debug, Clone, Copy)]
enum Limit {
    Iterations,
    Tokens,
    Failures,
}

#[derive(Debug)]
struct Run {
    iteration: u32,
    tokens: u64,
    failures: u32,
    /// Granted at a time, and by now.
    grants: [Option<u64>; 2],
    limits: [Option<u64>; 2],
    /// It waits after a failure.
    waiting: bool,
    /// A restart has cut its iteration.
    cut: bool,
    steps: bool,
}

#[derive(Debug)]
pub(super) struct Model {
    name: String,
    model: String,
    debug: bool,
    mode: AsksMode,
    room: usize,
    at: At,
    /// It ends with its turn, for a restart.
    stopping: bool,
    /// The number of the last fact that gave it something to do, or began that.
    given: u64,
    turns: u64,
    prompts: u64,
    step: u32,
    calls: Vec<(u64, &'static str)>,
    asks: Vec<OpenAsk>,
    /// How asks that are over would refuse an answer.
    over: BTreeMap<u64, String>,
    always: BTreeSet<String>,
    hold: HoldShown,
    queue: Vec<u64>,
    /// Each with the turn that it is of.
    jobs: Vec<(u64, u64)>,
    run: Option<Run>,
    /// Something was said to the run that no answer has come to.
    unheard: bool,
    /// What the hold that stands is for, where it is a limit.
    limit: Option<Limit>,
    /// Somebody has interrupted the open turn.
    interrupted: bool,
    tasks: Vec<&'static str>,
    /// How many of them were closed when the run began.
    closed_before: usize,
    notes: usize,
}

impl Model {
    pub(super) fn new(mode: AsksMode, room: usize) -> Self {
        Self {
            name: "bench".to_owned(),
            model: "rehearsal".to_owned(),
            debug: false,
            mode,
            room,
            at: At::Idle,
            stopping: false,
            given: 0,
            turns: 0,
            prompts: 0,
            step: 0,
            calls: vec![],
            asks: vec![],
            over: BTreeMap::new(),
            always: BTreeSet::new(),
            hold: HoldShown::Off,
            queue: vec![],
            jobs: vec![],
            run: None,
            unheard: false,
            limit: None,
            interrupted: false,
            tasks: vec![],
            closed_before: 0,
            notes: 0,
        }
    }

    /// Takes an input in; `next` is the number of the next fact. Returns the reply, as [`brief`] words it.
    pub(super) fn told(&mut self, input: &Input, next: u64) -> String {
        match input {
            Input::Prompt { text, .. } => self.prompt(text),
            Input::Run { request, .. } => self.run(request),
            Input::WaitOver { turn } => {
                let waits = self.run.as_ref().is_some_and(|run| run.waiting) && turn.0 == self.turns;
                if !waits || self.at != At::Idle || self.hold != HoldShown::Off {
                    return "Stale".to_owned();
                }
                self.start_iteration();
                "Noted".to_owned()
            }
            Input::Tasks { turn, call, request } => {
                if self.at != At::Running || turn.0 != self.turns || self.stage(call.0) != Some("started") {
                    return "Stale".to_owned();
                }
                self.change_tasks(request)
            }
            Input::Answer { ask, answer, by } => {
                let ours = ask.session == session("bench");
                self.answer(if ours { ask.seq } else { 0 }, answer, by)
            }
            Input::Interrupt { turn, .. } => self.interrupt(*turn),
            Input::Hold { .. } => self.set_hold(HoldShown::Requested),
            Input::Release => self.set_hold(HoldShown::Off),
            Input::Toggle { shown, .. } if !self.over() && *shown != self.hold => self.held(),
            Input::Toggle { shown: HoldShown::Off, .. } => self.set_hold(HoldShown::Requested),
            Input::Toggle { .. } => self.set_hold(HoldShown::Off),
            Input::Rename { .. } if self.at == At::Closing => "refused: closed".to_owned(),
            Input::Rename { name, .. } if name.is_empty() => "refused: a session's name can't be empty".to_owned(),
            Input::Rename { name, .. } => {
                self.name.clone_from(name);
                "Renamed".to_owned()
            }
            Input::Model { .. } | Input::Debug { .. } if self.over() => "refused: closed".to_owned(),
            Input::Model { model, .. } => {
                self.model.clone_from(model);
                "Noted".to_owned()
            }
            Input::Debug { enabled, .. } => {
                self.debug = *enabled;
                "Noted".to_owned()
            }
            Input::Close { unused_since, .. } => self.close(*unused_since),
            Input::Shutdown => self.shut_down(),
            Input::Ask { turn, call, request } => {
                if self.at != At::Running || turn.0 != self.turns || self.stage(call.0) != Some("started") {
                    return "AskRefused".to_owned();
                }
                self.raise(next, call.0, request, None, false);
                format!("Asked {next}")
            }
            Input::JobStarted { turn, call, .. } => {
                let open = matches!(self.at, At::Idle | At::Running);
                if !open || turn.0 > self.turns || self.jobs.iter().any(|(job, _)| *job == call.0) {
                    return "Stale".to_owned();
                }
                self.jobs.push((call.0, turn.0));
                "Noted".to_owned()
            }
            Input::JobEnded { job, .. } => match self.jobs.iter().position(|(running, _)| *running == job.0) {
                Some(at) => {
                    self.jobs.remove(at);
                    "Noted".to_owned()
                }
                None => "Stale".to_owned(),
            },
            Input::Gate { turn, .. } if self.at != At::Running || turn.0 != self.turns => "Cut".to_owned(),
            Input::Gate { gate: Gate::Step, .. } => self.step(),
            Input::Gate { gate: Gate::Tool { call, clearance }, .. } => self.tool(call.0, clearance, next),
            Input::Report { turn, report } => {
                let open = matches!(self.at, At::Running | At::Cut | At::Closing) && turn.0 == self.turns;
                if open { self.report(report) } else { "Stale".to_owned() }
            }
            Input::Restored { cause, .. } => self.restored(*cause),
        }
    }

    fn prompt(&mut self, text: &str) -> String {
        if text.trim().is_empty() {
            return "refused: empty".to_owned();
        }
        if text.len() > LONGEST {
            return format!("refused: {} bytes, at most {LONGEST}", text.len());
        }
        if matches!(self.at, At::Closing | At::Closed) {
            return "refused: closed".to_owned();
        }
        let starts = self.at == At::Idle && self.hold == HoldShown::Off && self.run.is_none();
        if !starts && self.queue.len() == self.room {
            return format!("refused: queue full, {} wait", self.room);
        }
        self.prompts += 1;
        self.queue.push(self.prompts);
        let position = if starts { 0 } else { self.queue.len() };
        if starts {
            self.start_next();
        }
        format!("Prompted {} at {position}", self.prompts)
    }

    fn start_next(&mut self) {
        if !self.queue.is_empty() {
            self.queue.remove(0);
            self.turns += 1;
            self.step = 0;
            self.at = At::Running;
        }
    }

    fn run(&mut self, request: &RunRequest) -> String {
        let refused = match self.at {
            At::Closing | At::Closed => "closed",
            _ if self.run.is_some() => "a run is under way in this session",
            At::Running | At::Cut => "a turn is open; a run begins when there is none",
            At::Idle if request.goal.trim().is_empty() => "the goal is empty",
            At::Idle if request.goal.len() > LONGEST => "65 bytes, at most 64",
            At::Idle if request.tasks.iter().any(String::is_empty) => "the title is empty",
            At::Idle => "",
        };
        if !refused.is_empty() {
            return format!("refused: {refused}");
        }
        self.unheard = false;
        self.closed_before = self.closed();
        self.tasks.extend(request.tasks.iter().map(|_| "todo"));
        let grants = [request.limits.iterations, request.limits.tokens].map(|limit| limit.map(|limit| limit.get()));
        self.run = Some(Run {
            iteration: 0,
            tokens: 0,
            failures: 0,
            grants,
            limits: grants,
            waiting: false,
            cut: false,
            steps: request.hold_at == HoldAt::Step,
        });
        if self.hold == HoldShown::Standing {
            return "RunStarted, held".to_owned();
        }
        self.start_iteration();
        format!("RunStarted in {}", self.turns)
    }

    fn start_iteration(&mut self) {
        let Some(run) = &mut self.run else { return };
        run.iteration += u32::from(!run.cut);
        (run.cut, run.waiting) = (false, false);
        self.unheard |= !self.queue.is_empty();
        self.queue.clear();
        self.turns += 1;
        self.step = 0;
        self.at = At::Running;
    }

    /// What the run has come to.
    fn reached(&self) -> Option<Limit> {
        let run = self.run.as_ref()?;
        let done = u64::from(run.iteration) - u64::from(run.cut);
        if run.failures >= 3 {
            Some(Limit::Failures)
        } else if run.limits[0].is_some_and(|limit| done >= limit) {
            Some(Limit::Iterations)
        } else {
            self.spent()
        }
    }

    /// What it has come to in the middle of an iteration.
    fn spent(&self) -> Option<Limit> {
        let run = self.run.as_ref()?;
        run.limits[1].filter(|limit| run.tokens >= *limit).map(|_| Limit::Tokens)
    }

    /// Goes on with a run between two turns, unless it has come to a limit.
    fn go_on(&mut self, failed: bool) {
        self.limit = self.reached();
        if self.limit.is_some() {
            self.hold = HoldShown::Standing;
        } else if let Some(run) = self.run.as_mut().filter(|_| failed) {
            run.waiting = true;
        } else {
            self.start_iteration();
        }
    }

    /// Grants as much again.
    fn grant(&mut self) {
        let (Some(limit), Some(run)) = (self.limit.take(), &mut self.run) else { return };
        run.failures = 0;
        let (of, is) = match limit {
            Limit::Iterations => (0, u64::from(run.iteration) - u64::from(run.cut)),
            Limit::Tokens => (1, run.tokens),
            Limit::Failures => return,
        };
        let (Some(limit), Some(again)) = (&mut run.limits[of], run.grants[of]) else { return };
        while *limit <= is {
            *limit += again;
        }
    }

    fn change_tasks(&mut self, request: &TaskRequest) -> String {
        let known = |task: &TaskId| (1..=self.tasks.len() as u64).contains(&task.0);
        let unknown = |task: &TaskId| format!("refused: there is no task {task}");
        match request {
            TaskRequest::Look => {}
            TaskRequest::Add { titles } if titles.iter().any(|title| title == " ") => {
                return "refused: the title is empty".to_owned();
            }
            TaskRequest::Add { titles } => self.tasks.extend(titles.iter().map(|_| "todo")),
            TaskRequest::Note { text, .. } if text.is_empty() => return "refused: the note is empty".to_owned(),
            TaskRequest::Note { task: Some(task), .. } | TaskRequest::Move { task: Some(task), .. } if !known(task) => {
                return unknown(task);
            }
            TaskRequest::Note { .. } => self.notes += 1,
            TaskRequest::Move { task, to } => {
                let from = if *to == TaskState::Doing { "todo" } else { "doing" };
                let at = task.map(|task| task.0 as usize - 1);
                let at = at.or_else(|| self.tasks.iter().position(|state| *state == from));
                let Some(at) = at else { return format!("refused: {}", none_left(to)) };
                self.tasks[at] = task_word(*to);
            }
        }
        "Noted".to_owned()
    }

    fn answer(&mut self, seq: u64, answer: &Answer, by: &Who) -> String {
        let Some(ask) = self.asks.iter().find(|ask| ask.seq == seq) else {
            return self.over.get(&seq).cloned().unwrap_or("refused: unknown ask".to_owned());
        };
        if !ask.takes.contains(answer.word()) {
            return format!("refused: {} is no {}", answer.word(), ask.takes);
        }
        match answer {
            Answer::Reply { answers } if answers.is_empty() => return "refused: question has no reply".to_owned(),
            Answer::Reply { answers } if answers[0].answer.is_empty() => {
                return "refused: question has an empty reply".to_owned();
            }
            _ => {}
        }
        let rule = ask.policy.clone().flatten();
        self.settle(seq, answer, &by.to_string());
        if let (Answer::Approve { always: true }, Some(rule)) = (answer, rule) {
            let same = |ask: &&OpenAsk| ask.policy.as_ref().is_some_and(|of| of.as_ref() == Some(&rule));
            let same: Vec<_> = self.asks.iter().filter(same).map(|ask| ask.seq).collect();
            same.into_iter().for_each(|seq| self.settle(seq, answer, &by.to_string()));
        }
        // Only a turn that was kept over a restart asks under a hold: it runs from now on, and is held at its boundary.
        if self.hold == HoldShown::Standing {
            (self.hold, self.limit) = (HoldShown::Requested, None);
        }
        "Answered".to_owned()
    }

    fn settle(&mut self, seq: u64, answer: &Answer, by: &str) {
        let Some(at) = self.asks.iter().position(|ask| ask.seq == seq) else { return };
        let ask = self.asks.remove(at);
        self.over.insert(seq, format!("refused: already answered by {by}"));
        let Some(rule) = ask.policy else { return };
        let approved = matches!(answer, Answer::Approve { .. });
        self.set_stage(ask.call, if approved { "approved" } else { "denied" });
        if matches!(answer, Answer::Approve { always: true }) {
            self.always.extend(rule);
        }
    }

    fn interrupt(&mut self, turn: Option<TurnId>) -> String {
        match self.at {
            At::Closed => return "refused: closed".to_owned(),
            At::Idle if self.run.is_some() && turn.is_none() => {
                self.run = None;
                self.cut(At::Idle, "");
                return "RunInterrupted".to_owned();
            }
            At::Idle => return "NotRunning".to_owned(),
            _ if turn.is_some_and(|turn| turn.0 != self.turns) => return "NotRunning".to_owned(),
            At::Running => {
                self.interrupted = true;
                self.cut(At::Cut, "refused: ask closed, the turn was interrupted");
            }
            At::Cut | At::Closing => {}
        }
        format!("Interrupting {}", self.turns)
    }

    fn cut(&mut self, to: At, asks: &str) {
        self.at = to;
        self.limit = None;
        self.queue.clear();
        self.hold = HoldShown::Off;
        self.over_all(asks);
    }

    fn over_all(&mut self, how: &str) {
        for ask in self.asks.drain(..) {
            // Its call is asked about no more.
            let of_it = |(call, stage): &&mut (u64, &str)| *call == ask.call && *stage == "asking";
            self.calls.iter_mut().filter(of_it).for_each(|(_, stage)| *stage = "proposed");
            self.over.insert(ask.seq, how.to_owned());
        }
    }

    fn held(&self) -> String {
        format!("Hold {:?}", self.hold)
    }

    fn over(&self) -> bool {
        matches!(self.at, At::Closed | At::Closing)
    }

    /// Someone wants it held, or not.
    fn set_hold(&mut self, to: HoldShown) -> String {
        if self.over() {
            return "refused: closed".to_owned();
        }
        let before = self.hold;
        self.hold = match (to, self.hold, self.at) {
            (HoldShown::Off, ..) => HoldShown::Off,
            (_, HoldShown::Off, At::Idle) => HoldShown::Standing,
            (_, HoldShown::Off, _) => HoldShown::Requested,
            (_, is, _) => is,
        };
        if let Some(run) = self.run.as_mut().filter(|_| self.hold == HoldShown::Standing) {
            run.waiting = false;
        }
        if self.hold == HoldShown::Off {
            self.grant();
        }
        if self.hold == HoldShown::Off && self.at == At::Idle && self.run.is_some() {
            if before != HoldShown::Off {
                self.go_on(false);
            }
        } else if self.hold == HoldShown::Off && self.at == At::Idle {
            self.start_next();
        }
        self.held()
    }

    /// Which of the facts that were made give it something to do, or begin it.
    pub(super) fn note_given<'a>(&mut self, facts: impl Iterator<Item = (u64, &'a Fact)>) {
        for (seq, fact) in facts {
            if matches!(
                fact,
                Fact::PromptAccepted { .. }
                    | Fact::RunStarted { .. }
                    | Fact::TurnStarted { .. }
                    | Fact::IterationStarted { .. }
            ) {
                self.given = seq;
            }
        }
    }

    fn close(&mut self, unused_since: Option<u64>) -> String {
        let has_more = self.at != At::Idle || self.run.is_some() || !self.queue.is_empty();
        let used = unused_since.is_some_and(|since| has_more || self.given > since);
        match self.at {
            At::Idle | At::Running | At::Cut if used => return "refused: the session was given more to do".to_owned(),
            At::Closed => return "refused: closed".to_owned(),
            At::Idle => {
                self.jobs.clear();
                self.run = None;
                self.cut(At::Closed, "");
            }
            At::Running => self.cut(At::Closing, "refused: ask closed, the session was closed"),
            At::Cut | At::Closing => {
                self.at = At::Closing;
                self.queue.clear();
            }
        }
        "Closing".to_owned()
    }

    fn shut_down(&mut self) -> String {
        let stopped = "refused: ask closed, the runtime was stopped";
        match self.at {
            At::Closed => return "refused: closed".to_owned(),
            At::Closing => {}
            At::Cut => self.stopping = true,
            At::Idle => self.end_actor(),
            At::Running if self.calls.iter().any(|(_, stage)| *stage == "asking") => {
                let (stand, over) = self.asks.drain(..).partition(|ask| ask.policy.is_some());
                self.asks = over;
                self.over_all(stopped);
                self.asks = stand;
                self.calls.retain(|(_, stage)| *stage == "asking");
                self.jobs.clear();
            }
            At::Running => {
                (self.at, self.stopping) = (At::Cut, true);
                self.over_all(stopped);
            }
        }
        "Stopping".to_owned()
    }

    fn end_actor(&mut self) {
        self.stopping = false;
        self.jobs.clear();
        self.hold_what_waits();
    }

    fn hold_what_waits(&mut self) {
        let waits = !self.queue.is_empty() || self.run.is_some();
        self.hold = if waits { HoldShown::Standing } else { HoldShown::Off };
        self.limit = None;
        self.run.iter_mut().for_each(|run| run.waiting = false);
    }

    fn raise(&mut self, seq: u64, call: u64, request: &AskRequest, policy: Option<Option<String>>, deniable: bool) {
        let takes = match request {
            AskRequest::Question(_) => "reply or cancel",
            AskRequest::Pause(pause) if pause.kind == PauseKind::Confirm => "approve or deny",
            AskRequest::Pause(_) => "resume",
        };
        if policy.is_some() {
            self.set_stage(call, "asking");
        }
        self.asks.push(OpenAsk { seq, call, takes, policy });
        let yes = Answer::Approve { always: false };
        match (self.mode, takes) {
            (AsksMode::Wait, _) => {}
            (mode @ AsksMode::Approve, "approve or deny") if !deniable => {
                self.settle(seq, &yes, &format!("asks = {mode}"))
            }
            (mode, _) => self.settle(seq, &Answer::Cancel, &format!("asks = {mode}")),
        }
    }

    fn step(&mut self) -> String {
        let at_steps = self.run.as_ref().is_none_or(|run| run.steps);
        match (self.hold, self.spent()) {
            (HoldShown::Requested, spent) if spent.is_some() || (self.step > 0 && at_steps) => {
                self.hold = HoldShown::Standing;
            }
            (HoldShown::Off, Some(spent)) => (self.hold, self.limit) = (HoldShown::Standing, Some(spent)),
            _ => {}
        }
        if self.hold == HoldShown::Standing {
            return "Wait".to_owned();
        }
        self.step += 1;
        "Go".to_owned()
    }

    fn tool(&mut self, call: u64, clearance: &Clearance, next: u64) -> String {
        if let (Some("proposed"), Clearance::Ask(confirm)) = (self.stage(call), clearance) {
            match &confirm.always {
                Some(rule) if self.always.contains(rule) => self.set_stage(call, "approved"),
                _ => {
                    let request = AskRequest::Pause(pause(PauseKind::Confirm));
                    self.raise(next, call, &request, Some(confirm.always.clone()), confirm.may_be_denied);
                }
            }
        }
        match self.stage(call) {
            Some("proposed" | "approved") => {
                self.set_stage(call, "started");
                "Go".to_owned()
            }
            Some("asking") => "Wait".to_owned(),
            Some("denied") => "Denied".to_owned(),
            _ => "Cut".to_owned(),
        }
    }

    fn report(&mut self, report: &Report) -> String {
        match report {
            Report::Answered(message) => {
                self.calls.extend(message.calls.iter().map(|call| (call.id.0, "proposed")));
                self.unheard &= message.calls.is_empty() && message.text().trim().is_empty();
            }
            Report::FilesChanged(_) => {}
            Report::StepFinished { .. } => self.run.iter_mut().for_each(|run| run.tokens += 11),
            Report::ToolFinished(result) => {
                if self.stage(result.call.0).is_none() {
                    return "Stale".to_owned();
                }
                self.calls.retain(|(call, _)| *call != result.call.0);
                let (over, open) = self.asks.drain(..).partition(|ask| ask.call == result.call.0);
                self.asks = over;
                self.over_all("refused: ask closed, its call ended");
                self.asks = open;
            }
            Report::Finished { outcome, .. } => {
                self.over_all("refused: ask closed, its turn ended");
                self.calls.clear();
                self.iteration_over(*outcome);
                if self.at == At::Cut && *outcome != Outcome::Panicked {
                    self.jobs.retain(|(_, turn)| *turn != self.turns);
                }
                self.at = if self.at == At::Closing { At::Closed } else { At::Idle };
                self.hold = match self.hold {
                    _ if self.at == At::Closed => HoldShown::Off,
                    HoldShown::Requested if self.queue.is_empty() && self.run.is_none() => HoldShown::Off,
                    HoldShown::Requested => HoldShown::Standing,
                    is => is,
                };
                if self.at == At::Closed {
                    self.jobs.clear();
                }
                if self.at == At::Idle && std::mem::take(&mut self.stopping) {
                    self.end_actor();
                }
                if self.at == At::Idle && self.hold == HoldShown::Off {
                    match &self.run {
                        Some(_) => self.go_on(matches!(outcome, Outcome::Failed | Outcome::Panicked)),
                        None => self.start_next(),
                    }
                }
            }
        }
        "Noted".to_owned()
    }

    fn closed(&self) -> usize {
        self.tasks.iter().filter(|state| matches!(**state, "done" | "dropped")).count()
    }

    /// What becomes of the run with the end of its turn.
    fn iteration_over(&mut self, outcome: Outcome) {
        let (was, interrupted) = (self.at, std::mem::take(&mut self.interrupted));
        let Some(run) = &mut self.run else { return };
        let open = self.tasks.iter().any(|state| matches!(*state, "todo" | "doing"));
        let over = match (was, outcome) {
            _ if interrupted || was == At::Closing => true,
            (At::Cut, _) => {
                run.cut = true;
                false
            }
            (_, Outcome::Done) => {
                run.failures = 0;
                !open
            }
            (_, outcome) => {
                match outcome {
                    Outcome::Failed | Outcome::Panicked => run.failures += 1,
                    Outcome::Limit => run.failures = 0,
                    Outcome::Done | Outcome::Interrupted => {}
                }
                !open && self.closed() > self.closed_before
            }
        };
        if over && (interrupted || was == At::Closing || (self.queue.is_empty() && !self.unheard)) {
            self.run = None;
        }
    }

    fn restored(&mut self, cause: RestoreCause) -> String {
        let cause = match cause {
            RestoreCause::Panic => AskCloseCause::Panicked,
            RestoreCause::Restart | RestoreCause::Unloaded => AskCloseCause::Restart,
        };
        self.stopping = false;
        self.jobs.clear();
        self.always.clear();
        let stands = self.calls.iter().any(|(_, stage)| *stage == "asking");
        let keeps = self.at == At::Running && stands && cause == AskCloseCause::Restart;
        let (kept, over) = self.asks.drain(..).partition(|ask| keeps && ask.policy.is_some());
        self.asks = over;
        self.over_all(&format!("refused: ask closed, {cause}"));
        self.asks = kept;
        self.calls.retain(|(_, stage)| keeps && *stage == "asking");
        // It goes on where it was cut, unless somebody had ended it.
        let over = std::mem::take(&mut self.interrupted) || self.at == At::Closing;
        match &mut self.run {
            Some(_) if over => self.run = None,
            Some(run) if !keeps && self.at != At::Idle => run.cut = true,
            _ => {}
        }
        // A close that was accepted is not forgotten.
        self.at = if keeps {
            At::Running
        } else if self.at == At::Closing {
            At::Closed
        } else {
            At::Idle
        };
        self.hold_what_waits();
        "Noted".to_owned()
    }

    /// The model has answered what was said to a run.
    pub(super) fn heard(&mut self) {
        self.unheard = false;
    }

    /// A run has taken so many tokens more.
    pub(super) fn estimated(&mut self, tokens: u64) {
        self.run.iter_mut().for_each(|run| run.tokens += tokens);
    }

    fn stage(&self, call: u64) -> Option<&'static str> {
        self.calls.iter().find(|(id, _)| *id == call).map(|(_, stage)| *stage)
    }

    fn set_stage(&mut self, call: u64, to: &'static str) {
        self.calls.iter_mut().filter(|(id, _)| *id == call).for_each(|(_, stage)| *stage = to);
    }

    /// MISSION A1, word by word.
    pub(super) fn status(&self) -> SessionStatus {
        match self.at {
            At::Cut | At::Closing => SessionStatus::Interrupted,
            _ if !self.asks.is_empty() || self.hold == HoldShown::Standing => SessionStatus::Paused,
            At::Running => SessionStatus::Running,
            At::Idle if self.run.is_some() => SessionStatus::Running,
            At::Idle | At::Closed => SessionStatus::Idle,
        }
    }

    /// All that can be seen of it, in one line.
    pub(super) fn shown(&self) -> String {
        let open = matches!(self.at, At::Running | At::Cut | At::Closing);
        let turn = open.then_some((self.turns, self.step, &self.calls));
        let asks: Vec<_> = self.asks.iter().map(|ask| ask.seq).collect();
        let jobs: Vec<_> = self.jobs.iter().map(|(job, _)| *job).collect();
        let Self { name, model, debug, at, hold, queue, tasks, .. } = self;
        let run =
            self.run.as_ref().map(|run| (run.iteration, run.tokens, run.failures, run.waiting, run.cut, run.limits));
        let notes = self.notes.min(20);
        format!(
            "{name} {model} {debug} {at:?} {turn:?} asks {asks:?} hold {hold:?} queue {queue:?} jobs {jobs:?} run {run:?} \
             tasks {tasks:?} notes {notes}"
        )
    }
}

/// Why no task of itself can become this.
fn none_left(to: &TaskState) -> &'static str {
    match to {
        TaskState::Done => "no task is started: name the one that is done",
        TaskState::Dropped => "no task is started: name the one that is dropped",
        TaskState::Todo | TaskState::Doing => "no task is left that could be started",
    }
}

fn task_word(state: TaskState) -> &'static str {
    match state {
        TaskState::Todo => "todo",
        TaskState::Doing => "doing",
        TaskState::Done => "done",
        TaskState::Dropped => "dropped",
    }
}

/// A machine's reply, as the model words it.
pub(super) fn brief(outcome: Result<&Reply, &Refused>) -> String {
    match outcome {
        Ok(Reply::Hold(hold)) => format!("Hold {:?}", hold.shown()),
        Ok(Reply::Gate(GateReply::Denied { .. })) => "Denied".to_owned(),
        Ok(reply) => words::reply(reply),
        Err(refused) => words::refusal(refused),
    }
}

/// All that can be seen of a machine, in the same line.
pub(super) fn shown(state: &State) -> String {
    let at = match state.phase() {
        Phase::Idle => At::Idle,
        Phase::Running(_) => At::Running,
        Phase::Interrupting(_, cut) if cut.closing.is_some() => At::Closing,
        Phase::Interrupting(..) => At::Cut,
        Phase::Closed => At::Closed,
    };
    let stage = |stage: &CallStage| match stage {
        CallStage::Proposed => "proposed",
        CallStage::Asking => "asking",
        CallStage::Approved { .. } => "approved",
        CallStage::Denied { .. } => "denied",
        CallStage::Started => "started",
    };
    let turn = state.turn().map(|turn| {
        let calls: Vec<_> = turn.calls.iter().map(|(call, is)| (call.id.0, stage(is))).collect();
        (turn.id.0, turn.step, calls)
    });
    let snapshot = state.snapshot(0, 0, true);
    let asks: Vec<_> = snapshot.asks.iter().map(|ask| ask.id.seq).collect();
    let queue: Vec<_> = snapshot.queue.iter().map(|queued| queued.prompt.0).collect();
    let jobs: Vec<_> = snapshot.jobs.iter().map(|job| job.id.0).collect();
    let (name, model, hold) = (&snapshot.settings.name, &snapshot.settings.model, snapshot.hold.shown());
    let debug = snapshot.is_debug_enabled;
    let run = snapshot.run.as_ref().map(|run| {
        let limits = [run.limits.iterations, run.limits.tokens].map(|limit| limit.map(|limit| limit.get()));
        let progress = run.progress;
        (progress.iteration, progress.tokens, run.failures, run.waits_until.is_some(), run.cut, limits)
    });
    let tasks: Vec<_> = snapshot.tasks.iter().map(|task| task_word(task.state)).collect();
    let notes = snapshot.notes.len();
    format!(
        "{name} {model} {debug} {at:?} {turn:?} asks {asks:?} hold {hold:?} queue {queue:?} jobs {jobs:?} run {run:?} \
         tasks {tasks:?} notes {notes}"
    )
}
