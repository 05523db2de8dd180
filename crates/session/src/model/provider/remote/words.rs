//! A provider's words for a fault, in the form in which its body has them: JSON, a page, or plain text.

use serde_json::Value;

use super::error::hidden;

/// Bytes of a provider's words that are kept.
const MOST_WORDS: usize = 500;

/// The body of a refusal: JSON, or another text of a server or a proxy before it.
pub(super) struct Parsed<'a> {
    body: &'a str,
    json: Option<Value>,
}

impl<'a> Parsed<'a> {
    pub(super) fn of(body: &'a str) -> Self {
        Self { body, json: serde_json::from_str(body).ok().map(first) }
    }

    /// The object that has the codes of the fault.
    fn error(&self) -> Option<&Value> {
        let json = self.json.as_ref()?;
        [&json["error"], &json["errors"][0]].into_iter().find(|error| error.is_object()).or(Some(json))
    }

    /// The machine's codes of the fault, in lower case; those of Gemini's details are last.
    pub(super) fn codes(&self) -> Vec<String> {
        let Some(error) = self.error() else { return Vec::new() };
        let fields = ["code", "status", "type"].into_iter().map(|field| &error[field]);
        let details = items(&error["details"]).map(|detail| &detail["reason"]);
        let texts = fields.chain(details).filter_map(Value::as_str).filter(|code| !code.is_empty());
        texts.map(str::to_ascii_lowercase).collect()
    }

    /// The paths of the request's fields that are refused, in the forms of OpenAI, Gemini and FastAPI.
    pub(super) fn fields(&self) -> Vec<&str> {
        let (Some(json), Some(error)) = (&self.json, self.error()) else { return Vec::new() };
        let violations = items(&error["details"]).flat_map(|detail| items(&detail["fieldViolations"]));
        let lists = [&json["detail"], &json["message"]["detail"], &error["detail"]];
        let places = lists.into_iter().flat_map(items).map(|detail| &detail["loc"]);
        let places = places.map(|place| if place[0] == "body" { &place[1] } else { &place[0] });
        let named = violations.map(|violation| &violation["field"]).chain(places).chain([&error["param"]]);
        named.filter_map(Value::as_str).filter(|field| !field.is_empty()).collect()
    }

    /// The message in one line and without the key: the provider's, the title of a page, or the beginning of the body.
    /// Nothing for JSON that says nothing.
    pub(super) fn words(&self, key: &str) -> String {
        let message = match &self.json {
            Some(json) => match told(json) {
                Some(message) => {
                    // A router quotes its provider.
                    let raw = json["error"]["metadata"]["raw"].as_str().map(|raw| Parsed::of(raw).words(key));
                    raw.map_or_else(|| message.to_owned(), |raw| format!("{message}: {raw}"))
                }
                None if says_nothing(json) => String::new(),
                None => self.body.to_owned(),
            },
            None if self.body.trim_start().starts_with('<') => page(self.body),
            None => self.body.to_owned(),
        };
        // Hidden before it is cut, for half a key is no key that could be found.
        let message = hidden(message, key);
        let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        line.truncate(line.floor_char_boundary(MOST_WORDS));
        line
    }
}

/// The first value of a list, or the value itself: Gemini puts its error into a list where a stream was asked for.
pub(super) fn first(json: Value) -> Value {
    match json {
        Value::Array(mut errors) if !errors.is_empty() => errors.swap_remove(0),
        json => json,
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Keys of a message.
const MESSAGE: [&str; 5] = ["message", "detail", "msg", "error_msg", "error_message"];

/// The provider's message in a body.
fn told(body: &Value) -> Option<&str> {
    let places = [
        &body["error"],
        body,
        &body["errors"][0],
        &body["detail"][0],
        &body["message"]["detail"][0],
        &body["error"]["detail"][0],
    ];
    places.into_iter().find_map(words)
}

/// The text that a value is, or has as its message.
fn words(value: &Value) -> Option<&str> {
    let mut texts = std::iter::once(value).chain(MESSAGE.iter().map(|key| &value[*key])).filter_map(Value::as_str);
    texts.find(|text| !text.trim().is_empty())
}

/// Whether a value holds keys at most.
fn says_nothing(json: &Value) -> bool {
    match json {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(values) => values.iter().all(says_nothing),
        Value::Object(fields) => fields.values().all(says_nothing),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The words of a page in HTML: its title, or all its text.
fn page(html: &str) -> String {
    let html = without_code(html);
    let lower = html.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower[at..].find('>')? + 1;
        let end = begin + lower[begin..].find('<')?;
        Some(html[begin..end].trim()).filter(|title| !title.is_empty())
    });
    title.map(str::to_owned).unwrap_or_else(|| {
        let texts = html.split('<').map(|tag| tag.split_once('>').map_or(tag, |(_, text)| text));
        texts.collect::<Vec<_>>().join(" ")
    })
}

/// Parts of a page that hold no text of it, each with its end.
const CODE: [(&str, &str); 3] = [("<!--", "-->"), ("<script", "</script"), ("<style", "</style")];

/// A page without its comments, scripts and styles.
fn without_code(html: &str) -> String {
    // Of the same length, byte for byte.
    let lower = html.to_ascii_lowercase();
    let (mut kept, mut at) = (String::new(), 0);
    loop {
        let next =
            CODE.iter().filter_map(|(begin, end)| Some((at + lower[at..].find(begin)?, begin.len(), *end))).min();
        let Some((begin, length, end)) = next else { break };
        kept.push_str(&html[at..begin]);
        let inside = begin + length;
        match lower[inside..].find(end) {
            Some(length) => at = inside + length + end.len(),
            None => return kept,
        }
        // The rest of an end tag.
        if end.starts_with('<') {
            at += lower[at..].find('>').map_or(0, |rest| rest + 1);
        }
    }
    kept.push_str(&html[at..]);
    kept
}
