//! The API of the daemon: HTTP/1.1 with JSON bodies and streams of Server-Sent Events, over a Unix
//! socket.
//!
//! | path below `/v1` | request | response |
//! | --- | --- | --- |
//! | `GET status` | | [`DaemonStatus`] |
//! | `GET sessions` | | [`SessionList`] |
//! | `POST sessions` | [`OpenRequest`] | [`Snapshot`] |
//! | `POST sessions/{what}/open` | [`Supplies`] | [`Snapshot`] |
//! | `GET`, `DELETE sessions/{what}` | | [`Snapshot`]; none |
//! | `POST sessions/{id}/prompts` | [`PromptRequest`] | [`Prompted`] |
//! | `POST sessions/{id}/run` | [`RunRequest`] | [`RunStarted`] |
//! | `POST sessions/{id}/interrupt` | [`InterruptRequest`] | [`InterruptReply`] |
//! | `GET sessions/{id}/turns/{turn}` | | [`TurnEnd`], or `null` |
//! | `POST sessions/{id}/{hold,release}` | | [`Hold`](crate::Hold) |
//! | `POST sessions/{id}/toggle` | [`ToggleRequest`] | [`Hold`](crate::Hold) |
//! | `POST sessions/{id}/rename` | [`RenameRequest`] | none |
//! | `POST sessions/{id}/model` | [`ChangeModelRequest`] | none |
//! | `POST sessions/{id}/debug` | [`DebugRequest`] | none |
//! | `POST sessions/{id}/close` | [`CloseRequest`] | none |
//! | `GET sessions/{id}/events` | [`EventsQuery`] | a stream of [`StreamFrame`] |
//! | `GET sessions/{what}/log` | | the exported session, as JSON lines |
//! | `GET sessions/{id}/asks`, `GET asks` | | [`Inbox`] |
//! | `POST asks/{ask}/answer` | [`Answer`](crate::Answer) | [`Answered`] |
//! | `GET events` | | a stream of [`SessionNews`] |
//! | `POST import` | an exported session, as JSON lines | [`Snapshot`] |
//! | `POST stop` | | none |
//! | `GET openapi.json` | | the description of this API, OpenAPI 3.1 |
//!
//! `{what}` is a session's id, a unique prefix of it with at least 4 characters, or a name; `{id}`
//! is an id. An error is an [`ErrorBody`] with the HTTP status that fits it.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::answer::AnswerError;
use crate::ask::{Ask, AsksMode};
use crate::event::Event;
use crate::hold::HoldShown;
use crate::id::{AskId, PromptId, SessionId, TurnId};
use crate::policy::{PolicyMode, PolicyRules};
use crate::run::{HoldAt, RunLimits};
use crate::session::{SessionSummary, Snapshot};
use crate::supplies::{ModelSupplies, Supplies};
use crate::time::Timestamp;
use crate::turn::{Outcome, Receipt};

/// Version of the API. A client with another version may only read the status, list the sessions
/// and stop the daemon.
pub const API_VERSION: u32 = 2;
/// Request header with the version of the API that the client uses. Default: the daemon's version.
pub const VERSION_HEADER: &str = "holdpoint-api";
/// Request header with the client's name.
pub const CLIENT_HEADER: &str = "holdpoint-client";
/// Request header with the variables that lead to the desktop of the client's user, for the command
/// of `notify`: pairs of `NAME=VALUE`, percent-encoded and separated by `&`.
pub const DESKTOP_HEADER: &str = "holdpoint-desktop";

/// A request to open a new session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequest {
    /// Absolute path of the session's workspace.
    pub workspace: String,
    /// Name of the session, unique among live sessions: one line of at most 255 bytes. Default: the
    /// name of the workspace's folder, with a number if it is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Model of the session, as `PROVIDER/NAME` or `PROVIDER`. Default: the model in `supplies`,
    /// else the first provider with a key, else `rehearsal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Asks mode of the session. Default: `wait`.
    #[serde(default)]
    pub asks: AsksMode,
    /// Mode of the session's policy. Default: `ask`.
    #[serde(default)]
    pub policy: PolicyMode,
    /// Rules of the session's policy, in addition to the mode. Default: none.
    #[serde(default, skip_serializing_if = "PolicyRules::is_empty")]
    pub rules: PolicyRules,
    /// Maximum number of steps (model requests) in one turn; 0 means no limit. Default: 0.
    #[serde(default)]
    pub max_steps: u32,
    /// Maximum number of tokens that one turn may use, requests and answers together; 0 means no
    /// limit. The limit is checked before each request, so the last request may exceed it.
    /// Default: 0.
    #[serde(default)]
    pub max_turn_tokens: u64,
    /// Environment, provider settings and system prompt that the client supplies. Default: none.
    #[serde(default)]
    pub supplies: Supplies,
}

/// A request to give a session a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptRequest {
    /// Text of the prompt: not blank, at most `limits.max_prompt_bytes` bytes long.
    pub text: String,
}

/// The response to an accepted prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompted {
    /// Id of the prompt.
    pub prompt: PromptId,
    /// Position in the queue, where 1 is next; 0 if the prompt's turn has started.
    pub position: usize,
    /// Whether the prompt is saved on disk.
    pub saved: bool,
}

/// A request to start a run: a goal that is worked through in iterations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// Goal of the run: not blank, at most `limits.max_prompt_bytes` bytes long.
    pub goal: String,
    /// Titles of the first tasks, at most 500 bytes each. The model can add more. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// Limits at which the run is held. Default: 50 iterations.
    #[serde(default)]
    pub limits: RunLimits,
    /// Boundary at which a hold takes effect. Default: `iteration`.
    #[serde(default)]
    pub hold_at: HoldAt,
}

impl RunRequest {
    /// Creates a request for this goal, with the default limits.
    #[must_use]
    pub fn new(goal: impl Into<String>) -> Self {
        Self { goal: goal.into(), tasks: Vec::new(), limits: RunLimits::default(), hold_at: HoldAt::default() }
    }
}

/// The response to the start of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    /// Turn of the first iteration; absent if the session is held. The run then starts when it is
    /// released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Whether the run is saved on disk.
    pub saved: bool,
}

/// The response to an answer that took effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// Id of the answered ask.
    pub ask: AskId,
    /// Whether the answer is saved on disk.
    pub saved: bool,
}

/// A request to close a session. The session stays saved and can be opened again.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CloseRequest {
    /// Close the session only if it is unused: it has no turn, run or queued prompt, and got none
    /// after the event with this number. Otherwise the request fails with `inUse` and changes
    /// nothing. Background jobs do not count. Default: close in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused_since: Option<u64>,
}

/// A request to interrupt the open turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InterruptRequest {
    /// Turn to interrupt. If another turn is open, nothing changes. Default: the open turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Respond at once, without the turn's end and its receipt. Default: `false`.
    pub no_wait: bool,
}

/// The effect of an interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptReply {
    /// The interrupted turn; absent if no such turn was open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Whether the interrupt ended a run that had no open turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// Number of the session's last event before the interrupt. The end of the turn follows it.
    #[serde(default)]
    pub after: u64,
    /// End of the turn; absent if the request did not wait for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// Id of the turn.
    pub turn: TurnId,
    /// Outcome of the turn.
    pub outcome: Outcome,
    /// What the interrupt found and ended; absent if the turn was not cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// A request to hold a session, or to release it if the client shows it as held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToggleRequest {
    /// State that the client shows. If the session is in another state, nothing changes.
    pub shown: HoldShown,
}

/// A request to rename a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameRequest {
    /// New name, unique among live sessions: one line of at most 255 bytes. It also becomes the
    /// title.
    pub name: String,
}

/// A request to change the model of a session, from its next turn on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangeModelRequest {
    /// New model, as `PROVIDER/NAME`, or `PROVIDER` for the provider's default model.
    pub model: String,
    /// Provider settings of the client, with which the model is found. Default: those of the
    /// engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supplies: Option<ModelSupplies>,
}

/// A request to turn the debug log of a session on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugRequest {
    /// Whether the session is logged at debug level.
    pub enabled: bool,
}

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

/// All sessions: live ones first, then the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    /// Summaries of the sessions.
    pub sessions: Vec<SessionSummary>,
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
    /// Time at which the daemon started.
    pub since: Timestamp,
    /// Seconds without work and clients after which the daemon stops; absent if it never stops by
    /// itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop_s: Option<u64>,
    /// Parts of the configuration that the daemon read when it started, by key: `limits`, `log`,
    /// `notify`, `web`.
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
    pub most: usize,
}

/// The body of an error response.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ErrorBody {
    /// Stable name of the error, for programs.
    pub code: String,
    /// Description of the error, for people.
    pub message: String,
    /// Advice on how to solve the problem, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Reason why an answer had no effect. Absent for other errors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerError>,
    /// Sessions that the error is about. For `ambiguous`, all sessions that match; for `inexact`,
    /// `notLive`, `gone` and `damaged`, the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<SessionId>,
}
