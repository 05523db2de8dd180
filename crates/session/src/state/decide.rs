//! The decision for each input in each phase.

mod asks;
mod ends;
mod gates;
mod holds;
mod jobs;
mod restore;
mod run;
mod settings;
mod shutdown;
mod tasks;

use holdpoint_common::{AskCloseCause, Fact, Hold, PromptId, ToolResult, ToolStatus, TurnId, Who};

use self::asks::denial;
use super::decision::{Decision, Effect, Refused, Reply};
use super::input::{Input, Moment, Report};
use super::{CallStage, Cut, Phase, State, queued};

/// Decides what `input` does to `state`, without changing it.
///
/// # Errors
/// Returns [`Refused`] if the state does not allow the input. A refused input changes nothing.
pub fn decide(state: &State, moment: Moment<'_>, input: Input) -> Result<Decision, Refused> {
    let mut builder = DecisionBuilder { state, moment, facts: Vec::new(), effects: Vec::new() };
    let reply = match input {
        Input::Prompt { text, by } => builder.prompt(text, by)?,
        Input::Run { request, by } => builder.run(request, by)?,
        Input::WaitOver { turn } => builder.wait_over(turn),
        Input::Answer { ask, answer, by } => builder.answer(&ask, answer, by)?,
        Input::Interrupt { turn, by } => builder.interrupt(turn, by)?,
        Input::Hold { by } => builder.hold(by)?,
        Input::Release => builder.release()?,
        Input::Toggle { shown, by } => builder.toggle(shown, by)?,
        Input::Rename { name, by } => builder.rename(name, by)?,
        Input::Model { model, by } => builder.change_model(model, by)?,
        Input::Debug { enabled, by } => builder.change_debug(enabled, by)?,
        Input::Close { unused_since, by } => builder.close(unused_since, by)?,
        Input::Shutdown => builder.shut_down()?,
        Input::Ask { turn, call, request } => builder.ask(turn, call, request),
        Input::Tasks { turn, call, request } => builder.tasks(turn, call, request)?,
        Input::JobStarted { turn, call, command } => builder.job_started(turn, call, command),
        Input::JobEnded { job, end } => builder.job_ended(job, end),
        Input::Gate { turn, gate } => Reply::Gate(builder.gate(turn, gate)),
        Input::Report { turn, report } => builder.report(turn, report),
        Input::Restored { cause, draft: said } => builder.restored(cause, &said),
    };
    Ok(Decision { facts: builder.facts, effects: builder.effects, reply })
}

/// A decision under construction.
struct DecisionBuilder<'a> {
    state: &'a State,
    moment: Moment<'a>,
    facts: Vec<Fact>,
    effects: Vec<Effect>,
}

impl DecisionBuilder<'_> {
    fn prompt(&mut self, text: String, by: Who) -> Result<Reply, Refused> {
        let limits = self.moment.limits;
        if text.trim().is_empty() {
            return Err(Refused::EmptyPrompt);
        }
        if text.len() > limits.max_prompt_bytes {
            return Err(Refused::PromptTooLong { bytes: text.len(), most: limits.max_prompt_bytes });
        }
        let prompt = self.state.next_prompt();
        let waiting = self.state.queue.len();
        let starts = match &self.state.phase {
            Phase::Closed | Phase::Interrupting(_, Cut { closing: Some(_), .. }) => return Err(Refused::Closed),
            // The next iteration of a run delivers the prompt.
            Phase::Idle => !matches!(self.state.hold, Hold::Standing { .. }) && self.state.run.is_none(),
            Phase::Running(_) | Phase::Interrupting(_, Cut { closing: None, .. }) => false,
        };
        if !starts && waiting >= limits.max_queued_prompts {
            return Err(Refused::QueueFull { waiting });
        }
        self.facts.push(Fact::PromptAccepted { prompt, text: text.into(), by });
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

    /// Starts the first queued prompt, if any.
    fn start_next(&mut self) {
        if let Some((first, _)) = self.state.queue.front().and_then(|event| queued(event)) {
            self.start(first);
        }
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
                // A denied call may end for another reason first, for example a restart. The model
                // still learns that it was denied.
                let result = match open.call(result.call) {
                    None => return Reply::Stale,
                    Some((call, CallStage::Denied { reason, by })) => {
                        ToolResult::not_run(call.id, ToolStatus::Denied, denial(reason.as_deref(), by))
                    }
                    Some(_) => result,
                };
                for ask in self.state.asks.iter().filter(|ask| ask.call == result.call) {
                    let cause = AskCloseCause::CallEnded;
                    self.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause });
                }
                self.facts.push(Fact::ToolFinished(result));
            }
            Report::StepFinished { usage, context, refused, omitted } => {
                self.facts.push(Fact::StepFinished { usage, context, refused, omitted });
            }
            Report::ProjectCut { reason } => self.facts.push(Fact::ProjectCut { reason }),
            Report::HistoryCut(cut) => self.facts.push(Fact::HistoryCut(cut)),
            Report::FilesChanged(paths) if paths.is_empty() => {}
            Report::FilesChanged(paths) => self.facts.push(Fact::FilesChanged { paths }),
            Report::Finished { outcome, error, tools, processes } => {
                self.finish(open, outcome, error, tools, processes);
            }
        }
        Reply::Noted
    }
}
