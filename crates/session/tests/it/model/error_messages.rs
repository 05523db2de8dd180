//! A provider's own error messages, in every form: they are shown, and the code decides whether the
//! fault may pass by itself.

use std::io::{Read, Write};
use std::net::TcpListener;

use holdpoint_common::{ModelSettings, Outcome};
use holdpoint_session::model::{Access, ModelError, Provider};
use holdpoint_tests::model_answer::{AnswerItem, ask, hello, play, text};
use holdpoint_tests::model_server::{ModelServer, Reply, Wire, openai};
use holdpoint_tests::tls_server::TlsServer;
use holdpoint_tests::world::{KEY, TestEngine};
use serde_json::{Value, json};

/// A chunk that ends an answer with this error beside its choices, as routers send it.
fn beside(error: &Value) -> String {
    let mut chunk =
        openai::chunk(&json!([{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}]));
    chunk["error"] = error.clone();
    chunk.to_string()
}

/// The same with the error inside the choice.
fn inside(error: &Value) -> String {
    let choice =
        json!({"index": 0, "delta": {"content": ""}, "finish_reason": "error", "error": error});
    openai::chunk(&json!([choice])).to_string()
}

async fn fault(wire: Wire, reply: Reply) -> ModelError {
    let events = play(wire, reply).await;
    let (last, before) = events.split_last().unwrap();
    assert!(
        before.is_empty() || *before == [text("a")],
        "{wire:?}: the text before the fault is reported: {events:?}"
    );
    last.clone().unwrap_err()
}

fn refused(status: u16, message: &str) -> ModelError {
    ModelError::Refused { status, message: message.into(), retry_after: None }
}

#[tokio::test]
async fn t_l2_an_error_in_a_choice_or_beside_it_says_why_and_whether_it_passes() {
    let hidden = format!("gone, {KEY}");
    for (error, expected, passes) in [
        (json!({"code": 502, "message": hidden}), refused(502, "gone, ***"), true),
        (json!({"code": "429", "message": "slow"}), refused(429, "slow"), true),
        (json!({"code": 400, "message": "no"}), refused(400, "no"), false),
        (
            json!({"code": "server_error", "message": "later"}),
            ModelError::Unavailable { message: "later".into() },
            true,
        ),
        (
            json!({"code": 1302, "message": "odd"}),
            ModelError::Failed { message: "odd".into() },
            false,
        ),
        (json!("just words"), ModelError::Failed { message: "just words".into() }, false),
    ] {
        for form in [beside(&error), inside(&error), json!({"error": error}).to_string()] {
            for begun in [Reply::stream(), Reply::stream().say("a")] {
                let received = fault(Wire::OpenAi, begun.event(&form).event("[DONE]").end()).await;
                assert_eq!(received, expected, "{form}");
                assert_eq!(received.is_temporary(), passes, "{form}");
            }
        }
    }
}

#[tokio::test]
async fn t_l2_an_error_in_the_stream_of_any_provider_says_why_and_whether_it_passes() {
    for wire in Wire::ALL {
        let form = json!({"error": {"code": 503, "message": "busy"}}).to_string();
        let received = fault(wire, Reply::stream().say("a").event(&form).end()).await;
        assert_eq!((&received, received.is_temporary()), (&refused(503, "busy"), true), "{wire:?}");
        // In a list, like Gemini's refusals.
        let received =
            fault(wire, Reply::stream().say("a").event(&format!("[{form}]")).end()).await;
        assert_eq!(received, refused(503, "busy"), "{wire:?}");
        // Without the usual envelope.
        let bare = json!({"message": "busy", "code": 529}).to_string();
        let received = fault(wire, Reply::stream().say("a").event(&bare).end()).await;
        assert_eq!(received, refused(529, "busy"), "{wire:?}");
    }
    for wire in [Wire::OpenAi, Wire::Anthropic, Wire::Gemini] {
        for (data, expected) in [
            (
                r#"{"message":"busy","code":"rate_limit_exceeded"}"#,
                ModelError::Unavailable { message: "busy".into() },
            ),
            (r#"{"message":"no","code":"invalid"}"#, ModelError::Failed { message: "no".into() }),
            (
                r#"[{"error":{"message":"no","code":"invalid"}}]"#,
                ModelError::Failed { message: "no".into() },
            ),
            (r#"[{"message":"no"}]"#, ModelError::Failed { message: "no".into() }),
            (r#"{"detail":"broken"}"#, ModelError::Failed { message: "broken".into() }),
            ("upstream is gone", ModelError::Failed { message: "upstream is gone".into() }),
        ] {
            let received = fault(
                wire,
                Reply::stream().say("a").bytes(format!("event: error\ndata: {data}\n\n")).end(),
            );
            assert_eq!(received.await, expected, "{wire:?} {data}");
        }
    }
}

#[tokio::test]
async fn m_e6_text_that_looks_like_an_error_is_passed_on() {
    for wire in Wire::ALL {
        let words = r#"{"error": {"message": "an example"}} "message""#;
        let arguments = json!({"error": {"code": 500}, "message": "x"}).to_string();
        let events = play(
            wire,
            Reply::stream().say(words).call(0, "probe", &arguments).finish("tool_calls"),
        )
        .await;
        assert_eq!(events[0], text(words), "{wire:?}");
        assert_eq!(events[1], holdpoint_tests::model_answer::call("probe", &arguments), "{wire:?}");
    }
    let mut chunk = openai::delta(&json!({"content": "a"}));
    chunk["error"] = json!({"code": null, "message": null});
    let events = play(Wire::OpenAi, Reply::stream().event(&chunk.to_string()).finish("stop")).await;
    assert_eq!(events[0], text("a"), "an error without content is ignored");
}

/// Replies that are not answers, with the error for each.
fn no_answers() -> Vec<(Reply, &'static str)> {
    let stream = ("content-type", "text/event-stream");
    let squeezed = [stream, ("content-encoding", "gzip")];
    vec![
        (Reply::status(204, &[], ""), "it is empty (HTTP 204)"),
        (Reply::status(200, &[], ""), "it is empty (HTTP 200)"),
        (Reply::status(200, &[("content-type", "application/x-ndjson")], ""), "(HTTP 200)"),
        (Reply::stream().end(), "it is empty (HTTP 200)"),
        (
            Reply::status(200, &squeezed, "\u{1f}\u{8b}"),
            "encoded as `gzip`, which was not requested",
        ),
        (
            Reply::status(401, &squeezed, "\u{1f}\u{8b}"),
            "encoded as `gzip`, which was not requested",
        ),
    ]
}

#[tokio::test]
async fn m_e6_a_reply_that_is_not_an_answer_is_described() {
    for wire in Wire::ALL {
        for (n, (reply, words)) in no_answers().into_iter().enumerate() {
            let reply = if n == 2 && wire != Wire::Ollama {
                Reply::status(200, &[("content-type", "text/event-stream")], "")
            } else {
                reply
            };
            let events: Vec<AnswerItem> = play(wire, reply).await;
            let [Err(error)] = &events[..] else { panic!("{wire:?} {n}: {events:?}") };
            assert!(error.to_string().contains(words), "{wire:?} {n}: {error}");
            assert!(!error.is_temporary(), "{wire:?} {n}: {error}");
        }
    }
    // Some servers answer with the status 201.
    let body =
        "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\n";
    let events =
        play(Wire::OpenAi, Reply::status(201, &[("content-type", "text/event-stream")], body))
            .await;
    assert_eq!(events[0], text("a"));
}

#[tokio::test]
async fn t_l2_a_fault_in_the_stream_is_retried_by_its_code() {
    let world = TestEngine::start(Wire::OpenAi);
    let mut talk = world.open().await;
    let gone = beside(&json!({"code": 502, "message": "the provider hung up"}));
    world.server.reply(Reply::stream().event(&gone).end()).reply(Reply::text(["done"]));
    talk.session.prompt("go").await.unwrap();
    assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(world.server.requests().len(), 2);

    let no = beside(&json!({"code": 403, "message": "not allowed"}));
    world.server.reply(Reply::stream().event(&no).end());
    talk.session.prompt("go").await.unwrap();
    let error = talk.events.turn_finished().await.error.unwrap();
    assert!(error.contains("403") && error.contains("not allowed"), "{error}");
    assert_eq!(world.server.requests().len(), 3, "the request is not repeated");
}

#[tokio::test]
async fn t_l2_a_refusal_is_one_plain_line_whatever_its_body_is() {
    let page = "<!DOCTYPE html>\n<html><head>\n<title>502 Bad\n Gateway</title></head><body><h1>nginx</h1></body></html>";
    for (status, body, expected) in [
        (
            400,
            r#"[{"error":{"code":400,"message":"no such model","status":"INVALID_ARGUMENT"}}]"#,
            "no such model",
        ),
        (400, r#"{"error":{"message":"two\nlines\r\n  here"}}"#, "two lines here"),
        (
            422,
            r#"{"detail":[{"loc":["body","messages",1],"msg":"Field required"}]}"#,
            "Field required",
        ),
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"message\":\"Unexpected role\"}"}}}"#,
            "Provider returned error: Unexpected role",
        ),
        (400, r#"{"odd":[1]}"#, r#"{"odd":[1]}"#),
        (502, page, "502 Bad Gateway"),
        (
            502,
            "<html><body><h1>Not\nhere</h1><p>Ask later.</p></body></html>",
            "Not here Ask later.",
        ),
        (502, "", "Bad Gateway"),
        (502, " \r\n", "Bad Gateway"),
        (599, "", "no reason given"),
        (
            502,
            "<p>On</p><STYLE type=a>p{color:red}</STYLE ><script>if(1<2)x='</p>'</script ><!-- a <b> --><p>fire</p>",
            "On fire",
        ),
        (502, "<html><body>On fire<script>var x=1", "On fire"),
        (502, "<html><style>a</style><title>Gone</title><script>x</script></html>", "Gone"),
        // The body has no message.
        (400, "[]", "Bad Request"),
        (401, "{}", "Unauthorized"),
        (403, "null", "Forbidden"),
        (404, r#"{"error":null}"#, "Not Found"),
        (404, r#"[{"error":{"message":" ","details":[]}}]"#, "Not Found"),
        (
            401,
            r#"{"errors":[{"message":"no such token","code":7}],"success":false}"#,
            "no such token",
        ),
        (401, r#"{"errors":["no such token"]}"#, "no such token"),
        (401, r#"{"error_msg":"auth failed","error_code":17}"#, "auth failed"),
        (401, r#"{"code":7,"msg":"auth failed"}"#, "auth failed"),
        (401, r#""auth failed""#, "auth failed"),
        (401, r#"{"error":{"code":7}}"#, r#"{"error":{"code":7}}"#),
    ] {
        for wire in Wire::ALL {
            assert_eq!(
                fault(wire, Reply::status(status, &[], body)).await,
                refused(status, expected),
                "{wire:?} {body}"
            );
        }
    }
}

#[tokio::test]
async fn t_l3_a_refusal_of_the_account_is_not_retried() {
    let openai = |code: &str| json!({"error": {"message": "see to it", "type": code, "param": null, "code": code}});
    let gemini = json!([{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key.", "status": "INVALID_ARGUMENT"}}]);
    let credit = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is too low to access the API."}});
    for (wire, status, body) in [
        (Wire::OpenAi, 429, openai("insufficient_quota")),
        (Wire::OpenAi, 429, openai("exceeded_current_quota_error")),
        (Wire::OpenAi, 402, json!({"error": {"message": "Insufficient Balance"}})),
        (Wire::OpenAi, 500, json!({"code": "insufficient_balance", "message": "pay"})),
        (Wire::OpenAi, 429, openai("credits_exhausted")),
        (Wire::OpenAi, 429, openai("AccountQuotaExceeded")),
        (Wire::OpenAi, 429, json!({"code": "1113", "message": "您的账户已欠费，请充值后重试。"})),
        (Wire::OpenAi, 429, json!({"code": "1113", "message": "余额不足或无可用资源包,请充值。"})),
        (
            Wire::OpenAi,
            429,
            json!({"code": 30001, "message": "Sorry, your account balance is insufficient"}),
        ),
        (Wire::OpenAi, 429, json!({"error": {"message": "Key limit exceeded", "code": 429}})),
        (
            Wire::OpenAi,
            400,
            json!({"error": {"message": "Your organization must be verified to stream this model.",
            "type": "invalid_request_error", "param": "stream", "code": "unsupported_value"}}),
        ),
        (Wire::OpenAi, 400, json!({"error": "Incorrect API key provided: x"})),
        (
            Wire::Gemini,
            400,
            json!({"error": {"code": 400, "status": "FAILED_PRECONDITION",
            "message": "User location is not supported for the API use."}}),
        ),
        (
            Wire::Gemini,
            403,
            json!({"error": {"code": 403, "message": "see to it", "status": "PERMISSION_DENIED",
            "details": [{"reason": "API_KEY_INVALID"}]}}),
        ),
        (Wire::Anthropic, 400, credit),
        (Wire::Gemini, 400, gemini),
    ] {
        let world = TestEngine::start(wire);
        let mut talk = world.open().await;
        world
            .server
            .reply(Reply::status(status, &[("retry-after", "0")], &body.to_string()))
            .reply(Reply::text(["done"]));
        talk.session.prompt("first words").await.unwrap();
        let error = talk.events.turn_finished().await.error.unwrap();
        assert!(
            error.contains("refuses all requests") && error.contains("hint: check the key"),
            "{error}"
        );
        assert_eq!(world.server.requests().len(), 1, "{body}: the request is not repeated");
        talk.session.prompt("and now?").await.unwrap();
        assert_eq!(talk.events.turn_finished().await.outcome, Outcome::Done);
        assert!(
            world.server.request(1).body.to_string().contains("first words"),
            "{body}: nothing is left out"
        );
    }
    // Any other refusal with that status may pass.
    let busy =
        fault(Wire::OpenAi, Reply::status(429, &[], &openai("rate_limit_exceeded").to_string()))
            .await;
    assert!(busy.is_temporary(), "{busy}");
}

#[tokio::test]
async fn t_l3_a_refusal_of_the_account_in_a_stream_is_not_retried() {
    let fault = json!({"error": {"message": "see to it", "type": "insufficient_quota", "code": "insufficient_quota"}});
    for wire in Wire::ALL {
        for reply in [
            Reply::stream().event(&fault.to_string()).end(),
            Reply::status(200, &[("content-type", "application/json")], &fault.to_string()),
        ] {
            let world = TestEngine::start(wire);
            let mut talk = world.open().await;
            world.server.reply(reply).reply(Reply::text(["done"]));
            talk.session.prompt("go").await.unwrap();
            let error = talk.events.turn_finished().await.error.unwrap();
            let expected =
                "the model's provider refuses all requests: see to it (hint: check the key";
            assert!(error.contains(expected), "{wire:?}: {error}");
            assert_eq!(world.server.requests().len(), 1, "{wire:?}: the request is not repeated");
        }
    }
}

#[tokio::test]
async fn t_l3_a_server_that_is_not_trusted_or_speaks_no_tls_is_not_tried_again() {
    let server = ModelServer::start();
    let tls = TlsServer::before(server.address());
    let plain = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let plain_address = plain.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut stream, _) = plain.accept().unwrap();
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n").unwrap();
        // Until the client hangs up.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    for (address, words) in [
        (tls.address, ["UnknownIssuer", "SSL_CERT_FILE"]),
        (plain_address, ["InvalidContentType", "http://"]),
    ] {
        let access = Access {
            key: KEY.into(),
            base_url: format!("https://{address}/v1"),
            ..Access::default()
        };
        let model = Provider::OpenAi.model("scripted", &access, &ModelSettings::default()).unwrap();
        let events = ask(&*model, hello()).await;
        let [Err(error)] = &events[..] else { panic!("{events:?}") };
        let ModelError::Setup { message, hint } = error else { panic!("{error:?}") };
        assert!(message.contains(words[0]) && hint.contains(words[1]), "{message} ({hint})");
        assert!(!error.is_temporary());
    }
    assert_eq!(server.requests().len(), 0);
}
