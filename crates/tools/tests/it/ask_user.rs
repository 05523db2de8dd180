//! `ask_user`: the questions, the answers that the model receives, and the calls that are refused.

use holdpoint_common::{AskRequest, QuestionReply, QuestionResponse};
use holdpoint_tools::testing::{Bench, Called};
use holdpoint_tools::{AskReply, AskUser, Tool, ToolError};
use serde_json::{Value, json};

fn ask(input: Value, answer: QuestionResponse) -> Called {
    Bench::new().answer(AskReply::Question(answer)).call(AskUser::new(), input)
}

fn two() -> Value {
    let options = json!([{"label": "red", "description": "like fire"}, {"label": "blue"}]);
    json!({"questions": [
        {"id": "colour", "header": "Colour", "question": "Which colour?", "options": options},
        {"id": "why", "header": "Reason", "question": "And why?"},
    ]})
}

#[test]
fn m_e4_answers_come_by_id_in_the_questions_order() {
    let reply =
        |id: &str, answer: &str| QuestionReply { id: id.into(), answer: Some(answer.into()) };
    let replies = vec![reply("colour", "blue"), reply("why", "it \"is\"\nso")];
    let called = ask(two(), QuestionResponse::Replied { replies });
    let outcome = called.result.unwrap();
    assert_eq!(outcome.output, r#"{"colour":"blue","why":"it \"is\"\nso"}"#);
    assert!(!outcome.failed);
    let [AskRequest::Question(request)] = &called.asked[..] else { panic!("{:?}", called.asked) };
    assert_eq!(request.tool_name, "ask_user");
    assert_eq!(serde_json::to_value(&request.questions).unwrap(), two()["questions"]);
}

#[test]
fn m_e4_a_skipped_question_is_named_to_the_model() {
    let replies = vec![
        QuestionReply { id: "colour".into(), answer: None },
        QuestionReply { id: "why".into(), answer: Some("so".into()) },
    ];
    let outcome = ask(two(), QuestionResponse::Replied { replies }).result.unwrap();
    let expected = "{\"colour\":null,\"why\":\"so\"}\nThe user skipped the questions answered with null. \
                    Continue without these answers.";
    assert_eq!(outcome.output, expected);
}

#[test]
fn m_e4_a_plain_question_is_accepted() {
    let replies = vec![QuestionReply { id: "question".into(), answer: Some("fine".into()) }];
    let called = ask(json!({"question": "How are you?"}), QuestionResponse::Replied { replies });
    assert_eq!(called.result.unwrap().output, r#"{"question":"fine"}"#);
    let [AskRequest::Question(request)] = &called.asked[..] else { panic!("{:?}", called.asked) };
    assert_eq!(request.questions[0].question, "How are you?");
    assert!(request.questions[0].options.is_empty());
}

#[test]
fn m_e4_declined_is_a_result_and_no_user_is_an_error() {
    let declined = ask(two(), QuestionResponse::Declined).result.unwrap();
    assert!(declined.output.contains("declined") && !declined.failed);
    let error = ask(two(), QuestionResponse::Unanswerable).result.unwrap_err();
    assert!(
        matches!(&error, ToolError::Failed { message } if message.contains("no user can answer")),
        "{error}"
    );
    assert!(matches!(
        ask(two(), QuestionResponse::Interrupted).result,
        Err(ToolError::Interrupted)
    ));
    let unanswered = Bench::new().call(AskUser::new(), two());
    assert!(
        matches!(unanswered.result, Err(ToolError::Interrupted)) && unanswered.asked.len() == 1
    );
}

#[test]
fn m_e4_a_cut_ends_the_question() {
    let calling = Bench::new().start(AskUser::new(), two());
    calling.cut();
    assert!(matches!(calling.wait().result, Err(ToolError::Interrupted)));
}

#[test]
fn m_e4_input_over_a_limit_is_refused_with_the_limit() {
    let bench = Bench::new();
    let with = |field: &str, value: Value| {
        let mut question = json!({"id": "a", "header": "A", "question": "A?"});
        question[field] = value;
        json!({"questions": [question]})
    };
    let option = |label: &str| json!({"label": label});
    let many = |count: usize| {
        Value::from(vec![json!({"id": "a", "header": "A", "question": "A?"}); count])
    };
    for (input, expected) in [
        (json!({}), "`questions` is missing"),
        (json!({"questions": []}), "expected 1 to 3 questions, got 0"),
        (json!({"questions": many(4)}), "expected 1 to 3 questions, got 4"),
        (json!({"questions": many(2)}), "two questions have the id `a`"),
        (json!({"questions": many(1), "question": "A?"}), "not both"),
        (json!({"question": " \n"}), "question 1: the question is empty"),
        (with("id", json!("")), "question 1: the id is empty"),
        (with("header", json!(" ")), "question 1: the header is empty"),
        (with("question", json!("")), "question 1: the question is empty"),
        (with("id", json!("é".repeat(65))), "the id is 65 characters long; the limit is 64"),
        (
            with("header", json!("x".repeat(41))),
            "the header is 41 characters long; the limit is 40",
        ),
        (
            with("question", json!("x".repeat(2001))),
            "the question is 2001 characters long; the limit is 2000",
        ),
        (with("options", json!([option("a")])), "expected no options or 2 to 3, got 1"),
        (with("options", json!(vec![option("a"); 4])), "expected no options or 2 to 3, got 4"),
        (with("options", json!([option("a"), option(" a")])), "two options have the label"),
        (with("options", json!([option("a"), option("")])), "an option's label is empty"),
        (
            with("options", json!([option("a"), option(&"x".repeat(101))])),
            "label is 101 characters long; the limit is 100",
        ),
        (
            with("options", json!([option("a"), {"label": "b", "description": "x".repeat(501)}])),
            "description is 501 characters long; the limit is 500",
        ),
        (json!({"question": "A?", "answer": "b"}), "unknown field `answer`"),
        (json!({"questions": [{"id": "a", "question": "A?"}]}), "missing field `header`"),
    ] {
        let refused = AskUser::new().intent(&input, bench.workspace()).unwrap_err();
        assert!(
            matches!(refused, ToolError::Input { .. }) && refused.to_string().contains(expected),
            "{refused}"
        );
        let called = bench.call(AskUser::new(), input);
        assert!(matches!(called.result, Err(ToolError::Input { .. })) && called.asked.is_empty());
    }
    let most = json!({"id": "é".repeat(64), "header": "é".repeat(40), "question": "é".repeat(2000),
        "options": [option("a"), option("b"), {"label": "é".repeat(100), "description": "é".repeat(500)}]});
    assert!(AskUser::new().intent(&json!({"questions": [most]}), bench.workspace()).is_ok());
}
