//! The decision for a report of a runner.

use holdpoint_common::{AskCloseCause, Fact, Refused, ToolResult, ToolStatus};

use super::DecisionBuilder;
use super::asks::denial;
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
            Report::Answered(message) => builder.facts.push(Fact::AssistantMessage(message)),
            Report::ToolFinished(result) => {
                // A denied call may end for another reason first, for example a restart. The model
                // still learns that it was denied.
                let result = match open.call(result.call) {
                    None => return Ok(Reception::Stale),
                    Some((call, CallStage::Denied { reason, by })) => ToolResult::not_run(
                        call.id,
                        ToolStatus::Denied,
                        denial(reason.as_deref(), by),
                    ),
                    Some(_) => result,
                };
                for ask in builder.state.asks.iter().filter(|ask| ask.call == result.call) {
                    let cause = AskCloseCause::CallEnded;
                    builder.facts.push(Fact::AskClosed { ask: ask.id.clone(), cause });
                }
                builder.facts.push(Fact::ToolFinished(result));
            }
            Report::StepFinished { usage, context, refused, omitted } => {
                builder.facts.push(Fact::StepFinished { usage, context, refused, omitted });
            }
            Report::ProjectCut { reason } => builder.facts.push(Fact::ProjectCut { reason }),
            Report::HistoryCut(cut) => builder.facts.push(Fact::HistoryCut(cut)),
            Report::FilesChanged(paths) if paths.is_empty() => {}
            Report::FilesChanged(paths) => builder.facts.push(Fact::FilesChanged { paths }),
            Report::Finished { outcome, error, tools, processes } => {
                builder.finish(open, outcome, error, tools, processes);
            }
        }
        Ok(Reception::Noted)
    }
}
