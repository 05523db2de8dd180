//! The conformance suite of the protocol's project, with our client over HTTP. The suite runs this
//! test in a second process as the client under test.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::{env, fs};

use holdpoint_common::{McpServer, QuestionResponse};
use holdpoint_tools::mcp::{Authorizing, LoginRequest, Redirect};
use holdpoint_tools::testing::{Bench, again, part};
use holdpoint_tools::{AskReply, McpLogin, McpLogins};
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::http_server::http_clients;
use super::installed;
use super::session::Session;

/// How often the client logs in before its calls, and for one call.
const MAX_LOGINS: usize = 2;

/// The logins of the client.
#[derive(Default)]
struct Logins(Mutex<Option<McpLogin>>);

impl McpLogins for Logins {
    fn get(&self, _: &str, _: &str) -> Result<Option<McpLogin>, String> {
        Ok(self.0.lock().unwrap().clone())
    }

    fn lock(&self, _: &str, _: &str) -> Result<Box<dyn Send>, String> {
        Ok(Box::new(()))
    }

    fn save(&self, login: &McpLogin) -> Result<(), String> {
        *self.0.lock().unwrap() = Some(login.clone());
        Ok(())
    }
}

impl Logins {
    /// Logs in as the hint in this text says, with a browser that agrees. Returns whether there is a
    /// login now.
    fn follow(&self, text: &str, url: &str, context: &Value) -> bool {
        let Some((_, hint)) = text.split_once("(hint: holdpoint mcp login s") else { return false };
        let text = |key: &str| context[key].as_str().map(str::to_owned);
        let settings = McpServer {
            client_id: text("client_id"),
            client_secret: text("client_secret"),
            ..McpServer::address(url)
        };
        let mut scopes = self.0.lock().unwrap().take().map(|login| login.scopes);
        let named = hint.split_once("--scope ").and_then(|(_, scopes)| scopes.split(')').next());
        let named = named.map(|named| named.trim_matches('\'').split(' ').map(str::to_owned));
        let scopes = named.map(|named| scopes.take().into_iter().flatten().chain(named).collect());
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let login = runtime.block_on(log_in(&settings, scopes.unwrap_or_default()));
        println!("login: {login:?}");
        login.is_ok_and(|login| self.save(&login).is_ok())
    }
}

/// Logs in, with a browser that agrees.
async fn log_in(settings: &McpServer, scopes: Vec<String>) -> Result<McpLogin, String> {
    let (redirect, clients) = ("http://127.0.0.1:7/callback", http_clients());
    let request = LoginRequest { name: "s", settings, redirect, scopes, clients };
    let authorizing = Authorizing::begin(request).await?;
    let browser = http_clients()(authorizing.page())?;
    let page = browser.get(authorizing.page()).send().await.map_err(|error| error.to_string())?;
    let location = page.headers().get("location").ok_or("no redirect")?;
    match authorizing.read(location.to_str().unwrap()) {
        Redirect::Code(code) => authorizing.finish(code).await,
        Redirect::Refused(why) => Err(why),
        Redirect::Foreign(why) => Err(why.to_owned()),
    }
}

/// Lists the tools of the server whose address is the last argument, and calls them as the scenario
/// wants. Logs in if the server requires it.
fn client() {
    let url = env::args().next_back().unwrap();
    let logins = Arc::new(Logins::default());
    let skipped = AskReply::Question(QuestionResponse::Replied { replies: Vec::new() });
    let answers = (0..32).fold(Bench::new(), |bench, _| bench.answer(skipped.clone()));
    let server = McpServer::address(url.as_str());
    let mut session = Session::with_logins(answers, server, Arc::clone(&logins) as _);
    let context = env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    let context: Value = serde_json::from_str(&context).unwrap_or_default();
    for count in 0..=MAX_LOGINS {
        let notices = session.step();
        println!("notices: {notices:?}");
        if count == MAX_LOGINS || !logins.follow(&notices.join("\n"), &url, &context) {
            break;
        }
    }
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
        for count in 0..=MAX_LOGINS {
            let tool = session.tool(&name);
            let called = session.bench.call(tool, input.clone());
            println!("{name} {input}: {called:?}");
            if count == MAX_LOGINS
                || !logins.follow(&format!("{:?}", called.result), &url, &context)
            {
                break;
            }
            session.step();
        }
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
