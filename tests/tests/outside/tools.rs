//! Tests that use all of `holdpoint_tools::testing` with a tool of another project.
#![cfg(test)]

use std::fs;
use std::time::Duration;

use holdpoint_tools::common::{
    AskRequest, PauseKind, PauseRequest, PauseResponse, PolicyMode, PolicyRules, Question, QuestionRequest,
    QuestionResponse, TaskRequest,
};
use holdpoint_tools::testing::{
    Bench, Called, Census, again, full, in_own_process, part, patience, rounds, serve_as_supervisor,
};
use holdpoint_tools::{
    Act, AskReply, Intent, Policy, Shell, Subject, Supervisor, TasksResponse, Tool, ToolContext, ToolError,
    ToolOutcome, Workspace, WriteFile,
};
use serde_json::{Value, json};

/// A tool of another project, which performs the action that its input names.
struct Deploy;

impl Tool for Deploy {
    fn name(&self) -> &str {
        "deploy"
    }

    fn description(&self) -> &str {
        "Deploys."
    }

    fn schema(&self) -> Value {
        json!({"type": "object"})
    }

    fn intent(&self, _: &Value, _: &Workspace) -> Result<Intent, ToolError> {
        Ok(Intent::new(Act::Other, "Deploy?"))
    }

    fn call(&mut self, input: Value, context: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let pause = |kind, message: &str| context.pause(kind, message, None);
        let output = match input.as_str().unwrap_or_default() {
            "pause" => format!("{:?}", pause(PauseKind::Confirm, "Deploy now?")),
            "pause twice" => {
                let first = pause(PauseKind::Confirm, "Build?");
                format!("{first:?}, {:?}", pause(PauseKind::Continue, "Look at it."))
            }
            "pause about" => {
                let (kept, subject) = Subject::new();
                std::thread::spawn(move || drop(kept));
                format!("{:?}", context.pause_about(&subject, PauseKind::Continue, "Look at the page.", None))
            }
            "ask" => {
                let question = Question {
                    id: "where".to_owned(),
                    header: "Where".to_owned(),
                    question: "Where to?".to_owned(),
                    options: Vec::new(),
                };
                let request = QuestionRequest { tool_name: "deploy".to_owned(), questions: vec![question] };
                format!("{:?}", context.ask(request))
            }
            "tasks" => match context.tasks(TaskRequest::List) {
                TasksResponse::Tasks(tasks) => format!("{tasks:?}"),
                other => panic!("{other:?}"),
            },
            "wait" => {
                context.output("working\n");
                while !context.is_cancelled() {
                    std::thread::yield_now();
                }
                return Err(ToolError::Interrupted);
            }
            "panic" => panic!("as the test wants"),
            "approved" => context.is_approved("to production").to_string(),
            other => return Err(ToolError::input(format!("{other} is not known"))),
        };
        context.output(&output);
        Ok(ToolOutcome::text(output))
    }
}

fn output_of(called: Called) -> String {
    called.result.unwrap().output
}

#[test]
fn without_an_answer_an_ask_reads_as_interrupted() {
    let bench = Bench::new();
    let called = bench.call(Deploy, json!("pause"));
    let [AskRequest::Pause(PauseRequest { kind: PauseKind::Confirm, tool_name, message, details: None })] =
        &called.asked[..]
    else {
        panic!("{:?}", called.asked)
    };
    assert_eq!((&**tool_name, &**message), ("deploy", "Deploy now?"));
    assert_eq!(output_of(called), "Interrupted");
    assert_eq!(output_of(bench.call(Deploy, json!("pause twice"))), "Interrupted, Interrupted");
    assert_eq!(output_of(bench.call(Deploy, json!("ask"))), "Interrupted");
    assert_eq!(output_of(bench.start(Deploy, json!("pause")).wait()), "Interrupted");
    assert_eq!(output_of(Bench::default().call(Deploy, json!("pause"))), "Interrupted");
    assert_eq!(output_of(Bench::within(bench.root()).call(Deploy, json!("pause"))), "Interrupted");
}

#[test]
fn each_ask_gets_the_next_answer_and_then_none() {
    let bench = Bench::new().answer(AskReply::Pause(PauseResponse::Approved));
    assert_eq!(output_of(bench.call(Deploy, json!("pause"))), "Approved");
    assert_eq!(
        output_of(bench.call(Deploy, json!("pause twice"))),
        "Approved, Interrupted",
        "each call restarts the answers"
    );
    let bench = bench.answer(AskReply::Pause(PauseResponse::Resumed));
    let called = bench.call(Deploy, json!("pause twice"));
    assert_eq!((called.asked.len(), output_of(called)), (2, "Approved, Resumed".to_owned()));
    let declined = Bench::new().answer(AskReply::Question(QuestionResponse::Declined));
    assert_eq!(output_of(declined.call(Deploy, json!("ask"))), "Declined");
    assert_eq!(output_of(declined.call(Deploy, json!("pause"))), "Interrupted", "a question's answer is not used");
}

#[test]
fn an_ask_of_a_started_call_waits_for_its_answer() {
    let bench = Bench::new();
    let calling = bench.start(Deploy, json!("pause twice"));
    assert_eq!(calling.wait_asked().message(), "Build?");
    calling.answer(AskReply::Pause(PauseResponse::Approved));
    // Answers the next ask, whether it is already open or not.
    calling.answer(AskReply::Pause(PauseResponse::Resumed));
    assert_eq!(output_of(calling.wait()), "Approved, Resumed");
    let calling = bench.start(Deploy, json!("pause twice"));
    let _ = calling.wait_asked();
    calling.cut();
    assert_eq!(output_of(calling.wait()), "Interrupted, Interrupted");
    let calling = bench.start(Deploy, json!("pause about"));
    let _ = calling.wait_asked();
    assert_eq!(output_of(calling.wait()), "None", "the subject has ended");
}

#[test]
fn a_call_is_watched_and_cut() {
    let calling = Bench::new().start(Deploy, json!("wait"));
    calling.wait_for("working");
    assert_eq!((calling.output(), calling.cancel.is_cancelled()), ("working\n".to_owned(), false));
    calling.cut();
    assert!(matches!(calling.wait().result, Err(ToolError::Interrupted)));
    let unknown = Bench::new().call(Deploy, json!("other")).result;
    assert!(matches!(&unknown, Err(ToolError::Input { message }) if message == "other is not known"));
}

#[test]
#[should_panic(expected = "as the test wants")]
fn a_tool_that_panics_fails_its_test() {
    drop(Bench::new().call(Deploy, json!("panic")));
}

#[test]
fn a_bench_has_a_workspace_a_policy_and_an_environment() {
    let ask = |details: &str| PauseRequest {
        kind: PauseKind::Confirm,
        tool_name: "deploy".to_owned(),
        message: "Deploy?".to_owned(),
        details: Some(details.to_owned()),
    };
    assert_eq!(output_of(Bench::new().call(Deploy, json!("approved"))), "false");
    let approved = Bench::new().approved(AskRequest::Pause(ask("to production")));
    assert_eq!(output_of(approved.call(Deploy, json!("approved"))), "true");
    assert!(output_of(Bench::new().call(Deploy, json!("tasks"))).contains("Tasks"));

    let readonly = Policy::new(PolicyMode::Readonly, &PolicyRules::default(), None).unwrap();
    let bench = Bench::new()
        .policy(readonly)
        .env("WHERE", "here")
        .display(vec![("DISPLAY".to_owned(), ":1".to_owned())])
        .grace(Duration::from_millis(1))
        .supervisor(Supervisor::ThisProgram);
    let input = json!({"path": "a", "content": "text"});
    let intent = WriteFile::new().intent(&input, bench.workspace()).unwrap();
    let judged = bench.workspace().policy().judge("write_file", &intent.acts, bench.root());
    assert_eq!(judged.verdict, holdpoint_tools::common::Verdict::Deny);
    let called = bench.call(Shell::new(), json!({"command": "echo $WHERE; pwd"}));
    assert_eq!(called.output, format!("here\n{}\n", bench.root().display()));
    assert_eq!((called.streamed, called.output.len() as u64), (called.output.len() as u64, called.streamed));
    assert!(called.largest_piece > 0);
    assert_eq!(called.processes.total(), 0);
    fs::write(bench.root().join("kept"), "").unwrap();
    let root = bench.root().to_owned();
    drop(bench);
    assert!(!root.exists(), "the folder is removed with the bench");
}

#[test]
fn processes_of_a_call_are_counted_and_ended() {
    serve_as_supervisor();
    let census = Census::new();
    let bench = Bench::new().env("MARK", census.mark());
    let calling = bench.start(Shell::new(), json!({"command": "setsid sleep 1000 & echo ready; sleep 1000"}));
    calling.wait_for("ready");
    census.wait_living(3);
    assert!(census.living().iter().any(|(_, program)| program.contains("sleep")));
    calling.cut();
    assert!(calling.wait().processes.total() >= 2);
    census.wait_none();

    let job = json!({"command": "sleep 1000", "background": true});
    bench.call(Shell::new(), job).result.unwrap();
    census.wait_living(1);
    bench.background().close();
    census.wait_none();
}

#[test]
fn a_test_runs_again_in_another_process() {
    if part().as_deref() == Some("other") {
        println!("from the other process");
        return;
    }
    let other = again("other").output().unwrap();
    assert!(other.status.success());
    assert!(String::from_utf8_lossy(&other.stdout).contains("from the other process"));
}

#[test]
fn a_test_runs_in_a_process_of_its_own() {
    if !in_own_process() {
        return;
    }
    assert!(part().is_some());
    assert_eq!(rounds(1, 2), if full() { 2 } else { 1 });
    assert!(patience() > Duration::ZERO);
}
