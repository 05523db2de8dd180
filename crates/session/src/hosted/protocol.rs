//! The messages of the protocol, read into types of our own and written from them. Only this module
//! names the protocol's types.

mod client_request;
mod model_choice;
mod plan;

use std::path::Path;

use agent_client_protocol_schema::{ProtocolVersion, v1};
use holdpoint_common::Usage;
use holdpoint_tools::secrets;
use holdpoint_tools::shown::prose_line;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub(super) use client_request::{
    ClientRequest, ExitStatus, NewTerminal, TerminalAction, client_request, created, exited,
    output, text, unit,
};
pub(super) use model_choice::{ModelChoice, model_choice};

/// The most bytes of the text of an error.
const MAX_ERROR: usize = 2 * 1024;

/// The names of requests and notifications.
pub(super) mod method {
    pub(in super::super) const INITIALIZE: &str = "initialize";
    pub(in super::super) const NEW: &str = "session/new";
    pub(in super::super) const LOAD: &str = "session/load";
    pub(in super::super) const RESUME: &str = "session/resume";
    pub(in super::super) const SET_OPTION: &str = "session/set_config_option";
    /// Not a part of the stable protocol, but many agents serve it in place of an option.
    pub(in super::super) const SET_MODEL: &str = "session/set_model";
    pub(in super::super) const PROMPT: &str = "session/prompt";
    pub(in super::super) const CANCEL: &str = "session/cancel";
    pub(in super::super) const UPDATE: &str = "session/update";
    pub(in super::super) const PERMISSION: &str = "session/request_permission";
}

/// The most bytes of the id of an option. One with a longer id can't be chosen.
const MAX_OPTION: usize = 1024;

/// The code of an error for a method that is not served.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// The code of an error for parameters that can't be read.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// The code of an error for a request that could not be carried out, or was denied.
pub(super) const INTERNAL_ERROR: i64 = -32603;
/// The code of an error for a file that does not exist.
pub(super) const NOT_FOUND: i64 = -32002;
/// The code of an error for a request in a turn that is cancelled.
pub(super) const CANCELLED: i64 = -32800;
/// The code of an error for a request that needs a login.
pub(super) const AUTH_REQUIRED: i64 = -32000;

/// The most bytes of the id of an agent's session.
const MAX_SESSION: usize = 1024;

/// The most ways to log in that are named, and the most bytes of a name.
const MAX_LOGINS: usize = 8;
const MAX_LOGIN: usize = 64;

/// The part of an agent's introduction that is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Introduction {
    /// The name and the version of the program.
    pub(super) program: Option<(String, String)>,
    /// Whether the agent can load a session of its own.
    pub(super) loads: bool,
    /// Whether it can resume one, which does not send the conversation again.
    pub(super) resumes: bool,
    /// How the agent's users can log in.
    pub(super) logins: Vec<String>,
}

/// A change that an agent reports.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Update {
    Text(String),
    Thought(String),
    Call(Box<CallUpdate>),
    /// The whole plan of the agent, with a line for each of its entries.
    Plan(String),
    /// Anything else, which has no consequence.
    Other,
}

/// The new fields of an agent call.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct CallUpdate {
    pub(super) id: String,
    pub(super) title: Option<String>,
    pub(super) kind: Option<CallKind>,
    pub(super) status: Option<CallStatus>,
    /// The files that the call is about.
    pub(super) paths: Option<Vec<String>>,
    pub(super) input: Option<Value>,
    /// The whole content so far.
    pub(super) content: Option<Vec<Content>>,
    /// The output, if the agent reports no content.
    pub(super) output: Option<Value>,
    /// More output of a command, after that of earlier updates.
    pub(super) more_output: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallKind {
    Read,
    Write,
    Search,
    Execute,
    Fetch,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallStatus {
    Pending,
    Running,
    Completed,
    Failed,
}

/// A part of the content of an agent call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Content {
    Text(String),
    Diff {
        path: String,
        old: Option<String>,
        new: String,
    },
    /// The output of the terminal with this id.
    Terminal(String),
}

/// A request to the user for permission.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PermissionRequest {
    /// The id of the agent's session.
    pub(super) session: String,
    pub(super) call: CallUpdate,
    /// The option to allow the call once, or else always.
    pub(super) allow: Option<String>,
    /// The option to reject the call once, or else always.
    pub(super) reject: Option<String>,
}

/// The end of an agent turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TurnReply {
    pub(super) stop: Stop,
    pub(super) usage: Option<Usage>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Done,
    TokenLimit,
    RequestLimit,
    Refused,
    Cancelled,
}

pub(super) fn initialize() -> impl Serialize {
    let client = v1::Implementation::new("holdpoint", env!("CARGO_PKG_VERSION"));
    let files = v1::FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    v1::InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(v1::ClientCapabilities::new().fs(files).terminal(true))
        .client_info(client)
}

/// # Errors
/// The reason why the reply can't be used.
pub(super) fn introduction(reply: &RawValue) -> Result<Introduction, String> {
    let reply: v1::InitializeResponse = read(reply)?;
    if reply.protocol_version != ProtocolVersion::V1 {
        let version = reply.protocol_version;
        return Err(format!(
            "it speaks version {version} of the protocol, but only 1 is supported"
        ));
    }
    let start = |name: &str| name[..name.floor_char_boundary(MAX_LOGIN)].to_owned();
    let login = |login: &v1::AuthMethod| match login {
        v1::AuthMethod::Terminal(login) => start(&login.name),
        v1::AuthMethod::Agent(login) => start(&login.name),
        _ => "another".to_owned(),
    };
    let capabilities = &reply.agent_capabilities;
    let program = reply.agent_info.as_ref().map(|info| (start(&info.name), start(&info.version)));
    Ok(Introduction {
        program,
        loads: capabilities.load_session,
        resumes: capabilities.session_capabilities.resume.is_some(),
        logins: reply.auth_methods.iter().take(MAX_LOGINS).map(login).collect(),
    })
}

pub(super) fn new_session(folder: &Path) -> impl Serialize {
    v1::NewSessionRequest::new(folder)
}

pub(super) fn load_session(session: &str, folder: &Path) -> impl Serialize {
    v1::LoadSessionRequest::new(session.to_owned(), folder)
}

pub(super) fn resume_session(session: &str, folder: &Path) -> impl Serialize {
    v1::ResumeSessionRequest::new(session.to_owned(), folder)
}

/// The id of a new session.
///
/// # Errors
/// The reason why the reply can't be used.
pub(super) fn new_session_id(reply: &RawValue) -> Result<String, String> {
    let session = read::<v1::NewSessionResponse>(reply)?.session_id.0.to_string();
    if session.len() > MAX_SESSION {
        return Err(format!("the id of its session has more than {MAX_SESSION} bytes"));
    }
    Ok(session)
}

pub(super) fn prompt(session: &str, text: String) -> impl Serialize {
    let text = v1::ContentBlock::Text(v1::TextContent::new(text));
    v1::PromptRequest::new(session.to_owned(), vec![text])
}

pub(super) fn cancel(session: &str) -> impl Serialize {
    v1::CancelNotification::new(session.to_owned())
}

/// # Errors
/// The reason why the reply can't be used.
pub(super) fn turn_reply(reply: &RawValue) -> Result<TurnReply, String> {
    let usage = usage(reply);
    let reply: v1::PromptResponse = read(reply)?;
    let stop = match reply.stop_reason {
        v1::StopReason::EndTurn => Stop::Done,
        v1::StopReason::MaxTokens => Stop::TokenLimit,
        v1::StopReason::MaxTurnRequests => Stop::RequestLimit,
        v1::StopReason::Refusal => Stop::Refused,
        v1::StopReason::Cancelled => Stop::Cancelled,
        _ => return Err("it ended its turn for an unknown reason".to_owned()),
    };
    Ok(TurnReply { stop, usage })
}

/// The usage of a turn. It is not a part of the protocol's stable types, but many agents report it.
fn usage(reply: &RawValue) -> Option<Usage> {
    #[derive(Deserialize)]
    struct Reply {
        usage: TurnUsage,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct TurnUsage {
        input_tokens: u64,
        output_tokens: u64,
        #[serde(default)]
        cached_read_tokens: Option<u64>,
        #[serde(default)]
        cached_write_tokens: Option<u64>,
    }
    let Reply { usage } = serde_json::from_str(reply.get()).ok()?;
    Some(Usage {
        input: usage.input_tokens,
        output: usage.output_tokens,
        cached: usage.cached_read_tokens.unwrap_or_default(),
        cache_written: usage.cached_write_tokens.unwrap_or_default(),
        ..Usage::default()
    })
}

/// A change, with the id of the agent's session that it belongs to.
///
/// # Errors
/// The reason why the notification can't be read.
pub(super) fn update(params: &RawValue) -> Result<(String, Update), String> {
    let v1::SessionNotification { session_id, update, .. } = read(params)?;
    let update = match update {
        v1::SessionUpdate::AgentMessageChunk(chunk) => Update::Text(block_text(chunk.content)),
        v1::SessionUpdate::AgentThoughtChunk(chunk) => Update::Thought(block_text(chunk.content)),
        v1::SessionUpdate::ToolCall(call) => Update::Call(Box::new(announced(call))),
        v1::SessionUpdate::ToolCallUpdate(update) => Update::Call(Box::new(changed(update))),
        v1::SessionUpdate::Plan(plan) => Update::Plan(plan::text(&plan)),
        _ => Update::Other,
    };
    Ok((session_id.0.to_string(), update))
}

/// # Errors
/// The reason why the request can't be read.
pub(super) fn permission(params: &RawValue) -> Result<PermissionRequest, String> {
    let request: v1::RequestPermissionRequest = read(params)?;
    let option = |kinds: &[v1::PermissionOptionKind]| {
        let find = |kind: &v1::PermissionOptionKind| {
            request.options.iter().find(|option| option.kind == *kind)
        };
        let option = kinds.iter().find_map(find);
        let id = option.map(|option| option.option_id.0.to_string());
        id.filter(|id| id.len() <= MAX_OPTION)
    };
    use v1::PermissionOptionKind::{AllowOnce, RejectAlways, RejectOnce};
    // The user approves this call only.
    let (allow, reject) = (option(&[AllowOnce]), option(&[RejectOnce, RejectAlways]));
    let session = request.session_id.0.to_string();
    Ok(PermissionRequest { session, call: changed(request.tool_call), allow, reject })
}

/// The reply that chooses an option of a permission request. Agents may show the reason to their
/// model.
pub(super) fn chosen(option: String, reason: Option<String>) -> impl Serialize {
    let outcome = v1::SelectedPermissionOutcome::new(option);
    let outcome = v1::RequestPermissionOutcome::Selected(outcome);
    let meta = reason.map(|reason| {
        let reason = serde_json::json!({ "reason": reason });
        v1::Meta::from_iter([("holdpoint".to_owned(), reason)])
    });
    v1::RequestPermissionResponse::new(outcome).meta(meta)
}

/// The reply to a permission request in a turn that is cancelled, or without a fitting option.
pub(super) fn not_chosen() -> impl Serialize {
    v1::RequestPermissionResponse::new(v1::RequestPermissionOutcome::Cancelled)
}

/// The text of an error that an agent has caused: at most [`MAX_ERROR`] bytes, on one line, without
/// secrets.
pub(super) fn error_text(text: &str) -> String {
    // A part of a secret would not be found: the end of the text is cut off after the search.
    let text = secrets::mask(&text[..text.floor_char_boundary(4 * MAX_ERROR)]);
    prose_line(&text[..text.floor_char_boundary(MAX_ERROR)]).into_owned()
}

fn read<T: serde::de::DeserializeOwned>(json: &RawValue) -> Result<T, String> {
    // The error may quote a long text of the agent.
    serde_json::from_str(json.get())
        .map_err(|error| format!("its message can't be read: {}", error_text(&error.to_string())))
}

fn announced(call: v1::ToolCall) -> CallUpdate {
    CallUpdate {
        more_output: more_output(call.meta.as_ref()),
        id: call.tool_call_id.0.to_string(),
        title: Some(call.title),
        kind: Some(kind(call.kind)),
        status: Some(status(call.status)),
        paths: Some(paths(call.locations)),
        input: call.raw_input,
        content: Some(contents(call.content)).filter(|contents| !contents.is_empty()),
        output: call.raw_output,
    }
}

fn changed(update: v1::ToolCallUpdate) -> CallUpdate {
    let fields = update.fields;
    CallUpdate {
        more_output: more_output(update.meta.as_ref()),
        id: update.tool_call_id.0.to_string(),
        title: fields.title,
        kind: fields.kind.map(kind),
        status: fields.status.map(status),
        paths: fields.locations.map(paths),
        input: fields.raw_input,
        content: fields.content.map(contents),
        output: fields.raw_output,
    }
}

/// More output of a command. It is not a part of the protocol, but Codex reports it only here.
fn more_output(meta: Option<&v1::Meta>) -> Option<String> {
    meta?.get("terminal_output_delta")?.get("data")?.as_str().map(str::to_owned)
}

fn kind(kind: v1::ToolKind) -> CallKind {
    match kind {
        v1::ToolKind::Read => CallKind::Read,
        v1::ToolKind::Edit | v1::ToolKind::Delete | v1::ToolKind::Move => CallKind::Write,
        v1::ToolKind::Search => CallKind::Search,
        v1::ToolKind::Execute => CallKind::Execute,
        v1::ToolKind::Fetch => CallKind::Fetch,
        _ => CallKind::Other,
    }
}

fn status(status: v1::ToolCallStatus) -> CallStatus {
    match status {
        v1::ToolCallStatus::Pending => CallStatus::Pending,
        v1::ToolCallStatus::Completed => CallStatus::Completed,
        v1::ToolCallStatus::Failed => CallStatus::Failed,
        _ => CallStatus::Running,
    }
}

fn paths(locations: Vec<v1::ToolCallLocation>) -> Vec<String> {
    locations.into_iter().map(|location| location.path.to_string_lossy().into_owned()).collect()
}

fn contents(contents: Vec<v1::ToolCallContent>) -> Vec<Content> {
    let content = |content| match content {
        v1::ToolCallContent::Content(content) => Some(Content::Text(block_text(content.content))),
        v1::ToolCallContent::Diff(diff) => Some(Content::Diff {
            path: diff.path.to_string_lossy().into_owned(),
            old: diff.old_text,
            new: diff.new_text,
        }),
        v1::ToolCallContent::Terminal(terminal) => {
            Some(Content::Terminal(terminal.terminal_id.0.to_string()))
        }
        _ => None,
    };
    contents.into_iter().filter_map(content).collect()
}

/// A content block as text. Of an image or a sound, only its type is named.
fn block_text(block: v1::ContentBlock) -> String {
    match block {
        v1::ContentBlock::Text(text) => text.text,
        v1::ContentBlock::Image(image) => format!("[image: {}]", image.mime_type),
        v1::ContentBlock::Audio(audio) => format!("[audio: {}]", audio.mime_type),
        v1::ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        v1::ContentBlock::Resource(resource) => match resource.resource {
            v1::EmbeddedResourceResource::TextResourceContents(contents) => contents.text,
            v1::EmbeddedResourceResource::BlobResourceContents(contents) => {
                format!("[file: {}]", contents.uri)
            }
            _ => String::new(),
        },
        _ => String::new(),
    }
}
