//! The conformance suite of the protocol's project, with our client over HTTP. The suite runs this
//! test in a second process as the client under test.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use holdpoint_common::{McpServer, QuestionResponse};
use holdpoint_tools::AskReply;
use holdpoint_tools::testing::{Bench, again, part};
use serde_json::{Value, json};

use super::installed;
use super::session::Session;

/// Lists the tools of the server whose address is the last argument, and calls them as the scenario
/// wants.
fn client() {
    let url = env::args().next_back().unwrap();
    let skipped = AskReply::Question(QuestionResponse::Replied { replies: Vec::new() });
    let answers = (0..32).fold(Bench::new(), |bench, _| bench.answer(skipped.clone()));
    let mut session = Session::with(answers, None, [("s", McpServer::address(url))]);
    println!("notices: {:?}", session.step());
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    let calls: Vec<(String, Value)> = match context["toolCalls"].as_array() {
        Some(calls) => {
            let call = |call: &Value| {
                (format!("mcp__s__{}", call["name"].as_str().unwrap()), call["arguments"].clone())
            };
            calls.iter().map(call).collect()
        }
        None => {
            let schemas = session.schemas().into_iter();
            schemas.map(|(name, schema)| (name, example(&schema))).collect()
        }
    };
    for (name, input) in calls {
        let tool = session.tool(&name);
        println!("{name} {input}: {:?}", session.bench.call(tool, input.clone()));
    }
    session.end();
}

/// An input that fits a schema.
fn example(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |property: &Value| match property["type"].as_str() {
        Some("integer" | "number") => json!(2),
        Some("boolean") => json!(true),
        Some("object") => json!({}),
        Some("array") => json!([]),
        _ => json!("x"),
    };
    properties.map(|(name, property)| (name.clone(), value(property))).collect()
}

/// Runs all scenarios that a revision requires of clients.
fn conforms(revision: &str) {
    if part().is_some() {
        return client();
    }
    let this = again("client");
    let words = [this.get_program()].into_iter().chain(this.get_args());
    let words: Vec<_> = words.map(|word| word.to_str().unwrap()).collect();
    let results = tempfile::tempdir().unwrap();
    let suite = installed::npm("conformance/dist/index.js");
    let failures = installed::folder().join("conformance.yml");
    let mut command = Command::new(installed::node());
    command.arg(suite).args(["client", "--requirements", revision, "--timeout", "120000"]);
    command.arg("--command").arg(words.join(" ")).arg("--expected-failures").arg(failures);
    command.arg("--output-dir").arg(results.path()).current_dir(results.path());
    command.envs(this.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{text}\n{errors}{}", output.status, logs(results.path()));
    assert!(text.contains("tools_call"), "it ran no scenario: {text}");
}

/// The output of our client in each scenario.
fn logs(folder: &Path) -> String {
    let mut logs = String::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            logs.push_str(&logs_of(&path));
        }
    }
    logs
}

fn logs_of(folder: &Path) -> String {
    let out = fs::read_to_string(folder.join("stdout.txt")).unwrap_or_default();
    format!("--- {}\n{out}\n{}", folder.display(), self::logs(folder))
}

#[test]
fn m_h2_the_client_conforms_to_2025_11_25() {
    conforms("2025-11-25");
}

#[test]
fn m_h2_the_client_conforms_to_2026_07_28() {
    conforms("2026-07-28");
}
