//! The table of asks: the request of each kind, and the answer that each reply gives.

use serde_json::{Value, json};

use super::*;

fn ask(request: Value, always: Option<&str>) -> Ask {
    serde_json::from_value(json!({
        "id": "k3v9x2m7qa.7", "call": 3, "origin": "policy", "since": 0,
        "request": request, "always": always,
    }))
    .unwrap()
}

fn confirm(always: Option<&str>) -> Ask {
    let pause = json!({
        "type": "pause", "kind": "confirm", "toolName": "shell",
        "message": "Run this command?", "details": "rm -r ```build```",
    });
    ask(pause, always)
}

fn continues() -> Ask {
    let pause =
        json!({ "type": "pause", "kind": "continue", "toolName": "look", "message": "Look." });
    ask(pause, None)
}

fn questions() -> Ask {
    let options = json!([
        { "label": "Red", "description": "warm" }, { "label": "Blue" },
    ]);
    let questions = json!([
        { "id": "colour", "header": "Colour", "question": "Which colour?", "options": options },
        { "id": "name", "header": "Name", "question": "Which name?" },
    ]);
    ask(json!({ "type": "question", "toolName": "ask_user", "questions": questions }), None)
}

fn options(ask: &Ask, replies: &[QuestionReply]) -> Vec<(String, String)> {
    let Request { method, params } = request(ask, replies, Vec::new(), false);
    assert_eq!(method, "session/request_permission");
    let options = params["options"].as_array().unwrap().iter();
    let text = |option: &Value, name: &str| option[name].as_str().unwrap().to_owned();
    options.map(|option| (text(option, "optionId"), text(option, "kind"))).collect()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned())).collect()
}

fn selected(option: &str) -> Result<Value, Error> {
    Ok(json!({ "outcome": { "outcome": "selected", "optionId": option } }))
}

fn reply(id: &str, answer: Option<&str>) -> QuestionReply {
    QuestionReply { id: id.to_owned(), answer: answer.map(str::to_owned) }
}

#[test]
fn m_h1_a_confirm_offers_always_only_where_the_ask_does() {
    let all = ["allow_once", "allow_always", "reject_once", "reject_always"].map(|id| (id, id));
    let [allow, allow_always, reject, reject_always] = all;
    assert_eq!(options(&confirm(None), &[]), pairs(&[allow, reject]));
    assert_eq!(options(&confirm(Some("shell: rm")), &[]), pairs(&all));
    for (id, _) in [allow_always, reject_always] {
        let refused = read(&confirm(None), vec![], false, selected(id));
        assert!(matches!(refused, Next::StaysOpen(_)), "{refused:?}");
    }
}

#[test]
fn m_h1_a_permission_request_has_the_whole_ask() {
    let diff = plain("before".to_owned());
    let params = request(&confirm(Some("shell: rm")), &[], vec![diff], false).params;
    assert_eq!(params["sessionId"], "k3v9x2m7qa");
    assert_eq!(params["_meta"]["holdpoint"]["ask"], "k3v9x2m7qa.7");
    let call = &params["toolCall"];
    assert_eq!((&call["toolCallId"], &call["kind"]), (&json!("3"), &json!("execute")));
    let texts = call["content"].as_array().unwrap().iter();
    let texts: Vec<_> = texts.map(|content| content["content"]["text"].as_str().unwrap()).collect();
    assert_eq!(texts[..2], ["before", "Run this command?"]);
    assert_eq!(texts[2], "````\nrm -r ```build```\n````", "the details can't close their fence");
    assert!(texts[4].contains("shell: rm"), "{texts:?}");
}

#[test]
fn m_h1_each_reply_of_the_editor_gives_one_answer() {
    let denied = |reason: Option<&str>| {
        Next::Answer(Answer::Deny { reason: reason.map(str::to_owned), always: false })
    };
    let with_reason = |reason: &str| {
        let mut result = selected("reject_once").unwrap();
        result["_meta"] = json!({ "holdpoint": { "reason": reason } });
        Ok(result)
    };
    let in_outcome = json!({ "outcome": {
        "outcome": "selected", "optionId": "reject_once",
        "_meta": { "holdpoint": { "reason": "not now" } },
    } });
    for (ask, result, expected) in [
        (confirm(None), selected("allow_once"), Next::Answer(Answer::Approve { always: false })),
        (confirm(None), selected("reject_once"), denied(None)),
        (confirm(None), with_reason("use trash "), denied(Some("use trash"))),
        (confirm(None), with_reason("  "), denied(None)),
        (confirm(None), Ok(in_outcome), denied(Some("not now"))),
        (
            confirm(Some("shell: rm")),
            selected("allow_always"),
            Next::Answer(Answer::Approve { always: true }),
        ),
        (
            confirm(Some("shell: rm")),
            selected("reject_always"),
            Next::Answer(Answer::Deny { reason: None, always: true }),
        ),
        (continues(), selected("continue"), Next::Answer(Answer::Resume)),
        (continues(), selected("interrupt"), Next::Interrupt),
    ] {
        assert_eq!(read(&ask, vec![], false, result), expected);
    }
}

#[test]
fn m_h1_a_reply_without_an_answer_leaves_the_ask_open() {
    for result in [
        Err(Error::method_not_found()),
        Ok(json!({ "outcome": { "outcome": "cancelled" } })),
        Ok(json!({ "outcome": "yes" })),
        Ok(Value::Null),
        selected("yes"),
        selected("continue"),
    ] {
        let shown = format!("{result:?}");
        let next = read(&confirm(None), vec![], false, result);
        assert!(matches!(next, Next::StaysOpen(_)), "{shown}: {next:?}");
    }
}

#[test]
fn m_h1_questions_are_asked_one_after_the_other_without_forms() {
    let ask = questions();
    let first = [("answer-0", "allow_once"), ("answer-1", "allow_once"), ("skip", "reject_once")];
    assert_eq!(options(&ask, &[]), pairs(&first));
    let Next::Ask(replies) = read(&ask, vec![], false, selected("answer-1")) else { panic!() };
    assert_eq!(replies, [reply("colour", Some("Blue"))]);
    assert_eq!(options(&ask, &replies), pairs(&[("skip", "reject_once")]));
    let answers = vec![reply("colour", Some("Blue")), reply("name", None)];
    assert_eq!(
        read(&ask, replies, false, selected("skip")),
        Next::Answer(Answer::Reply { answers })
    );
    let skipped = vec![reply("colour", None)];
    assert_eq!(read(&ask, skipped, false, selected("skip")), Next::Answer(Answer::Cancel));
    assert!(matches!(read(&ask, vec![], false, selected("answer-2")), Next::StaysOpen(_)));
}

#[test]
fn m_h1_a_form_takes_suggested_and_other_answers() {
    let ask = questions();
    let Request { method, params } = request(&ask, &[], Vec::new(), true);
    assert_eq!((method, &params["mode"]), ("elicitation/create", &json!("form")));
    let fields = params["requestedSchema"]["properties"].as_object().unwrap();
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["colour", "colour_other", "name"]);
    assert_eq!(fields["colour"]["oneOf"][0]["const"], "Red");
    let read = |reply: Value| read(&ask, vec![], true, Ok(reply));
    let content = json!({ "colour": "Red", "colour_other": "Green", "name": " " });
    let answers = vec![reply("colour", Some("Green")), reply("name", None)];
    assert_eq!(
        read(json!({ "action": "accept", "content": content })),
        Next::Answer(Answer::Reply { answers })
    );
    assert_eq!(read(json!({ "action": "decline" })), Next::Answer(Answer::Cancel));
    assert!(matches!(read(json!({ "action": "cancel" })), Next::StaysOpen(_)));
    // Fields may have defaults, so a blank form is not declined.
    let answers = vec![reply("colour", None), reply("name", None)];
    let blank = read(json!({ "action": "accept", "content": {} }));
    assert_eq!(blank, Next::Answer(Answer::Reply { answers }));
}

#[test]
fn m_h1_the_fields_of_a_form_have_names_of_their_own() {
    let options = json!([{ "label": "Old" }, { "label": "New" }]);
    let questions = json!([
        { "id": "reason", "header": "Reason", "question": "Why?", "options": options },
        { "id": "reason_other", "header": "Details", "question": "Which details?" },
    ]);
    let ask = ask(json!({ "type": "question", "toolName": "t", "questions": questions }), None);
    let fields =
        request(&ask, &[], Vec::new(), true).params["requestedSchema"]["properties"].clone();
    let names: Vec<_> = fields.as_object().unwrap().keys().cloned().collect();
    assert_eq!(names, ["reason", "reason_other", "reason_other_"]);
    assert_eq!(fields["reason_other"]["title"], "Details");
    let content = json!({ "reason": "Old", "reason_other": "It broke." });
    let answers = vec![reply("reason", Some("Old")), reply("reason_other", Some("It broke."))];
    assert_eq!(
        read(&ask, vec![], true, Ok(json!({ "action": "accept", "content": content }))),
        Next::Answer(Answer::Reply { answers })
    );
}
