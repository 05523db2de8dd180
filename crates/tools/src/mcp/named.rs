//! The content of servers that a prompt names: a resource as `@SERVER:URI`, and a prompt of a server
//! as `/SERVER:PROMPT ARGUMENTS`.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::ErrorData;
use rmcp::model::{
    GetPromptRequestParams, GetPromptResponse, JsonObject, PaginatedRequestParams, Prompt,
    PromptArgument, PromptMessage, ReadResourceRequestParams, ReadResourceResponse, Role,
};
use rmcp::service::ServiceError;

use super::server::{Connection, Server};
use super::{content, http_error};
use crate::shown::without_values;
use crate::source::NamedContent;

/// The most resources that one prompt can name. Further ones are not read.
const MAX_RESOURCES: usize = 16;

/// The most bytes of one resource or prompt. The rest is cut off.
const MAX_TEXT: usize = 256 * 1024;

/// The most pages of a list of prompts.
const MAX_PAGES: usize = 64;

/// The most names that an error lists, and the most bytes of each.
const MAX_NAMES: usize = 16;
const MAX_NAME: usize = 64;

/// The most bytes of a server's own words in an error.
const MAX_REASON: usize = 500;

/// A server that is ready.
pub(super) struct Ready<'a> {
    pub(super) server: &'a Arc<Server>,
    pub(super) connection: &'a Arc<Connection>,
}

/// Reads the content that a prompt names. A name with an unknown server is a word as any other.
///
/// # Errors
/// The prompt is one of a server, which can't be read.
pub(super) async fn read<'a>(
    prompt: &str,
    ready: impl Fn(&str) -> Option<Ready<'a>>,
) -> Result<NamedContent, String> {
    let mut content = NamedContent::default();
    if let Some((server, name, arguments)) = server_prompt(prompt)
        && let Some(ready) = ready(server).filter(|ready| ready.has_prompts())
    {
        let text = ready.prompt(name, arguments).await;
        let text = text.map_err(|why| format!("MCP server `{server}`: {why}"))?;
        let heading = format!("Prompt `{name}` of the MCP server `{server}`:");
        content.parts.push((format!("/{server}:{name}"), format!("{heading}\n\n{text}")));
    }
    let mut seen = BTreeSet::new();
    for (server, uri) in resources(prompt) {
        let Some(ready) = ready(server).filter(|ready| ready.has_resources()) else { continue };
        if !seen.insert((server, uri)) {
            continue;
        }
        if seen.len() > MAX_RESOURCES {
            content
                .notices
                .push(format!("further resources are not read: a prompt can name {MAX_RESOURCES}"));
            break;
        }
        match ready.resource(uri).await {
            Ok(text) => {
                let heading = format!("Resource `{uri}` of the MCP server `{server}`:");
                content.parts.push((format!("@{server}:{uri}"), format!("{heading}\n\n{text}")));
            }
            Err(why) => content.notices.push(format!("MCP server `{server}`: {why}")),
        }
    }
    Ok(content)
}

/// The server, the name and the arguments of a prompt of a server.
fn server_prompt(prompt: &str) -> Option<(&str, &str, &str)> {
    let rest = prompt.strip_prefix('/')?;
    let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
    let (server, name) = rest[..end].split_once(':')?;
    (!name.is_empty()).then_some((server, name, &rest[end..]))
}

/// The servers and addresses of the resources that a prompt names. Punctuation at the end of a word
/// is not part of the address.
fn resources(prompt: &str) -> impl Iterator<Item = (&str, &str)> {
    prompt.split_whitespace().filter_map(|word| {
        let word = word.trim_start_matches(['(', '[', '"', '\'', '`']).strip_prefix('@')?;
        let (server, uri) = word.split_once(':')?;
        let uri = uri.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '`']);
        (!uri.is_empty()).then_some((server, uri))
    })
}

impl Ready<'_> {
    fn has_prompts(&self) -> bool {
        let info = self.connection.peer.peer_info();
        info.is_some_and(|info| info.capabilities.prompts.is_some())
    }

    fn has_resources(&self) -> bool {
        let info = self.connection.peer.peer_info();
        info.is_some_and(|info| info.capabilities.resources.is_some())
    }

    /// Waits for the answer to a request, at most as long as a call may take without progress.
    async fn answer<T>(
        &self,
        answer: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, String> {
        let limit = self.server.timeout;
        let reason = |text: &str| {
            let text = without_values(text, &self.server.values);
            content::cut(&text, MAX_REASON).to_owned()
        };
        match tokio::time::timeout(limit, answer).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(ServiceError::McpError(ErrorData { message, .. }))) => Err(reason(&message)),
            Ok(Err(ServiceError::TransportSend(error))) => Err(http_error::words(&*error.error)),
            Ok(Err(error)) => Err(reason(&error.to_string())),
            Err(_) => Err(format!("no answer in {} s", limit.as_secs())),
        }
    }

    /// The text of a resource.
    async fn resource(&self, uri: &str) -> Result<String, String> {
        let failed = |why: &str| format!("the resource `{uri}` can't be read: {why}");
        let params = ReadResourceRequestParams::new(uri);
        let answer = self.answer(self.connection.peer.read_resource_once(params)).await;
        match answer.map_err(|why| failed(&why))? {
            ReadResourceResponse::Complete(result) => {
                let parts = result.contents.iter().map(content::resource);
                Ok(bounded(parts.collect::<Vec<_>>().join("\n")))
            }
            ReadResourceResponse::InputRequired(_) => Err(failed("it requires input")),
            _ => Err(failed("its answer is of an unknown kind")),
        }
    }

    /// The text of a prompt of the server.
    async fn prompt(&self, name: &str, arguments: &str) -> Result<String, String> {
        let failed = |why: &str| format!("the prompt `{name}` can't be used: {why}");
        let prompt = self.find_prompt(name).await?;
        let arguments = with_names(&prompt, arguments).map_err(|why| failed(&why))?;
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let answer = self.answer(self.connection.peer.get_prompt_once(params)).await;
        match answer.map_err(|why| failed(&why))? {
            GetPromptResponse::Complete(result) => {
                let messages = result.messages.iter().map(message);
                Ok(bounded(messages.collect::<Vec<_>>().join("\n\n")))
            }
            GetPromptResponse::InputRequired(_) => Err(failed("it requires input")),
            _ => Err(failed("its answer is of an unknown kind")),
        }
    }

    async fn find_prompt(&self, name: &str) -> Result<Prompt, String> {
        let mut names = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let page = self.answer(self.connection.peer.list_prompts(Some(page))).await;
            let page = page.map_err(|why| format!("its prompts can't be listed: {why}"))?;
            for prompt in page.prompts {
                if prompt.name == name {
                    return Ok(prompt);
                }
                if names.len() < MAX_NAMES {
                    names.push(content::cut(&prompt.name, MAX_NAME).to_owned());
                }
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        match names.is_empty() {
            true => Err(format!("it has no prompt `{name}`, and no other")),
            false => Err(format!("it has no prompt `{name}` (hint: it has {})", names.join(", "))),
        }
    }
}

/// The arguments of a prompt by their names. Each word is `NAME=VALUE`, or the value of the next
/// argument in the order of the server.
fn with_names(prompt: &Prompt, arguments: &str) -> Result<JsonObject, String> {
    let words = shlex::split(arguments).ok_or("a quote in its arguments is not closed")?;
    let declared = prompt.arguments.as_deref().unwrap_or_default();
    let mut values = JsonObject::new();
    for word in words {
        let is_declared = |name: &str| declared.iter().any(|argument| argument.name == name);
        let (name, value) = match word.split_once('=') {
            Some((name, value)) if is_declared(name) => (name.to_owned(), value.to_owned()),
            _ => {
                let mut missing =
                    declared.iter().filter(|argument| !values.contains_key(&argument.name));
                let next = missing.next().ok_or_else(|| usage(prompt, "there are too many"))?;
                (next.name.clone(), word)
            }
        };
        values.insert(name, value.into());
    }
    let mut required = declared.iter().filter(|argument| argument.required == Some(true));
    match required.find(|argument| !values.contains_key(&argument.name)) {
        Some(missing) => {
            let missing = content::cut(&missing.name, MAX_NAME);
            Err(usage(prompt, &format!("`{missing}` is missing")))
        }
        None => Ok(values),
    }
}

fn usage(prompt: &Prompt, why: &str) -> String {
    let declared = prompt.arguments.as_deref().unwrap_or_default();
    let name = |argument: &PromptArgument| content::cut(&argument.name, MAX_NAME).to_owned();
    let names: Vec<_> = declared.iter().take(MAX_NAMES).map(name).collect();
    match names.is_empty() {
        true => format!("{why} arguments; it takes none"),
        false => format!("{why}; its arguments are {}", names.join(", ")),
    }
}

fn message(message: &PromptMessage) -> String {
    let text = content::block(&message.content);
    match message.role {
        Role::User => text,
        Role::Assistant => format!("[assistant] {text}"),
    }
}

fn bounded(text: String) -> String {
    let kept = content::cut(&text, MAX_TEXT);
    match text.len() - kept.len() {
        0 => text,
        rest => format!("{kept}\n[the remaining {rest} bytes are cut off]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h2_resources_and_prompts_are_named_by_words() {
        let named = |prompt| resources(prompt).collect::<Vec<_>>();
        assert_eq!(
            named("Compare @a:file:///x with (@b:y?z=1), \"@c:d\"."),
            [("a", "file:///x"), ("b", "y?z=1"), ("c", "d")]
        );
        assert_eq!(named("mail me@a:b, @a: or @a"), []);
        assert_eq!(server_prompt("/a:b c d"), Some(("a", "b", " c d")));
        assert_eq!(server_prompt("/a:b\nc"), Some(("a", "b", "\nc")));
        for text in ["a /a:b", "/a: b", "/ab", "/"] {
            assert_eq!(server_prompt(text), None, "{text}");
        }
    }

    #[test]
    fn m_h2_arguments_of_a_prompt_have_names_or_an_order() {
        let argument = |name: &str, required| {
            let mut argument = PromptArgument::new(name);
            argument.required = Some(required);
            argument
        };
        let arguments = vec![argument("one", true), argument("two", false)];
        let mut prompt = Prompt::new("p", None::<String>, Some(arguments));
        let values = |prompt: &Prompt, text: &str| {
            with_names(prompt, text).map(|values| serde_json::Value::from(values).to_string())
        };
        assert_eq!(values(&prompt, " 'a b' c=d"), Ok(r#"{"one":"a b","two":"c=d"}"#.to_owned()));
        assert_eq!(values(&prompt, "two=x y"), Ok(r#"{"two":"x","one":"y"}"#.to_owned()));
        for (text, why) in [
            ("", "`one` is missing; its arguments are one, two"),
            ("a b c", "there are too many; its arguments are one, two"),
            ("'a", "a quote in its arguments is not closed"),
        ] {
            assert_eq!(values(&prompt, text), Err(why.to_owned()));
        }
        prompt.arguments = None;
        assert_eq!(values(&prompt, "x"), Err("there are too many arguments; it takes none".into()));
    }
}
