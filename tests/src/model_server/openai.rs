//! OpenAI's chat-completions protocol: its chunks, and the checks of a strict server.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Request;
use super::wire::{Part, halves, legal_name, sse};

/// Encodes a part of an answer as HTTP chunks.
pub(super) fn part(part: &Part) -> Vec<Vec<u8>> {
    let event = |value: Value| sse(&value.to_string());
    match part {
        Part::Say(text) => vec![event(delta(&json!({"content": text})))],
        Part::Think(text) => vec![event(delta(&json!({"reasoning_content": text})))],
        Part::Sign(_) => vec![],
        Part::Call { index, name, arguments } => call_fragments(*index, name, &halves(arguments))
            .iter()
            .map(|fragment| event(delta(fragment)))
            .collect(),
        Part::Begin { index, name } => call_fragments(*index, name, &[])
            .iter()
            .map(|fragment| event(delta(fragment)))
            .collect(),
        Part::Write { index, piece } => {
            let fragment =
                json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]});
            vec![event(delta(&fragment))]
        }
        Part::Finish(reason) => vec![event(finish(reason)), event(usage(11, 7)), sse("[DONE]")],
    }
}

/// A chunk of an answer with this delta.
#[must_use]
pub fn delta(delta: &Value) -> Value {
    chunk(&json!([{"index": 0, "delta": delta, "finish_reason": null}]))
}

/// The chunk with the finish reason.
#[must_use]
pub fn finish(reason: &str) -> Value {
    chunk(&json!([{"index": 0, "delta": {}, "finish_reason": reason}]))
}

/// The last chunk, which has the usage and no choices.
#[must_use]
pub fn usage(input: u64, output: u64) -> Value {
    let mut chunk = chunk(&json!([]));
    chunk["usage"] = json!({
        "prompt_tokens": input,
        "completion_tokens": output,
        "total_tokens": input + output,
        "prompt_tokens_details": {"cached_tokens": 3},
    });
    chunk
}

/// A chunk of an answer with these choices.
#[must_use]
pub fn chunk(choices: &Value) -> Value {
    json!({
        "id": "chatcmpl-0001", "object": "chat.completion.chunk", "created": 1_790_000_000, "model": "scripted",
        "system_fingerprint": "fp_0001", "choices": choices, "usage": null,
    })
}

/// The deltas of one call: its id and name first, then each piece of its arguments.
#[must_use]
pub fn call_fragments(index: usize, name: &str, arguments: &[&str]) -> Vec<Value> {
    let first = json!({"tool_calls": [{
        "index": index, "id": format!("provider_{index}"), "type": "function",
        "function": {"name": name, "arguments": ""},
    }]});
    let more = arguments
        .iter()
        .map(|piece| json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
    [first].into_iter().chain(more).collect()
}

/// The text of a message's content, which is a string or a list of text parts.
#[must_use]
pub fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// The rules of the strictest server that this request breaks.
#[must_use]
pub fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    let body = &request.body;
    if !request.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
        found.push("the content type is not application/json".to_owned());
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model".to_owned());
    }
    if body["stream"] != true {
        found.push("`stream` is not true".to_owned());
    }
    match body["messages"].as_array() {
        Some(messages) => check_messages(messages, &mut found),
        None => found.push("there are no messages".to_owned()),
    }
    check_tools(&body["tools"], &mut found);
    found
}

fn check_messages(messages: &[Value], found: &mut Vec<String>) {
    // Calls without a result. Only their results may follow.
    let mut open: Vec<String> = Vec::new();
    let mut ids = HashSet::new();
    let mut talked = false;
    for (n, message) in messages.iter().enumerate() {
        let mut wrong = |what: String| found.push(format!("messages[{n}]: {what}"));
        let role = message["role"].as_str().unwrap_or_default();
        if role != "tool" && !open.is_empty() {
            wrong(format!("calls {open:?} have no result"));
            open.clear();
        }
        let has_content = !text(&message["content"]).is_empty();
        match role {
            "system" if talked => wrong("a system message after the conversation began".into()),
            "system" | "user" if !has_content => wrong("no content".into()),
            "system" => {}
            "user" => talked = true,
            "assistant" => {
                if !talked {
                    wrong("an answer before the first prompt".into());
                }
                let calls = message["tool_calls"].as_array().map_or(&[][..], Vec::as_slice);
                if !has_content && calls.is_empty() {
                    wrong("neither content nor calls".into());
                }
                for call in calls {
                    let id = call["id"].as_str().unwrap_or_default();
                    if id.is_empty() || !ids.insert(id.to_owned()) {
                        wrong(format!("the call id `{id}` is empty or not unique"));
                    }
                    if call["type"] != "function" || !legal_name(&call["function"]["name"], 64) {
                        wrong(format!("call `{id}` is not a call of a valid function"));
                    }
                    let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
                    if !serde_json::from_str::<Value>(arguments)
                        .is_ok_and(|value| value.is_object())
                    {
                        wrong(format!("the arguments of call `{id}` are not a JSON object"));
                    }
                    open.push(id.to_owned());
                }
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match open.iter().position(|call| call == id) {
                    Some(at) => drop(open.remove(at)),
                    None => wrong(format!("a result for `{id}`, which is not an open call")),
                }
                if !message["content"].is_string() && !message["content"].is_array() {
                    wrong("a result without content".into());
                }
            }
            role => wrong(format!("unknown role `{role}`")),
        }
    }
    if !open.is_empty() {
        found.push(format!("calls {open:?} have no result"));
    }
    if messages.last().is_none_or(|last| last["role"] != "user" && last["role"] != "tool") {
        found.push("the last message is neither the user's nor a result".to_owned());
    }
}

fn check_tools(tools: &Value, found: &mut Vec<String>) {
    let mut names = HashSet::new();
    match tools {
        Value::Null => {}
        Value::Array(tools) if tools.is_empty() => found.push("an empty list of tools".to_owned()),
        Value::Array(tools) => {
            for (n, tool) in tools.iter().enumerate() {
                let function = &tool["function"];
                let name = &function["name"];
                if tool["type"] != "function"
                    || !legal_name(name, 64)
                    || !names.insert(name.to_string())
                {
                    found.push(format!(
                        "tools[{n}]: not a function, or the name {name} is invalid or not unique"
                    ));
                }
                if function["parameters"]["type"] != "object" {
                    found.push(format!(
                        "tools[{n}]: the parameters are not the schema of an object"
                    ));
                }
            }
        }
        _ => found.push("tools is not a list".to_owned()),
    }
}
