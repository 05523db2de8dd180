//! Anthropic's messages protocol: its events, and the checks of a strict server.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Request;
use super::wire::{Part, halves, legal_name, list, sse};

/// The content blocks of one answer: the open one and the number of the next.
#[derive(Default)]
pub(super) struct Blocks {
    begun: bool,
    next: usize,
    open: Option<(usize, &'static str)>,
}

impl Blocks {
    /// Encodes a part of an answer as HTTP chunks, one for each event.
    pub(super) fn part(&mut self, part: &Part) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            events.push(start());
        }
        match part {
            Part::Say(text) => {
                let index = self.open("text", &json!({"type": "text", "text": ""}), &mut events);
                events.push(delta(index, &json!({"type": "text_delta", "text": text})));
            }
            Part::Think(text) => {
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                let index = self.open("thinking", &block, &mut events);
                events.push(delta(index, &json!({"type": "thinking_delta", "thinking": text})));
            }
            Part::Sign(signature) => {
                let block = json!({"type": "thinking", "thinking": "", "signature": ""});
                let index = self.open("thinking", &block, &mut events);
                events.push(delta(
                    index,
                    &json!({"type": "signature_delta", "signature": signature}),
                ));
                self.close(&mut events);
            }
            Part::Call { index, name, arguments } => {
                let index = self.begin(*index, name, &mut events);
                for piece in halves(arguments) {
                    events.push(delta(
                        index,
                        &json!({"type": "input_json_delta", "partial_json": piece}),
                    ));
                }
                self.close(&mut events);
            }
            Part::Begin { index, name } => {
                self.begin(*index, name, &mut events);
            }
            Part::Write { piece, .. } => {
                let index = self.open.map_or(0, |(index, _)| index);
                events.push(delta(
                    index,
                    &json!({"type": "input_json_delta", "partial_json": piece}),
                ));
            }
            Part::Finish(reason) => {
                self.close(&mut events);
                let reason = match reason.as_str() {
                    "stop" => "end_turn",
                    "tool_calls" => "tool_use",
                    "length" => "max_tokens",
                    other => other,
                };
                events.push(json!({
                    "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
                    "usage": {"output_tokens": 7},
                }));
                events.push(json!({"type": "message_stop"}));
            }
        }
        events.iter().map(|value| event(&value.to_string())).collect()
    }

    /// The index of the block of this kind: the open one, or a new one.
    fn open(&mut self, kind: &'static str, block: &Value, events: &mut Vec<Value>) -> usize {
        match self.open {
            Some((index, open)) if open == kind => index,
            _ => {
                self.close(events);
                let index = self.next;
                self.next += 1;
                self.open = Some((index, kind));
                events.push(
                    json!({"type": "content_block_start", "index": index, "content_block": block}),
                );
                index
            }
        }
    }

    /// Starts a block for a call.
    fn begin(&mut self, call: usize, name: &str, events: &mut Vec<Value>) -> usize {
        self.close(events);
        let block = json!({"type": "tool_use", "id": format!("provider_{call}"), "name": name, "input": {}});
        self.open("tool_use", &block, events)
    }

    fn close(&mut self, events: &mut Vec<Value>) {
        if let Some((index, _)) = self.open.take() {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
    }
}

/// The first event of an answer, `message_start`.
#[must_use]
pub fn start() -> Value {
    json!({"type": "message_start", "message": {
        "id": "msg_0001", "type": "message", "role": "assistant", "model": "scripted", "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 8, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 0, "output_tokens": 1},
    }})
}

fn delta(index: usize, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

/// Frames an event, with its type in a line before the data.
pub(super) fn event(data: &str) -> Vec<u8> {
    let kind = serde_json::from_str::<Value>(data).ok();
    match kind.as_ref().and_then(|value| value["type"].as_str()) {
        Some(kind) => [format!("event: {kind}\n").into_bytes(), sse(data)].concat(),
        None => sse(data),
    }
}

/// The rules of the strictest server that this request breaks.
#[must_use]
pub fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    let body = &request.body;
    if request.header("x-api-key").is_none_or(str::is_empty) {
        found.push("no x-api-key".to_owned());
    }
    if request.header("anthropic-version").is_none() {
        found.push("no anthropic-version".to_owned());
    }
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model".to_owned());
    }
    if body["max_tokens"].as_u64().is_none_or(|most| most == 0) {
        found.push("no max_tokens".to_owned());
    }
    if body["stream"] != true {
        found.push("`stream` is not true".to_owned());
    }
    check_messages(list(&body["messages"]), &mut found);
    let mut names = HashSet::new();
    for (n, tool) in list(&body["tools"]).iter().enumerate() {
        if !legal_name(&tool["name"], 128) || !names.insert(tool["name"].to_string()) {
            found.push(format!("tools[{n}]: the name {} is invalid or not unique", tool["name"]));
        }
        if tool["input_schema"]["type"] != "object" {
            found.push(format!("tools[{n}]: input_schema is not the schema of an object"));
        }
    }
    let markers = body.to_string().matches(r#""cache_control":"#).count();
    if markers > 4 {
        found.push(format!("{markers} cache markers; the limit is 4"));
    }
    found
}

fn check_messages(messages: &[Value], found: &mut Vec<String>) {
    let mut ids = HashSet::new();
    let mut open: Vec<String> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let mut wrong = |what: String| found.push(format!("messages[{n}]: {what}"));
        let expected = if n % 2 == 0 { "user" } else { "assistant" };
        if message["role"] != expected {
            wrong(format!("the role is {}, expected {expected}", message["role"]));
        }
        let content = list(&message["content"]);
        if content.is_empty() {
            wrong("no content".into());
        }
        let mut results_over = false;
        let thought =
            |block: &Value| block["type"].as_str().is_some_and(|kind| kind.ends_with("thinking"));
        if content.iter().any(thought) && !content.first().is_some_and(thought) {
            wrong("has thoughts but does not begin with one".into());
        }
        for block in content {
            match (expected, block["type"].as_str().unwrap_or_default()) {
                (_, "text") => {
                    results_over = true;
                    if block["text"].as_str().is_none_or(|text| text.trim().is_empty()) {
                        wrong("a text block without text".into());
                    }
                }
                ("assistant", "thinking") => {
                    if block["signature"].as_str().is_none_or(str::is_empty)
                        || !block["thinking"].is_string()
                    {
                        wrong("a thinking block without a signature".into());
                    }
                }
                ("assistant", "redacted_thinking") if block["data"].is_string() => {}
                ("assistant", "tool_use") => {
                    let id = block["id"].as_str().unwrap_or_default();
                    if !legal_name(&block["id"], 64) || !ids.insert(id.to_owned()) {
                        wrong(format!("the call id `{id}` is invalid or not unique"));
                    }
                    if !legal_name(&block["name"], 128) || !block["input"].is_object() {
                        wrong(format!("call `{id}` has an invalid name or input"));
                    }
                    open.push(id.to_owned());
                }
                ("user", "tool_result") => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    if results_over {
                        wrong("a result after other content".into());
                    }
                    match open.iter().position(|call| call == id) {
                        Some(at) => drop(open.remove(at)),
                        None => wrong(format!(
                            "a result for `{id}`, which is not a call of the previous message"
                        )),
                    }
                }
                (role, kind) => wrong(format!("a block `{kind}` with the role {role}")),
            }
        }
        if expected == "user" && !open.is_empty() {
            wrong(format!("calls {open:?} have no result"));
            open.clear();
        }
    }
    if messages.last().is_none_or(|last| last["role"] != "user") {
        found.push("the last message is not the user's".to_owned());
    }
}
