//! Servers that we did not write.

use std::fs;
use std::process::Command;

use holdpoint_common::{
    AskRequest, Image, ImageType, McpServer, QuestionReply, QuestionResponse, SandboxLevel,
};
use holdpoint_tools::AskReply;
use holdpoint_tools::testing::Bench;
use serde_json::json;

use super::installed;
use super::session::Session;
use crate::sandbox::World;

pub(super) fn everything() -> McpServer {
    let script = installed::npm("server-everything/dist/index.js");
    McpServer {
        sandbox: false,
        cwd: Some("/".to_owned()),
        ..McpServer::program("node", [script, "stdio".to_owned()])
    }
}

pub(super) fn modern() -> McpServer {
    let script = installed::folder().join("everything.py").to_str().unwrap().to_owned();
    McpServer {
        sandbox: false,
        cwd: Some("/".to_owned()),
        ..McpServer::program(installed::python(), [script])
    }
}

#[test]
fn m_h2_server_everything_is_called() {
    let mut session = Session::of(everything());
    let names = session.names();
    for tool in ["echo", "get-sum", "get-tiny-image", "get-structured-content"] {
        assert!(names.contains(&format!("mcp__s__{tool}")), "{tool}: {names:?}");
    }
    let echo = session.output("echo", json!({"message": "hold"}));
    assert_eq!(echo, "Echo: hold\n");
    assert!(session.output("get-sum", json!({"a": 2, "b": 40})).contains("42"));
    let called = session.call("mcp__s__get-tiny-image", json!({}));
    assert!(called.output.contains("[image, image/png, "), "{called:?}");
    let images = called.result.unwrap().images;
    assert!(matches!(&images[..], [Image { media_type: ImageType::Png, .. }]), "{images:?}");
    let structured = session.output("get-structured-content", json!({"location": "Chicago"}));
    assert_eq!(structured.matches("temperature").count(), 1, "{structured}");
    let wrong = session.call("mcp__s__get-sum", json!({"a": "x"}));
    let failed = wrong.result.as_ref().is_ok_and(|outcome| outcome.failed);
    assert!(failed || wrong.result.is_err(), "{wrong:?}");
    session.end();
}

#[test]
fn m_h2_progress_is_output() {
    let mut session = Session::of(everything());
    session.names();
    let long = session.output("trigger-long-running-operation", json!({"duration": 1, "steps": 4}));
    for step in 1..4 {
        assert!(long.contains(&format!("[{step}/4]\n")), "{long}");
    }
    assert!(long.trim_end().ends_with("Duration: 1 seconds, Steps: 4."), "{long}");
}

#[test]
fn m_h2_a_server_asks_the_user() {
    let mut session = Session::of(everything());
    session.names();
    let calling = session.start("mcp__s__trigger-elicitation-request", json!({}));
    let AskRequest::Question(request) = calling.wait_asked() else { panic!("not a question") };
    assert_eq!(request.tool_name, "MCP server s");
    assert!(request.questions[0].question.starts_with("The MCP server `s` asks: "));
    let reply = |id: &str| match id {
        "name" => Some("Ada".to_owned()),
        "check" => Some("true".to_owned()),
        _ => None,
    };
    let replies = request.questions.iter().map(|question| {
        let id = question.id.clone();
        QuestionReply { answer: reply(&id), id }
    });
    let replies = QuestionResponse::Replied { replies: replies.collect() };
    calling.answer(AskReply::Question(replies));
    let called = calling.wait();
    assert!(called.output.contains("- Name: Ada"), "{}", called.output);
    assert!(called.output.contains("- Agreed to terms: true"), "{}", called.output);
    let declined = Bench::new().answer(AskReply::Question(QuestionResponse::Declined));
    let declined = declined.call(session.tool("mcp__s__trigger-elicitation-request"), json!({}));
    assert!(declined.output.contains("declined"), "{}", declined.output);
}

#[test]
fn m_h2_a_server_of_the_modern_era_is_called() {
    let mut session = Session::of(modern());
    let names = session.names();
    assert_eq!(names, ["mcp__s__add", "mcp__s__question", "mcp__s__slow"]);
    assert_eq!(session.description("mcp__s__add"), "Add two numbers.");
    let sum = session.output("add", json!({"a": 40, "b": 2}));
    assert!(sum.starts_with("42\n"), "{sum}");
    let slow = session.output("slow", json!({"steps": 3}));
    assert!(slow.contains("[2/3] step 2\n") && slow.contains("finished"), "{slow}");
    session.end();
}

#[test]
fn m_h2_server_filesystem_works_in_the_sandbox_and_does_not_leave_it() {
    let world = World::visible();
    // Folders for temporary files are not visible in a sandbox.
    let script =
        world.path("work/node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let script = script.to_str().unwrap().to_owned();
    let installed = installed::npm("../../node_modules");
    let copied =
        Command::new("cp").args(["-a", &installed]).arg(world.path("work/node_modules")).status();
    assert!(copied.unwrap().success());
    for level in world.sandboxes() {
        let work = world.path("work");
        let folders = [script.clone(), world.path(".").to_str().unwrap().to_owned()];
        let server = McpServer::program("node", folders);
        let bench = Bench::within(&work);
        let sandbox = world.sandbox(level, world.profile());
        let mut session = Session::with(bench, sandbox, [("s", server)]);
        let notices = session.step();
        assert_eq!(notices, Vec::<String>::new(), "{level}");
        let write = |session: &mut Session, path: &str| {
            let path = world.path(path).to_str().unwrap().to_owned();
            let input = json!({"path": path, "content": "by a server"});
            session.call("mcp__s__write_file", input)
        };
        let called = write(&mut session, "work/new");
        assert!(!called.result.unwrap().failed, "{level}: {}", called.output);
        assert_eq!(fs::read_to_string(work.join("new")).unwrap(), "by a server");
        fs::remove_file(work.join("new")).unwrap();
        let called = write(&mut session, "outside/new");
        let written = fs::exists(world.path("outside/new")).unwrap();
        assert!(!written && level != SandboxLevel::Off, "{level}: {}", called.output);
        session.end();
    }
}
