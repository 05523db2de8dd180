//! Ollama's chat protocol: its records, and the checks of a strict server.

use serde_json::{Value, json};

use super::Request;
use super::wire::{Part, legal_name, list, value};

/// Encodes a part of an answer as HTTP chunks, one for each record.
pub(super) fn part(part: &Part) -> Vec<Vec<u8>> {
    let record = match part {
        Part::Say(text) => record(&json!({"role": "assistant", "content": text})),
        Part::Think(text) => record(&json!({"role": "assistant", "content": "", "thinking": text})),
        Part::Sign(_) | Part::Begin { .. } | Part::Write { .. } => return vec![],
        Part::Call { index, name, arguments } => {
            let function = json!({"index": index, "name": name, "arguments": value(arguments)});
            record(
                &json!({"role": "assistant", "content": "", "tool_calls": [{"function": function}]}),
            )
        }
        Part::Finish(reason) => finish(if reason == "tool_calls" { "stop" } else { reason }),
    };
    vec![format!("{record}\n").into_bytes()]
}

/// A record of an answer with this message.
#[must_use]
pub fn record(message: &Value) -> Value {
    json!({"model": "scripted", "created_at": "2026-11-20T00:00:00Z", "message": message, "done": false})
}

/// The last record, with the finish reason and the usage.
#[must_use]
pub fn finish(reason: &str) -> Value {
    json!({
        "model": "scripted", "created_at": "2026-11-20T00:00:00Z", "message": {"role": "assistant", "content": ""},
        "done": true, "done_reason": reason, "total_duration": 1_000_000, "load_duration": 1000,
        "prompt_eval_count": 11, "prompt_eval_cached_count": 3, "prompt_eval_duration": 1000,
        "eval_count": 7, "eval_duration": 1000,
    })
}

/// The rules of the strictest server that this request breaks.
#[must_use]
pub fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    let body = &request.body;
    if body["model"].as_str().is_none_or(str::is_empty) {
        found.push("no model".to_owned());
    }
    if body["stream"] != true {
        found.push("`stream` is not true".to_owned());
    }
    let messages = list(&body["messages"]);
    let mut open: Vec<String> = Vec::new();
    for (n, message) in messages.iter().enumerate() {
        let mut wrong = |what: String| found.push(format!("messages[{n}]: {what}"));
        let role = message["role"].as_str().unwrap_or_default();
        let has_content = message["content"].as_str().is_some_and(|text| !text.is_empty());
        if role != "tool" && !open.is_empty() {
            wrong(format!("calls of {open:?} have no result"));
            open.clear();
        }
        match role {
            "system" if n > 0 => wrong("a system message after the conversation began".into()),
            "system" | "user" if !has_content => wrong("no content".into()),
            "system" | "user" => {}
            "assistant" => {
                let calls = list(&message["tool_calls"]);
                if !has_content && calls.is_empty() {
                    wrong("neither content nor calls".into());
                }
                for call in calls {
                    let function = &call["function"];
                    if !legal_name(&function["name"], 64) || !function["arguments"].is_object() {
                        wrong(format!("an invalid call: {call}"));
                    }
                    open.push(function["name"].as_str().unwrap_or_default().to_owned());
                }
            }
            "tool" => {
                let name = message["tool_name"].as_str().unwrap_or_default();
                if !message["content"].is_string() {
                    wrong("a result without content".into());
                }
                match open.iter().position(|call| call == name) {
                    Some(at) => drop(open.remove(at)),
                    None => wrong(format!("a result of `{name}`, which was not called")),
                }
            }
            role => wrong(format!("unknown role `{role}`")),
        }
    }
    if messages.last().is_none_or(|last| last["role"] != "user" && last["role"] != "tool") {
        found.push("the last message is neither the user's nor a result".to_owned());
    }
    for (n, tool) in list(&body["tools"]).iter().enumerate() {
        let function = &tool["function"];
        if tool["type"] != "function"
            || !legal_name(&function["name"], 64)
            || !function["parameters"].is_object()
        {
            found.push(format!("tools[{n}]: not a valid function"));
        }
    }
    found
}
