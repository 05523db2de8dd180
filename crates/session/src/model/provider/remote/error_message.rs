//! The message in the body of a provider's error, which is JSON, a page, or plain text.

use serde_json::Value;

use super::error::mask_secrets;

/// The most bytes of a provider's message that are kept.
const MAX_MESSAGE_BYTES: usize = 500;

/// The body of an error: JSON, or other text of a server or of a proxy before it.
pub(super) struct ProviderErrorBody<'a> {
    body: &'a str,
    json: Option<Value>,
}

impl<'a> ProviderErrorBody<'a> {
    pub(super) fn parse(body: &'a str) -> Self {
        Self { body, json: serde_json::from_str(body).ok().map(unwrap_list) }
    }

    /// The object with the codes of the fault.
    fn error(&self) -> Option<&Value> {
        let json = self.json.as_ref()?;
        [&json["error"], &json["errors"][0]]
            .into_iter()
            .find(|error| error.is_object())
            .or(Some(json))
    }

    /// The machine-readable codes of the fault, in lower case, with those of Gemini's details last.
    pub(super) fn codes(&self) -> Vec<String> {
        let Some(error) = self.error() else { return Vec::new() };
        let fields = ["code", "status", "type"].into_iter().map(|field| &error[field]);
        let details = items(&error["details"]).map(|detail| &detail["reason"]);
        let texts = fields.chain(details).filter_map(Value::as_str).filter(|code| !code.is_empty());
        texts.map(str::to_ascii_lowercase).collect()
    }

    /// The paths of the request's refused fields, in the forms of OpenAI, Gemini and FastAPI.
    pub(super) fn fields(&self) -> Vec<&str> {
        let (Some(json), Some(error)) = (&self.json, self.error()) else { return Vec::new() };
        let violations =
            items(&error["details"]).flat_map(|detail| items(&detail["fieldViolations"]));
        let lists = [&json["detail"], &json["message"]["detail"], &error["detail"]];
        let locations = lists.into_iter().flat_map(items).map(|detail| &detail["loc"]);
        let path_fields = locations.map(|path| if path[0] == "body" { &path[1] } else { &path[0] });
        let fields = violations
            .map(|violation| &violation["field"])
            .chain(path_fields)
            .chain([&error["param"]]);
        fields.filter_map(Value::as_str).filter(|field| !field.is_empty()).collect()
    }

    /// The message in one line and without the secrets: the provider's, the title of a page, or
    /// the beginning of the body. Empty for JSON without content.
    pub(super) fn message(&self, secrets: &[&str]) -> String {
        let message = match &self.json {
            Some(json) => match find_message(json) {
                Some(message) => {
                    // A router quotes its provider.
                    let raw = json["error"]["metadata"]["raw"]
                        .as_str()
                        .map(|raw| ProviderErrorBody::parse(raw).message(secrets));
                    raw.map_or_else(|| message.to_owned(), |raw| format!("{message}: {raw}"))
                }
                None if has_no_content(json) => String::new(),
                None => self.body.to_owned(),
            },
            None if self.body.trim_start().starts_with('<') => page_text(self.body),
            None => self.body.to_owned(),
        };
        // The secrets are hidden before the cut, because a part of one would not be found.
        let message = mask_secrets(message, secrets);
        let mut line = message.split_whitespace().collect::<Vec<_>>().join(" ");
        line.truncate(line.floor_char_boundary(MAX_MESSAGE_BYTES));
        line
    }
}

/// The first value of a list, or the value itself. Gemini puts its error into a list if a stream
/// was requested.
pub(super) fn unwrap_list(json: Value) -> Value {
    match json {
        Value::Array(mut errors) if !errors.is_empty() => errors.swap_remove(0),
        json => json,
    }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The keys of a message.
const MESSAGE_KEYS: [&str; 5] = ["message", "detail", "msg", "error_msg", "error_message"];

/// The provider's message in a body.
fn find_message(body: &Value) -> Option<&str> {
    let candidates = [
        &body["error"],
        body,
        &body["errors"][0],
        &body["detail"][0],
        &body["message"]["detail"][0],
        &body["error"]["detail"][0],
    ];
    candidates.into_iter().find_map(message_text)
}

/// The text of a value, or of its message.
fn message_text(value: &Value) -> Option<&str> {
    let mut texts = std::iter::once(value)
        .chain(MESSAGE_KEYS.iter().map(|key| &value[*key]))
        .filter_map(Value::as_str);
    texts.find(|text| !text.trim().is_empty())
}

/// Whether a value has no content besides keys.
fn has_no_content(json: &Value) -> bool {
    match json {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(values) => values.iter().all(has_no_content),
        Value::Object(fields) => fields.values().all(has_no_content),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The text of an HTML page: its title, or all its text.
fn page_text(html: &str) -> String {
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

/// The parts of a page that contain no readable text, each with its end.
const CODE: [(&str, &str); 3] = [("<!--", "-->"), ("<script", "</script"), ("<style", "</style")];

/// A page without its comments, scripts and styles.
fn without_code(html: &str) -> String {
    // Each character keeps its length, so positions in `lower` are also positions in `html`.
    let lower = html.to_ascii_lowercase();
    let mut kept = String::new();
    let mut at = 0;
    // The next position of each beginning. Each search continues after the last position found, so
    // no text is searched twice.
    let mut next = CODE.map(|(begin, _)| lower.find(begin));
    loop {
        for (found, (begin, _)) in next.iter_mut().zip(CODE) {
            if found.is_some_and(|found| found < at) {
                *found = lower[at..].find(begin).map(|found| at + found);
            }
        }
        let first = next.iter().zip(CODE).filter_map(|(found, code)| Some(((*found)?, code))).min();
        let Some((found, (begin, end))) = first else { break };
        kept.push_str(&html[at..found]);
        let inside = found + begin.len();
        match lower[inside..].find(end) {
            Some(length) => at = inside + length + end.len(),
            None => return kept,
        }
        // Skip the rest of the end tag.
        if end.starts_with('<') {
            match lower[at..].find('>') {
                Some(rest) => at += rest + 1,
                None => return kept,
            }
        }
    }
    kept.push_str(&html[at..]);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No part of a page is searched twice for the same words.
    #[test]
    fn a_page_of_nothing_but_code_is_read_in_linear_time() {
        for (code, begin, text) in [
            ("<!---->", "<p>", "a"),
            ("<script></script>", "", "a"),
            ("<style></style\n>", "", "a"),
            ("<!-- x --><script></script>", "", "a"),
            // This end tag never ends.
            ("<script</script", "", ""),
        ] {
            let page = format!("{begin}{}a", code.repeat(4 * 1024 * 1024 / code.len()));
            assert!(page_text(&page).trim() == text, "{code}");
        }
    }
}
