//! The API of the daemon: HTTP/1.1 with JSON bodies and streams of Server-Sent Events, over a Unix
//! socket.
//!
//! | path below `/v1` | request | response |
//! | --- | --- | --- |
//! | `GET status` | | [`DaemonStatus`] |
//! | `GET sessions` | [`ListQuery`] | [`SessionList`] |
//! | `POST sessions` | [`OpenSession`](crate::OpenSession) | [`Snapshot`] |
//! | `POST sessions/{session}/open` | [`Supplies`](crate::Supplies) | [`Snapshot`] |
//! | `POST sessions/{session}/move` | [`MoveRequest`] | [`Snapshot`] |
//! | `POST sessions/{id}/handover` | [`HandOverRequest`] | [`HandedOver`] |
//! | `GET`, `DELETE sessions/{session}` | | [`Snapshot`]; none |
//! | `POST sessions/{id}/prompts` | [`PromptRequest`] | [`Prompted`] |
//! | `POST sessions/{id}/unqueue` | [`UnqueueRequest`] | [`Unqueued`] |
//! | `POST sessions/{id}/run` | [`RunRequest`] | [`RunStarted`] |
//! | `POST sessions/{id}/interrupt` | [`InterruptRequest`] | [`InterruptReply`] |
//! | `GET sessions/{id}/turns/{turn}` | | [`TurnEnd`], or `null` |
//! | `POST sessions/{id}/hold` | [`HoldRequest`] | [`Hold`](crate::Hold) |
//! | `POST sessions/{id}/release` | [`ReleaseRequest`] | [`Hold`](crate::Hold) |
//! | `POST sessions/{id}/toggle` | [`ToggleRequest`] | [`Hold`](crate::Hold) |
//! | `POST sessions/{id}/rename` | [`RenameRequest`] | none |
//! | `POST sessions/{id}/model` | [`ChangeModelRequest`] | none |
//! | `POST sessions/{id}/debug` | [`DebugRequest`] | none |
//! | `POST sessions/{id}/asks` | [`AsksRequest`] | none |
//! | `POST sessions/{id}/policy` | [`PolicyRequest`] | none |
//! | `POST sessions/{id}/close` | [`CloseRequest`] | none |
//! | `GET sessions/{id}/events` | [`EventsQuery`] | a stream of [`StreamFrame`] |
//! | `GET sessions/{session}/log` | | the exported session, as JSON lines |
//! | `GET sessions/{id}/asks`, `GET asks` | | [`Inbox`] |
//! | `POST asks/{ask}/answer` | [`Answer`](crate::Answer) | [`Answered`] |
//! | `GET events` | | a stream of [`SessionNews`] |
//! | `POST import` | an exported session, as JSON lines | [`Snapshot`] |
//! | `POST stop` | | none |
//! | `GET openapi.json` | | the description of this API, OpenAPI 3.1 |
//!
//! `{session}` is a session's id, a unique prefix of it with at least 4 characters, or a name;
//! `{id}` is an id. An error is an [`ErrorBody`] with the HTTP status that fits it.

mod error;
mod list;
mod verbs;

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Ask;
use crate::event::Event;
use crate::id::SessionId;
use crate::session::{Away, SessionSummary, Snapshot};
use crate::time::Timestamp;

pub use error::{ErrorBody, RequestError};
pub use list::{CursorError, ListQuery, SessionCursor, SessionList};
pub use verbs::{
    AnswerRequest, Answered, AsksRequest, ChangeModelRequest, CloseRequest, DebugRequest,
    HandOverRequest, HandedOver, HoldRequest, InterruptReply, InterruptRequest, MoveRequest,
    PolicyRequest, PromptRequest, Prompted, ReleaseRequest, RenameRequest, RunRequest, RunStarted,
    ToggleRequest, TurnEnd, UnqueueRequest, Unqueued, Verb, VerbReply,
};

/// Version of the API. A client with another version may only read the status, list the sessions
/// and stop the daemon.
pub const API_VERSION: u32 = 3;
/// Request header with the version of the API that the client uses. Default: the daemon's version.
pub const VERSION_HEADER: &str = "holdpoint-api";
/// Request header with the client's name.
pub const CLIENT_HEADER: &str = "holdpoint-client";
/// Request header with the variables that lead to the desktop of the client's user, for the command
/// of `notify`: pairs of `NAME=VALUE`, percent-encoded and separated by `&`.
pub const DESKTOP_HEADER: &str = "holdpoint-desktop";

/// The query parameters of a session's event stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct EventsQuery {
    /// Number of the last event that the client has; the stream continues after it. The header
    /// `Last-Event-ID` overrides it. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Maximum number of past facts to send; the newest ones are sent. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Whether to send a new snapshot before each event that changes it. Default: `false`.
    pub snapshots: bool,
}

/// A frame of a session's event stream. The SSE field `event` says which kind it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "camelCase")]
pub enum StreamFrame {
    /// The session's snapshot. Every stream begins with one.
    Snapshot(Arc<Snapshot>),
    /// An event of the session, with its number as the SSE `id`. `message` is the default kind of
    /// SSE.
    Message(Arc<Event>),
    /// All past events have been sent. New events follow.
    Live,
    /// The end of the stream, with its reason. It is missing if the connection broke.
    End(ClientEnd),
}

/// The reason why a client's event stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub enum ClientEnd {
    /// The client ended the stream by detaching.
    Detached,
    /// The client read too slowly. It can continue by attaching after this number.
    Lagged {
        /// Number of the last event that was sent.
        after: u64,
    },
    /// The session's actor ended: the session was closed or unloaded, or it failed.
    Ended,
    /// Another machine has taken the session over. Events after this number may be lost, and those of
    /// the new owner have higher numbers. The client can continue by attaching after it.
    Moved {
        /// Number of the last event that was saved.
        after: u64,
    },
    /// The daemon was stopped. Clients can attach again once another daemon runs.
    Stopped,
    /// The connection to the daemon broke. The client can continue by attaching after this number.
    Disconnected {
        /// Number of the last event that was received.
        after: u64,
    },
}

/// A frame of the stream of all sessions. The SSE field `event` says which kind it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "camelCase")]
pub enum SessionNews {
    /// The current summary of a session that is new or has changed.
    Session(Box<SessionSummary>),
    /// A session was deleted. The value is its id.
    Deleted(SessionId),
}

/// Open asks, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inbox {
    /// The open asks with their sessions.
    pub asks: Vec<InboxAsk>,
}

/// An open ask and its session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxAsk {
    /// Id of the session.
    pub session: SessionId,
    /// Name of the session.
    pub name: String,
    /// Absolute path of the session's workspace.
    pub workspace: String,
    /// Whether the session is live.
    pub live: bool,
    /// Other machine of the fleet that has the session, as in its summary; absent for a session of
    /// this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Present if `machine` does not respond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub away: Option<Away>,
    /// Ask that waits for an answer.
    pub ask: Ask,
}

/// The state of the daemon. Programs of every version can read it: a missing field has its empty
/// value.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonStatus {
    /// Version of the program.
    pub version: String,
    /// Version of the API.
    pub api: u32,
    /// Process id of the daemon.
    pub pid: u32,
    /// Path of the socket that the daemon listens on; empty if all its sockets were removed.
    pub socket: String,
    /// Folder in which sessions are saved.
    pub data: String,
    /// Name of this machine in its fleet, which has the sessions in its database; absent if it is in
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Time at which the daemon started.
    pub since: Timestamp,
    /// Seconds without work and clients after which the daemon stops; absent if it never stops by
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop_s: Option<u64>,
    /// Parts of the configuration that the daemon read when it started, by key: `fleet`, `limits`,
    /// `log`, `notify`, `sandbox`, `web`.
    pub config: BTreeMap<String, serde_json::Value>,
    /// Path of the log file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Number of lines missing from the log, because they came faster than they could be written.
    pub log_lines_lost: usize,
    /// Numbers of sessions, by activity.
    pub sessions: SessionCounts,
    /// Number of open connections.
    pub connections: usize,
    /// File descriptors of the daemon.
    pub descriptors: Descriptors,
    /// Number of clients attached to sessions.
    pub clients: usize,
    /// Number of queued prompts in all sessions.
    pub queued_prompts: usize,
    /// Whether everything is saved.
    pub saved: bool,
    /// Browsers that run for sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub browsers: Vec<BrowserStatus>,
    /// Descriptions of damaged databases that the daemon found and set aside.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// The file descriptors of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Descriptors {
    /// Number of open descriptors.
    pub open: usize,
    /// Maximum number of open descriptors, which `ulimit -n` sets in the shell that starts the
    /// process; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// A browser that runs for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowserStatus {
    /// Id of the session.
    pub session: SessionId,
    /// Process id of the browser.
    pub pid: u32,
    /// Address of the developer tools, as `127.0.0.1:PORT`. Every user of this machine can connect
    /// to it.
    pub debugging: String,
    /// Whether the browser has a window.
    pub visible: bool,
    /// Whether the browser's own sandbox is on.
    pub sandbox: bool,
}

/// The numbers of live sessions, by activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionCounts {
    /// Number of live sessions.
    pub live: usize,
    /// Number of live sessions with a turn, a run, a hold, an open ask or a background job.
    pub busy: usize,
    /// Number of live sessions with the status `running`.
    pub running: usize,
    /// Number of live sessions with an open ask.
    pub waiting: usize,
    /// Number of live sessions that are held.
    pub held: usize,
    /// Maximum number of live sessions.
    pub limit: usize,
}
