//! `ask_user` in a session: from the model's call to the reply in its next request.

use std::sync::Arc;

use holdpoint_common::{
    Answer, AnswerError, AskRequest, AsksMode, Outcome, PolicyMode, QuestionReply, Refused,
    ToolResult, ToolStatus,
};
use holdpoint_session::model::Message;
use holdpoint_session::testing::{Harness, Recorder, reply};
use holdpoint_session::{OpenSession, SessionError, SessionHandle};
use serde_json::{Value, json};

fn two() -> Value {
    let options = json!([{"label": "red", "description": "like fire"}, {"label": "blue"}]);
    json!({"questions": [
        {"id": "colour", "header": "Colour", "question": "Which colour?", "options": options},
        {"id": "why", "header": "Reason", "question": "And why?"},
    ]})
}

/// A session with a model that calls `ask_user` with `input`.
async fn asks(harness: &Harness, open: OpenSession, input: Value) -> (SessionHandle, Recorder) {
    harness.model.then(reply().call("ask_user", input));
    let session = harness.sessions().open(open).await.unwrap();
    let events = harness.watch(&session).await;
    session.prompt("go").await.unwrap();
    (session, events)
}

/// The result of the call in the model's next request.
fn call_result(harness: &Harness) -> Arc<ToolResult> {
    let requests = harness.model.requests();
    let Some(Message::Tool(result)) = requests[1].messages.last() else { panic!("{requests:#?}") };
    Arc::clone(result)
}

fn answers(replies: &[(&str, &str)]) -> Answer {
    let reply = |(id, answer): &(&str, &str)| QuestionReply {
        id: (*id).to_owned(),
        answer: Some((*answer).to_owned()),
    };
    Answer::Reply { answers: replies.iter().map(reply).collect() }
}

#[tokio::test]
async fn m_e4_replies_reach_the_model_by_id_and_empty_text_is_refused() {
    let harness = Harness::start();
    // A question needs no approval, even if everything else is denied.
    let (_, mut events) =
        asks(&harness, harness.session().policy(PolicyMode::Readonly), two()).await;
    let ask = events.asked().await;
    assert!(matches!(&ask.request, AskRequest::Question(request) if request.questions.len() == 2));
    for wrong in [
        answers(&[("colour", "blue"), ("why", " ")]),
        answers(&[("colour", "blue")]),
        answers(&[("colour", "blue"), ("why", "x"), ("when", "now")]),
        answers(&[("colour", "blue"), ("colour", "red"), ("why", "x")]),
    ] {
        let refused = events.answer(wrong).await.unwrap_err();
        assert!(
            matches!(
                refused,
                SessionError::Refused(Refused::Answer(AnswerError::Incomplete { .. }))
            ),
            "{refused}"
        );
    }
    for wrong in [
        Answer::Resume,
        Answer::Approve { always: false },
        Answer::Deny { reason: None, always: false },
    ] {
        let refused = events.answer(wrong).await.unwrap_err();
        assert!(
            matches!(
                refused,
                SessionError::Refused(Refused::Answer(AnswerError::KindMismatch { .. }))
            ),
            "{refused}"
        );
    }
    events.answer(answers(&[("why", "so"), ("colour", "mauve")])).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(
        (call_result(&harness).status, &*call_result(&harness).result),
        (ToolStatus::Ok, r#"{"colour":"mauve","why":"so"}"#)
    );
}

#[tokio::test]
async fn m_e4_declining_is_an_answer() {
    let harness = Harness::start();
    let (_, mut events) =
        asks(&harness, harness.session(), json!({"question": "How are you?"})).await;
    events.asked().await;
    events.answer(Answer::Cancel).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(call_result(&harness).status, ToolStatus::Ok);
    assert!(call_result(&harness).result.contains("declined"), "{:?}", call_result(&harness));
}

#[tokio::test]
async fn m_e4_an_interrupt_ends_the_turn() {
    let harness = Harness::start();
    let (session, mut events) = asks(&harness, harness.session(), two()).await;
    events.asked().await;
    session.interrupt(None).await.unwrap();
    assert_eq!(events.turn_finished().await.outcome, Outcome::Interrupted);
    assert_eq!(harness.model.requests().len(), 1);
}

#[tokio::test]
async fn m_e4_a_question_without_a_user_is_an_error_to_the_model() {
    for asked in [AsksMode::Deny, AsksMode::Approve] {
        let harness = Harness::start();
        let (_, mut events) = asks(&harness, harness.session().asks(asked), two()).await;
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        assert_eq!(call_result(&harness).status, ToolStatus::Error);
        assert!(
            call_result(&harness).result.contains("no user can answer"),
            "{:?}",
            call_result(&harness)
        );
    }
}

#[tokio::test]
async fn m_e4_an_invalid_question_is_an_error_to_the_model() {
    let harness = Harness::start();
    let (_, mut events) = asks(&harness, harness.session(), json!({"questions": []})).await;
    assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
    assert_eq!(call_result(&harness).status, ToolStatus::Error);
    assert!(
        call_result(&harness).result.contains("`questions` has less than 1 item"),
        "{:?}",
        call_result(&harness)
    );
}
