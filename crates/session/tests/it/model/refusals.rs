//! Requests that a provider refuses for their content: never sent again unchanged, not even with
//! the next prompt.

use holdpoint_common::{Fact, Omission, Omitted, Outcome, ToolFact, TurnFact};
use holdpoint_session::history::{PROMPT_LEFT_OUT, RESULTS, UNANSWERED};
use holdpoint_session::testing::Finished;
use holdpoint_tests::model_server::{Reply, Request, Wire};
use holdpoint_tests::world::{TestEngine, TestSession};
use serde_json::{Value, json};

async fn turn(talk: &mut TestSession, prompt: &str) -> Finished {
    talk.session.prompt(prompt).await.unwrap();
    talk.events.turn_finished().await
}

fn refusal(status: u16, message: &str) -> Reply {
    Reply::status(status, &[], &json!({"error": {"message": message}}).to_string())
}

#[tokio::test]
async fn t_l3_a_prompt_that_was_refused_is_not_sent_again() {
    for wire in Wire::ALL {
        for status in [400, 413, 422] {
            let world = TestEngine::start(wire);
            let mut talk = world.open().await;
            world
                .server
                .reply(Reply::text(["hello"]))
                .reply(refusal(status, "no"))
                .reply(refusal(status, "no"));
            world.server.reply(Reply::text(["done"])).reply(Reply::text(["done"]));
            assert_eq!(turn(&mut talk, "first").await.outcome, Outcome::Done);
            for (poison, words) in
                [("poison", "left out of later requests"), ("more poison", "can't be sent to")]
            {
                let end = turn(&mut talk, poison).await;
                assert_eq!(end.outcome, Outcome::Failed, "{wire:?} {status}");
                let error = end.error.unwrap();
                assert!(error.contains(words), "{wire:?} {status}: {error}");
            }
            for next in ["second", "third"] {
                assert_eq!(turn(&mut talk, next).await.outcome, Outcome::Done, "{wire:?} {status}");
            }
            let requests = world.server.requests();
            assert_eq!(requests.len(), 5, "{wire:?} {status}: no request is repeated");
            let has = |n: usize, words: &str| requests[n].body.to_string().contains(words);
            assert!(
                has(1, "poison") && has(2, "more poison") && !has(2, "\"poison"),
                "{wire:?} {status}"
            );
            for n in [3, 4] {
                assert!(
                    !has(n, "poison") && has(n, "first") && has(n, "second"),
                    "{wire:?} {status} {n}"
                );
                assert_eq!(
                    requests[n].body.to_string().matches(PROMPT_LEFT_OUT).count(),
                    1,
                    "{wire:?} {status} {n}: the refusal is reported"
                );
            }
            world.server.assert_no_violations();
        }
    }
}

#[tokio::test]
async fn t_l3_results_that_are_too_large_are_left_out_and_the_turn_continues() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world
            .server
            .reply(Reply::calls([("shell", r#"{"command":"echo poi''son >> ran; cat ran"}"#)]));
        world
            .server
            .reply(refusal(413, "too large"))
            .reply(Reply::text(["done"]))
            .reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done, "{wire:?}");
        assert_eq!(turn(&mut talk, "and now?").await.outcome, Outcome::Done, "{wire:?}");
        let sent = |n: usize| world.server.request(n).body.to_string();
        assert!(sent(1).contains("poison"), "{wire:?}: {}", sent(1));
        for n in [2, 3] {
            let next = sent(n);
            assert!(
                !next.contains("poison") && next.contains("its result is left out"),
                "{wire:?}: {next}"
            );
            assert!(next.contains("go") && !next.contains(PROMPT_LEFT_OUT), "{wire:?}: {next}");
        }
        assert_eq!(world.file("ran"), "poison\n", "{wire:?}: no call runs again");
        world.server.assert_no_violations();
    }
}

/// The omissions, in order.
fn omissions(talk: &TestSession) -> Vec<Omission> {
    let omitted = talk.events.facts().filter_map(|fact| match fact {
        Fact::Turn(TurnFact::StepFinished { omitted, .. }) => omitted.clone(),
        _ => None,
    });
    omitted.collect()
}

/// Whether a request has calls in the wire's own form.
fn has_calls(request: &Request) -> bool {
    let body = request.body.to_string();
    ["\"tool_calls\":[", "\"tool_use\"", "\"functionCall\""].iter().any(|call| body.contains(call))
}

#[tokio::test]
async fn t_l3_calls_that_are_refused_are_sent_as_text() {
    for wire in Wire::ALL {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        let mut n = 0;
        world.server.answer(move |request| {
            n += 1;
            match n {
                1 => Reply::stream()
                    .say("I look.")
                    .call(0, "shell", r#"{"command":"echo seen"}"#)
                    .finish("tool_calls"),
                _ if has_calls(request) => refusal(400, "messages.1: tool calls are not well"),
                _ => Reply::text(["done"]),
            }
        });
        for prompt in ["remember KUMQUAT", "which word?"] {
            let end = turn(&mut talk, prompt).await;
            assert_eq!(end.outcome, Outcome::Done, "{wire:?}: {:?}", end.error);
        }
        let requests = world.server.requests();
        assert_eq!(requests.len(), 4, "{wire:?}: only one request is refused");
        for sent in &requests[2..] {
            let sent = sent.body.to_string();
            for words in
                ["KUMQUAT", "I look.", "I call the tool shell", "echo seen", RESULTS, "seen\\n"]
            {
                assert!(sent.contains(words), "{wire:?}: {words}: {sent}");
            }
        }
        let omitted = omissions(&talk);
        assert!(
            omitted.len() == 1
                && omitted[0].what == Omitted::Calls
                && omitted[0].reason.contains("not well"),
            "{omitted:?}"
        );
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn t_l3_thoughts_that_are_refused_are_left_out() {
    let world = TestEngine::start(Wire::Anthropic);
    let mut talk = world.open().await;
    let mut n = 0;
    world.server.answer(move |request| {
        n += 1;
        match n {
            1 => {
                let begun = Reply::stream().think("hm").sign("s1g");
                begun.say("I look.").call(0, "shell", r#"{"command":"true"}"#).finish("tool_calls")
            }
            _ if request.body.to_string().contains("s1g") => {
                refusal(400, "the signature is not valid")
            }
            _ => Reply::text(["done"]),
        }
    });
    assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done);
    assert_eq!(world.server.requests().len(), 3, "the refusal names the thoughts");
    let sent = world.server.request(2);
    assert!(sent.body.to_string().contains("I look.") && has_calls(&sent), "{}", sent.body);
}

/// Each part is left out alone, and an omission that has helped applies to the rest of the turn.
#[tokio::test]
async fn t_l3_an_omission_that_helps_applies_to_the_rest_of_the_turn() {
    let world = TestEngine::start(Wire::Anthropic);
    let mut talk = world.open().await;
    let mut n = 0;
    let calls = |n: usize| {
        Reply::stream()
            .call(0, "shell", &format!(r#"{{"command":"echo step-{n}"}}"#))
            .finish("tool_calls")
    };
    world.server.answer(move |request| {
        n += 1;
        match n {
            1 => Reply::stream()
                .think("hm")
                .sign("s1g")
                .call(0, "shell", r#"{"command":"echo step-1"}"#)
                .finish("tool_calls"),
            _ if request.body.to_string().contains("s1g") => refusal(400, "no"),
            2..6 => calls(n),
            6 => Reply::stream()
                .think("hm")
                .sign("s1g")
                .call(0, "shell", r#"{"command":"echo step-6"}"#)
                .finish("tool_calls"),
            _ => Reply::text(["done"]),
        }
    });
    assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Done);
    let omitted: Vec<_> = omissions(&talk).iter().map(|omission| omission.what).collect();
    assert_eq!(omitted, [Omitted::Calls, Omitted::Thoughts]);
    let last = world.server.requests().pop().unwrap();
    assert!(
        has_calls(&last) && !last.body.to_string().contains("I call the tool"),
        "{}",
        last.body
    );
}

#[tokio::test]
async fn t_l3_a_model_changed_in_an_open_turn_gets_everything_in_the_next() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    world.server.answer(|request| {
        let has_called =
            request.body["messages"].as_array().is_some_and(|messages| messages.len() > 2);
        match request.body["model"].as_str() {
            Some("scripted") if !has_called => Reply::calls([(
                "shell",
                r#"{"command":"touch up; until [ -e go ]; do sleep 0.01; done; echo seen"}"#,
            )]),
            Some("scripted") if has_calls(request) => refusal(400, "no"),
            _ => Reply::text(["done"]),
        }
    });
    talk.session.prompt("first").await.unwrap();
    talk.events
        .until("the tool", |event| {
            matches!(event.fact(), Some(Fact::Tool(ToolFact::Started { .. }))).then_some(())
        })
        .await;
    talk.session.change_model("openai/other").await.unwrap();
    std::fs::write(world.folder.path().join("go"), "").unwrap();
    assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(world.server.requests().len(), 3, "the open turn keeps its model");
    assert_eq!(turn(&mut talk, "second").await.outcome, Outcome::Done);
    let last = world.server.requests().pop().unwrap();
    assert!(last.body["model"] == "other" && has_calls(&last), "{}", last.body);
}

#[tokio::test]
async fn t_l3_short_prompts_are_kept_when_a_long_context_is_refused() {
    let too_long = "This model's maximum context length is 8192 tokens";
    for (message, hint) in [
        (too_long, "hint: set `window`"),
        (
            "Unsupported parameter: 'reasoning_effort' is not supported with this model.",
            "hint: check [models.",
        ),
    ] {
        let world = TestEngine::start(Wire::OpenAi);
        let mut talk = world.open().await;
        world.server.reply(refusal(400, message)).reply(Reply::text(["done"]));
        let error = turn(&mut talk, "remember KUMQUAT").await.error.unwrap();
        assert!(error.contains(hint), "{error}");
        assert_eq!(turn(&mut talk, "which word?").await.outcome, Outcome::Done);
        let sent = world.server.request(1).body.to_string();
        assert!(sent.contains("KUMQUAT") && !sent.contains(PROMPT_LEFT_OUT), "{sent}");
    }
    // Text that makes up most of the request is left out.
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    world.server.reply(refusal(400, too_long)).reply(Reply::text(["done"]));
    turn(&mut talk, &"poison ".repeat(20_000)).await;
    assert_eq!(turn(&mut talk, "and now?").await.outcome, Outcome::Done);
    assert!(!world.server.request(1).body.to_string().contains("poison"));
}

/// Refusals of settings, which no change of the conversation would have prevented.
fn of_settings() -> Vec<(Wire, u16, Value)> {
    let error = |message: &str| json!({"error": {"message": message}});
    let gemini = |field: &str| {
        let details = json!([{"fieldViolations": [{"field": field, "description": "no"}]}]);
        json!({"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT", "details": details}})
    };
    vec![
        (
            Wire::OpenAi,
            400,
            json!({"error": {"message": "Model Not Exist", "code": "invalid_request_error"}}),
        ),
        (
            Wire::OpenAi,
            400,
            json!({"error": {"message": "xyz is not a valid model ID", "code": 400}}),
        ),
        (Wire::OpenAi, 400, error("The model `m` does not exist or you do not have access to it.")),
        (Wire::OpenAi, 400, json!({"error": {"message": "no", "code": "model_not_found"}})),
        (
            Wire::OpenAi,
            400,
            json!({"object": "error", "message": "no", "type": "invalid_model", "code": "1500"}),
        ),
        (Wire::OpenAi, 400, json!({"error": {"message": "no", "param": "tool_choice"}})),
        (
            Wire::OpenAi,
            400,
            json!({"object": "error", "param": null, "code": 400, "type": "BadRequestError",
            "message": "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set"}),
        ),
        (Wire::OpenAi, 422, json!({"detail": [{"loc": ["body", "temperature"], "msg": "no"}]})),
        (
            Wire::OpenAi,
            422,
            json!({"message": {"detail": [{"loc": ["body", "effort"], "msg": "no"}]}}),
        ),
        (
            Wire::Anthropic,
            400,
            error("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024"),
        ),
        (
            Wire::Anthropic,
            400,
            error(
                "max_tokens: 50000 > 32000, which is the maximum allowed number of output tokens",
            ),
        ),
        (Wire::Gemini, 400, gemini("generation_config.thinking_config")),
        (Wire::Ollama, 400, json!({"error": "\"gemma\" does not support thinking"})),
        (
            Wire::Ollama,
            400,
            json!({"error": "registry.ollama.ai/library/gemma:latest does not support tools"}),
        ),
    ]
}

#[tokio::test]
async fn t_l3_a_refusal_of_the_models_settings_leaves_nothing_out() {
    for (wire, status, body) in of_settings() {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world
            .server
            .reply(Reply::status(status, &[], &body.to_string()))
            .reply(Reply::text(["done"]));
        let error = turn(&mut talk, "remember KUMQUAT").await.error.unwrap();
        let hint = format!("hint: check [models.\"{}/scripted\"]", wire.provider());
        assert!(error.contains(&hint), "{body}: {error}");
        assert_eq!(turn(&mut talk, "which word?").await.outcome, Outcome::Done);
        assert_eq!(world.server.requests().len(), 2, "{body}");
        let sent = world.server.request(1).body.to_string();
        assert!(sent.contains("KUMQUAT") && !sent.contains(PROMPT_LEFT_OUT), "{body}: {sent}");
    }
}

#[tokio::test]
async fn t_l3_a_refusal_that_names_the_conversation_omits_the_prompt() {
    let details =
        json!([{"fieldViolations": [{"field": "contents[0].parts", "description": "no"}]}]);
    for (wire, status, body) in [
        (
            Wire::OpenAi,
            400,
            json!({"error": {"message": "no", "param": "messages[1].content", "code": "unsupported_value"}}),
        ),
        (
            Wire::OpenAi,
            400,
            json!({"error": {"message": "Unsupported value: 'messages[0].role'", "code": "unsupported_value"}}),
        ),
        (
            Wire::OpenAi,
            400,
            json!({"error": {"message": "no", "param": "prompt", "code": "content_filter"}}),
        ),
        (
            Wire::OpenAi,
            422,
            json!({"detail": [{"loc": ["body", "messages", 1, "content"], "msg": "no"}]}),
        ),
        (
            Wire::Anthropic,
            400,
            json!({"error": {"message": "messages.0.content: Input should be a valid list"}}),
        ),
        (
            Wire::Gemini,
            400,
            json!({"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT", "details": details}}),
        ),
    ] {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world
            .server
            .reply(Reply::status(status, &[], &body.to_string()))
            .reply(Reply::text(["done"]));
        let error = turn(&mut talk, "poison").await.error.unwrap();
        assert!(error.contains("left out of later requests"), "{body}: {error}");
        assert_eq!(turn(&mut talk, "and now?").await.outcome, Outcome::Done);
        assert!(!world.server.request(1).body.to_string().contains("poison"), "{body}");
    }
}

/// Otherwise the model would call for the same results again and again.
#[tokio::test]
async fn t_l3_results_that_are_too_large_are_left_out_once_in_a_turn() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    let mut n = 0;
    world.server.answer(move |_| {
        n += 1;
        match n % 2 {
            1 => Reply::calls([("shell", r#"{"command":"echo seen"}"#)]),
            _ => refusal(400, "the request exceeds the available context size"),
        }
    });
    let error = turn(&mut talk, "go").await.error.unwrap();
    assert!(error.contains("hint: set `window`"), "{error}");
    assert_eq!(world.server.requests().len(), 4);
}

#[tokio::test]
async fn t_l3_a_conversation_that_no_omission_helps_is_an_error_and_keeps_its_text() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    world.server.answer(|request| match request.body["model"].as_str() {
        Some("scripted")
            if request.body["messages"].as_array().is_some_and(|messages| messages.len() > 2) =>
        {
            refusal(400, "no")
        }
        Some("scripted") => Reply::calls([("shell", r#"{"command":"echo seen"}"#)]),
        _ => Reply::text(["done"]),
    });
    let error = turn(&mut talk, "remember KUMQUAT").await.error.unwrap();
    assert_eq!(
        world.server.requests().len(),
        4,
        "as it is, with the calls as text, without the results"
    );
    for words in
        ["refused this conversation 3 times", "openai/scripted", "/model", "holdpoint export"]
    {
        assert!(error.contains(words), "{words}: {error}");
    }
    let error = turn(&mut talk, "which word?").await.error.unwrap();
    assert!(error.contains("refused this conversation 4 times"), "{error}");
    assert_eq!(world.server.requests().len(), 5);
    // Another model gets the whole conversation unchanged.
    talk.session.change_model("openai/other").await.unwrap();
    assert_eq!(turn(&mut talk, "and now?").await.outcome, Outcome::Done);
    let last = world.server.requests().pop().unwrap();
    assert!(has_calls(&last), "{}", last.body);
    for words in ["KUMQUAT", "which word?", "and now?", "seen"] {
        assert!(last.body.to_string().contains(words), "{words}: {}", last.body);
    }
    world.server.assert_no_violations();
}

#[tokio::test]
async fn t_l3_prompts_are_kept_after_401_403_and_404() {
    for status in [401, 403, 404] {
        let world = TestEngine::start(Wire::OpenAi);
        let mut talk = world.open().await;
        world.server.reply(refusal(status, "no")).reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "first").await.outcome, Outcome::Failed);
        assert_eq!(turn(&mut talk, "again").await.outcome, Outcome::Done);
        let both = format!("first\n\n{UNANSWERED}\n\nagain");
        assert_eq!(
            world.server.request(1).texts("user"),
            [both],
            "{status}: the request was not to blame"
        );
    }
}

#[tokio::test]
async fn t_l3_a_conversation_that_is_too_long_says_what_to_set() {
    for (wire, words) in [
        (Wire::OpenAi, "This model's maximum context length is 8192 tokens"),
        (Wire::OpenAi, "the request exceeds the available context size"),
        (Wire::Anthropic, "prompt is too long: 210000 tokens > 200000 maximum"),
        (
            Wire::Gemini,
            "The input token count (9) exceeds the maximum number of tokens allowed (8).",
        ),
        (Wire::Ollama, "input length exceeds the context length"),
    ] {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world.server.reply(refusal(400, words));
        let error = turn(&mut talk, "go").await.error.unwrap();
        let hint = format!("hint: set `window` under [models.\"{}/scripted\"]", wire.provider());
        assert!(error.contains(words) && error.contains(&hint), "{wire:?}: {error}");
    }
}
