//! The conversation that a model receives, derived from the facts by one pure function.

mod iteration;
mod refused;

use std::collections::HashMap;
use std::sync::Arc;

use holdpoint_common::{
    AssistantMessage, CallId, Event, Fact, Omitted, PromptFact, RunFact, RunSettings, SessionFact,
    Tasks, ToolFact, ToolResult, ToolStatus, TurnFact,
};

use crate::model::Message;
use crate::model::inserted::is_prompt;
pub use crate::model::inserted::{CONTINUE, PROMPT_LEFT_OUT, RESULTS, UNANSWERED};

/// Derives the conversation from these facts in a form that the strictest provider accepts, for any
/// facts: it begins with the user, users and answers alternate, every call is followed by its one
/// result, in the order of the calls, and the last message is not the model's.
#[must_use]
pub fn messages(facts: &[Arc<Event>]) -> Vec<Message> {
    let mut messages = derive(facts).messages;
    join_prompts(&mut messages);
    messages
}

/// A conversation, and the parts that may be left out of it.
#[derive(Debug, Clone, Default)]
pub struct Derived {
    /// The conversation, with each prompt as a separate message, because the newest alone has to
    /// fit into a request. [`join_prompts`] joins consecutive prompts.
    pub messages: Vec<Message>,
    /// The parts besides the user's prompts that can be left out if the provider refuses the
    /// conversation, the least harmful first.
    pub omissible: Vec<Omitted>,
    /// How often the provider has refused the conversation since its last answer.
    pub refusals: u32,
}

/// Where the newest facts of at least this many bytes begin; 0 if all take fewer. From there on, they
/// give the same messages as with all facts before them.
///
/// They begin with a prompt after an answer, because a refusal belongs to the messages up to the next
/// answer. They are all facts if a run began or ended among them: the messages of a run depend on its
/// beginning.
#[must_use]
pub fn start_of_newest(facts: &[Arc<Event>], bytes: u64) -> usize {
    let mut passed: u64 = 0;
    for (at, event) in facts.iter().enumerate().rev() {
        match event.fact() {
            Some(Fact::Run(_)) => return 0,
            Some(Fact::Prompt(PromptFact::Accepted { text, .. }))
                if passed >= bytes && is_prompt(text) && at > 0 && is_answer(&facts[at - 1]) =>
            {
                return at;
            }
            _ => passed += event.weight() as u64,
        }
    }
    0
}

/// Whether this is an answer with content. One without is from a turn that was cut while the model
/// thought.
fn is_answer(event: &Event) -> bool {
    matches!(event.fact(), Some(Fact::Turn(TurnFact::AssistantMessage(message)))
        if message.has_text_or_calls())
}

/// Derives the conversation from these facts, with each prompt as a separate message.
#[must_use]
pub fn derive(facts: &[Arc<Event>]) -> Derived {
    let model_start = current_model_start(facts);
    let mut conversation =
        HistoryBuilder { messages: Vec::with_capacity(facts.len()), ..HistoryBuilder::default() };
    for (at, fact) in facts.iter().enumerate().filter_map(|(at, event)| Some((at, event.fact()?))) {
        let is_of_current_model = model_start.is_none_or(|start| at > start);
        match fact {
            Fact::Prompt(PromptFact::Accepted { text, .. }) => conversation.prompt(text),
            // Between an answer and its results, it can only be in a damaged log.
            Fact::Turn(TurnFact::ContentAdded { text, .. })
                if conversation.open_calls.is_empty() =>
            {
                add_content(&mut conversation.messages, text)
            }
            Fact::Turn(TurnFact::AssistantMessage(message)) => conversation.answer(message),
            Fact::Tool(ToolFact::Finished(result)) => conversation.result(result),
            Fact::Turn(TurnFact::StepFinished { refused: true, .. }) if is_of_current_model => {
                conversation.refused()
            }
            Fact::Turn(TurnFact::StepFinished { omitted: Some(omission), .. })
                if is_of_current_model =>
            {
                conversation.omit(omission.what)
            }
            Fact::Run(RunFact::Started { run, .. }) => {
                conversation.run = Some(run.clone());
                conversation.unanswered_prompts.clear();
            }
            Fact::Run(RunFact::Finished { .. }) => {
                conversation.run = None;
                conversation.last_is_opening = false;
            }
            Fact::Run(RunFact::IterationStarted { iteration, resumed, .. }) => {
                conversation.iteration(*iteration, *resumed)
            }
            Fact::Task(fact) => conversation.tasks.apply(fact),
            _ => {}
        }
    }
    conversation.finish()
}

/// The position where the turns of the current model begin, if the model was changed: another
/// provider may accept a conversation that was refused before. A turn that is open at the change
/// ends with its own model.
fn current_model_start(facts: &[Arc<Event>]) -> Option<usize> {
    let is_change = |event: &Arc<Event>| {
        matches!(event.fact(), Some(Fact::Session(SessionFact::ModelChanged { .. })))
    };
    let begins_turn = |event: &Arc<Event>| {
        matches!(
            event.fact(),
            Some(
                Fact::Prompt(PromptFact::Accepted { .. })
                    | Fact::Run(RunFact::IterationStarted { .. })
            )
        )
    };
    let last_turn = facts.iter().rposition(begins_turn)?;
    let change = facts[..last_turn].iter().rposition(is_change)?;
    facts[change..].iter().position(begins_turn).map(|turn| change + turn)
}

/// Joins consecutive prompts into one message. Turns that ended before their answers leave such
/// prompts.
pub fn join_prompts(messages: &mut Vec<Message>) {
    messages.dedup_by(|message, before| match (message, before) {
        (Message::User(text), Message::User(before)) => {
            before.push_str(&format!("\n\n{UNANSWERED}\n\n{text}"));
            true
        }
        _ => false,
    });
}

/// The prompts without an answer to which no content was added yet, the newest first: of each, the
/// text that the user has written.
pub fn new_prompts(facts: &[Arc<Event>]) -> impl Iterator<Item = &str> {
    let is_old = |fact: &Fact| {
        matches!(fact, Fact::Turn(TurnFact::AssistantMessage(_) | TurnFact::ContentAdded { .. }))
    };
    let facts = facts.iter().rev().filter_map(|event| event.fact());
    facts.take_while(move |fact| !is_old(fact)).filter_map(|fact| match fact {
        Fact::Prompt(PromptFact::Accepted { text, typed_bytes, .. }) => {
            Some(&text[..text.floor_char_boundary(typed_bytes.unwrap_or(text.len()))])
        }
        _ => None,
    })
}

/// Adds content to the prompt that names it, the last message.
pub fn add_content(messages: &mut Vec<Message>, content: &str) {
    match messages.last_mut() {
        Some(Message::User(prompt)) => {
            prompt.push_str("\n\n");
            prompt.push_str(content);
        }
        // A damaged log has lost the prompt.
        _ => messages.push(Message::User(content.to_owned())),
    }
}

/// A conversation under construction.
#[derive(Default)]
struct HistoryBuilder {
    messages: Vec<Message>,
    /// The original messages, from the first that an omission may have changed, while a part is
    /// left out because of a refusal and the model has not answered since.
    whole: Option<WholeEnd>,
    /// The omissions since the last answer.
    tried: Vec<Omitted>,
    /// The number of refusals since the last answer.
    refusals: u32,
    /// The omission that has helped in this turn. It applies to later answers, too.
    helped: Option<Omitted>,
    /// The calls of the last answer, until each has its result.
    open_calls: Vec<CallId>,
    /// The result of each open call, once it is known, and how many are not known.
    results: HashMap<CallId, Option<Arc<ToolResult>>>,
    missing: usize,
    /// The run in progress.
    run: Option<RunSettings>,
    /// The tasks and notes.
    tasks: Tasks,
    /// The prompts to the run that the model has not answered. Each iteration repeats them until
    /// then.
    unanswered_prompts: Vec<String>,
    /// Whether the last message is the beginning of an iteration. Prompts are added to it, because
    /// the newest message is always sent, and the goal is in it.
    last_is_opening: bool,
}

/// The end of a conversation without omissions.
struct WholeEnd {
    /// The position of the first of these messages in the conversation.
    from: usize,
    messages: Vec<Message>,
}

impl HistoryBuilder {
    fn prompt(&mut self, text: &str) {
        self.close_calls();
        self.whole = None;
        self.helped = None;
        if self.run.is_some() {
            self.unanswered_prompts.push(text.to_owned());
        }
        self.push_prompt(text);
    }

    fn push_prompt(&mut self, text: &str) {
        match self.messages.last_mut() {
            Some(Message::User(opening)) if self.last_is_opening => {
                opening.push_str("\n\n# New message from the user\n\n");
                opening.push_str(text);
            }
            _ => self.messages.push(Message::User(text.to_owned())),
        }
    }

    /// Begins an iteration of a run, with an empty conversation or where a restart has cut it.
    fn iteration(&mut self, iteration: u32, resumed: bool) {
        self.close_calls();
        self.whole = None;
        self.helped = None;
        if !resumed {
            self.messages.clear();
        }
        if let Some(run) = &self.run {
            self.messages.push(Message::User(iteration::opening(
                run,
                &self.tasks,
                iteration,
                resumed,
            )));
            self.last_is_opening = true;
        }
        if !resumed {
            let unanswered = std::mem::take(&mut self.unanswered_prompts);
            unanswered.iter().for_each(|text| self.push_prompt(text));
            self.unanswered_prompts = unanswered;
        }
    }

    fn answer(&mut self, message: &Arc<AssistantMessage>) {
        self.close_calls();
        // An answer without content is from a turn that was cut while the model thought.
        if message.has_text_or_calls() {
            self.unanswered_prompts.clear();
        }
        if !message.has_text_or_calls() || self.messages.is_empty() {
            return;
        }
        self.ask_to_continue();
        if self.whole.take().is_some() {
            // If results were left out again and again, the model would keep requesting them.
            self.helped = self.tried.last().copied().filter(|omitted| *omitted != Omitted::Results);
        } else {
            self.repeat_helpful_omission();
        }
        self.tried.clear();
        self.refusals = 0;
        self.last_is_opening = false;
        self.open_calls.extend(message.calls.iter().map(|call| call.id));
        self.results = self.open_calls.iter().map(|call| (*call, None)).collect();
        self.missing = self.results.len();
        self.messages.push(Message::Assistant(Arc::clone(message)));
    }

    fn result(&mut self, result: &Arc<ToolResult>) {
        let Some(unknown @ None) = self.results.get_mut(&result.call) else { return };
        *unknown = Some(Arc::clone(result));
        self.missing -= 1;
        if self.missing == 0 {
            self.close_calls();
        }
    }

    /// Leaves out the user's unanswered prompts after no omission has helped: the provider would
    /// refuse them again.
    fn refused(&mut self) {
        self.close_calls();
        self.refusals += 1;
        self.unanswered_prompts.clear();
        self.restore_whole();
        let answered =
            self.messages.iter().rposition(|message| matches!(message, Message::Assistant(_)));
        let unanswered = self.messages.split_off(answered.map_or(0, |at| at + 1));
        let had_prompt = unanswered.iter().any(Message::is_prompt);
        self.messages.extend(unanswered.into_iter().filter(|message| !message.is_prompt()));
        if had_prompt {
            self.messages.push(Message::User(PROMPT_LEFT_OUT.to_owned()));
            self.last_is_opening = false;
        }
    }

    /// Leaves out only this part of the refused conversation.
    fn omit(&mut self, omitted: Omitted) {
        self.close_calls();
        self.refusals += 1;
        self.tried.push(omitted);
        self.restore_whole();
        let from = refused::first_changed(&self.messages, omitted);
        self.whole = Some(WholeEnd { from, messages: self.messages[from..].to_vec() });
        refused::omit(&mut self.messages, omitted);
    }

    /// Undoes the omission, if a part is left out.
    fn restore_whole(&mut self) {
        if let Some(WholeEnd { from, messages }) = self.whole.take() {
            self.messages.truncate(from);
            self.messages.extend(messages);
        }
    }

    fn repeat_helpful_omission(&mut self) {
        if let Some(helped) = self.helped {
            refused::omit(&mut self.messages, helped);
        }
    }

    /// Adds the results of the open calls.
    fn close_calls(&mut self) {
        for call in self.open_calls.drain(..) {
            // Every call has its result, unless a damaged log has lost it.
            let lost = || {
                ToolResult::not_run(call, ToolStatus::Interrupted, "its result is unknown").into()
            };
            self.messages
                .push(Message::Tool(self.results.remove(&call).flatten().unwrap_or_else(lost)));
        }
        self.results.clear();
    }

    /// Adds a user message if the last one is an answer, so that another answer can follow.
    fn ask_to_continue(&mut self) {
        if let Some(Message::Assistant(_)) = self.messages.last() {
            self.messages.push(Message::User(CONTINUE.to_owned()));
        }
    }

    fn finish(mut self) -> Derived {
        self.close_calls();
        self.ask_to_continue();
        let mut omissible = match self.whole.take() {
            Some(WholeEnd { from, messages }) => {
                let changed = self.messages.split_off(from);
                self.messages.extend(messages);
                let omissible = refused::omissible(&self.messages);
                self.messages.truncate(from);
                self.messages.extend(changed);
                omissible
            }
            None => {
                let omissible = refused::omissible(&self.messages);
                self.repeat_helpful_omission();
                omissible
            }
        };
        omissible.retain(|omitted| !self.tried.contains(omitted) && self.helped != Some(*omitted));
        Derived { messages: self.messages, omissible, refusals: self.refusals }
    }
}
