//! Tests of the weight of events, which bounds the queues that count it.

use holdpoint_common::Event;
use serde_json::{Value, json};

const BYTES: usize = 10_000;

/// Returns the weight of an event with this fact.
fn weight(fact: &Value) -> usize {
    let event: Event =
        serde_json::from_value(json!({"seq": 1, "at": 0, "body": fact})).expect("an event");
    event.weight()
}

/// Returns the fact with every `…` replaced.
fn filled(fact: &Value, with: &str) -> Value {
    serde_json::from_str(&fact.to_string().replace('…', with)).expect("still JSON")
}

#[test]
fn every_unbounded_text_of_a_fact_counts() {
    let ask = "0123456789abcdef.7";
    let asked = |request: Value| {
        json!({"type": "askRaised", "ask":
            {"id": ask, "call": 1, "origin": "tool", "since": 0, "request": request, "always": "…"}})
    };
    let usage = json!({"input": 1, "output": 1});
    let facts = [
        json!({"type": "sessionOpened", "settings": {"id": "0123456789", "name": "…",
            "workspace": "/…", "model": "rehearsal/…", "asks": "wait", "policy": "ask", "maxSteps": 1,
            "rules": {"allow": ["read(/…)"], "ask": ["read(/…)"], "deny": ["read(/…)"]}}}),
        json!({"type": "promptAccepted", "prompt": 1, "text": "…", "by": {"name": "me"}}),
        json!({"type": "askAnswered", "ask": ask, "answer": {"type": "deny", "reason": "…"},
            "by": {"type": "client", "name": "me"}}),
        json!({"type": "askAnswered", "ask": ask,
            "answer": {"type": "reply", "answers": [{"id": "…", "answer": "…"}]}, "by": {"type": "client", "name": "me"}}),
        asked(
            json!({"type": "pause", "kind": "confirm", "toolName": "…", "message": "…", "details": "…"}),
        ),
        asked(json!({"type": "question", "toolName": "…", "questions": [
            {"id": "…", "header": "…", "question": "…", "options": [{"label": "…", "description": "…"}]}]})),
        json!({"type": "toolFinished", "call": 1, "status": "ok", "output": {"head": "…", "tail": "…"}, "result": "…",
            "read": [{"path": "…", "size": 1, "modified": 1}], "wrote": [{"path": "…", "size": 1, "modified": 1}]}),
        json!({"type": "turnFinished", "outcome": "failed", "error": "…", "usage": usage}),
        json!({"type": "turnFinished", "outcome": "interrupted", "usage": usage, "receipt": {
            "tools": [{"call": 1, "name": "…", "how": "returned"}],
            "processes": {"terminated": 0, "killed": 0}, "asks": [], "prompts": []}}),
    ];
    for fact in &facts {
        let places = fact.to_string().matches('…').count();
        let grown = weight(&filled(fact, &"x".repeat(BYTES))) - weight(&filled(fact, ""));
        assert!(grown >= places * BYTES, "{grown} of {places} times {BYTES} bytes: {fact}");
    }
}
