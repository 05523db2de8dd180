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

/// The most questions of one call.
const MAX_QUESTIONS: usize = 3;

/// The number of options of a question that has any.
const OPTION_COUNTS: std::ops::RangeInclusive<usize> = 2..=3;

/// The most characters of an id. The limits below are in characters, too.
const MAX_ID: usize = 64;

const MAX_HEADER: usize = 40;

const MAX_QUESTION: usize = 2_000;

const MAX_LABEL: usize = 100;

const MAX_DESCRIPTION: usize = 500;

/// The header and the id of a question that was given without them.
const DEFAULT_HEADER_AND_ID: (&str, &str) = ("Question", "question");

/// The tool `ask_user`: asks one to three questions and waits for the replies, without a timeout.
///
/// A question has an id, a header, a text, and either no options or two to three. The user can
/// always reply in free text. The model gets the replies by id, and a declined question is a normal
/// result. The call fails in a session where no user can answer.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct AskUser;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// One to three questions. Give either this or `question`.
    #[schemars(length(min = 1, max = 3))]
    questions: Option<Vec<QuestionInput>>,
    /// A single question, answered in free text. Give either this or `questions`.
    #[schemars(length(min = 1, max = 2000))]
    question: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuestionInput {
    /// The id of the question. Its answer is returned under this id.
    #[schemars(length(min = 1, max = 64))]
    id: String,
    /// A heading of a few words.
    #[schemars(length(min = 1, max = 40))]
    header: String,
    /// The text of the question.
    #[schemars(length(min = 1, max = 2000))]
    question: String,
    /// Two or three suggested answers, or none. The user can always answer in free text instead.
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
    /// The consequence of choosing this answer.
    #[serde(default)]
    #[schemars(length(max = 500))]
    description: String,
}

impl AskUser {
    /// Creates an instance of the tool.
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
        "Asks the user one to three questions and waits for the answers. Use it for things that only the user can \
         know or decide, not for permission to call a tool: that is requested automatically. Give options if a few \
         answers are likely: the user picks one or answers in free text. The answers are returned by question id. The \
         user may decline; then continue without an answer."
    }

    fn schema(&self) -> Value {
        schema_of::<Input>()
    }

    fn intent(&self, input: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        parse_questions(input)?;
        Ok(Intent::new(Act::Internal, "Ask the user?"))
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let questions = parse_questions(&input)?;
        let request = QuestionRequest { tool_name: self.name().to_owned(), questions };
        match context.ask(request) {
            QuestionResponse::Replied { replies } => {
                let has_skipped = replies.iter().any(|reply| reply.answer.is_none());
                let replies: Map<_, _> = replies
                    .into_iter()
                    .map(|reply| (reply.id, reply.answer.map_or(Value::Null, Value::String)))
                    .collect();
                let mut text = Value::Object(replies).to_string();
                if has_skipped {
                    text.push_str(
                        "\nThe user skipped the questions answered with null. Continue without these answers.",
                    );
                }
                Ok(ToolOutcome::text(text))
            }
            QuestionResponse::Declined => {
                Ok(ToolOutcome::text("The user declined to answer. Continue without an answer."))
            }
            QuestionResponse::Unanswerable => Err(ToolError::failed(
                "no user can answer questions in this session: continue without an answer",
            )),
            QuestionResponse::Interrupted => Err(ToolError::Interrupted),
        }
    }
}

/// Parses the questions and checks their limits.
fn parse_questions(input: &Value) -> Result<Vec<Question>, ToolError> {
    let input: Input = parse(input)?;
    let asked = match (input.questions, input.question) {
        (Some(questions), None) => questions,
        (None, Some(question)) => {
            let (header, id) = DEFAULT_HEADER_AND_ID;
            vec![QuestionInput {
                id: id.to_owned(),
                header: header.to_owned(),
                question,
                options: Vec::new(),
            }]
        }
        (Some(_), Some(_)) => {
            return Err(ToolError::input("give either `questions` or `question`, not both"));
        }
        (None, None) => {
            return Err(ToolError::input("`questions` is missing: give one to three questions"));
        }
    };
    if asked.is_empty() || asked.len() > MAX_QUESTIONS {
        return Err(ToolError::input(format!(
            "expected 1 to {MAX_QUESTIONS} questions, got {}",
            asked.len()
        )));
    }
    let mut ids = BTreeSet::new();
    for (number, question) in (1..).zip(&asked) {
        question.check().map_err(|why| ToolError::input(format!("question {number}: {why}")))?;
        if !ids.insert(&question.id) {
            return Err(ToolError::input(format!("two questions have the id `{}`", question.id)));
        }
    }
    Ok(asked.into_iter().map(Question::from).collect())
}

impl QuestionInput {
    fn check(&self) -> Result<(), String> {
        check("the id", &self.id, MAX_ID)?;
        check("the header", &self.header, MAX_HEADER)?;
        check("the question", &self.question, MAX_QUESTION)?;
        let options = self.options.len();
        if options > 0 && !OPTION_COUNTS.contains(&options) {
            return Err(format!(
                "expected no options or {} to {}, got {options}",
                OPTION_COUNTS.start(),
                OPTION_COUNTS.end()
            ));
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

fn check(part: &str, text: &str, max_chars: usize) -> Result<(), String> {
    if text.trim().is_empty() {
        return Err(format!("{part} is empty"));
    }
    check_length(part, text, max_chars)
}

fn check_length(part: &str, text: &str, max_chars: usize) -> Result<(), String> {
    match text.chars().count() {
        length if length > max_chars => {
            Err(format!("{part} is {length} characters long; the limit is {max_chars}"))
        }
        _ => Ok(()),
    }
}

impl From<QuestionInput> for Question {
    fn from(QuestionInput { id, header, question, options }: QuestionInput) -> Self {
        let option = |Choice { label, description }| QuestionOption { label, description };
        Self { id, header, question, options: options.into_iter().map(option).collect() }
    }
}
