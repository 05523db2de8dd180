//! Asks as requests to the editor, and its replies as answers.
//!
//! A pause is a permission request. A question is a form where the editor has announced forms,
//! otherwise one permission request for each question, with one option for each suggested answer.

use std::collections::BTreeMap;

use agent_client_protocol_schema::v1::{
    CLIENT_METHOD_NAMES, CreateElicitationRequest, CreateElicitationResponse, ElicitationAction,
    ElicitationContentValue, ElicitationFormMode, ElicitationMode, ElicitationPropertySchema,
    ElicitationSchema, ElicitationSessionScope, EnumOption, Error, Meta, PermissionOption,
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, StringPropertySchema, ToolCallContent, ToolCallId, ToolCallStatus,
    ToolCallUpdate, ToolCallUpdateFields,
};
use holdpoint_common::{
    Answer, Ask, AskRequest, PauseKind, PauseRequest, Question, QuestionReply, QuestionRequest,
};
use serde_json::{Value, json};

use super::updates::{call_id, kind, plain, quoted};

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECT_ALWAYS: &str = "reject_always";
const CONTINUE: &str = "continue";
const INTERRUPT: &str = "interrupt";
const SKIP: &str = "skip";
/// The beginning of an option's id for a suggested answer; its number follows.
const SUGGESTED: &str = "answer-";

/// A request to the editor: its method and parameters.
pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) params: Value,
}

/// The consequence of a reply of the editor.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    Answer(Answer),
    /// The next question is asked; these are the replies so far.
    Ask(Vec<QuestionReply>),
    /// The turn is interrupted.
    Interrupt,
    /// The ask stays open for other clients, for this reason.
    StaysOpen(String),
}

/// The request for an ask. `content` is that of the call so far, and `replies` are those to the
/// first questions.
pub(super) fn request(
    ask: &Ask,
    replies: &[QuestionReply],
    content: Vec<ToolCallContent>,
    forms: bool,
) -> Request {
    match &ask.request {
        AskRequest::Question(questions) if forms => form(ask, questions),
        AskRequest::Question(questions) => {
            let question = questions.questions.get(replies.len());
            let (texts, options) = question.map(permission_for_question).unwrap_or_default();
            permission(ask, texts, options, content)
        }
        AskRequest::Pause(pause) => {
            let (texts, options) = permission_for_pause(ask, pause);
            permission(ask, texts, options, content)
        }
    }
}

fn permission(
    ask: &Ask,
    texts: Vec<ToolCallContent>,
    options: Vec<PermissionOption>,
    mut content: Vec<ToolCallContent>,
) -> Request {
    content.extend(texts);
    let fields = ToolCallUpdateFields::new()
        .kind(kind(ask.request.tool_name()))
        .status(ToolCallStatus::Pending)
        .content(content);
    let call = ToolCallUpdate::new(call_id(ask.call), fields);
    let request =
        RequestPermissionRequest::new(ask.id.session.to_string(), call, options).meta(meta(ask));
    Request {
        method: CLIENT_METHOD_NAMES.session_request_permission,
        params: serde_json::to_value(request).unwrap_or_default(),
    }
}

fn meta(ask: &Ask) -> Meta {
    Meta::from_iter([("holdpoint".to_owned(), json!({ "ask": ask.id, "since": ask.since }))])
}

fn option(id: impl Into<String>, name: &str, kind: PermissionOptionKind) -> PermissionOption {
    PermissionOption::new(id.into(), name, kind)
}

/// The message, the details whole, and the options of a pause.
fn permission_for_pause(
    ask: &Ask,
    pause: &PauseRequest,
) -> (Vec<ToolCallContent>, Vec<PermissionOption>) {
    let mut texts = vec![plain(pause.message.clone())];
    texts.extend(pause.details.iter().map(|details| quoted(details)));
    let options = match pause.kind {
        PauseKind::Continue => vec![
            option(CONTINUE, "Continue", PermissionOptionKind::AllowOnce),
            option(INTERRUPT, "Interrupt the agent", PermissionOptionKind::RejectOnce),
        ],
        PauseKind::Confirm => {
            let mut options = vec![
                option(ALLOW_ONCE, "Approve", PermissionOptionKind::AllowOnce),
                option(REJECT_ONCE, "Deny", PermissionOptionKind::RejectOnce),
            ];
            if let Some(always) = &ask.always {
                texts.push(plain("Approving or denying always in this session covers:".to_owned()));
                texts.push(quoted(always));
                let name = "Approve always in this session";
                options.insert(1, option(ALLOW_ALWAYS, name, PermissionOptionKind::AllowAlways));
                let name = "Deny always in this session";
                options.push(option(REJECT_ALWAYS, name, PermissionOptionKind::RejectAlways));
            }
            options
        }
    };
    (texts, options)
}

/// The text and the options of a question.
fn permission_for_question(question: &Question) -> (Vec<ToolCallContent>, Vec<PermissionOption>) {
    let mut text = format!("**{}**\n\n{}", question.header, question.question);
    let described = question.options.iter().filter(|option| !option.description.is_empty());
    for option in described {
        text.push_str(&format!("\n- {}: {}", option.label, option.description));
    }
    let suggested = question.options.iter().enumerate().map(|(number, suggested)| {
        let id = format!("{SUGGESTED}{number}");
        option(id, &suggested.label, PermissionOptionKind::AllowOnce)
    });
    let skip = option(SKIP, "Skip", PermissionOptionKind::RejectOnce);
    (vec![plain(text)], suggested.chain([skip]).collect())
}

/// The form of all questions. Each has a field for other words, because the suggested answers are
/// only suggestions.
fn form(ask: &Ask, request: &QuestionRequest) -> Request {
    let mut schema = ElicitationSchema::new();
    for question in &request.questions {
        let text = || {
            StringPropertySchema::new()
                .title(question.header.clone())
                .description(question.question.clone())
        };
        if question.options.is_empty() {
            add_field(&mut schema, question.id.clone(), text());
            continue;
        }
        let options = question.options.iter().map(|option| {
            let title = match option.description.as_str() {
                "" => option.label.clone(),
                description => format!("{}: {description}", option.label),
            };
            EnumOption::new(option.label.clone(), title)
        });
        let suggested = text().one_of(options.collect::<Vec<_>>());
        let other =
            StringPropertySchema::new().title(format!("{}: another answer", question.header));
        add_field(&mut schema, question.id.clone(), suggested);
        add_field(&mut schema, other_field(request, &question.id), other);
    }
    let scope = ElicitationSessionScope::new(ask.id.session.to_string())
        .tool_call_id(ToolCallId::new(call_id(ask.call)));
    let mode = ElicitationMode::Form(ElicitationFormMode::new(scope, schema));
    let message = ask.request.message().to_owned();
    let request = CreateElicitationRequest::new(mode, message).meta(meta(ask));
    Request {
        method: CLIENT_METHOD_NAMES.elicitation_create,
        params: serde_json::to_value(request).unwrap_or_default(),
    }
}

/// The name of the form's field for an answer to this question in other words. No question has it.
fn other_field(request: &QuestionRequest, question: &str) -> String {
    let mut name = format!("{question}_other");
    while request.questions.iter().any(|other| other.id == name) {
        name.push('_');
    }
    name
}

fn add_field(schema: &mut ElicitationSchema, name: String, field: StringPropertySchema) {
    schema.properties.insert(name, ElicitationPropertySchema::String(field));
}

/// Reads the editor's reply to the request for an ask.
pub(super) fn read(
    ask: &Ask,
    replies: Vec<QuestionReply>,
    forms: bool,
    result: Result<Value, Error>,
) -> Next {
    let result = match result {
        Ok(result) => result,
        Err(error) => return stays_open(format!("the editor could not ask: {}", error.message)),
    };
    match &ask.request {
        AskRequest::Question(request) if forms => read_form(request, &result),
        AskRequest::Question(request) => read_question(request, replies, &result),
        AskRequest::Pause(pause) => read_pause(ask, pause.kind, &result),
    }
}

fn stays_open(reason: String) -> Next {
    Next::StaysOpen(reason)
}

/// The id of the option that the editor's user has chosen.
fn chosen(result: &Value) -> Result<String, Next> {
    let response: RequestPermissionResponse = serde_json::from_value(result.clone())
        .map_err(|error| stays_open(format!("the editor's reply can't be read: {error}")))?;
    match response.outcome {
        RequestPermissionOutcome::Selected(selected) => Ok(selected.option_id.to_string()),
        _ => Err(stays_open("the editor closed the question without an answer".to_owned())),
    }
}

fn unknown(option: &str) -> Next {
    stays_open(format!("the editor chose `{option}`, which was not offered"))
}

fn read_pause(ask: &Ask, kind: PauseKind, result: &Value) -> Next {
    let option = match chosen(result) {
        Ok(option) => option,
        Err(next) => return next,
    };
    let deny = |always| Next::Answer(Answer::Deny { reason: reason(result), always });
    match (kind, option.as_str()) {
        (PauseKind::Continue, CONTINUE) => Next::Answer(Answer::Resume),
        (PauseKind::Continue, INTERRUPT) => Next::Interrupt,
        (PauseKind::Confirm, ALLOW_ONCE) => Next::Answer(Answer::Approve { always: false }),
        (PauseKind::Confirm, ALLOW_ALWAYS) if ask.always.is_some() => {
            Next::Answer(Answer::Approve { always: true })
        }
        (PauseKind::Confirm, REJECT_ONCE) => deny(false),
        (PauseKind::Confirm, REJECT_ALWAYS) if ask.always.is_some() => deny(true),
        (_, other) => unknown(other),
    }
}

/// The user's reason for a denial, in `_meta` of the response or of its outcome.
fn reason(result: &Value) -> Option<String> {
    let places = ["/_meta/holdpoint/reason", "/outcome/_meta/holdpoint/reason"];
    let reason = places.iter().find_map(|place| result.pointer(place)?.as_str())?.trim();
    (!reason.is_empty()).then(|| reason.to_owned())
}

fn read_question(
    request: &QuestionRequest,
    mut replies: Vec<QuestionReply>,
    result: &Value,
) -> Next {
    let option = match chosen(result) {
        Ok(option) => option,
        Err(next) => return next,
    };
    let Some(question) = request.questions.get(replies.len()) else { return unknown(&option) };
    let suggested = || {
        let number: usize = option.strip_prefix(SUGGESTED)?.parse().ok()?;
        question.options.get(number)
    };
    let answer = match suggested() {
        Some(suggested) => Some(suggested.label.clone()),
        None if option == SKIP => None,
        None => return unknown(&option),
    };
    replies.push(QuestionReply { id: question.id.clone(), answer });
    match () {
        () if replies.len() < request.questions.len() => Next::Ask(replies),
        () => Next::Answer(answer_of(replies)),
    }
}

fn read_form(request: &QuestionRequest, result: &Value) -> Next {
    let response: CreateElicitationResponse = match serde_json::from_value(result.clone()) {
        Ok(response) => response,
        Err(error) => return stays_open(format!("the editor's reply can't be read: {error}")),
    };
    let fields = match response.action {
        ElicitationAction::Accept(accepted) => accepted.content.unwrap_or_default(),
        ElicitationAction::Decline => return Next::Answer(Answer::Cancel),
        _ => return stays_open("the editor closed the question without an answer".to_owned()),
    };
    let replies = request.questions.iter().map(|question| {
        let other = match question.options.is_empty() {
            true => None,
            false => text(&fields, &other_field(request, &question.id)),
        };
        let answer = other.or_else(|| text(&fields, &question.id));
        QuestionReply { id: question.id.clone(), answer }
    });
    // A form that was submitted blank is not declined: fields may have defaults.
    Next::Answer(Answer::Reply { answers: replies.collect() })
}

/// The text of a field, if it is not blank.
fn text(fields: &BTreeMap<String, ElicitationContentValue>, name: &str) -> Option<String> {
    match fields.get(name)? {
        ElicitationContentValue::String(text) if !text.trim().is_empty() => Some(text.clone()),
        _ => None,
    }
}

/// The answer to all questions. If all were skipped, the user declines.
fn answer_of(replies: Vec<QuestionReply>) -> Answer {
    match replies.iter().any(|reply| reply.answer.is_some()) {
        true => Answer::Reply { answers: replies },
        false => Answer::Cancel,
    }
}

#[cfg(test)]
mod tests;
