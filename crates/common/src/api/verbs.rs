//! The verbs of a session: every request that a client can make to it, with its reply.
//!
//! Each verb is one type, which is the body of the HTTP request, the message to the session's actor
//! and the input of its state machine.

use std::fmt;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{
    Answer, AnswerError, AskId, AsksMode, Hold, HoldAt, HoldState, IdempotencyKey, ModelSupplies,
    Outcome, PolicyMode, PromptId, Receipt, RunLimits, SessionId, Supplies, TurnId,
};

/// A request of a client to one session.
pub trait Verb: Serialize + Clone + fmt::Debug + Send + Sync + 'static {
    /// The reply of the session.
    type Reply: VerbReply;

    /// The path below `/v1`, where `{id}` is the id of the session.
    const PATH: &'static str;

    /// The path below `/v1` for this session.
    fn path(&self, session: &SessionId) -> String {
        Self::PATH.replace("{id}", session.as_str())
    }

    /// Checks that the verb concerns this session.
    ///
    /// # Errors
    /// [`AnswerError::Unknown`] for an ask of another session.
    fn check_session(&self, _session: &SessionId) -> Result<(), AnswerError> {
        Ok(())
    }

    /// Adds the supplies of the client, if the verb needs them and has none.
    fn supply(&mut self, _supplies: &Supplies) {}
}

/// The reply to a [`Verb`].
pub trait VerbReply: Serialize + DeserializeOwned + fmt::Debug + Send + 'static {
    /// Whether the reply has a value. Without one, the HTTP response has no body.
    const HAS_BODY: bool = true;

    /// Sets the field `saved` of a reply that has one, which says whether the facts of the request
    /// are saved on disk.
    fn set_saved(&mut self, _saved: bool) {}
}

impl VerbReply for () {
    const HAS_BODY: bool = false;
}

impl VerbReply for Hold {}

/// A request to give a session a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PromptRequest {
    /// Text of the prompt: not blank, at most `limits.max_prompt_bytes` bytes long.
    pub text: String,
    /// Number of bytes at the beginning of `text` that the user has written. Only these can name
    /// content, such as a resource of an MCP server. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typed_bytes: Option<usize>,
    /// Key of the request. If one of the last 64 keys of the session's prompts is the same, the reply is
    /// that of the earlier prompt, and no other prompt is added. A client without a reply can thus send
    /// the request again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<IdempotencyKey>,
}

/// A prompt that the user has written.
impl From<String> for PromptRequest {
    fn from(text: String) -> Self {
        Self { text, typed_bytes: None, idempotency_key: None }
    }
}

/// A prompt that the user has written.
impl From<&str> for PromptRequest {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl Verb for PromptRequest {
    type Reply = Prompted;
    const PATH: &'static str = "/sessions/{id}/prompts";
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

impl VerbReply for Prompted {
    fn set_saved(&mut self, saved: bool) {
        self.saved = saved;
    }
}

/// A request to take a prompt out of the queue. The prompt is handed back and never runs. Its turn,
/// once started, is ended by an interrupt instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnqueueRequest {
    /// Id of the queued prompt.
    pub prompt: PromptId,
}

impl Verb for UnqueueRequest {
    type Reply = Unqueued;
    const PATH: &'static str = "/sessions/{id}/unqueue";
}

/// The response to a prompt that was taken out of the queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unqueued {
    /// Id of the prompt.
    pub prompt: PromptId,
    /// Text of the prompt.
    pub text: String,
    /// Whether the change is saved on disk.
    pub saved: bool,
}

impl VerbReply for Unqueued {
    fn set_saved(&mut self, saved: bool) {
        self.saved = saved;
    }
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
        Self {
            goal: goal.into(),
            tasks: Vec::new(),
            limits: RunLimits::default(),
            hold_at: HoldAt::default(),
        }
    }
}

impl Verb for RunRequest {
    type Reply = RunStarted;
    const PATH: &'static str = "/sessions/{id}/run";
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

impl VerbReply for RunStarted {
    fn set_saved(&mut self, saved: bool) {
        self.saved = saved;
    }
}

/// An answer to an ask of the session. The body of the HTTP request is the answer alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct AnswerRequest {
    /// Ask that is answered.
    #[serde(skip)]
    pub ask: AskId,
    /// Answer to that ask.
    pub answer: Answer,
}

impl Verb for AnswerRequest {
    type Reply = Answered;
    const PATH: &'static str = "/asks/{ask}/answer";

    fn path(&self, _session: &SessionId) -> String {
        Self::PATH.replace("{ask}", &self.ask.to_string())
    }

    fn check_session(&self, session: &SessionId) -> Result<(), AnswerError> {
        if self.ask.session == *session {
            Ok(())
        } else {
            Err(AnswerError::Unknown { ask: self.ask.clone() })
        }
    }
}

/// The response to an answer that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// Id of the answered ask.
    pub ask: AskId,
    /// Whether the answer is saved on disk.
    pub saved: bool,
    /// Name of the machine or place at which the answer takes effect, when the session is opened there;
    /// absent for an answer that has taken effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub home: Option<String>,
}

impl VerbReply for Answered {
    fn set_saved(&mut self, saved: bool) {
        self.saved = saved;
    }
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

impl Verb for CloseRequest {
    type Reply = ();
    const PATH: &'static str = "/sessions/{id}/close";
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

impl Verb for InterruptRequest {
    type Reply = InterruptReply;
    const PATH: &'static str = "/sessions/{id}/interrupt";
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

impl VerbReply for InterruptReply {}

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

/// A request to hold a session at its next boundary. An idle one is held at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HoldRequest {}

impl Verb for HoldRequest {
    type Reply = Hold;
    const PATH: &'static str = "/sessions/{id}/hold";
}

/// A request to release a held session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseRequest {}

impl Verb for ReleaseRequest {
    type Reply = Hold;
    const PATH: &'static str = "/sessions/{id}/release";
}

/// A request to hold a session, or to release it if the client shows it as held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToggleRequest {
    /// State that the client shows. If the session is in another state, nothing changes.
    pub shown: HoldState,
}

impl Verb for ToggleRequest {
    type Reply = Hold;
    const PATH: &'static str = "/sessions/{id}/toggle";
}

/// A request to rename a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RenameRequest {
    /// New name, unique among live sessions: one line of at most 255 bytes. It also becomes the
    /// title.
    pub name: String,
}

impl Verb for RenameRequest {
    type Reply = ();
    const PATH: &'static str = "/sessions/{id}/rename";
}

/// A request to hand a session over to another folder: it is held at its next boundary, and ends there
/// without an end of its turn, its run or its policy Confirms. They continue when it is opened again.
/// [`MoveRequest`] does both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandOverRequest {
    /// Machine of the folder. Default: none, outside of a fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Absolute path of the folder there, without links.
    pub workspace: String,
}

impl Verb for HandOverRequest {
    type Reply = HandedOver;
    const PATH: &'static str = "/sessions/{id}/handover";
}

/// The response to a session that was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HandedOver {
    /// Whether the session was live.
    pub live: bool,
}

impl VerbReply for HandedOver {}

/// A request to move a session to another folder, on this machine or on another one of the fleet. The
/// request waits until the session can be handed over: until the end of its step, or the end of the
/// iteration of a run. If it was live, it is live there, with its turn and its run. A policy Confirm
/// is asked again if its effect depends on the folder. Background jobs end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MoveRequest {
    /// Machine of the fleet that the session moves to. Default: that of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    /// Absolute path of the folder there. Default: the path of the present one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace: Option<PathBuf>,
    /// Environment, provider settings and system prompt that the client supplies, for a session of
    /// its own machine. Another machine uses those of its daemon. Default: none.
    pub supplies: Supplies,
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

impl Verb for ChangeModelRequest {
    type Reply = ();
    const PATH: &'static str = "/sessions/{id}/model";

    fn supply(&mut self, supplies: &Supplies) {
        if self.supplies.is_none() {
            self.supplies.clone_from(&supplies.models);
        }
    }
}

/// A request to turn the debug log of a session on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DebugRequest {
    /// Whether the session is logged at debug level.
    pub enabled: bool,
}

impl Verb for DebugRequest {
    type Reply = ();
    const PATH: &'static str = "/sessions/{id}/debug";
}

/// A request to change the asks mode of a session. The new mode also answers the asks that are
/// open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AsksRequest {
    /// New asks mode.
    pub asks: AsksMode,
}

impl Verb for AsksRequest {
    type Reply = ();
    const PATH: &'static str = "/sessions/{id}/asks";
}

/// A request to change the policy mode of a session. The new mode judges the calls that follow;
/// open asks stay open. The rules of the session stay as they are. Answers that were given with
/// *always* are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyRequest {
    /// New policy mode.
    pub policy: PolicyMode,
}

impl Verb for PolicyRequest {
    type Reply = ();
    const PATH: &'static str = "/sessions/{id}/policy";
}
