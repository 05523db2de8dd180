//! The requests of an agent to its client, for files and terminals, and the replies to them.

use std::path::Path;

use agent_client_protocol_schema::v1;
use serde::Serialize;
use serde_json::value::RawValue;

use super::read;

/// The most bytes of a path. One that is longer does not exist on Linux.
const MAX_PATH: usize = 4 * 1024;

/// A request for a file or a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) enum ClientRequest {
    /// Read lines of a file, from `line` on, which is counted from 1.
    Read { path: String, line: Option<u32>, limit: Option<u32> },
    /// Replace the text of a file, or create it.
    Write { path: String, content: String },
    /// Start a command.
    Create(NewTerminal),
    /// Use the terminal with this id.
    Terminal { action: TerminalAction, terminal: String },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum TerminalAction {
    Output,
    WaitForExit,
    Kill,
    Release,
}

/// A command to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in super::super) struct NewTerminal {
    /// The program, or a line for a shell if there are no arguments.
    pub(in super::super) command: String,
    pub(in super::super) args: Vec<String>,
    pub(in super::super) env: Vec<(String, String)>,
    pub(in super::super) cwd: Option<String>,
    /// The most bytes of output that the agent wants.
    pub(in super::super) output_limit: Option<u64>,
}

/// How the command of a terminal has ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(in super::super) struct ExitStatus {
    pub(in super::super) code: Option<u32>,
    pub(in super::super) signal: Option<String>,
}

/// Reads a request for a file or a terminal, with the id of the agent's session; `None` if the method
/// is another one. The error is the reason why it can't be read.
pub(in super::super) fn client_request(
    method: &str,
    params: &RawValue,
) -> Option<Result<(String, ClientRequest), String>> {
    let names = v1::CLIENT_METHOD_NAMES;
    Some(match method {
        _ if method == names.fs_read_text_file => read_file(params),
        _ if method == names.fs_write_text_file => write_file(params),
        _ if method == names.terminal_create => create(params),
        _ if method == names.terminal_output => {
            read(params).map(|request: v1::TerminalOutputRequest| {
                of_terminal(&request.session_id, TerminalAction::Output, &request.terminal_id)
            })
        }
        _ if method == names.terminal_wait_for_exit => {
            read(params).map(|request: v1::WaitForTerminalExitRequest| {
                of_terminal(&request.session_id, TerminalAction::WaitForExit, &request.terminal_id)
            })
        }
        _ if method == names.terminal_kill => {
            read(params).map(|request: v1::KillTerminalRequest| {
                of_terminal(&request.session_id, TerminalAction::Kill, &request.terminal_id)
            })
        }
        _ if method == names.terminal_release => {
            read(params).map(|request: v1::ReleaseTerminalRequest| {
                of_terminal(&request.session_id, TerminalAction::Release, &request.terminal_id)
            })
        }
        _ => return None,
    })
}

fn read_file(params: &RawValue) -> Result<(String, ClientRequest), String> {
    let request: v1::ReadTextFileRequest = read(params)?;
    let (line, limit) = (request.line, request.limit);
    let request_for = |path| ClientRequest::Read { path, line, limit };
    Ok((request.session_id.0.to_string(), request_for(absolute("path", &request.path)?)))
}

fn write_file(params: &RawValue) -> Result<(String, ClientRequest), String> {
    let request: v1::WriteTextFileRequest = read(params)?;
    let path = absolute("path", &request.path)?;
    Ok((request.session_id.0.to_string(), ClientRequest::Write { path, content: request.content }))
}

fn create(params: &RawValue) -> Result<(String, ClientRequest), String> {
    let request: v1::CreateTerminalRequest = read(params)?;
    let cwd = request.cwd.as_deref().map(|cwd| absolute("cwd", cwd)).transpose()?;
    let env = request.env.into_iter().map(|variable| (variable.name, variable.value)).collect();
    let (command, args) = (request.command, request.args);
    let output_limit = request.output_byte_limit;
    let terminal = NewTerminal { command, args, env, cwd, output_limit };
    Ok((request.session_id.0.to_string(), ClientRequest::Create(terminal)))
}

fn of_terminal(
    session: &v1::SessionId,
    action: TerminalAction,
    terminal: &v1::TerminalId,
) -> (String, ClientRequest) {
    let terminal = terminal.0.to_string();
    (session.0.to_string(), ClientRequest::Terminal { action, terminal })
}

fn absolute(name: &str, path: &Path) -> Result<String, String> {
    let path = path.to_string_lossy();
    if path.len() > MAX_PATH {
        return Err(format!("`{name}` has more than {MAX_PATH} bytes"));
    }
    if !Path::new(&*path).is_absolute() {
        return Err(format!("`{name}` is not absolute: {path} (hint: begin it with /)"));
    }
    Ok(path.into_owned())
}

/// The reply with the text of a file.
pub(in super::super) fn text(text: String) -> impl Serialize {
    v1::ReadTextFileResponse::new(text)
}

/// The reply that a request was carried out.
pub(in super::super) fn unit() -> impl Serialize {
    v1::WriteTextFileResponse::new()
}

/// The reply with the id of a new terminal.
pub(in super::super) fn created(terminal: String) -> impl Serialize {
    v1::CreateTerminalResponse::new(terminal)
}

/// The reply with the output of a terminal, of which the beginning may be missing.
pub(in super::super) fn output(
    text: String,
    is_cut: bool,
    exit: Option<ExitStatus>,
) -> impl Serialize {
    v1::TerminalOutputResponse::new(text, is_cut).exit_status(exit.map(exit_status))
}

/// The reply that the command of a terminal has ended.
pub(in super::super) fn exited(exit: ExitStatus) -> impl Serialize {
    v1::WaitForTerminalExitResponse::new(exit_status(exit))
}

fn exit_status(ExitStatus { code, signal }: ExitStatus) -> v1::TerminalExitStatus {
    v1::TerminalExitStatus::new().exit_code(code).signal(signal)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn request(method: &str, params: &Value) -> Option<Result<(String, ClientRequest), String>> {
        client_request(method, &RawValue::from_string(params.to_string()).unwrap())
    }

    #[test]
    fn m_h3_requests_for_files_and_terminals_are_read_or_refused_with_the_reason() {
        let read = json!({ "sessionId": "s", "path": "/a", "line": 2 });
        let (session, read) = request("fs/read_text_file", &read).unwrap().unwrap();
        assert_eq!(session, "s");
        let expected = ClientRequest::Read { path: "/a".to_owned(), line: Some(2), limit: None };
        assert_eq!(read, expected);
        let kill = json!({ "sessionId": "s", "terminalId": "terminal-3" });
        let (_, kill) = request("terminal/kill", &kill).unwrap().unwrap();
        let terminal = "terminal-3".to_owned();
        assert_eq!(kill, ClientRequest::Terminal { action: TerminalAction::Kill, terminal });
        assert!(request("fs/delete", &json!({})).is_none());
        for (method, params, why) in [
            ("fs/read_text_file", json!({ "sessionId": "s", "path": "a" }), "not absolute"),
            ("fs/read_text_file", json!({ "sessionId": "s" }), "missing field `path`"),
            ("fs/write_text_file", json!({ "sessionId": "s", "path": "/a" }), "`content`"),
            ("terminal/create", json!({ "sessionId": "s", "command": 1 }), "expected a string"),
            (
                "terminal/create",
                json!({ "sessionId": "s", "command": "a", "cwd": "x" }),
                "`cwd` is not absolute",
            ),
            (
                "fs/read_text_file",
                json!({ "sessionId": "s", "path": format!("/{}", "a".repeat(MAX_PATH)) }),
                "more than 4096 bytes",
            ),
            ("terminal/output", json!({ "sessionId": "s" }), "terminalId"),
        ] {
            let error = request(method, &params).unwrap().unwrap_err();
            assert!(error.contains(why), "{method}: {error}");
        }
    }
}
