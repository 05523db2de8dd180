//! The decision for a report of a runner.

use holdpoint_common::{
    AskCloseCause, AskFact, Refused, RunFact, ToolFact, ToolResult, ToolStatus, TurnFact,
};

use super::DecisionBuilder;
use crate::state::decision::Reception;
use crate::state::input::{Input, Report, RunnerReport};
use crate::state::{CallStage, Phase};

impl Input for RunnerReport {
    type Reply = Reception;

    fn decide(self, builder: &mut DecisionBuilder<'_>) -> Result<Reception, Refused> {
        let open = match &builder.state.phase {
            Phase::Running(open) | Phase::Interrupting(open, _) if open.id == self.turn => open,
            Phase::Idle | Phase::Running(_) | Phase::Interrupting(..) | Phase::Closed => {
                return Ok(Reception::Stale);
            }
        };
        match self.report {
            Report::Answered(message) if message.is_empty() => {}
            Report::Answered(message) => builder.record(TurnFact::AssistantMessage(message.into())),
            Report::ToolFinished(result) => {
                // A denied call may end for another reason first, for example a restart. The model
                // still learns that it was denied.
                let result = match open.call(result.call) {
                    None => return Ok(Reception::Stale),
                    Some((call, CallStage::Denied { why })) => {
                        ToolResult::not_run(call.id, ToolStatus::Denied, why.clone())
                    }
                    Some(_) => result,
                };
                for ask in builder.state.asks.iter().filter(|ask| ask.call == result.call) {
                    let cause = AskCloseCause::CallEnded;
                    builder.record(AskFact::Closed { ask: ask.id.clone(), cause });
                }
                builder.record(ToolFact::Finished(result.into()));
            }
            Report::StepFinished { usage, context, refused, omitted } => {
                builder.record(TurnFact::StepFinished { usage, context, refused, omitted });
            }
            Report::InstructionsRead(files) if files == *builder.state.instructions => {}
            Report::InstructionsRead(files) => {
                builder.record(TurnFact::InstructionsRead { files });
            }
            Report::ProjectCut { reason } => builder.record(TurnFact::ProjectCut { reason }),
            Report::ToolsMissing { reason } => builder.record(TurnFact::ToolsMissing { reason }),
            Report::ContentAdded { name, text } => {
                builder.record(TurnFact::ContentAdded { name, text });
            }
            Report::AgentStarted { session, how } => {
                builder.record(TurnFact::AgentStarted { session, how });
            }
            Report::HistoryCut(cut) => builder.record(TurnFact::HistoryCut(cut)),
            Report::FilesChanged(paths) if paths.is_empty() => {}
            Report::FilesChanged(paths) => builder.record(RunFact::FilesChanged { paths }),
            Report::Finished { outcome, error, tools, processes } => {
                builder.finish_turn(open, outcome, error, tools, processes);
            }
        }
        Ok(Reception::Noted)
    }
}
