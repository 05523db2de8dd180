//! The daemon's log: it names the client of each action and has no secret.

use holdpoint_common::{Answer, AskFact, Fact, PolicyMode, TurnFact};
use holdpoint_session::{AttachFrom, Attachment};
use holdpoint_tests::model_server::{ModelServer, Reply};

use super::harness::{DaemonWorld, until};
use crate::world::Ran;

/// Waits until the turn has ended.
async fn wait_turn_finished(events: &mut Attachment) {
    until(events, |event| matches!(event.fact(), Some(Fact::Turn(TurnFact::Finished { .. }))))
        .await;
}

#[tokio::test]
async fn t_f13_each_attach_and_answer_is_logged_with_its_client() {
    let house = DaemonWorld::new();
    house.start();
    let session = house.sessions().open(house.session().policy(PolicyMode::Ask)).await.unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    session.prompt("shell: touch made").await.unwrap();
    until(&mut events, |event| matches!(event.fact(), Some(Fact::Ask(AskFact::Raised { .. }))))
        .await;
    let ask = events.shown().unwrap().id.clone();
    session.answer(&ask, Answer::Resume).await.expect_err("a Confirm can't be continued");
    session.answer(&ask, Answer::Approve { always: false }).await.unwrap();
    session.answer(&ask, Answer::Approve { always: false }).await.expect_err("it is answered");
    wait_turn_finished(&mut events).await;
    drop(events);
    session.close().await.unwrap();
    session.attach(AttachFrom::start()).await.err().expect("it is closed");
    let log = house.last_words();
    let who = format!("pid {}", std::process::id());
    for (act, times) in [
        ("attach accepted", 1),
        ("attach refused", 1),
        ("answer accepted", 1),
        ("answer refused", 2),
    ] {
        let lines: Vec<_> =
            log.lines().filter(|line| line.contains("daemon::api") && line.contains(act)).collect();
        assert_eq!(lines.len(), times, "{act}: {log}");
        for line in lines {
            assert!(
                line.starts_with("20") && line.contains(&who) && line.contains("test"),
                "{line}"
            );
        }
    }
}

/// Invented keys in the shapes of real ones.
const PLANTED: [&str; 12] = [
    "sk-proj-Zx8QmT4vN1pL7rWc2YbK9sDf6HgJ3aEu0oIiXq5V",
    "sk-ant-api03-Qw7ErTy2UiOp9AsDfGh4JkLzXcVbNm1QwErTy6U",
    "ghp_9Xk2LmNp4QrStUvWxYz1AbCdEfGh3IjKlM5n",
    "github_pat_11ABCDEFG0aZbYcXdWeVfU_hT9gS8iR7jQ6kP5lO4mN3nM2oL1pK0q",
    "glpat-Zy9Xw8Vu7Ts6Rq5Po4Nm",
    "AKIAQ7RZT3XWVU5PKLMN",
    "AIzaSyB4c5D6e7F8g9H0iJ1kL2mN3oP4qR5sT6u",
    "xoxb-210987654321-109876543210-QwErTyUiOpAsDfGhJkLzXcVb",
    "npm_Ab1Cd2Ef3Gh4Ij5Kl6Mn7Op8Qr9St0Uv1Wx2",
    "sk_live_51Zx9Cv8Bn7Mm6Aa5Ss4Dd3Ff2Gg1Hh",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI5ODc2NTQzMjEwIn0.Tq3Yx7Zr5Pn1Vk9Lb2Wm8Cd4Fg6Hj0",
    "hunter2Correct9HorseBattery",
];

#[tokio::test]
async fn t_h1_no_secret_is_in_the_trace_log_or_the_status() {
    for key in PLANTED {
        no_secret_is_logged(key).await;
    }
}

/// Checks that no log line has a planted key. `key` is in the configuration, the environment,
/// headers both ways, addresses and outputs; the others are only in texts.
async fn no_secret_is_logged(key: &str) {
    let house = DaemonWorld::new();
    let server = ModelServer::start();
    house.0.config(&format!(
        "[limits]\nmodel_retry_ms = 1\n[providers.openai]\nbase_url = '{}'\napi_key = '{key}'\n",
        server.base_url()
    ));
    let mut start = house.0.command(&["daemon", "start"]);
    start.env("HOLDPOINT_LOG", "trace").env("OPENAI_API_KEY", key);
    Ran::of(start).code(0);
    // Without the last one, a password, which only its position in an address gives away.
    let all = PLANTED[..11].join(" ");
    let echo = format!(r#"{{"command":"echo {all}; : https://me:{key}@host/?key={key}"}}"#);
    server.reply(Reply::calls([("shell", echo.as_str())])).reply(Reply::status(
        500,
        &[("x-echo", key)],
        &all,
    ));
    server.reply(Reply::status(401, &[], &all));
    let session = house
        .sessions()
        .open(house.session().model("openai/scripted").name("secrets"))
        .await
        .unwrap();
    let mut events = session.attach(AttachFrom::start()).await.unwrap();
    session.prompt(format!("use https://me:{key}@host/?key={key} and {all}")).await.unwrap();
    wait_turn_finished(&mut events).await;
    let sent = server.request(0).headers.iter().any(|(_, value)| value.contains(key));
    assert!(sent, "{key}: it is in the request");
    let status = house.run(&["status", "--json"]).code(0);
    assert!(status.out.contains("\"live\": 1"), "{status:#?}");
    let log = house.last_words();
    assert!(log.contains(" TRACE ") && log.len() > 10_000, "it talks");
    for planted in PLANTED {
        let leaks: Vec<_> = log.lines().filter(|line| line.contains(planted)).collect();
        assert!(leaks.is_empty(), "{key}: {planted}: {leaks:#?}");
        assert!(
            !status.out.contains(planted) && !status.err.contains(planted),
            "{key}: {planted}: {status:#?}"
        );
    }
}

#[tokio::test]
async fn m_f2_a_session_is_logged_at_debug_level_while_it_is_debugged() {
    let house = DaemonWorld::new();
    house.start();
    let close = house.sessions().open(house.session().name("close")).await.unwrap();
    let other = house.sessions().open(house.session().name("other")).await.unwrap();
    let debugged = |log: &str, id: &str| {
        let of = |line: &&str| line.contains(" DEBUG ") && line.contains(id);
        log.lines().filter(of).filter(|line| line.contains("session{")).count()
    };
    let work = async || {
        for session in [&close, &other] {
            session.prompt("shell: true").await.unwrap();
            session.settled().await.unwrap();
        }
        house.last_words()
    };
    assert_eq!(debugged(&work().await, ""), 0);
    house.start();
    close.change_debug(true).await.unwrap();
    assert!(house.sessions().look("close").await.unwrap().is_debug_enabled);
    let log = work().await;
    let (id, others) = (close.id().as_str(), other.id().as_str());
    for message in
        ["model request sent", "model answer received", "policy verdict", "call ended", "saved"]
    {
        let is_logged =
            |line: &&str| line.contains(" DEBUG ") && line.contains(id) && line.contains(message);
        assert!(log.lines().any(|line| is_logged(&line)), "no line contains `{message}`: {log}");
    }
    assert_eq!(debugged(&log, others), 0, "only the one: {log}");
    assert!(
        !log.lines().any(|line| line.contains(" DEBUG ") && !line.contains("holdpoint")),
        "only ours: {log}"
    );
    // The setting is a fact and stays until it is switched off.
    for (enabled, more) in [(None, true), (Some(false), false)] {
        house.start();
        let close = house.sessions().get("close").await.unwrap();
        if let Some(enabled) = enabled {
            close.change_debug(enabled).await.unwrap();
        }
        let before = house.log().lines().count();
        close.prompt("shell: true").await.unwrap();
        close.settled().await.unwrap();
        let log = house.last_words();
        let since: Vec<_> = log.lines().skip(before).collect();
        assert_eq!(
            since.iter().any(|line| line.contains("model request sent")),
            more,
            "{since:#?}"
        );
    }
}
