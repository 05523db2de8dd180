//! Questions of a server for the user (elicitation).

use holdpoint_common::{
    PauseKind, PauseResponse, Question, QuestionOption, QuestionReply, QuestionRequest,
    QuestionResponse,
};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction};
use serde_json::{Map, Value, json};

use super::content::cut;
use crate::context::ToolContext;
use crate::error::ToolError;
use crate::shown::{prose, prose_line};

/// The most fields of a form. A larger form is declined.
const MAX_FIELDS: usize = 16;

/// The most options of a field. Further ones are not shown, but can be typed.
const MAX_OPTIONS: usize = 32;

/// The most bytes of a text from the server.
const MAX_TEXT: usize = 2_000;

/// How often the fields of a form are asked for if an answer has the wrong type.
const MAX_TRIES: usize = 3;

/// Words in the name of a field that ask for a secret.
const SECRET_WORDS: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "apikey",
    "credential",
    "privatekey",
    "pincode",
    "cvv",
];

/// Asks the user, and returns the answer for the server.
///
/// # Errors
/// The turn was cut.
pub(super) fn ask(
    server: &str,
    request: ElicitRequestParams,
    context: &ToolContext,
) -> Result<ElicitResult, ToolError> {
    match request {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let order = requested_schema.property_order.clone();
            let schema = serde_json::to_value(&requested_schema).unwrap_or_default();
            match Form::new(server, &message, &schema, order.as_deref()) {
                Ok(form) => form.ask(context),
                Err(why) => {
                    context.output(&format!("[the question of the server is declined: {why}]\n"));
                    Ok(ElicitResult::new(ElicitationAction::Decline))
                }
            }
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
            let question = format!("Open this address for the MCP server `{server}`?");
            let details = format!(
                "{}\n{}\nOpen the address in your browser, and approve when you are done.",
                crate::shown::line(&url),
                prose(cut(&message, MAX_TEXT)),
            );
            let action = match context.pause(PauseKind::Confirm, question, Some(details)) {
                PauseResponse::Approved | PauseResponse::Resumed => ElicitationAction::Accept,
                PauseResponse::Denied { .. } => ElicitationAction::Decline,
                PauseResponse::Interrupted => return Err(ToolError::Interrupted),
            };
            Ok(ElicitResult::new(action))
        }
        _ => Ok(ElicitResult::new(ElicitationAction::Decline)),
    }
}

/// The type of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Integer,
    Boolean,
    /// One of the options.
    Choice,
    /// Any of the options, separated by commas.
    Choices,
}

struct Field {
    name: String,
    kind: Kind,
    text: String,
    required: bool,
    /// The values and their titles.
    options: Vec<(String, String)>,
}

struct Form {
    server: String,
    message: String,
    fields: Vec<Field>,
}

impl Form {
    /// # Errors
    /// The reason why the form is not shown.
    fn new(
        server: &str,
        message: &str,
        schema: &Value,
        order: Option<&[String]>,
    ) -> Result<Self, String> {
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        if properties.len() > MAX_FIELDS {
            return Err(format!("it has more than {MAX_FIELDS} fields"));
        }
        let required = schema["required"].as_array();
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let names: Vec<&String> = match order {
            Some(order) => order.iter().filter(|name| properties.contains_key(*name)).collect(),
            None => properties.keys().collect(),
        };
        let mut fields = Vec::new();
        for name in names {
            let field = Field::new(name, &properties[name], is_required(name));
            if let Some(word) = field.secret_word() {
                return Err(format!(
                    "the field `{}` asks for a secret ({word}), which a form may not",
                    prose_line(cut(name, 100))
                ));
            }
            fields.push(field);
        }
        let message = prose(cut(message, MAX_TEXT)).into_owned();
        Ok(Self { server: server.to_owned(), message, fields })
    }

    fn ask(&self, context: &ToolContext) -> Result<ElicitResult, ToolError> {
        let mut problem = None;
        for _ in 0..MAX_TRIES {
            let questions = self.questions(problem.as_deref());
            let tool_name = format!("MCP server {}", self.server);
            match context.ask(QuestionRequest { tool_name, questions }) {
                QuestionResponse::Replied { replies } => match self.content(&replies) {
                    Ok(Some(content)) => {
                        return Ok(ElicitResult::new(ElicitationAction::Accept)
                            .with_content(Value::Object(content)));
                    }
                    Ok(None) => break,
                    Err(why) => problem = Some(why),
                },
                QuestionResponse::Declined | QuestionResponse::Unanswerable => break,
                QuestionResponse::Interrupted => return Err(ToolError::Interrupted),
            }
        }
        Ok(ElicitResult::new(ElicitationAction::Decline))
    }

    /// One question for each field. A form without fields asks for a confirmation.
    fn questions(&self, problem: Option<&str>) -> Vec<Question> {
        let problem = problem.map(|problem| format!("\n{problem}")).unwrap_or_default();
        let intro = format!("The MCP server `{}` asks: {}{problem}", self.server, self.message);
        let question = |id: &str, header: &str, question: String, options: Vec<QuestionOption>| {
            Question { id: id.to_owned(), header: header.to_owned(), question, options }
        };
        let option = |label: &str, description: &str| QuestionOption {
            label: label.to_owned(),
            description: description.to_owned(),
        };
        if self.fields.is_empty() {
            let options = vec![option("yes", ""), option("no", "")];
            return vec![question("confirm", "Confirm", intro, options)];
        }
        let ask = |(index, field): (usize, &Field)| {
            let text = match index {
                0 => format!("{intro}\n{}", field.text),
                _ => field.text.clone(),
            };
            let options = field.options.iter().take(MAX_OPTIONS).map(|(value, title)| {
                let title = if title == value { "" } else { title };
                option(&prose_line(cut(value, 200)), &prose_line(cut(title, 500)))
            });
            // Several options can't be chosen, only typed.
            let options = match field.kind {
                Kind::Choices => Vec::new(),
                _ => options.collect(),
            };
            question(&field.name, &prose_line(cut(&field.name, 40)), text, options)
        };
        self.fields.iter().enumerate().map(ask).collect()
    }

    /// The content of the form; `None` if the user leaves out a required field.
    ///
    /// # Errors
    /// The reason why an answer is not valid, in words.
    fn content(&self, replies: &[QuestionReply]) -> Result<Option<Map<String, Value>>, String> {
        let mut content = Map::new();
        if self.fields.is_empty() {
            let confirmed = replies.iter().any(|reply| reply.answer.as_deref() == Some("yes"));
            return Ok(confirmed.then_some(content));
        }
        for field in &self.fields {
            let reply = replies.iter().find(|reply| reply.id == field.name);
            match reply.and_then(|reply| reply.answer.as_deref()) {
                Some(answer) => {
                    content.insert(field.name.clone(), field.parse(answer)?);
                }
                None if field.required => return Ok(None),
                None => {}
            }
        }
        Ok(Some(content))
    }
}

impl Field {
    fn new(name: &str, schema: &Value, required: bool) -> Self {
        let multiple = schema["type"] == "array";
        let choices = if multiple { &schema["items"] } else { schema };
        let titled = ["oneOf", "anyOf"].iter().find_map(|key| choices[key].as_array());
        let mut options: Vec<(String, String)> = Vec::new();
        for choice in titled.into_iter().flatten() {
            if let Some(value) = choice["const"].as_str() {
                options.push((value.into(), choice["title"].as_str().unwrap_or(value).into()));
            }
        }
        let names = schema["enumNames"].as_array();
        for (index, value) in choices["enum"].as_array().into_iter().flatten().enumerate() {
            if let Some(value) = value.as_str() {
                let title = names.and_then(|names| names.get(index)?.as_str()).unwrap_or(value);
                options.push((value.to_owned(), title.to_owned()));
            }
        }
        let kind = match schema["type"].as_str() {
            Some("array") => Kind::Choices,
            _ if !options.is_empty() => Kind::Choice,
            Some("number") => Kind::Number,
            Some("integer") => Kind::Integer,
            Some("boolean") => Kind::Boolean,
            _ => Kind::Text,
        };
        if kind == Kind::Boolean {
            options = ["true", "false"].map(|value| (value.to_owned(), value.to_owned())).into();
        }
        let mut text = schema["title"].as_str().unwrap_or(name).to_owned();
        if let Some(description) = schema["description"].as_str() {
            text.push_str(&format!(": {description}"));
        }
        let mut text = prose(cut(&text, MAX_TEXT)).into_owned();
        if kind == Kind::Choices {
            let values: Vec<_> = options.iter().take(MAX_OPTIONS).map(|(value, _)| value).collect();
            let values = json!(values).to_string();
            text.push_str(&format!("\nAny of {}, separated by commas", prose_line(&values)));
        }
        if let Some(default) = schema.get("default") {
            text.push_str(&format!("\nDefault: {}", prose_line(cut(&default.to_string(), 200))));
        }
        if !required {
            text.push_str("\nThis can be skipped.");
        }
        Self { name: name.to_owned(), kind, text, required, options }
    }

    /// The word by which the field asks for a secret.
    fn secret_word(&self) -> Option<&'static str> {
        let letters = |text: &str| -> String {
            text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
        };
        let texts = [letters(&self.name), letters(self.text.lines().next().unwrap_or_default())];
        SECRET_WORDS.into_iter().find(|word| texts.iter().any(|text| text.contains(word)))
    }

    /// The value of an answer.
    fn parse(&self, answer: &str) -> Result<Value, String> {
        let answer = answer.trim();
        let error = |wanted: &str| Err(format!("`{}` must be {wanted}.", prose_line(&self.name)));
        let option = |text: &str| {
            let mut options = self.options.iter();
            let found = options.find(|(value, title)| value == text || title == text);
            found.map(|(value, _)| json!(value))
        };
        match self.kind {
            Kind::Text => Ok(json!(answer)),
            Kind::Number => match answer.parse::<f64>() {
                Ok(number) if number.is_finite() => Ok(json!(number)),
                _ => error("a number"),
            },
            Kind::Integer => match answer.parse::<i64>() {
                Ok(number) => Ok(json!(number)),
                Err(_) => error("a whole number"),
            },
            Kind::Boolean => match answer.to_lowercase().as_str() {
                "true" | "yes" => Ok(json!(true)),
                "false" | "no" => Ok(json!(false)),
                _ => error("true or false"),
            },
            Kind::Choice => option(answer).map_or_else(|| error("one of the options"), Ok),
            Kind::Choices => {
                let parts = answer.split(',').map(str::trim).filter(|part| !part.is_empty());
                match parts.map(option).collect::<Option<Vec<_>>>() {
                    Some(values) => Ok(Value::Array(values)),
                    None => error("some of the options, separated by commas"),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(properties: Value, required: &[&str]) -> Result<Form, String> {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        Form::new("s", "a\u{202e}b", &schema, None)
    }

    fn reply(id: &str, answer: Option<&str>) -> QuestionReply {
        QuestionReply { id: id.to_owned(), answer: answer.map(str::to_owned) }
    }

    #[test]
    fn m_h2_answers_become_values_of_the_types_of_a_form() {
        let form = form(
            json!({
                "name": {"type": "string", "title": "Your name", "default": "x"},
                "age": {"type": "integer"},
                "size": {"type": "number", "description": "in metres"},
                "ok": {"type": "boolean"},
                "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
                "pets": {"type": "array", "items": {"type": "string", "enum": ["cat", "dog"]}},
            }),
            &["name"],
        )
        .unwrap();
        let questions = form.questions(None);
        assert_eq!(
            questions[0].question.lines().next(),
            Some("The MCP server `s` asks: a\\u{202e}b")
        );
        assert!(questions[0].question.ends_with("Your name\nDefault: \"x\""));
        assert_eq!(questions[4].options[1].label, "g");
        assert_eq!(questions[4].options[1].description, "Green");
        let answers = [
            reply("name", Some("me")),
            reply("age", Some(" 7 ")),
            reply("size", Some("1.5")),
            reply("ok", Some("yes")),
            reply("color", Some("Green")),
            reply("pets", Some("cat, dog")),
        ];
        assert_eq!(
            Value::Object(form.content(&answers).unwrap().unwrap()),
            json!({
                "name": "me", "age": 7, "size": 1.5, "ok": true, "color": "g",
                "pets": ["cat", "dog"],
            })
        );
        let skipped = form.content(&[reply("name", Some("me")), reply("age", None)]);
        assert_eq!(Value::Object(skipped.unwrap().unwrap()), json!({"name": "me"}));
        assert_eq!(form.content(&[reply("name", None)]), Ok(None), "a required field");
        for (field, wrong) in
            [("age", "1.5"), ("size", "big"), ("ok", "maybe"), ("color", "b"), ("pets", "cat, cow")]
        {
            let answers = [reply("name", Some("me")), reply(field, Some(wrong))];
            assert!(form.content(&answers).unwrap_err().contains(field), "{wrong}");
        }
    }

    #[test]
    fn m_h2_a_form_may_not_ask_for_secrets() {
        for field in [
            json!({"password": {"type": "string"}}),
            json!({"apiKey": {"type": "string"}}),
            json!({"x": {"type": "string", "title": "Your GitHub Token"}}),
            json!({"x": {"type": "string", "description": "the pass-phrase of the key"}}),
        ] {
            assert!(form(field.clone(), &[]).is_err_and(|why| why.contains("a secret")), "{field}");
        }
        assert!(form(json!({"branch": {"type": "string"}}), &[]).is_ok());
        let many: Map<_, _> =
            (0..=MAX_FIELDS).map(|n| (format!("f{n}"), json!({"type": "string"}))).collect();
        assert!(form(Value::Object(many), &[]).is_err_and(|why| why.contains("16 fields")));
    }
}
