//! OpenAI's Responses protocol, which some hosted agents speak: the events that Codex needs, and
//! the checks of a strict server.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::wire::{legal_name, list, sse};
use super::{Reply, Request, openai};

/// The path of the API.
pub(super) const PATH: &str = "/v1/responses";

/// An answer with this text, streamed in pieces.
#[must_use]
pub fn text(pieces: &[&str]) -> Reply {
    let item = |content: Value| {
        let id = "msg_0001";
        json!({"type": "message", "id": id, "role": "assistant", "content": content})
    };
    let mut events = vec![json!({
        "type": "response.output_item.added", "output_index": 0, "item": item(json!([])),
    })];
    events.extend(pieces.iter().map(|piece| {
        json!({
            "type": "response.output_text.delta", "item_id": "msg_0001", "output_index": 0,
            "content_index": 0, "delta": piece,
        })
    }));
    let part = json!({"type": "output_text", "text": pieces.concat()});
    events.push(json!({
        "type": "response.output_item.done", "output_index": 0, "item": item(json!([part])),
    }));
    answer(events)
}

/// An answer with one call, the `index`th of the conversation. Its id is `provider_INDEX`.
#[must_use]
pub fn call(index: usize, name: &str, arguments: &Value) -> Reply {
    let item = json!({
        "type": "function_call", "id": format!("fc_{index}"),
        "call_id": format!("provider_{index}"), "name": name, "arguments": arguments.to_string(),
    });
    answer(vec![json!({"type": "response.output_item.done", "output_index": 0, "item": item})])
}

/// An answer with these events, and a usage of 11 input tokens, 3 of them cached, and 7 output
/// tokens.
fn answer(events: Vec<Value>) -> Reply {
    let usage = json!({
        "input_tokens": 11, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 18,
    });
    let first = json!({"type": "response.created", "response": {"id": "resp_0001"}});
    let last = json!({
        "type": "response.completed", "response": {"id": "resp_0001", "usage": usage},
    });
    let events = [first].into_iter().chain(events).chain([last]);
    events.fold(Reply::stream(), |reply, event| reply.bytes(frame(&event))).end()
}

fn frame(event: &Value) -> Vec<u8> {
    let kind = event["type"].as_str().unwrap_or_default();
    [format!("event: {kind}\n").into_bytes(), sse(&event.to_string())].concat()
}

/// The texts of the user's messages, oldest first.
#[must_use]
pub fn prompts(request: &Request) -> Vec<String> {
    let items = list(&request.body["input"]).iter();
    let prompts = items.filter(|item| item["type"] == "message" && item["role"] == "user");
    prompts.map(|message| openai::text(&message["content"])).collect()
}

/// The outputs of calls, oldest first.
#[must_use]
pub fn results(request: &Request) -> Vec<String> {
    let items = list(&request.body["input"]).iter();
    let results = items.filter(|item| item["type"] == "function_call_output");
    results.map(|result| openai::text(&result["output"])).collect()
}

/// The output of a call that is the last item.
#[must_use]
pub fn last_result(request: &Request) -> Option<String> {
    let last = list(&request.body["input"]).last()?;
    (last["type"] == "function_call_output").then(|| openai::text(&last["output"]))
}

/// The rules of a strict server that this request breaks.
pub(super) fn violations(request: &Request) -> Vec<String> {
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
    let items = list(&body["input"]);
    if items.is_empty() {
        found.push("there is no input".to_owned());
    }
    let (mut ids, mut open) = (HashSet::new(), Vec::new());
    for (n, item) in items.iter().enumerate() {
        let mut wrong = |what: String| found.push(format!("input[{n}]: {what}"));
        let id = item["call_id"].as_str().unwrap_or_default();
        match item["type"].as_str().unwrap_or_default() {
            "message" if openai::text(&item["content"]).is_empty() => wrong("no content".into()),
            "message" | "additional_tools" => {}
            "function_call" => {
                if id.is_empty() || !ids.insert(id) {
                    wrong(format!("the call id `{id}` is empty or not unique"));
                }
                if !legal_name(&item["name"], 64) {
                    wrong(format!("call `{id}` is not a call of a valid function"));
                }
                open.push(id);
            }
            "function_call_output" => match open.iter().position(|call| *call == id) {
                Some(at) => {
                    open.remove(at);
                }
                None => wrong(format!("a result for `{id}`, which is not an open call")),
            },
            kind => wrong(format!("an unknown item `{kind}`")),
        }
    }
    if !open.is_empty() {
        found.push(format!("calls {open:?} have no result"));
    }
    found
}
