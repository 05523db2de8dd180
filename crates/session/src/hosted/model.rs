//! The agent as the model of its session: each answer is a part of an agent turn.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt, stream};
use holdpoint_common::{AgentSettings, Usage};
use serde_json::Value;
use tokio::sync::OwnedMutexGuard;

use super::conversation::Conversation;
use super::event::AgentEvent;
use super::link::{Link, SharedLink};
use super::protocol::{Stop, TurnReply};
use super::served::ServedCall;
use super::tool::TOOL;
use crate::model::{Model, ModelError, ModelEvent, ModelRequest, ModelStream};

/// How often an agent that waits for the end of a command counts as alive.
const ALIVE_EVERY: Duration = Duration::from_secs(1);

/// An event without a consequence, so that the agent does not count as silent.
const STILL_ALIVE: ModelEvent = ModelEvent::Writing { bytes: 0 };

/// The most messages that are read before the calls for requests, to find further requests.
const MAX_AHEAD: usize = 256;

/// An agent as a model.
pub(super) struct HostedModel {
    name: String,
    /// The name of the agent.
    agent: Arc<str>,
    link: SharedLink,
}

/// An answer that is being read.
struct Answer {
    agent: Arc<str>,
    link: Source,
    /// The conversation, unless the agent is in the middle of its turn.
    conversation: Option<Conversation>,
    /// Events that were not returned yet.
    ready: VecDeque<ModelEvent>,
    done: bool,
}

/// The link, before and after it is locked.
enum Source {
    Free(SharedLink),
    Held(OwnedMutexGuard<Link>),
}

impl HostedModel {
    pub(super) fn new(settings: &AgentSettings, link: SharedLink) -> Self {
        Self { name: settings.model_name(), agent: settings.name.as_str().into(), link }
    }
}

impl Model for HostedModel {
    fn name(&self) -> &str {
        &self.name
    }

    /// The agent keeps the conversation itself.
    fn has_context(&self) -> bool {
        false
    }

    fn needs_messages(&self) -> bool {
        self.link.try_lock().map_or(true, |link| !link.is_in_turn())
    }

    fn stream(&self, request: &ModelRequest) -> ModelStream {
        let messages = &request.messages;
        let answer = Answer {
            agent: Arc::clone(&self.agent),
            link: Source::Free(Arc::clone(&self.link)),
            conversation: (!messages.is_empty()).then(|| Conversation::of(messages)),
            ready: VecDeque::new(),
            done: false,
        };
        stream::unfold(answer, |mut answer| async {
            let event = answer.next().await?;
            Some((event, answer))
        })
        .boxed()
    }
}

impl Answer {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if self.done {
                return None;
            }
            if let Err(message) = self.read().await {
                self.done = true;
                return Some(Err(ModelError::Agent { message }));
            }
            if self.ready.is_empty() {
                // One thread runs the turns of all sessions, and an agent may send a lot.
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reads one event of the agent.
    async fn read(&mut self) -> Result<(), String> {
        let link = match &mut self.link {
            Source::Held(link) => link,
            Source::Free(free) => {
                let link = Arc::clone(free).lock_owned().await;
                self.link = Source::Held(link);
                return Ok(());
            }
        };
        if let Some(conversation) = self.conversation.take()
            && !link.is_in_turn()
        {
            let request = link.consent.request(&self.agent);
            if let Some(arguments) = request.map_err(|why| format!("{}: {why}", self.agent))? {
                self.end_with_call(None, &arguments);
                return Ok(());
            }
            let start = link.send_prompt(conversation).await?;
            let start = start.map(|(session, how)| ModelEvent::AgentStarted { session, how });
            self.ready.extend(start);
            return Ok(());
        }
        let is_waiting = link.terminals.is_waited_for();
        let event = match link.deferred.pop() {
            Some(event) => event,
            None => tokio::select! {
                event = link.receive() => event?,
                () = tokio::time::sleep(ALIVE_EVERY), if is_waiting => AgentEvent::Terminals,
            },
        };
        match event {
            AgentEvent::Text(text) => self.ready.push_back(ModelEvent::Text(text)),
            AgentEvent::Thought(text) => self.ready.push_back(ModelEvent::Thought(text)),
            AgentEvent::Begins(id) => self.call(id),
            // A request for permission about a call that has ended, or the end of another one.
            AgentEvent::News(id) if link.requests.iter().any(|request| request.call == id) => {
                self.call(id);
            }
            AgentEvent::News(id) if link.calls.is_resumed(&id) => self.call(id),
            AgentEvent::News(_) => {}
            AgentEvent::Requested => self.serve()?,
            AgentEvent::Terminals => self.ready.push_back(STILL_ALIVE),
            AgentEvent::Ended(reply) => self.end(reply)?,
        }
        Ok(())
    }

    /// Ends the answer with a call.
    fn call(&mut self, id: String) {
        let Source::Held(link) = &self.link else { return };
        let Some(call) = link.calls.get(&id) else { return };
        let arguments = call.arguments(&id);
        self.end_with_call(Some(id), &arguments);
    }

    /// Ends the answer with the calls for the agent's requests for files and terminals.
    fn serve(&mut self) -> Result<(), String> {
        let Source::Held(link) = &mut self.link else { return Ok(()) };
        // Requests that were sent at once are calls of one answer.
        for _ in 0..MAX_AHEAD {
            if !link.served.has_room() {
                break;
            }
            let Some(event) = link.receive().now_or_never() else { break };
            match link.deferred.push(event?) {
                Some(AgentEvent::Text(text)) => self.ready.push_back(ModelEvent::Text(text)),
                Some(AgentEvent::Thought(text)) => self.ready.push_back(ModelEvent::Thought(text)),
                _ => {}
            }
        }
        // There are none if an earlier answer had them.
        for ServedCall { tool, arguments } in link.served.next_calls() {
            let name = tool.to_owned();
            self.ready.push_back(ModelEvent::Call { id: None, name, arguments, signature: None });
            self.done = true;
        }
        if self.done {
            self.ready.push_back(ModelEvent::Usage(Usage::default()));
        }
        Ok(())
    }

    fn end_with_call(&mut self, id: Option<String>, arguments: &Value) {
        let arguments = arguments.to_string();
        let call = ModelEvent::Call { id, name: TOOL.to_owned(), arguments, signature: None };
        // The agent reports its usage at the end of its turn.
        self.ready.extend([call, ModelEvent::Usage(Usage::default())]);
        self.done = true;
    }

    fn end(&mut self, TurnReply { stop, usage }: TurnReply) -> Result<(), String> {
        let has_denial = matches!(&self.link, Source::Held(link) if link.has_denial);
        self.done = true;
        self.ready.push_back(ModelEvent::Usage(usage.unwrap_or_default()));
        match stop {
            Stop::Done => {}
            // Some agents cancel their turn after a denial, and wait for another prompt.
            Stop::Cancelled if has_denial => {}
            Stop::TokenLimit | Stop::RequestLimit => self.ready.push_back(ModelEvent::OutputLimit),
            Stop::Refused => return Err("it refused to continue".to_owned()),
            Stop::Cancelled => return Err("it cancelled its turn".to_owned()),
        }
        Ok(())
    }
}
