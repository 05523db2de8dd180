//! Tests that use all of `holdpoint_session::testing` from another project.
#![cfg(test)]

use std::time::Duration;

use holdpoint_session::common::{
    Answer, Delta, Event, Fact, Hold, Limits, Outcome, PauseKind, PauseResponse, ToolFact, TurnFact, Usage,
};
use holdpoint_session::model::ModelError;
use holdpoint_session::testing::{
    Harness, Probe, Recorder, ScriptedModel, full, patience, reply, rounds, within_patience,
};
use holdpoint_session::tools::{Tool, ToolOutcome};
use holdpoint_session::{AttachFrom, ClientEnd};
use serde_json::{Value, json};

fn run(test: impl Future<Output = ()>) {
    tokio::runtime::Runtime::new().unwrap().block_on(test);
}

#[test]
fn a_scripted_model_says_what_the_test_wants() {
    run(async {
        let harness = Harness::start();
        let usage = Usage { input: 3, output: 5, ..Usage::default() };
        harness.model.then(reply().thought("Hm.").text("Hello.").usage(usage)).then(reply().fail("no power"));
        harness.model.then(reply().error(ModelError::Failed { message: "nor now".to_owned() }));
        harness.model.then(reply().text("And").panic("as the test wants"));
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("Say hello.").await.unwrap();
        let end = events.turn_finished().await;
        assert_eq!((end.outcome, end.usage.output, end.error), (Outcome::Done, 5, None));
        assert!(end.cause.is_none() && end.receipt.is_none() && end.turn.0 > 0);
        for error in ["no power", "nor now", "as the test wants"] {
            session.prompt("And now?").await.unwrap();
            let end = events.turn_finished().await;
            assert_eq!(end.outcome, Outcome::Failed, "{error}");
            assert!(end.error.as_ref().is_some_and(|text| text.contains(error)), "{error}: {:?}", end.error);
        }
        session.prompt("Without a script?").await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        assert_eq!(harness.model.requests().len(), 5);
        assert_eq!(ScriptedModel::NAME, "scripted/test");
        assert!(events.facts().any(|fact| matches!(fact, Fact::Turn(TurnFact::Finished { .. }))));
        assert!(events.events().len() > 10);
    });
}

#[test]
fn a_live_reply_is_spoken_as_the_test_goes() {
    run(async {
        let harness = Harness::start();
        let live = harness.model.then_live();
        let session = harness.open().await;
        let mut events = harness.watch(&session).await;
        session.prompt("Go.").await.unwrap();
        events.step_started().await;
        assert!(live.text("one ") && live.text("two"));
        let two = |event: &Event| match event.delta() {
            Some(Delta::Text { text, .. }) => text.contains("two").then_some(()),
            _ => None,
        };
        events.until("the second word", two).await;
        assert!(live.call("probe", json!({"a": 1})));
        drop(live);
        let call = events.tool_started().await;
        assert!(call.0 > 0);
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);

        let live = harness.model.then_live();
        session.prompt("And fail.").await.unwrap();
        events.until_new("the next step", |event| matches!(event.fact(), Some(Fact::Turn(TurnFact::StepStarted))).then_some(())).await;
        assert!(live.fail("no power"));
        assert_eq!(events.turn_finished().await.outcome, Outcome::Failed);

        let live = harness.model.then_live();
        session.prompt("And be cut.").await.unwrap();
        events.until_new("the next step", |event| matches!(event.fact(), Some(Fact::Turn(TurnFact::StepStarted))).then_some(())).await;
        session.interrupt(None).await.unwrap();
        within_patience("the request to be dropped", live.dropped()).await;
        assert!(!live.text("three"));
        let end = events.turn_finished().await;
        assert!(end.outcome == Outcome::Interrupted && end.cause.is_some() && end.receipt.is_some(), "{end:?}");
    });
}

#[test]
fn a_probe_does_what_the_test_wants() {
    run(async {
        let harness = Harness::start();
        harness.probe.does(|input: Value, context| {
            context.output(&format!("{input}\n"));
            match context.pause(PauseKind::Confirm, "Go on?", None) {
                PauseResponse::Approved => Ok(ToolOutcome::text("went on")),
                other => Ok(ToolOutcome::text(format!("{other:?}"))),
            }
        });
        harness.model.then(reply().call("probe", json!({"step": 1}))).then(reply().text("Done."));
        let session = harness.open().await;
        let mut events = Recorder::new(session.attach(AttachFrom::start()).await.unwrap());
        session.prompt("Probe.").await.unwrap();
        events.output("\"step\"").await;
        let ask = events.asked().await;
        assert_eq!(ask.request.message(), "Go on?");
        events.answer(Answer::Approve { always: false }).await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        let result = events.facts().find_map(|fact| match fact {
            Fact::Tool(ToolFact::Finished(result)) => Some(result.result.clone()),
            _ => None,
        });
        assert!(result.unwrap().contains("went on"));

        let release = harness.probe.ignores_cancel("begun");
        harness.model.then(reply().raw_call("probe", "{}"));
        session.prompt("Probe again.").await.unwrap();
        events.output("begun").await;
        session.hold().await.unwrap();
        assert!(!matches!(events.hold_changed().await, Hold::Off));
        drop(release);
        session.release().await.unwrap();
        assert_eq!(events.turn_finished().await.outcome, Outcome::Done);
        assert_eq!(Probe::default().tool().name(), "probe");
    });
}

#[test]
fn an_engine_is_set_up_further() {
    run(async {
        let harness = Harness::limited(Limits::default());
        harness.open().await.prompt("Go.").await.unwrap();
        let harness = Harness::with(|engine| engine.limits(Limits::default()));
        assert!(harness.folder.path().is_dir());
        let session = harness.sessions().open(harness.session().name("mine")).await.unwrap();
        let mut events = harness.watch(&session).await;
        session.close().await.unwrap();
        while events.next().await.is_some() {}
        assert_eq!((events.end(), events.attachment().end()), (ClientEnd::Ended, ClientEnd::Ended));
        drop(harness.engine);
        assert!(patience() > Duration::ZERO);
        assert_eq!(rounds(1, 2), if full() { 2 } else { 1 });
    });
}
