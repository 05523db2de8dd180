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

/// A conversation, and the parts that may be left out of it.
#[derive(Debug, Clone, Default)]
pub struct Derived {
    /// The conversation, with each prompt apart: the newest alone has to fit into a request. [`join`] makes it whole.
    pub messages: Vec<Message>,
    /// Parts that can be left out if the provider refuses it, beside the user's words; the least harm first.
    pub omissible: Vec<Omitted>,
    /// How often the provider has refused it since it last answered.
    pub refusals: u32,
}

/// The conversation that these facts make, with each prompt apart.
#[must_use]
pub fn apart(facts: &[Arc<Event>]) -> Derived {
    let changed = model_changed(facts);
    let mut conversation = Conversation { messages: Vec::with_capacity(facts.len()), ..Conversation::default() };
    for (at, fact) in facts.iter().enumerate().filter_map(|(at, event)| Some((at, event.fact()?))) {
        let of_model = changed.is_none_or(|changed| at > changed);
        match fact {
            Fact::PromptAccepted { text, .. } => conversation.prompt(text),
            Fact::AssistantMessage(message) => conversation.answer(message),
            Fact::ToolFinished(result) => conversation.result(result),
            Fact::StepFinished { refused: true, .. } if of_model => conversation.refused(),
            Fact::StepFinished { omitted: Some(omission), .. } if of_model => conversation.omit(omission.what),
            Fact::RunStarted { run, .. } => (conversation.run, conversation.unheard) = (Some(run.clone()), Vec::new()),
            Fact::RunFinished { .. } => (conversation.run, conversation.opening) = (None, false),
            Fact::IterationStarted { iteration, resumed, .. } => conversation.iteration(*iteration, *resumed),
            Fact::TaskAdded { .. } | Fact::TaskMoved { .. } | Fact::NoteTaken { .. } => conversation.tasks.apply(fact),
            _ => {}
        }
    }
    conversation.finish()
}

/// Where the turns of the last model begin, if it was changed: another provider may take what one has refused. A turn that
/// is open at the change ends with its own model.
fn model_changed(facts: &[Arc<Event>]) -> Option<usize> {
    let is_change = |event: &Arc<Event>| matches!(event.fact(), Some(Fact::ModelChanged { .. }));
    let begins_turn =
        |event: &Arc<Event>| matches!(event.fact(), Some(Fact::PromptAccepted { .. } | Fact::IterationStarted { .. }));
    let last_turn = facts.iter().rposition(begins_turn)?;
    let change = facts[..last_turn].iter().rposition(is_change)?;
    facts[change..].iter().position(begins_turn).map(|turn| change + turn)
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
    /// All of them, while something is left out of those for a refusal that the model has not answered yet.
    whole: Option<Vec<Message>>,
    /// Omissions since the last answer, and refusals.
    tried: Vec<Omitted>,
    refusals: u32,
    /// The omission that has helped in this turn: it applies to later answers, too.
    helped: Option<Omitted>,
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
        (self.whole, self.helped) = (None, None);
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
        (self.whole, self.helped) = (None, None);
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
        if self.whole.take().is_some() {
            self.helped = self.tried.last().copied().filter(|omitted| *omitted != Omitted::Results);
        } else {
            self.omit_what_helps();
        }
        self.tried.clear();
        self.refusals = 0;
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

    /// Leaves out the user's unanswered words, for no omission has helped: sent again, they would be refused again.
    fn refused(&mut self) {
        self.close();
        self.refusals += 1;
        self.unheard.clear();
        if let Some(whole) = self.whole.take() {
            self.messages = whole;
        }
        let answered = self.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
        let open = self.messages.split_off(answered.map_or(0, |at| at + 1));
        let asked = open.iter().any(Message::is_prompt);
        self.messages.extend(open.into_iter().filter(|message| !message.is_prompt()));
        if asked {
            self.messages.push(Message::User(LEFT_OUT.to_owned()));
            self.opening = false;
        }
    }

    /// Leaves this part alone out of the refused conversation.
    fn omit(&mut self, omitted: Omitted) {
        self.close();
        self.refusals += 1;
        self.tried.push(omitted);
        match &self.whole {
            Some(whole) => self.messages.clone_from(whole),
            None => self.whole = Some(self.messages.clone()),
        }
        refused::omit(&mut self.messages, omitted);
    }

    fn omit_what_helps(&mut self) {
        if let Some(helped) = self.helped {
            refused::omit(&mut self.messages, helped);
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

    fn finish(mut self) -> Derived {
        self.close();
        self.go_on();
        let mut omissible = refused::omissible(self.whole.as_ref().unwrap_or(&self.messages));
        if self.whole.is_none() {
            self.omit_what_helps();
        }
        omissible.retain(|omitted| !self.tried.contains(omitted) && self.helped != Some(*omitted));
        Derived { messages: self.messages, omissible, refusals: self.refusals }
    }
}
