//! JSON-RPC messages: reads those of the editor and writes those of the agent.

use agent_client_protocol_schema::v1::{Error, ErrorCode, RequestId, SessionId};
use holdpoint_common::{Refused, SessionError};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::wire::Lines;
use crate::error::CliError;

/// A message from the editor.
#[derive(Debug)]
pub(super) enum Incoming {
    Request {
        id: RequestId,
        method: String,
        params: Params,
    },
    Notification {
        method: String,
        params: Params,
    },
    /// The reply to a request of the agent.
    Reply {
        id: RequestId,
        result: Result<Value, Error>,
    },
}

/// The unread parameters of a message.
#[derive(Debug, Default)]
pub(super) struct Params(Option<Box<RawValue>>);

impl Params {
    /// Reads the parameters.
    ///
    /// # Errors
    /// An error for the editor, if they do not have the form that the protocol demands.
    pub(super) fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Error> {
        let json = self.0.as_ref().map_or("{}", |params| params.get());
        serde_json::from_str(json)
            .map_err(|error| failure(ErrorCode::InvalidParams, format!("invalid params: {error}")))
    }
}

/// A message that can't be read: the error to send, and the id of the request.
#[derive(Debug)]
pub(super) struct Malformed {
    pub(super) id: RequestId,
    pub(super) error: Error,
}

/// The fields of any message. All but the parameters are values, so that a wrong one gets an error
/// with the id of its request.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<Value>,
    #[serde(default)]
    params: Option<Box<RawValue>>,
    #[serde(default)]
    result: Option<Value>,
    #[serde(default)]
    error: Option<Value>,
}

/// Reads a line from the editor.
///
/// # Errors
/// The error to send. A reply never gets one.
pub(super) fn parse(line: &[u8]) -> Result<Incoming, Box<Malformed>> {
    let batch = "batches are not supported: send each message on a line of its own";
    let is_batch = line.trim_ascii_start().starts_with(b"[");
    let message: Message = serde_json::from_slice(line).map_err(|error| {
        let error = if error.is_data() && is_batch {
            failure(ErrorCode::InvalidRequest, batch)
        } else if error.is_data() {
            failure(ErrorCode::InvalidRequest, format!("not a JSON-RPC message: {error}"))
        } else {
            failure(ErrorCode::ParseError, format!("not JSON: {error}"))
        };
        Box::new(Malformed { id: RequestId::Null, error })
    })?;
    // The fields of a message can also be read from a list.
    if is_batch {
        return Err(malformed(None, batch));
    }
    let Message { id, method, params, result, error } = message;
    let has_id = id.is_some();
    let known = id.and_then(|id| serde_json::from_value::<RequestId>(id).ok());
    let params = Params(params);
    match (method, known) {
        (Some(Value::String(method)), Some(id)) => Ok(Incoming::Request { id, method, params }),
        (Some(Value::String(_)), None) if has_id => {
            Err(malformed(None, "`id` must be a string or a whole number"))
        }
        (Some(Value::String(method)), None) => Ok(Incoming::Notification { method, params }),
        (Some(_), id) => Err(malformed(id, "`method` must be a string")),
        // A reply to an unknown request has the id null.
        (None, known) if has_id || result.is_some() || error.is_some() => {
            let id = known.unwrap_or(RequestId::Null);
            let result = match error {
                None => Ok(result.unwrap_or_default()),
                Some(error) => {
                    Err(serde_json::from_value(error).unwrap_or_else(|_| Error::internal_error()))
                }
            };
            Ok(Incoming::Reply { id, result })
        }
        (None, _) => Err(malformed(None, "a message needs a `method` or an `id`")),
    }
}

fn malformed(id: Option<RequestId>, message: &str) -> Box<Malformed> {
    let error = failure(ErrorCode::InvalidRequest, message);
    Box::new(Malformed { id: id.unwrap_or(RequestId::Null), error })
}

impl Lines {
    /// Replies to a request of the editor.
    pub(super) async fn reply<T: Serialize>(&self, id: &RequestId, result: Result<T, Error>) {
        self.message(match &result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
        })
        .await;
    }

    /// Sends a notification to the editor.
    pub(super) async fn notify(&self, method: &str, params: &impl Serialize) {
        self.message(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Sends a request to the editor. Its reply arrives as [`Incoming::Reply`].
    pub(super) async fn request(&self, id: &RequestId, method: &str, params: &impl Serialize) {
        self.message(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
    }

    async fn message(&self, message: Value) {
        self.send(message.to_string()).await;
    }
}

/// An error for the editor.
pub(super) fn failure(code: ErrorCode, message: impl Into<String>) -> Error {
    Error::new(code.into(), message)
}

/// The failure of a request, before it is put into words for the editor.
#[derive(Debug)]
pub(super) enum Failure {
    Cli(CliError),
    Session(SessionError),
}

impl From<CliError> for Failure {
    fn from(error: CliError) -> Self {
        Self::Cli(error)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Cli(error) => from_cli_error(&error),
            Failure::Session(error) => from_session_error(error),
        }
    }
}

/// An error of the program: its message and hint, in one line and apart.
pub(super) fn from_cli_error(error: &CliError) -> Error {
    let code = match () {
        () if error.misses_session() => ErrorCode::ResourceNotFound,
        () if error.is_usage() => ErrorCode::InvalidParams,
        () => ErrorCode::InternalError,
    };
    let data = json!({ "message": error.to_string(), "hint": error.hint_text() });
    failure(code, error.in_a_line()).data(data)
}

/// An error of a session.
pub(super) fn from_session_error(error: SessionError) -> Error {
    from_cli_error(&in_the_editor(error))
}

/// The error with a hint that the user of an editor can follow. The hints of the command line name
/// its options.
pub(super) fn in_the_editor(error: SessionError) -> CliError {
    let hint = match &error {
        SessionError::Refused(Refused::EmptyPrompt) => "write a prompt",
        SessionError::Refused(Refused::QueueFull { .. }) => {
            "wait until the session has run some of them, or cancel some"
        }
        SessionError::Workspace { .. } => "open the session in another folder",
        SessionError::Sandbox { .. } => "set another `sandbox` in the configuration",
        SessionError::UnknownSession { .. } => "it may have been deleted: open another session",
        SessionError::NotLive { .. } => "load the session again",
        SessionError::Stopped => "try again when the daemon has stopped, which starts another one",
        SessionError::Unreachable { .. } => "try again, which starts a daemon if none runs",
        SessionError::Disconnected { .. } => {
            "it may have been done: look at the session before you try again"
        }
        _ => return error.into(),
    };
    CliError::from(error).hint(hint)
}

/// The error for a session that is not open in this connection.
pub(super) fn not_open(id: &SessionId) -> Error {
    failure(ErrorCode::ResourceNotFound, format!("session {id} is not open in this connection"))
        .data(json!({ "hint": "open it with session/load or session/resume" }))
}

#[cfg(test)]
mod tests {
    use holdpoint_common::SandboxLevel;

    use super::*;

    #[test]
    fn m_h1_a_malformed_line_is_answered_with_the_reason() {
        let null = RequestId::Null;
        let seven = || RequestId::Number(7);
        for (line, code, id) in [
            (&b"{"[..], -32700, null.clone()),
            (b"\xff\xfe", -32700, null.clone()),
            (b"[]", -32600, null.clone()),
            (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", -32600, null.clone()),
            (b"7", -32600, null.clone()),
            (b"{}", -32600, null.clone()),
            (b"{\"id\": 1.5, \"method\": \"initialize\"}", -32600, null.clone()),
            (b"{\"id\": {}, \"method\": \"initialize\"}", -32600, null.clone()),
            (b"{\"id\": 7, \"method\": 9}", -32600, seven()),
            (b"{\"id\": 7, \"method\": [], \"result\": 1}", -32600, seven()),
        ] {
            let malformed = parse(line).unwrap_err();
            let shown = String::from_utf8_lossy(line).into_owned();
            assert_eq!((i32::from(malformed.error.code), malformed.id), (code, id), "{shown}");
        }
        let nested = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        assert!(parse(&nested).is_err());
    }

    /// An answer to an answer could go back and forth without end.
    #[test]
    fn m_h1_a_reply_is_never_answered() {
        for line in [
            &br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}"#[..],
            br#"{"jsonrpc":"2.0","error":{"code":-32700,"message":"not JSON"}}"#,
            br#"{"jsonrpc":"2.0","id":1.5,"result":{}}"#,
            br#"{"jsonrpc":"2.0","id":null,"error":7}"#,
        ] {
            let read = parse(line);
            assert!(
                matches!(read, Ok(Incoming::Reply { id: RequestId::Null, .. })),
                "{}: {read:?}",
                String::from_utf8_lossy(line)
            );
        }
    }

    #[test]
    fn m_h1_hints_name_no_options_of_the_command_line() {
        let workspace =
            SessionError::Workspace { path: "/gone".to_owned(), message: "gone".to_owned() };
        let sandbox = SessionError::Sandbox { level: SandboxLevel::Bwrap, message: "no".into() };
        let disconnected = SessionError::Disconnected { message: "closed".to_owned() };
        let refused = Refused::EmptyPrompt.into();
        for error in [workspace, sandbox, refused, SessionError::Stopped, disconnected] {
            let shown = from_session_error(error);
            let hint = shown.data.as_ref().unwrap()["hint"].as_str().unwrap();
            let names_one =
                |it: &str| ["--", "standard input", "`holdpoint"].iter().any(|no| it.contains(no));
            assert!(!names_one(&shown.message) && !names_one(hint), "{shown:?}");
        }
    }

    #[test]
    fn m_h1_the_fields_of_a_message_give_its_kind() {
        let request = parse(br#"{"jsonrpc":"2.0","id":"a","method":"m","params":{"x":1}}"#);
        let Ok(Incoming::Request { id, method, params }) = request else { panic!("{request:?}") };
        assert_eq!((id, method.as_str()), (RequestId::Str("a".to_owned()), "m"));
        assert_eq!(params.read::<Value>().unwrap(), json!({ "x": 1 }));
        let reply = parse(br#"{"id":3,"error":{"code":-32601,"message":"no"}}"#);
        let Ok(Incoming::Reply { id: RequestId::Number(3), result: Err(error) }) = reply else {
            panic!("{reply:?}")
        };
        assert_eq!(error.message, "no");
        assert!(matches!(parse(b"{\"method\":\"m\"}"), Ok(Incoming::Notification { .. })));
    }
}
