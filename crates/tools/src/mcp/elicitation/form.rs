//! A form that a server asks the user to fill in.

use holdpoint_common::{Question, QuestionOption, QuestionReply};
use serde_json::{Map, Value, json};

use super::{secret, within};
use crate::shown::{prose, prose_line};

/// The most fields of a form.
const MAX_FIELDS: usize = 16;

/// The most bytes of the name of a field, and of its title.
const MAX_NAME: usize = 128;

/// The most bytes of the description of a field.
const MAX_DESCRIPTION: usize = 2_000;

/// The most bytes of the default value of a field, as JSON.
const MAX_DEFAULT: usize = 1_000;

/// The most options of a field.
const MAX_OPTIONS: usize = 256;

/// The most options of a field that are shown. Further ones can be typed.
const SHOWN_OPTIONS: usize = 32;

/// The most bytes of an option, and of its title.
const MAX_OPTION: usize = 200;

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

impl Kind {
    /// Whether any text can be an answer.
    fn is_free(self) -> bool {
        matches!(self, Self::Text | Self::Number | Self::Integer)
    }

    /// Whether a value is of this type. `options` are those of its field.
    fn accepts(self, value: &Value, options: &[(String, String)]) -> bool {
        let is_option = |value: &Value| options.iter().any(|(option, _)| value == option);
        match self {
            Self::Text => value.is_string(),
            Self::Number => value.is_number(),
            Self::Integer => value.is_i64(),
            Self::Boolean => value.is_boolean(),
            Self::Choice => is_option(value),
            Self::Choices => value.as_array().is_some_and(|values| values.iter().all(is_option)),
        }
    }
}

struct Field {
    name: String,
    kind: Kind,
    text: String,
    required: bool,
    /// The values and their titles.
    options: Vec<(String, String)>,
    /// The value if the user skips the field.
    default: Option<Value>,
}

/// A form.
pub(super) struct Form {
    message: String,
    fields: Vec<Field>,
}

/// The options of a field: their values and titles.
fn options(schema: &Value) -> Vec<(String, String)> {
    let is_array = schema["type"] == "array";
    let choices = if is_array { &schema["items"] } else { schema };
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
    options
}

impl Form {
    /// # Errors
    /// The reason why the form is not shown: a bound, or a secret that it asks for.
    pub(super) fn new(
        message: &str,
        schema: &Value,
        order: Option<&[String]>,
    ) -> Result<Self, String> {
        let empty = Map::new();
        let properties = schema["properties"].as_object().unwrap_or(&empty);
        let required = schema["required"].as_array();
        let is_required = |name: &str| {
            required.is_some_and(|names| names.iter().any(|required| required == name))
        };
        let names: Vec<&String> = match order {
            Some(order) => order.iter().filter(|name| properties.contains_key(*name)).collect(),
            None => properties.keys().collect(),
        };
        if names.len() > MAX_FIELDS {
            return Err(format!("it has more than {MAX_FIELDS} fields"));
        }
        let mut fields = Vec::new();
        for name in names {
            fields.push(Field::new(name, &properties[name], is_required(name))?);
        }
        // A choice can't be a secret.
        if fields.iter().any(|field| field.kind.is_free())
            && let Some(word) = secret::word(message)
        {
            return Err(format!("its message asks for a secret ({word}), which a form may not"));
        }
        Ok(Self { message: prose(message).into_owned(), fields })
    }

    /// One question for each field. A form without fields asks for a confirmation.
    pub(super) fn questions(&self, server: &str, problem: Option<&str>) -> Vec<Question> {
        let problem = problem.map(|problem| format!("\n{problem}")).unwrap_or_default();
        let intro = format!("The MCP server `{server}` asks: {}{problem}", self.message);
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
            let options = field.options.iter().take(SHOWN_OPTIONS).map(|(value, title)| {
                let title = if title == value { "" } else { title };
                option(value, &prose_line(title))
            });
            // Several options can't be chosen, only typed.
            let options = match field.kind {
                Kind::Choices => Vec::new(),
                _ => options.collect(),
            };
            question(&field.name, &prose_line(&field.name), text, options)
        };
        self.fields.iter().enumerate().map(ask).collect()
    }

    /// The content of the form; `None` if the user skips a required field without a default.
    ///
    /// # Errors
    /// The reason why an answer is not valid, in words.
    pub(super) fn content(
        &self,
        replies: &[QuestionReply],
    ) -> Result<Option<Map<String, Value>>, String> {
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
                None => match &field.default {
                    Some(default) => drop(content.insert(field.name.clone(), default.clone())),
                    None if field.required => return Ok(None),
                    None => {}
                },
            }
        }
        Ok(Some(content))
    }
}

impl Field {
    /// # Errors
    /// The reason why the field is not shown.
    fn new(name: &str, schema: &Value, required: bool) -> Result<Self, String> {
        within("the name of a field", name, MAX_NAME)?;
        let of_field = |part: &str| format!("the {part} of the field `{}`", prose_line(name));
        let title = schema["title"].as_str().unwrap_or(name);
        within(&of_field("title"), title, MAX_NAME)?;
        let description = schema["description"].as_str().unwrap_or_default();
        within(&of_field("description"), description, MAX_DESCRIPTION)?;
        let default = schema.get("default").map(Value::to_string).unwrap_or_default();
        within(&of_field("default"), &default, MAX_DEFAULT)?;
        let mut options = options(schema);
        if options.len() > MAX_OPTIONS {
            return Err(format!("{} are more than {MAX_OPTIONS}", of_field("options")));
        }
        for (value, title) in &options {
            within(&of_field("option"), value, MAX_OPTION)?;
            within(&of_field("option"), title, MAX_OPTION)?;
            // Its label is its value.
            if prose_line(value) != *value {
                return Err(format!("{} has characters that can't be shown", of_field("option")));
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
        let texts = [name, title, description];
        if kind.is_free()
            && let Some(word) = texts.into_iter().find_map(secret::word)
        {
            let field = of_field("text");
            return Err(format!("{field} asks for a secret ({word}), which a form may not"));
        }
        let mut text = match description {
            "" => prose(title).into_owned(),
            description => prose(&format!("{title}: {description}")).into_owned(),
        };
        if kind == Kind::Choices {
            let shown: Vec<_> =
                options.iter().take(SHOWN_OPTIONS).map(|(value, _)| value).collect();
            let shown = json!(shown).to_string();
            text.push_str(&format!("\nAny of {}, separated by commas", prose_line(&shown)));
        }
        let usable = schema.get("default").filter(|value| kind.accepts(value, &options)).cloned();
        match &usable {
            Some(_) => text.push_str(&format!("\nIf this is skipped: {}", prose_line(&default))),
            None if !required => text.push_str("\nThis can be skipped."),
            None => {}
        }
        Ok(Self { name: name.to_owned(), kind, text, required, options, default: usable })
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
        Form::new("a\u{202e}b", &schema, None)
    }

    fn reply(id: &str, answer: Option<&str>) -> QuestionReply {
        QuestionReply { id: id.to_owned(), answer: answer.map(str::to_owned) }
    }

    #[test]
    fn m_h2_answers_become_values_of_the_types_of_a_form() {
        let form = form(
            json!({
                "name": {"type": "string", "title": "Your name"},
                "age": {"type": "integer"},
                "size": {"type": "number", "description": "in metres"},
                "ok": {"type": "boolean"},
                "color": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
                "pets": {"type": "array", "items": {"type": "string", "enum": ["cat", "dog"]}},
            }),
            &["name"],
        )
        .unwrap();
        let questions = form.questions("s", None);
        assert_eq!(
            questions[0].question.lines().next(),
            Some("The MCP server `s` asks: a\\u{202e}b")
        );
        assert!(questions[0].question.ends_with("Your name"));
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
    fn m_h2_a_field_that_is_skipped_has_its_default() {
        let form = form(
            json!({
                "name": {"type": "string", "default": "x\u{202e}"},
                "age": {"type": "integer", "default": 1.5},
                "size": {"type": "number", "default": 1.5},
                "ok": {"type": "boolean", "default": false},
                "color": {"type": "string", "enum": ["r", "g"], "default": "g"},
                "other": {"type": "string", "enum": ["r", "g"], "default": "b"},
                "pets": {"type": "array", "items": {"enum": ["cat", "dog"]}, "default": ["cat"]},
            }),
            &["name"],
        )
        .unwrap();
        let questions = form.questions("s", None);
        assert!(questions[0].question.ends_with("name\nIf this is skipped: \"x\\u{202e}\""));
        assert!(questions[1].question.ends_with("age\nThis can be skipped."));
        assert_eq!(
            Value::Object(form.content(&[reply("size", Some("2"))]).unwrap().unwrap()),
            json!({
                "name": "x\u{202e}", "size": 2.0, "ok": false, "color": "g", "pets": ["cat"],
            })
        );
    }

    #[test]
    fn m_h2_a_form_may_not_ask_for_secrets() {
        for field in [
            json!({"password": {"type": "string"}}),
            json!({"apiKey": {"type": "string"}}),
            json!({"pin": {"type": "integer"}}),
            json!({"x": {"type": "string", "title": "Your GitHub Token"}}),
            json!({"x": {"type": "string", "description": "first line\nthe pass-phrase"}}),
        ] {
            assert!(form(field.clone(), &[]).is_err_and(|why| why.contains("a secret")), "{field}");
        }
        for field in [
            json!({"branch": {"type": "string"}}),
            json!({"max_tokens": {"type": "integer"}}),
            json!({"save_password": {"type": "boolean"}}),
            json!({"token": {"type": "string", "enum": ["a", "b"]}}),
        ] {
            assert!(form(field.clone(), &[]).is_ok(), "{field}");
        }
        let asks = |properties: Value| {
            let schema = json!({"type": "object", "properties": properties});
            Form::new("Enter your one-time password", &schema, None).map(|_| ())
        };
        let why = asks(json!({"x": {"type": "string"}})).unwrap_err();
        assert_eq!(why, "its message asks for a secret (password), which a form may not");
        assert_eq!(asks(json!({"x": {"type": "boolean"}})), Ok(()));
    }

    #[test]
    fn m_h2_every_text_of_a_form_is_bounded() {
        let text = |length: usize| "x".repeat(length);
        let long = text(MAX_DESCRIPTION + 1);
        let many: Vec<_> = (0..=MAX_OPTIONS).map(|n| n.to_string()).collect();
        for (schema, why) in [
            (json!({text(MAX_NAME + 1): {"type": "string"}}), "the name of a field has 129 bytes"),
            (json!({"a": {"type": "string", "title": text(MAX_NAME + 1)}}), "the title of the"),
            (json!({"a": {"type": "string", "description": long}}), "the description of the"),
            (json!({"a": {"type": "string", "default": long}}), "the default of the field `a`"),
            (json!({"a": {"type": "string", "enum": [text(MAX_OPTION + 1)]}}), "the option of"),
            (json!({"a": {"type": "string", "enum": ["x\u{202e}"]}}), "that can't be shown"),
            (json!({"a": {"type": "string", "enum": many}}), "are more than 256"),
        ] {
            let problem = form(schema, &[]).map(|_| ()).unwrap_err();
            assert!(problem.contains(why), "{problem}");
        }
        let fields = |count: usize| -> Value {
            let fields = (0..count).map(|n| (format!("f{n}"), json!({"type": "string"})));
            Value::Object(fields.collect())
        };
        assert!(form(fields(MAX_FIELDS), &[]).is_ok());
        let problem = form(fields(MAX_FIELDS + 1), &[]).map(|_| ()).unwrap_err();
        assert!(problem.contains("16 fields"), "{problem}");
        let options = json!({"type": "string", "enum": many[..MAX_OPTIONS]});
        let form = form(json!({"a": options}), &[]).unwrap();
        assert_eq!(form.questions("s", None)[0].options.len(), SHOWN_OPTIONS);
        assert!(form.content(&[reply("a", Some("255"))]).is_ok(), "an option that is not shown");
    }
}
