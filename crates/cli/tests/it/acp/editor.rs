//! An editor: starts the program, and reads every line that it writes as a message of the protocol.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use agent_client_protocol_schema::v1;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::world::{World, patience, wait};

/// An editor with its agent.
pub(super) struct Editor {
    pub(super) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    last_id: i64,
    /// The method of each request that is not replied to.
    sent: HashMap<i64, String>,
    /// All messages in order.
    pub(super) seen: Vec<Value>,
    /// Whether a wait has ended with the message.
    taken: Vec<bool>,
}

impl Editor {
    /// Starts the program.
    pub(super) fn start(world: &World) -> Self {
        let mut command = world.command(&["acp"]);
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            input,
            lines,
            last_id: 0,
            sent: HashMap::new(),
            seen: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// Starts the program and introduces the editor, which has these capabilities.
    pub(super) fn with(world: &World, capabilities: Value) -> Self {
        let mut editor = Self::start(world);
        let params = json!({ "protocolVersion": 1, "clientCapabilities": capabilities });
        editor.call("initialize", params);
        editor
    }

    /// Starts the program and introduces an editor without capabilities.
    pub(super) fn new(world: &World) -> Self {
        Self::with(world, json!({}))
    }

    /// Opens a session in the work folder, and returns its id.
    pub(super) fn open(&mut self, world: &World) -> String {
        let reply = self.call("session/new", folder(&world.path("work")));
        reply["sessionId"].as_str().unwrap().to_owned()
    }

    /// Writes a line.
    pub(super) fn line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    /// Sends a request, and returns its id.
    pub(super) fn send(&mut self, method: &str, params: Value) -> i64 {
        self.last_id += 1;
        self.sent.insert(self.last_id, method.to_owned());
        let request =
            json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params });
        self.line(request.to_string().as_bytes());
        self.last_id
    }

    pub(super) fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.line(message.to_string().as_bytes());
    }

    /// Sends a prompt, and returns the id of its request.
    pub(super) fn prompt(&mut self, session: &str, text: &str) -> i64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.send("session/prompt", json!({ "sessionId": session, "prompt": prompt }))
    }

    /// Sends a prompt, and waits for the reason of its end.
    pub(super) fn play(&mut self, session: &str, text: &str) -> String {
        let prompt = self.prompt(session, text);
        self.reply(prompt).unwrap()["stopReason"].as_str().unwrap().to_owned()
    }

    /// Sends a request, and waits for its result.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.reply(id).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Sends a request, and waits for its error.
    #[track_caller]
    pub(super) fn fails(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        self.reply(id).expect_err(method)
    }

    /// Waits for the reply to a request.
    #[track_caller]
    pub(super) fn reply(&mut self, id: i64) -> Result<Value, Value> {
        let message = self.until(&format!("the reply to {id}"), |message| {
            message["id"] == id && message.get("method").is_none()
        });
        match message.get("error") {
            Some(error) => Err(error.clone()),
            None => Ok(message["result"].clone()),
        }
    }

    /// Waits for a request of the agent, and returns its id and its parameters.
    #[track_caller]
    pub(super) fn asked(&mut self, method: &str) -> (Value, Value) {
        let request = self.until(method, |message| message["method"] == method);
        (request["id"].clone(), request["params"].clone())
    }

    /// Replies to a request of the agent.
    pub(super) fn answer(&mut self, id: &Value, result: Value) {
        self.line(json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string().as_bytes());
    }

    /// Chooses an option of a permission request.
    pub(super) fn choose(&mut self, id: &Value, option: &str) {
        self.answer(id, json!({ "outcome": { "outcome": "selected", "optionId": option } }));
    }

    /// Waits for an update of this kind.
    #[track_caller]
    pub(super) fn update(&mut self, kind: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let update = self.until(kind, |message| {
            let update = &message["params"]["update"];
            update["sessionUpdate"] == kind && wanted(update)
        });
        update["params"]["update"].clone()
    }

    /// Waits for a message that is wanted, and that no earlier wait has ended with.
    #[track_caller]
    pub(super) fn until(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut next = 0;
        loop {
            for (taken, message) in self.taken.iter_mut().zip(&self.seen).skip(next) {
                if !*taken && wanted(message) {
                    *taken = true;
                    return message.clone();
                }
            }
            next = self.seen.len();
            self.receive(what);
        }
    }

    /// Waits for the next message. It ends no wait.
    #[track_caller]
    pub(super) fn receive(&mut self, what: &str) {
        let Ok(line) = self.lines.recv_timeout(patience()) else {
            panic!("no message for {what}: {:#?}", self.seen);
        };
        let message = self.read(&line);
        self.seen.push(message);
        self.taken.push(false);
    }

    /// The updates of this kind so far.
    pub(super) fn updates(&self, kind: &str) -> Vec<&Value> {
        let updates = self.seen.iter().map(|message| &message["params"]["update"]);
        updates.filter(|update| update["sessionUpdate"] == kind).collect()
    }

    /// The text of all updates of this kind so far.
    pub(super) fn text(&self, kind: &str) -> String {
        let texts = self.updates(kind).into_iter();
        texts.filter_map(|update| update["content"]["text"].as_str()).collect()
    }

    /// Ends the input, and waits for the end of the program. Returns its exit code.
    pub(super) fn end(&mut self) -> Option<i32> {
        drop(self.input.take());
        wait(&mut self.child).code()
    }

    /// Reads a line as a message of the protocol.
    #[track_caller]
    fn read(&mut self, line: &str) -> Value {
        let message: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        match message["method"].as_str() {
            Some("session/update") => {
                typed::<v1::SessionNotification>(&message["params"]);
                assert!(message["params"]["_meta"]["holdpoint"]["seq"].is_u64(), "{line}");
            }
            Some("session/request_permission") => {
                typed::<v1::RequestPermissionRequest>(&message["params"]);
            }
            Some("elicitation/create") => {
                typed::<v1::CreateElicitationRequest>(&message["params"]);
            }
            Some("$/cancel_request") => {
                typed::<v1::CancelRequestNotification>(&message["params"]);
            }
            Some(method) => panic!("{method} is not a method of a client"),
            None => self.read_reply(&message),
        }
        message
    }

    fn read_reply(&mut self, message: &Value) {
        if let Some(error) = message.get("error") {
            typed::<v1::Error>(error);
            return;
        }
        let id = message["id"].as_i64().expect("a result has the id of its request");
        let method = self.sent.remove(&id).expect("each request has one reply");
        let result = &message["result"];
        match method.as_str() {
            "initialize" => typed::<v1::InitializeResponse>(result),
            "session/new" => typed::<v1::NewSessionResponse>(result),
            "session/load" => typed::<v1::LoadSessionResponse>(result),
            "session/resume" => typed::<v1::ResumeSessionResponse>(result),
            "session/list" => typed::<v1::ListSessionsResponse>(result),
            "session/close" => typed::<v1::CloseSessionResponse>(result),
            "session/delete" => typed::<v1::DeleteSessionResponse>(result),
            "session/prompt" => typed::<v1::PromptResponse>(result),
            "session/set_mode" => typed::<v1::SetSessionModeResponse>(result),
            "session/set_config_option" => typed::<v1::SetSessionConfigOptionResponse>(result),
            other => panic!("{other} has a result"),
        }
    }
}

/// Ends the program if a test fails.
impl Drop for Editor {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The parameters of a request for a session in this folder.
pub(super) fn folder(folder: &Path) -> Value {
    json!({ "cwd": folder, "mcpServers": [] })
}

/// The parameters of a request that opens this session again.
pub(super) fn again(world: &World, session: &str) -> Value {
    let mut params = folder(&world.path("work"));
    params["sessionId"] = json!(session);
    params
}

#[track_caller]
fn typed<T: DeserializeOwned>(value: &Value) {
    if let Err(error) = serde_json::from_value::<T>(value.clone()) {
        panic!("{error}: {value}");
    }
}
