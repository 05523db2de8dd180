//! The tool of a session with an agent. A call follows one call of the agent to its end.

use std::sync::Arc;

use futures_util::FutureExt;
use holdpoint_common::{PauseResponse, Verdict};
use holdpoint_tools::{
    Act, Intent, Subject, Tool, ToolContext, ToolError, ToolOutcome, Workspace, shown,
};
use serde_json::{Value, json};
use tokio::runtime;

use super::agent::Agent;
use super::ask::{Answered, Asks};
use super::event::{AgentEvent, Permission};
use super::known_calls::KnownCall;
use super::link::{Link, SharedLink};
use super::needs::Needs;
use super::permission;
use crate::agent_start;

/// The name of the tool.
pub(super) const TOOL: &str = "agent";

/// Follows the calls of the agent.
#[derive(Clone)]
pub(super) struct HostedTool {
    agent: Arc<Agent>,
    link: SharedLink,
    runtime: runtime::Handle,
}

/// A call that is followed.
struct Following<'scope, 'env> {
    agent: &'env str,
    id: &'env str,
    context: &'env ToolContext,
    asks: Asks<'scope, 'env>,
    runtime: &'env runtime::Handle,
    /// The text that was streamed, and the version of the content that it shows.
    shown: String,
    version: u64,
}

/// The next thing that happens to a call.
enum Next {
    Cut,
    Answered(Answered),
    Event(Result<AgentEvent, String>),
    /// There may be more output of a terminal to show.
    More,
}

impl HostedTool {
    pub(super) fn new(agent: Arc<Agent>, link: SharedLink, runtime: runtime::Handle) -> Self {
        Self { agent, link, runtime }
    }
}

impl HostedTool {
    /// Notes that the user has approved the start of the agent.
    fn approve_start(&self, id: &str, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let needs = Needs::of(&self.agent, context.workspace()).map_err(ToolError::failed)?;
        let is_always = self.agent.known.is_some() && context.is_always_approved();
        if needs.id != id {
            return Err(ToolError::failed("the needs of the agent have changed meanwhile"));
        }
        let approvals = self.agent.approvals.as_ref().filter(|_| is_always);
        let remembered =
            approvals.map(|approvals| approvals.remember(self.agent.name(), &needs.details));
        let outcome = match remembered {
            None => "The agent may start.".to_owned(),
            Some(Ok(())) => "The agent may start, in all sessions.".to_owned(),
            Some(Err(why)) => {
                format!("The agent may start. Other sessions ask again: can't be saved: {why}")
            }
        };
        let link = self.runtime.block_on(context.until_cancelled(self.link.lock()));
        link.ok_or(ToolError::Interrupted)?.consent.approve(needs.id);
        Ok(ToolOutcome::text(outcome))
    }
}

impl Tool for HostedTool {
    fn name(&self) -> &str {
        TOOL
    }

    fn description(&self) -> &str {
        "Follows a tool call of the agent that this session hosts"
    }

    fn schema(&self) -> Value {
        let text = json!({ "type": "string" });
        json!({ "type": "object", "properties": { "id": text, "start": text } })
    }

    /// The agent has begun its call itself, so that there is nothing to approve. Its requests for
    /// permission are judged while the call runs. Only its start may need an approval.
    fn intent(&self, input: &Value, workspace: &Workspace) -> Result<Intent, ToolError> {
        if agent_start::requested(input).is_some() {
            let needs = Needs::of(&self.agent, workspace).map_err(ToolError::failed)?;
            return Ok(needs.intent(&self.agent));
        }
        let title = input.get("title").and_then(Value::as_str).unwrap_or_default();
        Ok(Intent::new(Act::Internal, shown::prose_line(title).into_owned()))
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        if let Some(start) = agent_start::requested(&input) {
            return self.approve_start(start, context);
        }
        let id = input.get("id").and_then(Value::as_str).unwrap_or_default();
        let (guard, subject) = Subject::new();
        std::thread::scope(|scope| {
            let asks = Asks::new(scope, context, subject);
            let name = self.agent.name();
            let runtime = &self.runtime;
            let mut following = Following {
                agent: name,
                id,
                context,
                asks,
                runtime,
                shown: String::new(),
                version: 0,
            };
            let link = runtime.block_on(context.until_cancelled(self.link.lock()));
            let outcome = match link {
                Some(mut link) => following.follow(&mut link),
                None => Err(ToolError::Interrupted),
            };
            // Ends the threads of the asks that are open.
            drop(guard);
            outcome
        })
    }
}

impl Following<'_, '_> {
    fn follow(&mut self, link: &mut Link) -> Result<ToolOutcome, ToolError> {
        (self.shown, self.version) = link.calls.resume(self.id);
        loop {
            if link.is_prompted() {
                self.judge_requests(link);
            }
            let jobs = link.jobs();
            let more_output = link.calls.take_more_output(self.id);
            let Some(call) = link.calls.get(self.id) else {
                return Err(ToolError::failed("the agent no longer has this call".to_owned()));
            };
            self.show(call);
            self.output(&more_output);
            let terminals = call.terminals.iter().zip(std::iter::repeat(&jobs));
            let more = terminals.filter_map(|(terminal, jobs)| {
                link.terminals.take_new_output(terminal, jobs.as_ref()?)
            });
            let more: String = more.collect();
            self.output(&more);
            if let Some(failed) = call.end()
                && self.asks.is_empty()
                && more.is_empty()
            {
                if self.shown.is_empty() && call.terminals.is_empty() {
                    self.show_output(call);
                }
                link.calls.end(self.id);
                // An agent that does not read gets the rest later: it may be writing itself.
                self.runtime.block_on(async { link.flush().now_or_never() });
                return Ok(ToolOutcome { failed, ..ToolOutcome::default() });
            }
            if link.served.is_waiting() && self.asks.is_empty() {
                // The next answer has the calls for the requests.
                link.calls.pause(self.id, std::mem::take(&mut self.shown), self.version);
                return Ok(ToolOutcome::text("[paused: the agent waits for the next calls]"));
            }
            if !link.is_prompted() {
                let why = "the agent ended its turn before this call had ended";
                return Ok(ToolOutcome { failed: true, ..ToolOutcome::text(why) });
            }
            match self.runtime.block_on(self.next(link, !more.is_empty())) {
                Next::Cut => return Err(ToolError::Interrupted),
                Next::Answered(answered) => self.answer(link, answered)?,
                Next::Event(Err(why)) => return Err(ToolError::failed(why)),
                Next::Event(Ok(AgentEvent::News(id))) if !link.calls.is_paused(&id) => {}
                Next::More => {}
                Next::Event(Ok(event)) => self.defer(link, event),
            }
        }
    }

    /// Waits for the next thing, unless there may be `more` output to show.
    async fn next(&mut self, link: &mut Link, more: bool) -> Next {
        tokio::select! {
            biased;
            () = self.context.cancelled() => Next::Cut,
            answered = self.asks.next() => Next::Answered(answered),
            event = link.receive() => Next::Event(event),
            () = std::future::ready(()), if more => Next::More,
        }
    }

    /// Keeps an event for the next answer. If there is no more room, a text is shown here.
    fn defer(&self, link: &mut Link, event: AgentEvent) {
        if let Some(AgentEvent::Text(text) | AgentEvent::Thought(text)) = link.deferred.push(event)
        {
            self.context.output(&text);
        }
    }

    /// Puts the permission requests of all calls to the policy, and to the user if it asks.
    fn judge_requests(&mut self, link: &mut Link) {
        while self.asks.has_room() {
            let Some(request) = link.requests.pop_front() else { return };
            let Some(call) = link.calls.get(&request.call) else { continue };
            let workspace = self.context.workspace();
            let covers = permission::covers(call, workspace);
            let request = Permission { covers, ..request };
            let intent = match permission::intent(self.agent, call, workspace) {
                Ok(intent) => intent,
                Err(why) => {
                    self.reply(link, &request, false, Some(why));
                    continue;
                }
            };
            let judgement = workspace.policy().judge(TOOL, &intent.acts, workspace.root());
            match judgement.verdict {
                Verdict::Ask => self.asks.raise(request, &judgement, intent),
                verdict => {
                    let (allowed, word) = match verdict {
                        Verdict::Allow => (true, "allowed"),
                        _ => (false, "denied"),
                    };
                    let why = judgement.why();
                    self.output(&format!("{word}: {} ({why})\n", intent.message));
                    let reason = (!allowed).then(|| why.to_owned());
                    self.reply(link, &request, allowed, reason);
                }
            }
        }
    }

    fn answer(&self, link: &mut Link, answered: Answered) -> Result<(), ToolError> {
        let Answered { request, response } = answered;
        match response {
            Some(PauseResponse::Approved | PauseResponse::Resumed) => {
                self.reply(link, &request, true, None);
                // Without an option to allow it, the request was cancelled.
                let covers = request.covers.filter(|_| request.allow.is_some());
                covers.into_iter().for_each(|command| link.served.approve(command));
            }
            Some(PauseResponse::Denied { reason }) => self.reply(link, &request, false, reason),
            Some(PauseResponse::Interrupted) | None => return Err(ToolError::Interrupted),
        }
        Ok(())
    }

    fn reply(&self, link: &mut Link, request: &Permission, allow: bool, reason: Option<String>) {
        let option = if allow { &request.allow } else { &request.reject };
        if allow && option.is_none() {
            self.output("[not allowed: the agent offers no option to allow the call once]\n");
        }
        link.has_denial |= !allow || option.is_none();
        link.answer(&request.id, option.clone(), reason);
    }

    /// Streams the content that is new. An agent reports the whole content each time.
    fn show(&mut self, call: &KnownCall) {
        if std::mem::replace(&mut self.version, call.version) == call.version {
            return;
        }
        let whole = call.content_text();
        if whole == self.shown {
            return;
        }
        // A line that is continued has its end only now.
        let before = self.shown.strip_suffix('\n').unwrap_or(&self.shown);
        match whole.strip_prefix(before) {
            Some(new) => self.output(new.strip_prefix('\n').unwrap_or(new)),
            None => self.output(&whole),
        }
        self.shown = whole;
    }

    /// Streams the output of a call that reports no content.
    fn show_output(&self, call: &KnownCall) {
        match &call.output {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => self.output(text),
            Some(output) => {
                let text = output.get("output").and_then(Value::as_str).map(str::to_owned);
                let text = text.or_else(|| serde_json::to_string_pretty(output).ok());
                self.output(&text.unwrap_or_default());
            }
        }
    }

    fn output(&self, text: &str) {
        if !text.is_empty() {
            self.context.output(text);
        }
    }
}
