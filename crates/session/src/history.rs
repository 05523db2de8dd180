//! What a model is sent: derived from the facts by one pure function.

mod iteration;

use std::sync::Arc;

use holdpoint_common::{AssistantMessage, CallId, Event, Fact, Kept, RunSettings, Tasks, ToolResult, ToolStatus};

use crate::model::Message;

/// What the model is told after an answer of its own that broke, so that it goes on.
pub const GO_ON: &str = "[Your answer was cut off here: the connection was lost. Go on exactly where it ended.]";

/// What stands between words of the user that got no answer, for their turn was cut or failed, and the next.
pub const UNANSWERED: &str = "[The turn ended here, before you answered.]";

/// What stands for words of the user that a provider refused.
pub const LEFT_OUT: &str = "[Something the user said is left out here: the provider refused the request with it.]";

/// What stands for the result of a call that a provider refused.
const RESULT_LEFT_OUT: &str = "its result is left out: the provider refused the request with it";

/// The conversation that these facts make, as the strictest provider takes it, whatever the facts are: it begins with
/// the user, users and answers alternate, every call is followed by its one result, in the order of the calls, and the
/// last word is not the model's.
#[must_use]
pub fn messages(facts: &[Arc<Event>]) -> Vec<Message> {
    let mut messages = apart(facts);
    join(&mut messages);
    messages
}

/// The same with each prompt apart, for the newest alone has to fit into a request; [`join`] makes it whole.
#[must_use]
pub fn apart(facts: &[Arc<Event>]) -> Vec<Message> {
    let mut conversation = Conversation { messages: Vec::with_capacity(facts.len()), ..Conversation::default() };
    for fact in facts.iter().filter_map(|event| event.fact()) {
        match fact {
            Fact::PromptAccepted { text, .. } => conversation.prompt(text),
            Fact::AssistantMessage(message) => conversation.answer(message),
            Fact::ToolFinished(result) => conversation.result(result),
            Fact::StepFinished { refused: true, .. } => conversation.refused(),
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
        self.unheard.clear();
        let answered = self.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
        let open = self.messages.split_off(answered.map_or(0, |at| at + 1));
        let asked = open.iter().any(|message| matches!(message, Message::User(_)));
        self.messages.extend(open.into_iter().filter_map(|message| match message {
            Message::Tool(result) => {
                let (output, words) = (Kept::default(), RESULT_LEFT_OUT.to_owned());
                Some(Message::Tool(ToolResult { output, result: words, ..result }))
            }
            Message::User(_) | Message::Assistant(_) => None,
        }));
        if asked {
            self.messages.push(Message::User(LEFT_OUT.to_owned()));
            self.opening = false;
        }
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

    fn finish(mut self) -> Vec<Message> {
        self.close();
        self.go_on();
        self.messages
    }
}
