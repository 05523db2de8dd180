//! The table of events and the updates that they give.

use serde_json::{Value, json};

use super::*;

const OWN: u32 = 42;

fn snapshot(more: Value) -> Snapshot {
    let mut snapshot = json!({
        "settings": {
            "id": "k3v9x2m7qa", "name": "demo", "workspace": "/w", "model": "rehearsal",
            "asks": "wait", "policy": "ask", "maxSteps": 0,
        },
        "title": "demo", "seq": 1, "status": "idle", "since": 0, "turn": null, "step": null,
        "asks": [], "hold": { "state": "off" }, "queue": [], "jobs": [], "lastTurn": null,
        "usage": { "input": 1, "output": 1 }, "filesModified": [], "clients": 1, "saved": true,
    });
    let more: serde_json::Map<_, _> = serde_json::from_value(more).unwrap();
    snapshot.as_object_mut().unwrap().extend(more);
    serde_json::from_value(snapshot).unwrap()
}

/// Shows events one after the other.
struct Shown {
    updates: Updates,
    seq: u64,
}

impl Shown {
    fn new(features: Features) -> Self {
        Self { updates: Updates::new(&snapshot(json!({})), features, OWN), seq: 1 }
    }

    /// The updates of an event, as JSON.
    fn event(&mut self, body: Value) -> Vec<Value> {
        self.seq += 1;
        let event = json!({ "seq": self.seq, "at": 0, "turn": 1, "step": 1, "body": body });
        let event: Event = serde_json::from_value(event).unwrap();
        let updates = self.updates.event(&event);
        updates.iter().map(|update| serde_json::to_value(update).unwrap()).collect()
    }

    /// The only update of an event.
    fn update(&mut self, body: Value) -> Value {
        let [update] = <[Value; 1]>::try_from(self.event(body)).unwrap();
        update
    }

    fn call(&mut self, name: &str, input: Value) -> Value {
        let calls = json!([{ "id": 7, "name": name, "input": input }]);
        self.update(json!({ "type": "assistantMessage", "blocks": [], "calls": calls }))
    }
}

fn message(blocks: Value) -> Value {
    json!({ "type": "assistantMessage", "blocks": blocks })
}

fn finished(status: &str, output: &str, result: &str) -> Value {
    json!({
        "type": "toolFinished", "call": 7, "status": status,
        "output": { "head": output }, "result": result,
    })
}

#[test]
fn m_h1_text_and_thoughts_reach_the_editor_once() {
    let mut shown = Shown::new(Features::default());
    let update = shown.update(json!({ "type": "thought", "item": 1, "text": "hm" }));
    assert_eq!(update["sessionUpdate"], "agent_thought_chunk");
    let update = shown.update(json!({ "type": "text", "item": 2, "text": "Hel" }));
    assert_eq!(
        (&update["sessionUpdate"], &update["content"]["text"], &update["messageId"]),
        (&json!("agent_message_chunk"), &json!("Hel"), &json!("2"))
    );
    let blocks = json!([
        { "item": 1, "kind": "thought", "text": "hm" },
        { "item": 2, "kind": "text", "text": "Hello" },
        { "item": 3, "kind": "text", "text": "!" },
    ]);
    let updates = shown.event(message(blocks));
    let texts: Vec<_> = updates.iter().map(|update| &update["content"]["text"]).collect();
    assert_eq!(texts, ["lo", "!"]);
}

#[test]
fn m_h1_a_prompt_of_another_client_is_shown_and_an_own_one_is_not() {
    let accepted = |pid: u32, name: &str| {
        json!({
            "type": "promptAccepted", "prompt": 1, "text": "hi", "by": { "name": name, "pid": pid },
        })
    };
    let started = || json!({ "type": "turnStarted", "turn": 1, "prompt": 1 });
    for (pid, is_past, is_shown) in [(OWN, false, false), (7, false, true), (OWN, true, true)] {
        let mut shown = Shown::new(Features::default());
        shown.updates.set_past(is_past);
        assert!(shown.event(accepted(pid, "acp")).is_empty(), "it is shown when it begins");
        let updates = shown.event(started());
        assert_eq!(updates.len(), usize::from(is_shown), "{updates:?}");
        if is_shown {
            assert_eq!(updates[0]["sessionUpdate"], "user_message_chunk");
            assert_eq!(updates[0]["content"]["text"], "hi");
        }
    }
}

#[test]
fn m_h1_a_call_has_its_kind_place_and_diff() {
    for (name, input, kind, path, diff) in [
        ("read_file", json!({ "path": "a.rs", "offset": 3 }), "read", Some("/w/a.rs"), None),
        ("grep", json!({ "pattern": "x", "path": "/etc" }), "search", Some("/etc"), None),
        ("shell", json!({ "command": "ls" }), "execute", None, None),
        ("web", json!({ "action": "read", "url": "https://example.com" }), "fetch", None, None),
        ("deploy", json!({ "path": "x" }), "other", None, None),
        (
            "edit_file",
            json!({ "path": "a.rs", "old_string": "one", "new_string": "two" }),
            "edit",
            Some("/w/a.rs"),
            Some((json!("one"), json!("two"))),
        ),
        (
            "write_file",
            json!({ "path": "new.rs", "content": "all" }),
            "edit",
            Some("/w/new.rs"),
            Some((Value::Null, json!("all"))),
        ),
    ] {
        let update = Shown::new(Features::default()).call(name, input.clone());
        assert_eq!(update["sessionUpdate"], "tool_call", "{name}");
        // The protocol leaves out the kind `other`, and the status of a call that has not begun.
        assert_eq!(update["toolCallId"], "7");
        assert_eq!(update["kind"].as_str().unwrap_or("other"), kind);
        assert!(matches!(update["status"].as_str(), None | Some("pending")), "{update}");
        assert_eq!(update["rawInput"], input);
        assert_eq!(update["locations"][0]["path"].as_str(), path, "{name}");
        let shown = update["content"][0].as_object();
        let shown = shown.map(|diff| {
            (diff.get("oldText").cloned().unwrap_or_default(), diff["newText"].clone())
        });
        assert_eq!(shown, diff, "{name}");
    }
}

#[test]
fn m_h1_several_edits_are_several_diffs() {
    let edits = json!([
        { "old_string": "1", "new_string": "2" }, { "old_string": "3", "new_string": "4" },
    ]);
    let input = json!({ "path": "a.rs", "edits": edits });
    let update = Shown::new(Features::default()).call("edit_file", input);
    assert_eq!(update["content"].as_array().unwrap().len(), 2);
}

/// The policy has not judged the call, and the file may be anywhere.
#[test]
fn m_h1_the_files_of_a_call_are_not_read_for_the_editor() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.txt");
    std::fs::write(&path, "secret").unwrap();
    let update = Shown::new(Features::default())
        .call("write_file", json!({ "path": path, "content": "new" }));
    assert_eq!(update["content"][0]["newText"], "new");
    assert!(!update.to_string().contains("secret"), "{update}");
}

#[test]
fn m_h1_the_output_of_a_command_is_text_or_fills_a_terminal() {
    let mut shown = Shown::new(Features::default());
    shown.call("shell", json!({ "command": "ls" }));
    let update = shown.update(json!({ "type": "toolStarted", "call": 7 }));
    assert_eq!(update["status"], "in_progress");
    let update = shown.update(json!({ "type": "output", "item": 7, "text": "a\n" }));
    assert_eq!(update["content"][0]["content"]["text"], "```\na\n```");
    let update = shown.update(finished("ok", "a\nb\n", "[exit code 0]"));
    assert_eq!(update["status"], "completed");
    assert_eq!(update["content"][0]["content"]["text"], "```\na\nb\n[exit code 0]\n```");

    let mut shown = Shown::new(Features { terminal_output: true, ..Features::default() });
    let update = shown.call("shell", json!({ "command": "ls" }));
    assert_eq!(update["_meta"]["terminal_info"]["terminal_id"], "7");
    assert_eq!(update["content"][0], json!({ "type": "terminal", "terminalId": "7" }));
    let update = shown.update(json!({ "type": "output", "item": 7, "text": "a\n" }));
    assert_eq!(update["_meta"]["terminal_output"]["data"], "a\n");
    let updates = shown.event(finished("error", "a\nb\n", "[exit code 1]"));
    assert_eq!(updates[0]["_meta"]["terminal_output"]["data"], "b\n[exit code 1]\n");
    assert_eq!(updates[1]["_meta"]["terminal_exit"]["exit_code"], 1);
    assert_eq!(updates[1]["status"], "failed");
}

/// Every piece is sent again with all of the text before it, so the text must not grow with each.
#[test]
fn m_h1_streamed_output_is_linear_in_its_length() {
    let mut shown = Shown::new(Features::default());
    shown.call("shell", json!({ "command": "yes" }));
    let sent: usize = (0..20_000)
        .flat_map(|_| shown.event(json!({ "type": "output", "item": 7, "text": "yyyyyyyyy\n" })))
        .map(|update| update.to_string().len())
        .sum();
    assert!(sent < 100_000, "{sent}");
}

#[test]
fn m_h1_a_hold_is_a_notice_or_a_message_of_its_own() {
    let held = || {
        let cause = json!({ "type": "user", "by": { "name": "hold", "pid": 7 } });
        let hold = json!({ "state": "standing", "cause": cause, "since": 0 });
        json!({ "type": "holdChanged", "hold": hold })
    };
    let update = Shown::new(Features::default()).update(held());
    assert_eq!(update["sessionUpdate"], "agent_message_chunk");
    assert!(update["content"]["text"].as_str().unwrap().contains("⏸ PAUSED"), "{update}");
    let update = Shown::new(Features { notices: true, ..Features::default() }).update(held());
    assert_eq!(update["sessionUpdate"], "notice");
    assert_eq!(update["severity"], "info");
}

#[test]
fn m_h1_remarks_are_notices_where_the_editor_shows_them() {
    let restored = || json!({ "type": "sessionRestored", "cause": "restart" });
    assert!(Shown::new(Features::default()).event(restored()).is_empty());
    let mut shown = Shown::new(Features { notices: true, ..Features::default() });
    assert_eq!(shown.update(restored())["title"], "the daemon was restarted");
    // A warning is always shown.
    let not_saved = json!({ "type": "notSaved", "reason": "the disk is full" });
    let update = Shown::new(Features::default()).update(not_saved);
    assert_eq!(update["sessionUpdate"], "agent_message_chunk");
}

#[test]
fn m_h1_tasks_are_a_plan() {
    let mut shown = Shown::new(Features { notices: true, ..Features::default() });
    shown.event(json!({ "type": "taskAdded", "task": 1, "title": "one" }));
    shown.event(json!({ "type": "taskAdded", "task": 2, "title": "two" }));
    shown.event(json!({ "type": "taskMoved", "task": 1, "to": "dropped" }));
    let update = shown.update(json!({ "type": "taskMoved", "task": 2, "to": "doing" }));
    assert_eq!(update["sessionUpdate"], "plan");
    assert_eq!(
        update["entries"],
        json!([{ "content": "two", "priority": "medium", "status": "in_progress" }])
    );
}

#[test]
fn m_h1_usage_is_shown_without_a_cost_of_unknown_currency() {
    let mut shown = Shown::new(Features::default());
    let before = snapshot(json!({
        "usage": { "input": 1, "output": 1, "cost": 500_000 },
        "context": { "tokens": 10, "limit": 100 },
        "tasks": [{ "id": 1, "title": "one", "state": "done" }],
    }));
    let state = shown.updates.state(&before);
    assert!(matches!(state[..], [SessionUpdate::Plan(_), SessionUpdate::UsageUpdate(_)]));
    let update = shown.update(json!({
        "type": "stepFinished", "usage": { "input": 5, "output": 5, "cost": 250_000 },
        "context": { "tokens": 20, "limit": 100 },
    }));
    assert_eq!((&update["used"], &update["size"]), (&json!(20), &json!(100)));
    assert_eq!(update["cost"], Value::Null);
}

#[test]
fn m_h1_the_end_of_an_ask_is_noted_at_its_call() {
    let mut shown = Shown::new(Features::default());
    shown.call("shell", json!({ "command": "ls" }));
    let request = json!({
        "type": "pause", "kind": "confirm", "toolName": "shell", "message": "Run this command?",
    });
    let ask = json!({
        "id": "k3v9x2m7qa.7", "call": 7, "origin": "policy", "since": 0, "request": request,
    });
    shown.event(json!({ "type": "askRaised", "ask": ask }));
    let update = shown.update(json!({
        "type": "askAnswered", "ask": "k3v9x2m7qa.7", "answer": { "type": "deny", "reason": "no" },
        "by": { "type": "client", "name": "deny", "pid": 9 },
    }));
    assert_eq!(update["content"][0]["content"]["text"], "denied from the command line (pid 9): no");
}

#[test]
fn m_h1_a_change_of_the_policy_is_a_change_of_the_mode() {
    let mut shown = Shown::new(Features::default());
    let by = json!({ "name": "policy", "pid": 9 });
    let update = shown.update(json!({ "type": "policyChanged", "policy": "edits", "by": by }));
    assert_eq!(update, json!({ "sessionUpdate": "current_mode_update", "currentModeId": "edits" }));
}

/// A run takes a prompt into its next iteration.
#[test]
fn m_h1_a_prompt_that_a_run_takes_is_shown_if_it_is_of_another_client() {
    let mut shown = Shown::new(Features::default());
    for (prompt, pid) in [(1, OWN), (2, OWN + 1)] {
        let by = json!({ "name": "acp", "pid": pid });
        let accepted = json!({ "type": "promptAccepted", "prompt": prompt, "text": "x", "by": by });
        assert_eq!(shown.event(accepted), Vec::<Value>::new());
    }
    let user_messages = |updates: Vec<Value>| {
        updates.iter().filter(|update| update["sessionUpdate"] == "user_message_chunk").count()
    };
    let begins = json!({ "type": "iterationStarted", "iteration": 1, "turn": 1, "open": 1 });
    shown.event(begins);
    for (prompt, messages) in [(1, 0), (2, 1)] {
        let delivered = json!({ "type": "promptDelivered", "prompt": prompt, "iteration": 1 });
        assert_eq!(user_messages(shown.event(delivered)), messages, "prompt {prompt}");
    }
    assert!(shown.updates.own_prompts.is_empty());
}
