//! What is said over the daemon's socket: HTTP/1.1 with JSON bodies, and streams of Server-Sent Events.
//!
//! | path below `/v1` | asks with | answers |
//! | --- | --- | --- |
//! | `GET status` | | [`DaemonStatus`] |
//! | `GET sessions` | | [`SessionList`] |
//! | `POST sessions` | [`OpenRequest`] | [`Snapshot`] |
//! | `POST sessions/{what}/open` | [`Supplies`] | [`Snapshot`] |
//! | `GET`, `DELETE sessions/{what}` | | [`Snapshot`]; nothing |
//! | `POST sessions/{id}/prompts` | [`PromptRequest`] | [`Prompted`] |
//! | `POST sessions/{id}/run` | [`RunRequest`] | [`RunStarted`] |
//! | `POST sessions/{id}/interrupt` | [`InterruptRequest`] | [`InterruptReply`] |
//! | `GET sessions/{id}/turns/{turn}` | | [`TurnEnd`], or `null` |
//! | `POST sessions/{id}/{hold,release}` | | [`Hold`](crate::Hold) |
//! | `POST sessions/{id}/toggle` | [`ToggleRequest`] | [`Hold`](crate::Hold) |
//! | `POST sessions/{id}/rename` | [`RenameRequest`] | nothing |
//! | `POST sessions/{id}/model` | [`ModelRequest`] | nothing |
//! | `POST sessions/{id}/debug` | [`DebugRequest`] | nothing |
//! | `POST sessions/{id}/close` | [`CloseRequest`] | nothing |
//! | `GET sessions/{id}/events` | [`EventsQuery`] | a stream: [`StreamFrame`] |
//! | `GET sessions/{what}/log` | | JSON lines, as exported |
//! | `GET sessions/{id}/asks`, `GET asks` | | [`Inbox`] |
//! | `POST asks/{ask}/answer` | [`Answer`](crate::Answer) | [`Answered`] |
//! | `GET events` | | a stream of [`SessionNews`] |
//! | `POST import` | JSON lines, as exported | [`Snapshot`] |
//! | `POST stop` | | nothing |
//! | `GET openapi.json` | | all this, in OpenAPI 3.1 |
//!
//! `{what}` is a session's id, a unique prefix of one (4 characters or more), or a name; `{id}` is an id. What goes wrong is an
//! [`ErrorBody`] with the status that fits it.

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

/// The version of all this. A client of another one is refused, but for `status`, the list of sessions and `stop`.
pub const API_VERSION: u32 = 2;
/// The header in which a client says which version it speaks. Without it: the daemon's.
pub const VERSION_HEADER: &str = "holdpoint-api";
/// The header in which a client says its name.
pub const CLIENT_HEADER: &str = "holdpoint-client";
/// The header in which a client says how its user's desktop is reached, for the command of `notify`: variables as
/// `NAME=VALUE`, percent-encoded, with `&` between them.
pub const DESKTOP_HEADER: &str = "holdpoint-desktop";

/// Opens a fresh session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenRequest {
    /// The folder it works in: absolute.
    pub workspace: String,
    /// What people call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its model, as `PROVIDER/NAME` or `PROVIDER`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Who answers its asks.
    #[serde(default)]
    pub asks: AsksMode,
    /// What its tools may do unasked.
    #[serde(default)]
    pub policy: PolicyMode,
    /// What is allowed, asked or denied besides.
    #[serde(default, skip_serializing_if = "PolicyRules::is_empty")]
    pub rules: PolicyRules,
    /// The most steps one turn may take; 0 for no limit.
    #[serde(default)]
    pub max_steps: u32,
    /// The most tokens one turn may take, of requests and answers together; 0 for no limit.
    #[serde(default)]
    pub max_turn_tokens: u64,
    /// What the client brings along for it.
    #[serde(default)]
    pub supplies: Supplies,
}

/// Gives a session something to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptRequest {
    /// The words.
    pub text: String,
}

/// A prompt was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Prompted {
    /// Its name.
    pub prompt: PromptId,
    /// 0 = its turn has started, 1 = it is next.
    pub position: usize,
    /// It is saved.
    pub saved: bool,
}

/// Begins a run: a goal, worked through in iterations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRequest {
    /// What is to be reached.
    pub goal: String,
    /// The first tasks. The model adds others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tasks: Vec<String>,
    /// What it may take before it is held.
    #[serde(default)]
    pub limits: RunLimits,
    /// Where a hold stands.
    #[serde(default)]
    pub hold_at: HoldAt,
}

impl RunRequest {
    /// A run towards this goal, within the usual limits.
    #[must_use]
    pub fn towards(goal: impl Into<String>) -> Self {
        Self { goal: goal.into(), tasks: Vec::new(), limits: RunLimits::default(), hold_at: HoldAt::default() }
    }
}

/// A run began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunStarted {
    /// The turn of its first iteration; nothing if the session is held, and the run begins when it is released.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// It is saved.
    pub saved: bool,
}

/// An answer counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The ask.
    pub ask: AskId,
    /// The answer is saved.
    pub saved: bool,
}

/// Ends the session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CloseRequest {
    /// Only if it has nothing to do, and behind the event of this number nobody has given it a prompt or a run, and no turn
    /// began. Else it is refused as `inUse`, and nothing changes. Background jobs keep no session open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unused_since: Option<u64>,
}

/// Ends the open turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct InterruptRequest {
    /// Only if it is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Answers at once instead of with the receipt.
    pub no_wait: bool,
}

/// What an interrupt found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InterruptReply {
    /// The turn that is cut; nothing if there was no such turn, and nothing changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// No turn was open, but a run: it is over.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub run: bool,
    /// The turn's end comes after this number in the session's events.
    #[serde(default)]
    pub after: u64,
    /// The turn's end, if it was waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<TurnEnd>,
}

/// How a turn ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd {
    /// The turn.
    pub turn: TurnId,
    /// How it ended.
    pub outcome: Outcome,
    /// What the cut found and ended, if it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receipt: Option<Receipt>,
}

/// Holds or releases: the other of what the client was showing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToggleRequest {
    /// What it was showing.
    pub shown: HoldShown,
}

/// Calls a session something else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameRequest {
    /// The new name.
    pub name: String,
}

/// Gives a session another model, from its next turn on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    /// As `PROVIDER/NAME`, or `PROVIDER` for its default.
    pub model: String,
    /// How models are reached: what the client brings along for it. Without it, as the engine was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supplies: Option<ModelSupplies>,
}

/// Has a session logged at debug level, or not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugRequest {
    /// Whether it is to be.
    pub enabled: bool,
}

/// How a client attaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct EventsQuery {
    /// Only what comes after this number. The header `Last-Event-ID` says the same and goes before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<u64>,
    /// Of the past, at most this many facts: the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Also sends the session's snapshot whenever it has changed, before the event that changed it.
    pub snapshots: bool,
}

/// One event of a session's stream, by its SSE `event` field; with an SSE `id` only where it is a session's event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "camelCase")]
pub enum StreamFrame {
    /// The session now. The first of every stream.
    Snapshot(Arc<Snapshot>),
    /// Something that happened to the session (SSE's default, `message`); `id` is its number.
    Message(Arc<Event>),
    /// All that had happened has been sent; from here on, what happens.
    Live,
    /// The stream ends, and why. The last of every stream that was not cut.
    End(ClientEnd),
}

/// Why a client's stream ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "reason", rename_all = "camelCase")]
pub enum ClientEnd {
    /// It detached.
    Detached,
    /// It read too slowly. Attaching again after this number continues where it stopped.
    Lagged {
        /// The last event it was sent.
        after: u64,
    },
    /// The session's actor ended: closed, unloaded, or failed.
    Ended,
    /// The daemon was told to stop: who starts the next one is there to attach again.
    Stopped,
    /// The connection to the daemon broke. Attaching again after this number continues where it stopped.
    Disconnected {
        /// The last event that came.
        after: u64,
    },
}

/// News of all sessions: a stream's frame, by its SSE `event` field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", content = "data", rename_all = "camelCase")]
pub enum SessionNews {
    /// A session as it is now: one that is new, or that has changed.
    Session(Box<SessionSummary>),
    /// A session was deleted.
    Deleted(SessionId),
}

/// Every session: live ones first, the newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    /// The sessions.
    pub sessions: Vec<SessionSummary>,
}

/// Open asks, the oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Inbox {
    /// The asks.
    pub asks: Vec<InboxAsk>,
}

/// An open ask, and whose it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InboxAsk {
    /// The session.
    pub session: SessionId,
    /// Its name.
    pub name: String,
    /// Its folder.
    pub workspace: String,
    /// It has an actor now.
    pub live: bool,
    /// The ask.
    pub ask: Ask,
}

/// The daemon itself. Read by programs of all versions: what a daemon leaves out is taken as nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DaemonStatus {
    /// The program's version.
    pub version: String,
    /// The version of what is said over its socket: [`API_VERSION`].
    pub api: u32,
    /// Its process id.
    pub pid: u32,
    /// The socket it listens on; empty if all of its sockets were removed.
    pub socket: String,
    /// The folder it keeps sessions in.
    pub data: String,
    /// Since when it runs.
    pub since: Timestamp,
    /// Seconds without work and clients after which it stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_stop_s: Option<u64>,
    /// What it goes by of the configuration, by key: `limits`, `log`, `notify`, `web`. It has read it when it started.
    pub config: BTreeMap<String, serde_json::Value>,
    /// Its log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// Lines that were left out of it, because more came than could be written.
    pub log_lines_lost: usize,
    /// Sessions, counted.
    pub sessions: SessionCounts,
    /// Connections that are open.
    pub connections: usize,
    /// Clients that are attached to sessions.
    pub clients: usize,
    /// Prompts that wait for their turn, over all sessions.
    pub queued_prompts: usize,
    /// Everything is saved.
    pub saved: bool,
    /// The browsers that run for sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub browsers: Vec<BrowserStatus>,
    /// What was found damaged and kept aside, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<String>,
}

/// A browser that runs for a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BrowserStatus {
    /// The session.
    pub session: SessionId,
    /// Its process id.
    pub pid: u32,
    /// Where it listens for developer tools, on this machine alone and for whoever is on it: `127.0.0.1:PORT`.
    pub debugging: String,
    /// It has a window.
    pub visible: bool,
    /// Its own sandbox is on.
    pub sandbox: bool,
}

/// Sessions, counted by what they do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionCounts {
    /// Live ones.
    pub live: usize,
    /// Of these, with a turn, a run or a background job: running, being interrupted, or paused, or with a job only.
    pub busy: usize,
    /// Of these, running.
    pub running: usize,
    /// Of these, paused by an ask.
    pub waiting: usize,
    /// Of these, held.
    pub held: usize,
    /// How many may be live.
    pub most: usize,
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ErrorBody {
    /// Which error it is: a stable word.
    pub code: String,
    /// What is wrong, for people.
    pub message: String,
    /// What to do about it, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Why an answer had no effect, if it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerError>,
    /// `ambiguous`: the sessions that may be meant. `notLive`, `gone`: the session.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<SessionId>,
}
