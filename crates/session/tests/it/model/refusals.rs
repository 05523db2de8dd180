//! Requests that a provider refuses for what they are: never sent again as they were, not with the next prompt either.

use holdpoint_common::Outcome;
use holdpoint_session::history::{LEFT_OUT, UNANSWERED};
use holdpoint_session::testing::Finished;
use holdpoint_tests::model_server::{Reply, Wire};
use holdpoint_tests::world::{Talk, World};

async fn turn(talk: &mut Talk, prompt: &str) -> Finished {
    talk.session.prompt(prompt).await.unwrap();
    talk.events.turn_finished().await
}

fn refusal(status: u16, message: &str) -> Reply {
    Reply::status(status, &[], &serde_json::json!({"error": {"message": message}}).to_string())
}

#[tokio::test]
async fn t_l3_a_prompt_that_was_refused_is_not_sent_again() {
    for wire in Wire::ALL {
        for status in [400, 413, 422] {
            let world = World::start(wire);
            let mut talk = world.open().await;
            world.server.reply(Reply::text(["hello"])).reply(refusal(status, "no")).reply(refusal(status, "no"));
            world.server.reply(Reply::text(["done"])).reply(Reply::text(["done"]));
            assert_eq!(turn(&mut talk, "first").await.outcome, Outcome::Done);
            for poison in ["poison", "more poison"] {
                let end = turn(&mut talk, poison).await;
                assert_eq!(end.outcome, Outcome::Failed, "{wire:?} {status}");
                assert!(end.error.unwrap().contains("left out of later requests"), "{wire:?} {status}");
            }
            for next in ["second", "third"] {
                assert_eq!(turn(&mut talk, next).await.outcome, Outcome::Done, "{wire:?} {status}");
            }
            let requests = world.server.requests();
            assert_eq!(requests.len(), 5, "{wire:?} {status}: nothing is tried again");
            let has = |n: usize, words: &str| requests[n].body.to_string().contains(words);
            assert!(has(1, "poison") && has(2, "more poison") && !has(2, "\"poison"), "{wire:?} {status}");
            for n in [3, 4] {
                assert!(!has(n, "poison") && has(n, "first") && has(n, "second"), "{wire:?} {status} {n}");
                assert_eq!(
                    requests[n].body.to_string().matches(LEFT_OUT).count(),
                    1,
                    "{wire:?} {status} {n}: it is told"
                );
            }
            world.server.assert_no_violations();
        }
    }
}

#[tokio::test]
async fn t_l3_results_that_were_refused_are_not_sent_again() {
    for wire in Wire::ALL {
        let world = World::start(wire);
        let mut talk = world.open().await;
        world.server.reply(Reply::calls([("shell", r#"{"command":"echo poi''son >> ran; cat ran"}"#)]));
        world.server.reply(refusal(413, "too large")).reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "go").await.outcome, Outcome::Failed, "{wire:?}");
        assert_eq!(turn(&mut talk, "and now?").await.outcome, Outcome::Done, "{wire:?}");
        let (refused, next) = (world.server.request(1).body.to_string(), world.server.request(2).body.to_string());
        assert!(refused.contains("poison"), "{wire:?}: {refused}");
        assert!(!next.contains("poison") && next.contains("its result is left out"), "{wire:?}: {next}");
        assert!(next.contains("go") && next.contains("and now?"), "{wire:?}: {next}");
        assert_eq!(world.file("ran"), "poison\n", "{wire:?}: and nothing runs again");
        world.server.assert_no_violations();
    }
}

#[tokio::test]
async fn t_l3_what_may_be_sent_again_is_kept() {
    for status in [401, 403, 404] {
        let world = World::start(Wire::OpenAi);
        let mut talk = world.open().await;
        world.server.reply(refusal(status, "no")).reply(Reply::text(["done"]));
        assert_eq!(turn(&mut talk, "first").await.outcome, Outcome::Failed);
        assert_eq!(turn(&mut talk, "again").await.outcome, Outcome::Done);
        let both = format!("first\n\n{UNANSWERED}\n\nagain");
        assert_eq!(world.server.request(1).texts("user"), [both], "{status}: the request was not to blame");
    }
}

#[tokio::test]
async fn t_l3_a_conversation_that_is_too_long_says_what_to_set() {
    for (wire, words) in [
        (Wire::OpenAi, "This model's maximum context length is 8192 tokens"),
        (Wire::OpenAi, "the request exceeds the available context size"),
        (Wire::Anthropic, "prompt is too long: 210000 tokens > 200000 maximum"),
        (Wire::Gemini, "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
        (Wire::Ollama, "input length exceeds the context length"),
    ] {
        let world = World::start(wire);
        let mut talk = world.open().await;
        world.server.reply(refusal(400, words));
        let error = turn(&mut talk, "go").await.error.unwrap();
        let hint = format!("hint: set `window` under [models.\"{}/scripted\"]", wire.provider());
        assert!(error.contains(words) && error.contains(&hint), "{wire:?}: {error}");
    }
}
