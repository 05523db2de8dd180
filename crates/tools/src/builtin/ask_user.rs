//! The tool `ask_user`: asks the user for words or a choice.

use std::collections::BTreeSet;

use holdpoint_common::{Question, QuestionOption, QuestionRequest, QuestionResponse};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::act::Act;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::input::{parse, schema_of};
use crate::tool::{Intent, Tool, ToolOutcome};
use crate::workspace::Workspace;

/// Questions of one call.
const MAX_QUESTIONS: usize = 3;

/// Options of one question, if it has any.
const OPTIONS: std::ops::RangeInclusive<usize> = 2..=3;

/// Characters of an id.
const MAX_ID: usize = 64;

/// Characters of a header.
const MAX_HEADER: usize = 40;

/// Characters of a question.
const MAX_QUESTION: usize = 2_000;

/// Characters of an option's label.
const MAX_LABEL: usize = 100;

/// Characters of an option's description.
const MAX_DESCRIPTION: usize = 500;

/// What heads a question that stands by itself, and names it.
const ALONE: (&str, &str) = ("Question", "question");

/// The tool `ask_user`: asks one to three questions and waits for the replies, however long that takes.
///
/// A question has an id, a header, its words, and none or two to three options; free text always answers, too. The
/// model reads the replies by id; that the user declined is an answer. Where nobody answers, it is an error.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct AskUser;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// One to three questions. Without it, `question`.
    #[schemars(length(min = 1, max = 3))]
    questions: Option<Vec<Asked>>,
    /// A single question that is answered in words. Without it, `questions`.
    #[schemars(length(min = 1, max = 2000))]
    question: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Asked {
    /// Names the question; its reply comes under this name.
    #[schemars(length(min = 1, max = 64))]
    id: String,
    /// A few words to head it with.
    #[schemars(length(min = 1, max = 40))]
    header: String,
    /// The question.
    #[schemars(length(min = 1, max = 2000))]
    question: String,
    /// Two or three ready answers, or none. The user can always answer in words instead.
    #[serde(default)]
    #[schemars(length(max = 3))]
    options: Vec<Choice>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Choice {
    /// The answer, in a few words.
    #[schemars(length(min = 1, max = 100))]
    label: String,
    /// What choosing it means.
    #[serde(default)]
    #[schemars(length(max = 500))]
    description: String,
}

impl AskUser {
    /// The tool.
    #[must_use]
    pub fn new() -> Self {
        Self
    }
}

impl Tool for AskUser {
    fn name(&self) -> &str {
        "ask_user"
    }

    fn description(&self) -> &str {
        "Asks the user one to three questions and waits for the answers. For what only the user can know or decide; \
         not for permission to call a tool, which is asked for by itself. Give options where a few answers are \
         likely: the user picks one or answers in words. The answers come by the questions' ids. The user may \
         decline: then go on without an answer."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        questions(input)?;
        Ok(Intent::new(Act::Talk, "Ask the user?"))
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let questions = questions(&input)?;
        let request = QuestionRequest { tool_name: self.name().to_owned(), questions };
        match context.ask(request) {
            QuestionResponse::Replied { replies } => {
                let skips = replies.iter().any(|reply| reply.answer.is_none());
                let replies: Map<_, _> = replies
                    .into_iter()
                    .map(|reply| (reply.id, reply.answer.map_or(Value::Null, Value::String)))
                    .collect();
                let mut text = Value::Object(replies).to_string();
                if skips {
                    text.push_str("\nThe user skipped the questions answered with null. Go on without.");
                }
                Ok(ToolOutcome::text(text))
            }
            QuestionResponse::Declined => Ok(ToolOutcome::text("The user declined to answer. Go on without.")),
            QuestionResponse::Unanswerable => {
                Err(ToolError::failed("nobody is there to answer questions in this session: go on without"))
            }
            QuestionResponse::Interrupted => Err(ToolError::Interrupted),
        }
    }
}

/// The questions of an input, within the bounds.
fn questions(input: &Value) -> Result<Vec<Question>, ToolError> {
    let input: Input = parse(input)?;
    let asked = match (input.questions, input.question) {
        (Some(questions), None) => questions,
        (None, Some(question)) => {
            let (header, id) = ALONE;
            vec![Asked { id: id.to_owned(), header: header.to_owned(), question, options: Vec::new() }]
        }
        (Some(_), Some(_)) => return Err(ToolError::input("give either `questions` or `question`, not both")),
        (None, None) => return Err(ToolError::input("`questions` is missing: one to three of them")),
    };
    if asked.is_empty() || asked.len() > MAX_QUESTIONS {
        return Err(ToolError::input(format!("there can be 1 to {MAX_QUESTIONS} questions, not {}", asked.len())));
    }
    let mut ids = BTreeSet::new();
    for (number, question) in (1..).zip(&asked) {
        question.check().map_err(|what| ToolError::input(format!("question {number}: {what}")))?;
        if !ids.insert(&question.id) {
            return Err(ToolError::input(format!("two questions have the id `{}`", question.id)));
        }
    }
    Ok(asked.into_iter().map(Question::from).collect())
}

impl Asked {
    fn check(&self) -> Result<(), String> {
        check("the id", &self.id, MAX_ID)?;
        check("the header", &self.header, MAX_HEADER)?;
        check("the question", &self.question, MAX_QUESTION)?;
        let options = self.options.len();
        if options > 0 && !OPTIONS.contains(&options) {
            return Err(format!("there can be no options, or {} to {}, not {options}", OPTIONS.start(), OPTIONS.end()));
        }
        let mut labels = BTreeSet::new();
        for option in &self.options {
            check("an option's label", &option.label, MAX_LABEL)?;
            check_length("an option's description", &option.description, MAX_DESCRIPTION)?;
            if !labels.insert(option.label.trim()) {
                return Err(format!("two options have the label `{}`", option.label));
            }
        }
        Ok(())
    }
}

fn check(what: &str, text: &str, most: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{what} is empty"));
    }
    check_length(what, text, most)
}

fn check_length(what: &str, text: &str, most: usize) -> Result<(), String> {
    match text.chars().count() {
        length if length > most => Err(format!("{what} is {length} characters long; {most} are the most")),
        _ => Ok(()),
    }
}

impl From<Asked> for Question {
    fn from(Asked { id, header, question, options }: Asked) -> Self {
        let option = |Choice { label, description }| QuestionOption { label, description };
        Self { id, header, question, options: options.into_iter().map(option).collect() }
    }
}
