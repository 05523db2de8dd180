//! One tool call: judged by the policy, let through the gate, run on a thread of its own, and
//! always ended.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use holdpoint_common::limits::ABANDON_AFTER;
use holdpoint_common::{
    AskRequest, CallId, EndedProcesses, HeadAndTail, StopHow, StoppedTool, ToolCall, ToolResult,
    ToolStatus, Verdict,
};
use holdpoint_tools::{
    Act, Asker, Intent, Judgement, Sink, Tool, ToolContext, ToolError, ToolOutcome, Widening,
    Workspace,
};
use tokio::sync::oneshot;

use super::order::Order;
use super::{Runner, panic_text, reason};
use crate::lane::{GateAnswer, LaneSink};
use crate::state::{Clearance, Confirm, Gate};

/// How a call ended.
pub(super) struct CallEnd {
    pub(super) result: ToolResult,
    /// The tool, if it returned.
    pub(super) tool: Option<Box<dyn Tool>>,
    /// How the tool stopped, if the cut found it running.
    pub(super) stopped: Option<StoppedTool>,
    /// The call's processes that the cut ended.
    pub(super) processes: EndedProcesses,
}

impl CallEnd {
    pub(super) fn from_result(result: ToolResult) -> Self {
        Self { result, tool: None, stopped: None, processes: EndedProcesses::default() }
    }
}

/// A tool, the intent of its call, the policy's judgement, and the workspace with that policy.
type Judged = (Box<dyn Tool>, Intent, Judgement, Arc<Workspace>);

/// The result of a call's thread.
struct Returned {
    tool: Box<dyn Tool>,
    outcome: Result<ToolOutcome, ToolError>,
    processes: EndedProcesses,
}

impl Runner {
    pub(super) async fn call(
        &self,
        call: ToolCall,
        tool: Box<dyn Tool>,
        mut order: Order,
    ) -> CallEnd {
        let not_run =
            |status, why: String| CallEnd::from_result(ToolResult::not_run(call.id, status, why));
        let (mut tool, mut intent, judgement, workspace) = match self.judge(&call, tool).await {
            Ok(judged) => judged,
            Err((status, why)) => {
                order.wait_for_earlier().await;
                return not_run(status, why);
            }
        };
        tracing::debug!(verdict = ?judgement.verdict, "policy verdict");
        let widenings = widenings(std::mem::take(&mut intent.acts));
        let clearance = match judgement.verdict {
            Verdict::Allow => Clearance::Allow { always: intent.always },
            Verdict::Ask => confirm_clearance(&call, intent, judgement.may_be_denied()),
            Verdict::Deny => {
                order.wait_for_earlier().await;
                let why = format!("denied: {} ({})", judgement.why(), intent.message);
                tool.not_run(&why);
                return not_run(ToolStatus::Denied, why);
            }
        };
        match self.gate_in_order(order, Gate::Tool { call: call.id, clearance }).await {
            GateAnswer::Call { approved } => {
                self.run_tool(call, tool, workspace, &widenings, approved).await
            }
            // A judged tool keeps resources for its call. It is dropped here, which releases them.
            GateAnswer::Denied(why) => {
                tool.not_run(&why);
                not_run(ToolStatus::Denied, why)
            }
            GateAnswer::Step(_) | GateAnswer::Limit(_) | GateAnswer::Cut => {
                not_run(ToolStatus::Interrupted, "not run: the turn was interrupted".to_owned())
            }
        }
    }

    /// Determines the intent of a call and the policy's judgement. Examines paths, so it runs on a
    /// blocking thread.
    async fn judge(
        &self,
        call: &ToolCall,
        mut tool: Box<dyn Tool>,
    ) -> Result<Judged, (ToolStatus, String)> {
        let (input, workspace) = (call.input.clone(), self.env.workspace());
        let judged = tokio::task::spawn_blocking(move || {
            let judged = catch_unwind(AssertUnwindSafe(|| {
                let intent = tool.intent(&input, &workspace)?;
                let policy = workspace.policy();
                let judgement = policy.judge(tool.name(), &intent.acts, workspace.root());
                Ok::<_, ToolError>((intent, judgement))
            }));
            match judged {
                Ok(Ok((intent, judgement))) => Ok((tool, intent, judgement, workspace)),
                Ok(Err(error)) => {
                    tool.not_run(&error.to_string());
                    Err((ToolStatus::Error, format!("not run: {error}")))
                }
                Err(panic) => {
                    let why = panicked_before(&panic_text(&*panic));
                    tool.not_run(&why);
                    Err((ToolStatus::Panicked, why))
                }
            }
        });
        let judged = tokio::select! {
            biased;
            () = self.cancel.cancelled() => {
                return Err((ToolStatus::Interrupted, "not run: the turn was interrupted".to_owned()));
            }
            judged = judged => judged,
        };
        judged.unwrap_or_else(|panic| Err((ToolStatus::Panicked, panicked_before(&panic))))
    }

    async fn run_tool(
        &self,
        call: ToolCall,
        mut tool: Box<dyn Tool>,
        workspace: Arc<Workspace>,
        widenings: &[Widening],
        approved: Option<(AskRequest, bool)>,
    ) -> CallEnd {
        let limits = &self.env.limits;
        let processes = self.env.processes(&workspace, limits.grace(), widenings);
        let sink = Arc::new(LaneSink::new(call.id, self.lane.clone()));
        let context = ToolContext::new(
            call.name.clone(),
            workspace,
            Asker::new(self.asks.clone(), self.turn, call.id),
            Arc::clone(&sink) as Arc<dyn Sink>,
            processes.clone(),
            self.background.clone(),
            // The turn's own token: a tool that saw the cut earlier would seem to return by itself.
            self.cancel.clone(),
        )
        .with_approved(approved);
        let (sender, mut receiver) = oneshot::channel();
        // The tool stays here until it has a thread.
        let (to_thread, from_runner) = oneshot::channel::<Box<dyn Tool>>();
        let (input, alive) = (call.input.clone(), self.alive.clone());
        let span = tracing::Span::current();
        let thread = move || {
            let _entered = span.entered();
            let Ok(mut tool) = from_runner.blocking_recv() else { return };
            let outcome = catch_unwind(AssertUnwindSafe(|| match context.is_cancelled() {
                // The cut happened while this thread was started, and no tool begins after a cut.
                true => Err(ToolError::Interrupted),
                false => tool.call(input, &context),
            }));
            let processes = context.finish_processes();
            drop(context);
            let returned = outcome.map(|outcome| Returned { tool, outcome, processes });
            drop(alive);
            // The runner may have left this thread behind.
            let _ = sender.send(returned.map_err(|panic| panic_text(&*panic).to_owned()));
        };
        if let Err(error) =
            std::thread::Builder::new().name(format!("tool {}", call.name)).spawn(thread)
        {
            let why = format!("not run: can't start a thread: {error}");
            tool.not_run(&why);
            return CallEnd::from_result(ToolResult::not_run(call.id, ToolStatus::Error, why));
        }
        let _ = to_thread.send(tool);
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => {}
            returned = &mut receiver => {
                let returned = returned.unwrap_or_else(|_| Err("its thread ended without a result".into()));
                return end_of_returned_call(call, sink.close().await, returned);
            }
        }
        processes.end();
        let returned = tokio::time::timeout(limits.grace() + ABANDON_AFTER, receiver).await;
        let (how, tool, outcome, processes) = match returned {
            Ok(Ok(Ok(returned))) => {
                (StopHow::Returned, Some(returned.tool), returned.outcome.ok(), returned.processes)
            }
            Ok(_) => (StopHow::Returned, None, None, processes.so_far()),
            Err(_) => {
                tracing::warn!(call = %call.id, tool = call.name, "tool did not return and was abandoned");
                (StopHow::Abandoned, None, None, processes.so_far())
            }
        };
        let result = interrupted_result(call.id, sink.close().await, outcome);
        let stopped = Some(StoppedTool { call: call.id, name: call.name, how });
        CallEnd { result, tool, stopped, processes }
    }
}

fn panicked_before(panic: &dyn Display) -> String {
    format!("the tool panicked before it started: {panic}")
}

/// The result of a call that the cut found running. Its effects so far remain, and are recorded.
fn interrupted_result(
    call: CallId,
    output: HeadAndTail,
    outcome: Option<ToolOutcome>,
) -> ToolResult {
    let why = "interrupted; its effects so far remain";
    let result = ToolResult::not_run(call, ToolStatus::Interrupted, why);
    match outcome {
        None => ToolResult { output, ..result },
        // The tool finished before it noticed the cut.
        Some(ToolOutcome { output: text, read, wrote, .. }) => ToolResult {
            output,
            read,
            wrote,
            result: format!("{why}; it had already finished: {text}"),
            ..result
        },
    }
}

/// The widenings of the sandbox among the acts of a call.
fn widenings(acts: Vec<Act>) -> Vec<Widening> {
    let widening = |act| match act {
        Act::Widen(widening) => Some(widening),
        _ => None,
    };
    acts.into_iter().filter_map(widening).collect()
}

/// The clearance for a call that needs a Confirm.
fn confirm_clearance(call: &ToolCall, intent: Intent, may_be_denied: bool) -> Clearance {
    let Intent { message, details, always, .. } = intent;
    Clearance::Ask(Confirm {
        tool_name: call.name.clone(),
        message,
        details,
        always,
        may_be_denied,
    })
}

/// The end of a call that returned by itself.
fn end_of_returned_call(
    call: ToolCall,
    output: HeadAndTail,
    returned: Result<Returned, String>,
) -> CallEnd {
    let result_with = |status, result: String| ToolResult {
        output,
        ..ToolResult::not_run(call.id, status, result)
    };
    let (tool, outcome) = match returned {
        Ok(Returned { tool, outcome, .. }) => (tool, outcome),
        Err(panic) => {
            tracing::error!(call = %call.id, tool = call.name, panic, "tool panicked");
            return CallEnd::from_result(result_with(
                ToolStatus::Panicked,
                reason(format!("the tool panicked: {panic}")),
            ));
        }
    };
    let result = match outcome {
        Ok(ToolOutcome { output, failed, images, read, wrote }) => {
            let status = if failed { ToolStatus::Error } else { ToolStatus::Ok };
            ToolResult { images, read, wrote, ..result_with(status, output) }
        }
        Err(error) => {
            let status = match error {
                ToolError::Denied { .. } => ToolStatus::Denied,
                ToolError::Interrupted => ToolStatus::Interrupted,
                _ => ToolStatus::Error,
            };
            result_with(status, reason(error.to_string()))
        }
    };
    CallEnd { tool: Some(tool), ..CallEnd::from_result(result) }
}
