//! JSON-RPC messages: reads those of the editor and writes those of the agent.

use agent_client_protocol_schema::v1::{Error, ErrorCode, RequestId, SessionId};
use holdpoint_common::SessionError;
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

/// The fields of any message. `id` and `error` are values, so that a wrong one gets an error.
#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
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
/// The error to send. The id of its request is unknown.
pub(super) fn parse(line: &[u8]) -> Result<Incoming, Error> {
    let message: Message = serde_json::from_slice(line).map_err(|error| {
        if error.is_data() && line.trim_ascii_start().starts_with(b"[") {
            let message = "batches are not supported: send each message on a line of its own";
            failure(ErrorCode::InvalidRequest, message.to_owned())
        } else if error.is_data() {
            failure(ErrorCode::InvalidRequest, format!("not a JSON-RPC message: {error}"))
        } else {
            failure(ErrorCode::ParseError, format!("not JSON: {error}"))
        }
    })?;
    let Message { id, method, params, result, error } = message;
    let id = id.map(serde_json::from_value::<RequestId>).transpose().map_err(|_| {
        failure(ErrorCode::InvalidRequest, "`id` must be a string or a whole number".to_owned())
    })?;
    let params = Params(params);
    match (method, id) {
        (Some(method), Some(id)) => Ok(Incoming::Request { id, method, params }),
        (Some(method), None) => Ok(Incoming::Notification { method, params }),
        (None, Some(id)) => {
            let result = match error {
                None => Ok(result.unwrap_or_default()),
                Some(error) => {
                    Err(serde_json::from_value(error).unwrap_or_else(|_| Error::internal_error()))
                }
            };
            Ok(Incoming::Reply { id, result })
        }
        (None, None) => {
            let message = "a message needs a `method` or an `id`".to_owned();
            Err(failure(ErrorCode::InvalidRequest, message))
        }
    }
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
    from_cli_error(&error.into())
}

/// The error for a session that is not open in this connection.
pub(super) fn not_open(id: &SessionId) -> Error {
    failure(ErrorCode::ResourceNotFound, format!("session {id} is not open in this connection"))
        .data(json!({ "hint": "open it with session/load or session/resume" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn m_h1_a_malformed_line_is_answered_with_the_reason() {
        for (line, code) in [
            (&b"{"[..], -32700),
            (b"\xff\xfe", -32700),
            (b"[]", -32600),
            (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}]", -32600),
            (b"7", -32600),
            (b"{}", -32600),
            (b"{\"id\": 1.5, \"method\": \"initialize\"}", -32600),
            (b"{\"id\": {}, \"method\": \"initialize\"}", -32600),
            (b"{\"id\": 1, \"method\": 7}", -32600),
        ] {
            let error = parse(line).unwrap_err();
            let shown = String::from_utf8_lossy(line).into_owned();
            assert_eq!(i32::from(error.code), code, "{shown}");
        }
        let nested = [b"[".repeat(100_000), b"]".repeat(100_000)].concat();
        assert!(parse(&nested).is_err());
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
