//! What a model is sent: derived from the facts by one pure function.

mod iteration;
mod refused;

use std::sync::Arc;

use holdpoint_common::{AssistantMessage, CallId, Event, Fact, Omitted, RunSettings, Tasks, ToolResult, ToolStatus};

use crate::model::Message;

pub use refused::RESULTS;
pub(crate) use refused::is_results;

/// What the model is told after an answer of its own that broke, so that it goes on.
pub const GO_ON: &str = "[Your answer was cut off here: the connection was lost. Go on exactly where it ended.]";

/// What stands between words of the user that got no answer, for their turn was cut or failed, and the next.
pub const UNANSWERED: &str = "[The turn ended here, before you answered.]";

/// What stands for words of the user that a provider refused.
pub const LEFT_OUT: &str = "[Something the user said is left out here: the provider refused the request with it.]";

/// The conversation that these facts make, as the strictest provider takes it, whatever the facts are: it begins with
/// the user, users and answers alternate, every call is followed by its one result, in the order of the calls, and the
/// last word is not the model's.
#[must_use]
pub fn messages(facts: &[Arc<Event>]) -> Vec<Message> {
    let mut messages = apart(facts).messages;
    join(&mut messages);
    messages
}

/// A conversation, and what may be left out of it.
#[derive(Debug, Clone, Default)]
pub struct Derived {
    /// The conversation, with each prompt apart: the newest alone has to fit into a request. [`join`] makes it whole.
    pub messages: Vec<Message>,
    /// What can be left out of it beside the user's words if the provider refuses it, the least harm first.
    pub omissible: Vec<Omitted>,
    /// How often the provider has refused it since it last answered.
    pub refusals: u32,
}

/// The conversation that these facts make, with each prompt apart.
#[must_use]
pub fn apart(facts: &[Arc<Event>]) -> Derived {
    // What one model's provider refused, another's may take.
    let changed = facts.iter().rposition(|event| matches!(event.fact(), Some(Fact::ModelChanged { .. })));
    let mut conversation = Conversation { messages: Vec::with_capacity(facts.len()), ..Conversation::default() };
    for (at, fact) in facts.iter().enumerate().filter_map(|(at, event)| Some((at, event.fact()?))) {
        let of_model = changed.is_none_or(|changed| at > changed);
        match fact {
            Fact::PromptAccepted { text, .. } => conversation.prompt(text),
            Fact::AssistantMessage(message) => conversation.answer(message),
            Fact::ToolFinished(result) => conversation.result(result),
            Fact::StepFinished { refused: true, .. } if of_model => conversation.refused(),
            Fact::StepFinished { omitted: Some(omitted), .. } if of_model => conversation.omit(*omitted),
            Fact::ModelChanged { .. } => conversation.taken = 0,
            Fact::RunStarted { run, .. } => (conversation.run, conversation.unheard) = (Some(run.clone()), Vec::new()),
            Fact::RunFinished { .. } => (conversation.run, conversation.opening) = (None, false),
            Fact::IterationStarted { iteration, resumed, .. } => conversation.iteration(*iteration, *resumed),
            Fact::TaskAdded { .. } | Fact::TaskMoved { .. } | Fact::NoteTaken { .. } => conversation.tasks.apply(fact),
            _ => {}
        }
    }
    conversation.finish()
}

/// Makes one message of prompts in a row, as turns leave them that ended before their answers.
pub fn join(messages: &mut Vec<Message>) {
    messages.dedup_by(|message, before| match (message, before) {
        (Message::User(text), Message::User(before)) => {
            before.push_str(&format!("\n\n{UNANSWERED}\n\n{text}"));
            true
        }
        _ => false,
    });
}

/// A conversation in the making.
#[derive(Default)]
struct Conversation {
    messages: Vec<Message>,
    /// How many of them were in the last request that the model's provider has answered.
    taken: usize,
    refusals: u32,
    /// The calls of the last answer, until each has its result.
    open: Vec<CallId>,
    /// Their results so far: they come in the order the tools ended.
    results: Vec<ToolResult>,
    /// The run that is under way, and the tasks and notes.
    run: Option<RunSettings>,
    tasks: Tasks,
    /// What was said to the run, until the model has answered: told to each iteration until then.
    unheard: Vec<String>,
    /// The last message is the beginning of an iteration, and what the user says is added to it: the newest message
    /// alone is always sent, and the goal is in it.
    opening: bool,
}

impl Conversation {
    fn prompt(&mut self, text: &str) {
        self.close();
        if self.run.is_some() {
            self.unheard.push(text.to_owned());
        }
        self.say(text);
    }

    fn say(&mut self, text: &str) {
        match self.messages.last_mut() {
            Some(Message::User(opening)) if self.opening => {
                opening.push_str("\n\n# The user says meanwhile\n\n");
                opening.push_str(text);
            }
            _ => self.messages.push(Message::User(text.to_owned())),
        }
    }

    /// An iteration of a run begins: afresh, or where a restart has cut it.
    fn iteration(&mut self, iteration: u32, resumed: bool) {
        self.close();
        if !resumed {
            self.messages.clear();
            self.taken = 0;
        }
        if let Some(run) = &self.run {
            self.messages.push(Message::User(iteration::opening(run, &self.tasks, iteration, resumed)));
            self.opening = true;
        }
        if !resumed {
            let unheard = std::mem::take(&mut self.unheard);
            unheard.iter().for_each(|text| self.say(text));
            self.unheard = unheard;
        }
    }

    fn answer(&mut self, message: &AssistantMessage) {
        self.close();
        // A turn that was cut while it thought.
        if message.says_something() {
            self.unheard.clear();
        }
        if !message.says_something() || self.messages.is_empty() {
            return;
        }
        self.go_on();
        (self.taken, self.refusals) = (self.messages.len(), 0);
        self.opening = false;
        self.open.extend(message.calls.iter().map(|call| call.id));
        self.messages.push(Message::Assistant(message.clone()));
    }

    fn result(&mut self, result: &ToolResult) {
        let known = self.results.iter().any(|known| known.call == result.call);
        if self.open.contains(&result.call) && !known {
            self.results.push(result.clone());
        }
        if self.results.len() == self.open.len() {
            self.close();
        }
    }

    /// Leaves out what a provider refused: all that no answer has come to. Sent again, it would be refused again.
    fn refused(&mut self) {
        self.close();
        self.refusals += 1;
        self.unheard.clear();
        let answered = self.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
        let open = self.messages.split_off(answered.map_or(0, |at| at + 1));
        let asked = open.iter().any(Message::is_prompt);
        self.messages.extend(open.into_iter().filter(|message| !message.is_prompt()));
        let from = answered.map_or(0, |at| at + 1);
        refused::omit(&mut self.messages, from, Omitted::Results);
        if asked {
            self.messages.push(Message::User(LEFT_OUT.to_owned()));
            self.opening = false;
        }
    }

    /// Leaves this out of what the provider refused.
    fn omit(&mut self, omitted: Omitted) {
        self.close();
        self.refusals += 1;
        refused::omit(&mut self.messages, self.taken, omitted);
    }

    /// Answers the open calls.
    fn close(&mut self) {
        for call in self.open.drain(..) {
            let at = self.results.iter().position(|result| result.call == call);
            // A machine that is whole gives each call its result; a log may have lost one.
            let lost = || ToolResult::unrun(call, ToolStatus::Interrupted, "its result is not known");
            self.messages.push(Message::Tool(at.map_or_else(lost, |at| self.results.swap_remove(at))));
        }
        self.results.clear();
    }

    /// Lets the model speak after itself.
    fn go_on(&mut self) {
        if let Some(Message::Assistant(_)) = self.messages.last() {
            self.messages.push(Message::User(GO_ON.to_owned()));
        }
    }

    fn finish(mut self) -> Derived {
        self.close();
        self.go_on();
        let omissible = refused::omissible(&self.messages[self.taken.min(self.messages.len())..]);
        Derived { messages: self.messages, omissible, refusals: self.refusals }
    }
}
