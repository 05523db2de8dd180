//! The calls of one answer, which run in parallel up to a limit, or in sequence. Each gets one
//! result.

use std::collections::HashMap;

use futures_util::{FutureExt, StreamExt};
use holdpoint_common::{
    CallId, EndedProcesses, Outcome, StoppedTool, ToolCall, ToolResult, ToolStatus,
};
use holdpoint_tools::{Tool, Toolbox};
use tracing::Instrument;

use super::call::CallEnd;
use super::order::Order;
use super::{End, Runner};
use crate::state::Report;

/// A call whose result was reported.
struct ReportedCall {
    /// The message of the panic, if the tool panicked.
    panicked: Option<String>,
    tool: Option<Box<dyn Tool>>,
    stopped: Option<StoppedTool>,
    processes: EndedProcesses,
}

impl Runner {
    /// Runs the calls of an answer in parallel. Returns `Some` if the turn ends with them.
    pub(super) async fn calls(
        &self,
        calls: Vec<ToolCall>,
        refused: Vec<(CallId, String)>,
        toolbox: &mut Toolbox,
    ) -> Option<End> {
        let mut running = Vec::with_capacity(calls.len());
        let mut refused: HashMap<CallId, String> = refused.into_iter().collect();
        let mut in_order_places = Order::places();
        for (call, order) in calls.into_iter().zip(Order::places()) {
            let tool = match refused.remove(&call.id) {
                Some(why) => Err(why),
                None => toolbox.take(&call.name).ok_or_else(|| self.no_such_tool(&call.name)),
            };
            let in_order = tool.as_ref().is_ok_and(|tool| tool.is_in_order());
            let in_order_place = if in_order { in_order_places.next() } else { None };
            running.push(self.run_and_report(call, tool, order, in_order_place).boxed());
        }
        let parallel = self.env.limits.parallel_tools.max(1);
        let mut running = futures_util::stream::iter(running).buffer_unordered(parallel);
        let mut end = End::default();
        let mut panicked = None;
        // Nothing may be awaited in this loop: the other calls would not be polled meanwhile, and
        // one that has been given room in the lane would keep it.
        while let Some(call) = running.next().await {
            panicked = call.panicked.or(panicked);
            end.tools.extend(call.stopped);
            end.processes.add(call.processes);
            call.tool.into_iter().for_each(|tool| toolbox.put_back(tool));
        }
        if self.cancel.is_cancelled() {
            end.outcome = Outcome::Interrupted;
            return Some(end);
        }
        panicked.map(|error| End {
            outcome: Outcome::Panicked,
            error: Some(error),
            ..End::default()
        })
    }

    /// Runs one call, and reports its result.
    async fn run_and_report(
        &self,
        call: ToolCall,
        tool: Result<Box<dyn Tool>, String>,
        order: Order,
        in_order_place: Option<Order>,
    ) -> ReportedCall {
        let CallEnd { result, tool, stopped, processes } =
            self.run_call(call, tool, order, in_order_place).await;
        tracing::debug!(call = %result.call, status = ?result.status, "call ended");
        let panicked = (result.status == ToolStatus::Panicked).then(|| result.result.clone());
        self.report(Report::ToolFinished(result)).await;
        ReportedCall { panicked, tool, stopped, processes }
    }

    /// Runs one call, after the calls that have to be done before it.
    async fn run_call(
        &self,
        call: ToolCall,
        tool: Result<Box<dyn Tool>, String>,
        mut order: Order,
        mut in_order_place: Option<Order>,
    ) -> CallEnd {
        if let Some(place) = &mut in_order_place {
            place.wait_for_earlier().await;
        }
        let span = tracing::info_span!("call", call = %call.id, tool = call.name);
        match tool {
            Ok(tool) => self.call(call, tool, order).instrument(span).await,
            Err(why) => {
                order.wait_for_earlier().await;
                CallEnd::from_result(ToolResult::not_run(call.id, ToolStatus::Error, why))
            }
        }
    }

    fn no_such_tool(&self, name: &str) -> String {
        let known: Vec<_> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        format!("unknown tool `{name}`; available: {}", known.join(", "))
    }
}
