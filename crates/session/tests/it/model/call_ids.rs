//! The ids of calls in requests: those of the model, or ids that the strictest server accepts.

use holdpoint_common::Outcome;
use holdpoint_tests::model_server::{Reply, Request, Wire, anthropic, gemini, ollama};
use holdpoint_tests::world::{TestEngine, TestSession};
use serde_json::{Value, json};

const COMMAND: &str = r#"{"command":"true"}"#;

/// An answer that calls the shell, with this id if any.
fn calls(wire: Wire, id: Option<&str>) -> Reply {
    let begun = Reply::stream();
    let input = json!({"command": "true"});
    let reply = match wire {
        Wire::OpenAi => {
            let function = json!({"name": "shell", "arguments": COMMAND});
            begun.delta(&json!({"tool_calls": [{"index": 0, "id": id, "type": "function", "function": function}]}))
        }
        Wire::Anthropic => {
            let block = json!({"type": "tool_use", "id": id, "name": "shell", "input": input});
            let open = json!({"type": "content_block_start", "index": 0, "content_block": block});
            let stop = json!({"type": "content_block_stop", "index": 0});
            begun
                .event(&anthropic::start().to_string())
                .event(&open.to_string())
                .event(&stop.to_string())
        }
        Wire::Gemini => {
            let call = json!({"functionCall": {"id": id, "name": "shell", "args": input}});
            begun.event(&gemini::chunk(&call).to_string())
        }
        Wire::Ollama => {
            let call = json!({"id": id, "function": {"name": "shell", "arguments": input}});
            begun.event(
                &ollama::record(&json!({"role": "assistant", "content": "", "tool_calls": [call]}))
                    .to_string(),
            )
        }
    };
    reply.finish("tool_calls")
}

/// The ids of all calls of a request, and of all results, in order.
fn ids(wire: Wire, request: &Request) -> (Vec<String>, Vec<String>) {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let messages = list(&request.body[if wire == Wire::Gemini { "contents" } else { "messages" }]);
    let parts =
        |key: &str| messages.iter().flat_map(|message| list(&message[key])).collect::<Vec<_>>();
    match wire {
        Wire::OpenAi | Wire::Ollama => {
            let results =
                messages.iter().filter_map(|message| text(&message["tool_call_id"])).collect();
            (parts("tool_calls").iter().filter_map(|call| text(&call["id"])).collect(), results)
        }
        Wire::Anthropic => {
            let of = |kind: &str, key: &str| {
                let blocks = parts("content").into_iter().filter(|block| block["type"] == kind);
                blocks.filter_map(|block| text(&block[key])).collect()
            };
            (of("tool_use", "id"), of("tool_result", "tool_use_id"))
        }
        Wire::Gemini => {
            let of = |key: &str| {
                parts("parts").iter().filter_map(|part| text(&part[key]["id"])).collect()
            };
            (of("functionCall"), of("functionResponse"))
        }
    }
}

/// Makes the model call the shell once for each of these ids. Returns the ids in the last request.
async fn sent(
    world: &TestEngine,
    wire: Wire,
    names: &[Option<&str>],
    talk: &mut TestSession,
) -> Vec<String> {
    for name in names {
        world.server.reply(calls(wire, *name));
    }
    world.server.reply(Reply::text(["done"]));
    talk.session.prompt("go").await.unwrap();
    let end = talk.events.turn_finished().await;
    assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
    world.server.assert_no_violations();
    let (calls, results) = ids(wire, world.server.requests().last().unwrap());
    assert_eq!(calls, results, "{wire:?}");
    calls
}

fn is_short(name: &str) -> bool {
    name.len() == 9 && name.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

#[tokio::test]
async fn m_e6_a_call_is_sent_back_under_its_models_id() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        // An id that is missing, empty or repeated is replaced, and so is one that looks like ours.
        let long = "toolu_".repeat(40);
        let odd = "functions.shell:0";
        let names = [
            Some("abcDEF123"),
            Some(""),
            None,
            Some("abcDEF123"),
            Some("c00000001"),
            Some(&*long),
            Some(odd),
        ];
        let sent = sent(&world, wire, &names, &mut talk).await;
        assert_eq!(sent[0], "abcDEF123", "{wire:?}");
        assert!(
            sent[1..5].iter().all(|name| is_short(name)) && sent[4] != "c00000001",
            "{wire:?}: {sent:?}"
        );
        // Anthropic refuses such ids, which a gateway in its protocol may give.
        match wire {
            Wire::Anthropic => assert!(sent[5..].iter().all(|name| is_short(name)), "{sent:?}"),
            _ => assert_eq!(sent[5..], [&*long, odd], "{wire:?}"),
        }
    }
}

#[tokio::test]
async fn m_e6_another_model_gets_ids_that_every_provider_accepts() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    assert_eq!(
        sent(&world, Wire::OpenAi, &[Some("functions.shell:0")], &mut talk).await,
        ["functions.shell:0"]
    );
    talk.session.change_model("openai/strict").await.unwrap();
    let names = sent(&world, Wire::OpenAi, &[Some("theirs")], &mut talk).await;
    assert!(is_short(&names[0]) && names[1] == "theirs", "{names:?}");
    talk.session.change_model("openai/scripted").await.unwrap();
    let names = sent(&world, Wire::OpenAi, &[], &mut talk).await;
    assert!(names[0] == "functions.shell:0" && is_short(&names[1]), "{names:?}");
}

#[tokio::test]
async fn m_e6_a_setting_replaces_all_call_ids_by_our_own() {
    for wire in Wire::ALL {
        let config = format!("[models.'{}/scripted']\ntool_ids = 'own'", wire.provider());
        let world = TestEngine::with(wire, &config, |limits| limits);
        let mut talk = world.open().await;
        let names = sent(&world, wire, &[Some("call_abc"), Some("call_def")], &mut talk).await;
        assert!(names.len() == 2 && names.iter().all(|name| is_short(name)), "{wire:?}: {names:?}");
    }
}
