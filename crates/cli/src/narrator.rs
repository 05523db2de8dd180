//! Puts a session's events into words, for every terminal view.
//!
//! The plain terminal prints the words in order, and the screen lays them out. The texts, thoughts
//! and outputs of a turn are not part of them: each view shows those in its own way.

mod receipt;
mod run;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use holdpoint_common::{
    AgentStart, Answer, Ask, AskFact, AskId, AskRequest, AssistantMessage, BlockKind, Body, CallId,
    CutCause, Delta, Event, Fact, Gap, Gaps, Hold, HoldCause, HoldState, ItemId, JobFact, Outcome,
    PauseKind, PromptFact, PromptId, Receipt, RefusedClient, RestoreCause, RunFact, SessionFact,
    Tasks, Timestamp, TurnFact, Usage, Who,
};
use holdpoint_tools::shown::{line, prose, prose_line};

use self::receipt::receipt_text;
use crate::summaries::clock::Clock;
use crate::summaries::{
    answered, ask_prefix, cut, first_line_summary, paused, pausing, resend_notice, setting,
    shorten, size_text,
};
use crate::tone::Tone;

/// Words about an event.
#[derive(Debug, PartialEq)]
pub(crate) enum Narration {
    Remark(Remark),
    /// A state that will pass, for views that do not show the current state elsewhere.
    State(Remark),
    /// A hold is in force. After an answer to a restored ask it may be in force again.
    Hold(Remark),
    /// A prompt that the model now works on.
    Prompt {
        text: String,
        /// The client that sent it; `None` if it is this one.
        by: Option<String>,
    },
    /// A prompt that is handed back to its client without an answer.
    Returned {
        prompt: PromptId,
        text: String,
    },
    AskEnd(AskEnd),
    /// The text of this item is incomplete.
    TextCut(ItemId, Remark),
    /// A turn was cut. The cause and the receipt follow with [`TurnEnd`], when its tools have
    /// ended.
    Cut(Remark),
    TurnEnd(TurnEnd),
}

/// A line about the session, and the lines that belong to it. All are safe to print.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Remark {
    pub(crate) tone: Tone,
    pub(crate) text: String,
    /// Secondary lines below the text.
    pub(crate) details: Vec<String>,
}

/// The end of an ask.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AskEnd {
    /// The call that asked, and the subject of its ask; `None` if the ask was raised before the
    /// first event.
    pub(crate) ask: Option<OpenAsk>,
    pub(crate) tone: Tone,
    /// The answer and its origin, or the cause of the end.
    pub(crate) text: String,
}

/// An ask that waits for its answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OpenAsk {
    pub(crate) call: CallId,
    /// The tool and the question in one line.
    pub(crate) subject: String,
    pub(crate) is_confirm: bool,
}

impl OpenAsk {
    fn new(ask: &Ask) -> Self {
        let is_confirm = match &ask.request {
            AskRequest::Pause(pause) => pause.kind == PauseKind::Confirm,
            AskRequest::Question(_) => false,
        };
        Self { call: ask.call, subject: ask_prefix(&ask.request), is_confirm }
    }
}

/// The end of a turn.
#[derive(Debug, PartialEq)]
pub(crate) struct TurnEnd {
    /// The cut with its receipt, or the error.
    pub(crate) cause: Option<Remark>,
    /// The outcome with the work that it took.
    pub(crate) summary: Remark,
    /// The working time in seconds, if the beginning of the turn was narrated.
    pub(crate) seconds: Option<f64>,
}

/// The state that the words about later events depend on.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    /// This process, whose prompts and answers need no name.
    own_pid: u32,
    tasks: Tasks,
    /// Accepted prompts that have not started, with their text and sender.
    prompts: HashMap<PromptId, (Arc<str>, Who)>,
    asks: HashMap<AskId, OpenAsk>,
    /// Whether a turn is open.
    is_open: bool,
    /// The clock of the open turn, if its beginning was narrated.
    clock: Option<Clock>,
    steps: u32,
    hold: HoldState,
    /// Whether a hold was in force since the last release. An answer to a restored ask turns the
    /// hold into a request for the rest of the turn.
    held: bool,
}

impl Narrator {
    /// A narrator for the process `own_pid`.
    pub(crate) fn new(own_pid: u32) -> Self {
        Self { own_pid, ..Self::default() }
    }

    /// The number of open asks, as far as they were narrated.
    pub(crate) fn open_asks(&self) -> usize {
        self.asks.len()
    }

    /// The tasks so far.
    pub(crate) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Puts an event into words. An event may need none.
    pub(crate) fn narrate(&mut self, event: &Event) -> Vec<Narration> {
        let fact = match &event.body {
            Body::Delta(delta) => {
                return delta_remark(delta).map(Narration::Remark).into_iter().collect();
            }
            Body::Fact(fact) => fact,
        };
        self.clock.iter_mut().for_each(|clock| clock.tick(event.at, fact));
        let narration = match fact {
            Fact::Session(fact) => self.narrate_session_fact(fact),
            Fact::Prompt(fact) => return self.narrate_prompt_fact(fact),
            Fact::Run(fact) => {
                if matches!(fact, RunFact::IterationStarted { .. }) {
                    self.begin_turn(event.at);
                }
                run::run_remark(fact, event.at).map(Narration::Remark)
            }
            Fact::Task(fact) => {
                self.tasks.apply(fact);
                Some(Narration::Remark(run::task_remark(fact, &self.tasks)))
            }
            Fact::Turn(fact) => self.narrate_turn_fact(fact, event.at),
            Fact::Job(fact) => Some(Narration::Remark(job_remark(fact))),
            Fact::Ask(fact) => self.narrate_ask_fact(fact),
            // The views show the calls themselves.
            Fact::Tool(_) => None,
        };
        narration.into_iter().collect()
    }

    fn narrate_session_fact(&mut self, fact: &SessionFact) -> Option<Narration> {
        let remark = match fact {
            SessionFact::HoldChanged { hold } => return self.narrate_hold(hold),
            SessionFact::Restored { cause } => restored(*cause)?,
            SessionFact::Closed { by } => {
                Remark::new(Tone::Strong, format!("closed {}", prose_line(&by.origin())))
            }
            SessionFact::ClientRefused(refused) => refused_client(refused),
            SessionFact::Opened { .. } => return None,
            SessionFact::Renamed { .. }
            | SessionFact::Moved { .. }
            | SessionFact::ModelChanged { .. }
            | SessionFact::DebugChanged { .. }
            | SessionFact::AsksChanged { .. }
            | SessionFact::PolicyChanged { .. } => Remark::new(Tone::Dim, setting(fact)?),
        };
        Some(Narration::Remark(remark))
    }

    fn narrate_prompt_fact(&mut self, fact: &PromptFact) -> Vec<Narration> {
        match fact {
            PromptFact::Accepted { prompt, text, by, .. } => {
                self.narrate_accepted(*prompt, text, by).into_iter().collect()
            }
            PromptFact::Returned { prompt, text } => {
                self.prompts.remove(prompt);
                vec![Narration::Returned { prompt: *prompt, text: prompt_text(text) }]
            }
            PromptFact::Delivered { prompt, iteration } => {
                let text = format!("prompt {prompt} is delivered to iteration {iteration}");
                let delivered = Narration::Remark(Remark::new(Tone::Dim, text));
                [delivered].into_iter().chain(self.begin_prompt(*prompt)).collect()
            }
        }
    }

    fn narrate_turn_fact(&mut self, fact: &TurnFact, at: Timestamp) -> Option<Narration> {
        let remark = match fact {
            TurnFact::Started { prompt, .. } => {
                self.begin_turn(at);
                return self.begin_prompt(*prompt);
            }
            TurnFact::StepStarted => {
                self.steps += 1;
                return None;
            }
            TurnFact::AssistantMessage(message) => return text_cut(message),
            TurnFact::InstructionsRead { .. } | TurnFact::StepFinished { omitted: None, .. } => {
                return None;
            }
            TurnFact::StepFinished { omitted: Some(omission), .. } => {
                Remark::new(Tone::Warning, resend_notice(omission))
            }
            TurnFact::ProjectCut { reason } | TurnFact::ToolsMissing { reason } => {
                Remark::new(Tone::Warning, prose_line(reason))
            }
            TurnFact::ContentAdded { name, text } => {
                let size = size_text(text.len());
                Remark::new(Tone::Dim, format!("added {} ({size})", prose_line(name)))
            }
            TurnFact::AgentStarted { how, .. } => agent_started(*how)?,
            TurnFact::HistoryCut(left_out) => Remark::new(Tone::Warning, cut(left_out)),
            TurnFact::Cut { cause } => {
                if matches!(cause, CutCause::User { .. } | CutCause::Close { .. }) {
                    // The cut also ends the hold, which needs no words.
                    self.hold = HoldState::Off;
                    self.held = false;
                }
                return Some(Narration::Cut(Remark::interrupted(None, None)));
            }
            TurnFact::Finished { outcome, error, cause, receipt, usage } => {
                let remark = match outcome {
                    Outcome::Interrupted => {
                        Some(Remark::interrupted(cause.as_ref(), receipt.as_ref()))
                    }
                    outcome => error.as_ref().map(|error| Remark::error(*outcome, error)),
                };
                return Some(self.turn_end(*outcome, remark, usage));
            }
        };
        Some(Narration::Remark(remark))
    }

    fn narrate_ask_fact(&mut self, fact: &AskFact) -> Option<Narration> {
        match fact {
            AskFact::Raised { ask } => {
                self.asks.insert(ask.id.clone(), OpenAsk::new(ask));
                None
            }
            AskFact::Answered { ask, answer, by, .. } => {
                let is_denied = matches!(answer, Answer::Deny { .. });
                let tone = if is_denied { Tone::Warning } else { Tone::Dim };
                Some(self.ask_end(ask, tone, answered(answer, by, self.own_pid)))
            }
            AskFact::Closed { ask, cause } => {
                Some(self.ask_end(ask, Tone::Dim, format!("closed: {cause}")))
            }
        }
    }

    fn narrate_accepted(
        &mut self,
        prompt: PromptId,
        text: &Arc<str>,
        by: &Who,
    ) -> Option<Narration> {
        self.prompts.insert(prompt, (Arc::clone(text), by.clone()));
        // Otherwise its turn begins at once.
        let waits = self.is_open || self.hold == HoldState::Standing;
        let queued = || {
            Remark::new(Tone::Dim, format!("queued, prompt {prompt}: {}", first_line_summary(text)))
        };
        waits.then(|| Narration::State(queued()))
    }

    fn begin_turn(&mut self, at: Timestamp) {
        self.is_open = true;
        self.clock = Some(Clock::begun(at));
        self.steps = 0;
    }

    /// Narrates a prompt that has started, if its text is known.
    fn begin_prompt(&mut self, prompt: PromptId) -> Option<Narration> {
        let (text, by) = self.prompts.remove(&prompt)?;
        let by = (by.pid != Some(self.own_pid))
            .then(|| prose_line(&by.origin_without_pid()).into_owned());
        Some(Narration::Prompt { text: prompt_text(&text), by })
    }

    fn ask_end(&mut self, ask: &AskId, tone: Tone, text: String) -> Narration {
        Narration::AskEnd(AskEnd { ask: self.asks.remove(ask), tone, text })
    }

    /// Narrates a change of the hold.
    fn narrate_hold(&mut self, hold: &Hold) -> Option<Narration> {
        let before = std::mem::replace(&mut self.hold, hold.shown());
        Some(match (before, hold) {
            (_, Hold::Off) if std::mem::take(&mut self.held) => {
                Narration::Remark(Remark::new(Tone::Strong, "▶ released"))
            }
            // If the turn or run ended before the hold took effect, its end was narrated.
            (HoldState::Requested, Hold::Off) if self.is_open => {
                Narration::State(Remark::new(Tone::Strong, "▶ released"))
            }
            (_, Hold::Off) => return None,
            (_, Hold::Requested { cause, .. }) => {
                Narration::State(Remark::new(Tone::Strong, pausing(cause)))
            }
            (_, Hold::Standing { cause, .. }) => {
                let is_own =
                    matches!(cause, HoldCause::User { by } if by.pid == Some(self.own_pid));
                let text = if is_own { "⏸ PAUSED".to_owned() } else { paused(cause) };
                self.held = true;
                Narration::Hold(Remark::new(Tone::Strong, text))
            }
        })
    }

    fn turn_end(&mut self, outcome: Outcome, cause: Option<Remark>, usage: &Usage) -> Narration {
        self.is_open = false;
        let seconds = self.clock.take().map(|clock| clock.seconds());
        let about = if usage.estimated { "about " } else { "" };
        let cost = usage
            .cost
            .map(|millionths| format!(", cost {:.4}", millionths as f64 / 1e6))
            .unwrap_or_default();
        let tokens = format!("{about}{} tokens in, {} out{cost}", usage.input, usage.output);
        let text = match seconds {
            Some(seconds) => {
                let steps = if self.steps == 1 { "step" } else { "steps" };
                format!("{outcome}: {} {steps}, {tokens}, {seconds:.1} s", self.steps)
            }
            None => format!("{outcome}: {tokens}"),
        };
        Narration::TurnEnd(TurnEnd { cause, summary: Remark::new(Tone::Dim, text), seconds })
    }
}

impl Remark {
    pub(crate) fn new(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone, text: text.into(), details: Vec::new() }
    }

    /// The error with which a turn ended.
    fn error(outcome: Outcome, error: &str) -> Self {
        Self::new(Tone::Fault, format!("{outcome}: {}", prose(error)))
    }

    /// The remark about a cut, with as much about it as is known.
    fn interrupted(cause: Option<&CutCause>, receipt: Option<&Receipt>) -> Self {
        let about =
            cause.map(ToString::to_string).into_iter().chain(receipt.and_then(receipt_text));
        let details = about.map(|about| prose_line(&about).into_owned()).collect();
        Self { tone: Tone::Strong, text: "Agent interrupted".to_owned(), details }
    }
}

impl AskEnd {
    /// The subject of the ask; empty if it is unknown.
    pub(crate) fn subject(&self) -> &str {
        self.ask.as_ref().map_or("", |ask| &ask.subject)
    }
}

/// The text of a prompt, safe to print.
fn prompt_text(text: &str) -> String {
    prose(&text.replace("\r\n", "\n")).into_owned()
}

/// The mark at the end of an answer that was cut.
fn text_cut(message: &AssistantMessage) -> Option<Narration> {
    let last = message.blocks.iter().rfind(|block| !block.text.is_empty());
    let cut = last.filter(|block| message.partial && block.kind == BlockKind::Text)?;
    Some(Narration::TextCut(cut.item, Remark::new(Tone::Dim, "(cut here)")))
}

/// How a hosted agent continues the conversation; `None` if it begins one.
fn agent_started(how: AgentStart) -> Option<Remark> {
    let (tone, text) = match how {
        AgentStart::New => return None,
        AgentStart::Resumed | AgentStart::Loaded => {
            (Tone::Dim, "the agent was started again, and continues its session")
        }
        AgentStart::Replayed => (
            Tone::Warning,
            "the agent was started again, and can't continue its session: it got the conversation \
             so far as text",
        ),
    };
    Some(Remark::new(tone, text))
}

/// The words about a session that was rebuilt from its log.
fn restored(cause: RestoreCause) -> Option<Remark> {
    match cause {
        RestoreCause::Panic => {
            Some(Remark::new(Tone::Warning, "the session failed and was rebuilt from its log"))
        }
        RestoreCause::Restart => Some(Remark::new(Tone::Dim, "the daemon was restarted")),
        RestoreCause::Unloaded => None,
    }
}

/// The words about a process of the session's tools that was refused as a client.
fn refused_client(client: &RefusedClient) -> Remark {
    let RefusedClient { pid, program, request } = client;
    let text = format!(
        "! refused a request to the daemon by {} (pid {pid}), which the agent has started: {}",
        prose_line(program),
        shorten(&prose_line(request)),
    );
    Remark::new(Tone::Warning, text)
}

fn job_remark(fact: &JobFact) -> Remark {
    let text = match fact {
        JobFact::Started { job } => {
            format!("⚙ job {} in the background: {}", job.id, shorten(&line(&job.command)))
        }
        JobFact::Ended { job, end } => format!("⚙ job {job}: {end}"),
    };
    Remark::new(Tone::Dim, text)
}

/// The words about a delta that is not a piece of an answer or an output.
fn delta_remark(delta: &Delta) -> Option<Remark> {
    Some(match delta {
        Delta::Retrying { next, tries, wait_ms, reason } => {
            let wait = wait_ms.div_ceil(1000);
            Remark::new(
                Tone::Warning,
                format!("{}; try {next} of {tries} in {wait} s", prose_line(reason)),
            )
        }
        Delta::Gap { from, to } => {
            Remark::new(Tone::Warning, Gaps::from_iter([Gap { from: *from, to: *to }]).to_string())
        }
        Delta::NotSaved { reason } => {
            Remark::new(Tone::Warning, format!("not saved: {}", prose_line(reason)))
        }
        Delta::SavedAgain => Remark::new(Tone::Dim, "saved again"),
        Delta::Text { .. }
        | Delta::Thought { .. }
        | Delta::Output { .. }
        | Delta::ItemSoFar { .. }
        | Delta::Status { .. } => return None,
    })
}
