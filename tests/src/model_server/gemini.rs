//! Gemini's `streamGenerateContent` protocol: its chunks, and the checks of a strict server.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::Request;
use super::wire::{Part, legal_name, list, sse, value};

/// Encodes a part of an answer as HTTP chunks.
pub(super) fn part(part: &Part) -> Vec<Vec<u8>> {
    let content = match part {
        Part::Say(text) => json!({"text": text}),
        Part::Think(text) => json!({"text": text, "thought": true}),
        Part::Sign(signature) => json!({"text": "", "thoughtSignature": signature}),
        Part::Call { index, name, arguments } => {
            json!({"functionCall": {"id": format!("provider_{index}"), "name": name, "args": value(arguments)}})
        }
        Part::Begin { .. } | Part::Write { .. } => return vec![],
        Part::Finish(reason) => {
            let reason = match reason.as_str() {
                "stop" | "tool_calls" => "STOP",
                "length" => "MAX_TOKENS",
                other => other,
            };
            return vec![sse(&finish(reason).to_string())];
        }
    };
    vec![sse(&chunk(&content).to_string())]
}

/// A chunk of an answer with this content part.
#[must_use]
pub fn chunk(part: &Value) -> Value {
    json!({
        "candidates": [{"content": {"parts": [part], "role": "model"}, "index": 0}],
        "modelVersion": "scripted", "responseId": "resp_0001",
    })
}

/// The last chunk, with the finish reason and the usage.
#[must_use]
pub fn finish(reason: &str) -> Value {
    json!({
        "candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason, "index": 0}],
        "usageMetadata": {
            "promptTokenCount": 11, "cachedContentTokenCount": 3, "candidatesTokenCount": 7, "totalTokenCount": 18,
        },
        "modelVersion": "scripted", "responseId": "resp_0001",
    })
}

/// The rules of the strictest server that this request breaks.
#[must_use]
pub fn violations(request: &Request) -> Vec<String> {
    let mut found = Vec::new();
    let body = &request.body;
    if request.header("x-goog-api-key").is_none_or(str::is_empty) {
        found.push("no x-goog-api-key".to_owned());
    }
    if !body["systemInstruction"].is_null() && list(&body["systemInstruction"]["parts"]).is_empty()
    {
        found.push("a system instruction without parts".to_owned());
    }
    check_contents(list(&body["contents"]), &mut found);
    let mut names = HashSet::new();
    let declared = list(&body["tools"]).iter().flat_map(|tool| list(&tool["functionDeclarations"]));
    for (n, tool) in declared.enumerate() {
        if !legal_name(&tool["name"], 64) || !names.insert(tool["name"].to_string()) {
            found.push(format!(
                "functionDeclarations[{n}]: the name {} is invalid or not unique",
                tool["name"]
            ));
        }
        if tool["parametersJsonSchema"]["type"] != "object" {
            found.push(format!(
                "functionDeclarations[{n}]: the parameters are not the schema of an object"
            ));
        }
    }
    found
}

fn check_contents(contents: &[Value], found: &mut Vec<String>) {
    // The names of the previous content's calls. The next content must answer each of them and no
    // other.
    let mut open: Vec<String> = Vec::new();
    let mut before = "";
    for (n, content) in contents.iter().enumerate() {
        let mut wrong = |what: String| found.push(format!("contents[{n}]: {what}"));
        let role = content["role"].as_str().unwrap_or_default();
        let parts = list(&content["parts"]);
        if parts.is_empty() {
            wrong("no parts".into());
        }
        if (n == 0 && role != "user") || (role == "model" && before == "model") {
            wrong(format!("unexpected role `{role}`"));
        }
        let responses = parts.iter().filter(|part| part["functionResponse"].is_object()).count();
        if responses > 0 && (responses < parts.len() || open.is_empty()) {
            wrong("responses mixed with other parts, or without a call".into());
        }
        if responses == 0 && !open.is_empty() {
            wrong(format!("calls {open:?} have no response"));
            open.clear();
        }
        for part in parts {
            if let Some(text) = part["text"].as_str() {
                if text.is_empty() && part["thoughtSignature"].is_null() {
                    wrong("a part without text".into());
                }
            } else if part["functionCall"].is_object() {
                let name = &part["functionCall"]["name"];
                if role != "model"
                    || !legal_name(name, 64)
                    || !part["functionCall"]["args"].is_object()
                {
                    wrong(format!("an invalid call: {part}"));
                }
                open.push(name.as_str().unwrap_or_default().to_owned());
            } else if part["functionResponse"].is_object() {
                let name = part["functionResponse"]["name"].as_str().unwrap_or_default();
                if role != "user" || !part["functionResponse"]["response"].is_object() {
                    wrong(format!("an invalid response: {part}"));
                }
                match open.iter().position(|call| call == name) {
                    Some(at) => drop(open.remove(at)),
                    None => wrong(format!("a response of `{name}`, which was not called")),
                }
            } else if part["inlineData"].is_object() {
                let data = &part["inlineData"];
                if role != "user" || !data["mimeType"].is_string() || !data["data"].is_string() {
                    wrong(format!("an invalid image: {part}"));
                }
            } else {
                wrong(format!("an unknown kind of part: {part}"));
            }
        }
        if role == "user" && !open.is_empty() {
            wrong(format!("calls {open:?} have no response"));
            open.clear();
        }
        before = if role == "model" { "model" } else { "user" };
    }
    if before != "user" {
        found.push("the last content is not the user's".to_owned());
    }
}
