//! The shared vocabulary of Holdpoint: sessions, asks, events, policies and settings.
//!
//! All types are plain data, without input or output. Runtimes, clients, tools and bindings use
//! them. Types that a client sees are serialised to JSON with camelCase names, which are stable.
//!
//! ```
//! use holdpoint_common::{Answer, AnswerError, AskRequest, PauseKind, PauseRequest, SessionStatus};
//!
//! let request = AskRequest::Pause(PauseRequest {
//!     kind: PauseKind::Confirm,
//!     tool_name: "shell".into(),
//!     message: "Run this command?".into(),
//!     details: Some("rm -r build".into()),
//! });
//! assert!(request.accepts(&Answer::Approve { always: false }).is_ok());
//! assert!(matches!(request.accepts(&Answer::Resume), Err(AnswerError::KindMismatch { .. })));
//! assert_eq!(SessionStatus::Paused as u8, 3);
//! ```

mod agent;
mod answer;
pub mod api;
mod api_key;
mod ask;
mod client;
mod config;
mod error;
mod event;
mod fleet;
mod gaps;
mod hold;
mod id;
mod image;
mod instructions;
mod job;
pub mod json;
pub mod limits;
mod mcp;
mod message;
mod model;
mod open;
mod output;
mod policy;
mod run;
mod sandbox;
mod session;
mod status;
mod supplies;
mod task;
mod tasks;
mod time;
mod turn;
pub mod unknown;
mod usage;
mod web;

// Ids and times.
pub use id::{
    AskId, CallId, IdError, IdempotencyKey, ItemId, MAX_IDEMPOTENCY_KEY, MAX_SESSION_ID, PromptId,
    SessionId, TaskId, TurnId,
};
pub use time::Timestamp;

// Sessions.
pub use client::{COMMANDS, RefusedClient, Who};
pub use fleet::{FleetSettings, MAX_MACHINE_NAME, MAX_PLACES, is_machine_name};
pub use gaps::{Gap, Gaps};
pub use hold::{Hold, HoldCause, HoldState};
pub use run::{
    HoldAt, LastRun, RUN_ITERATIONS, Run, RunEnd, RunLimit, RunLimits, RunProgress, RunSettings,
};
pub use session::{
    Away, LastTurn, MAX_SESSION_NAME, MAX_TITLE, NameError, QueuedPrompt, SessionSettings,
    SessionSummary, Snapshot, check_name, is_default_ignorable,
};
pub use status::{SessionStatus, UnknownStatus};
pub use task::{Note, Task, TaskCounts, TaskState};
pub use tasks::{MAX_NOTE, MAX_TASK_TITLE, MAX_TASKS, NOTES_KEPT, TaskError, TaskRequest, Tasks};
pub use turn::{CutCause, EndedProcesses, Outcome, Receipt, RestoreCause, StopHow, StoppedTool};
pub use usage::{ContextFill, HistoryCut, HistoryLimit, Usage};

// Asks.
pub use answer::{Answer, AnswerError, AnsweredBy, AskCloseCause};
pub use ask::{
    Ask, AskOrigin, AskRequest, AsksMode, PauseKind, PauseRequest, PauseResponse, PauseState,
    Question, QuestionOption, QuestionReply, QuestionRequest, QuestionResponse,
};

// Events and their parts.
pub use event::{
    AskFact, Body, Delta, Event, Fact, ItemKind, JobFact, PromptFact, RunFact, SessionFact,
    TaskFact, ToolFact, TurnFact,
};
pub use image::{Image, ImageType};
pub use instructions::InstructionFile;
pub use job::{Job, JobEnd};
pub use message::{
    AssistantMessage, Block, BlockKind, FileMark, Omission, Omitted, Part, ToolCall, ToolResult,
    ToolStatus,
};
pub use output::{HeadAndTail, KEPT_HEAD, KEPT_TAIL};

// Settings.
pub use api_key::ApiKey;
pub use config::{
    Config, ConfigError, ModelName, NotifySettings, ProviderSettings, ScreenSettings,
};
pub use error::{Refused, SessionError};
pub use limits::{LimitError, Limits};
pub use model::{MaxTokensField, ModelSettings, Price, ToolIds};
pub use open::OpenSession;
pub use policy::{PolicyClass, PolicyError, PolicyMode, PolicyRules, Rule, RuleError, Verdict};
pub use sandbox::{SandboxLevel, SandboxSettings};
pub use supplies::{Certificates, ModelSupplies, Proxies, Supplies};

// Hosted agents.
pub use agent::{
    AgentError, AgentSettings, AgentStart, MAX_AGENT_COMMAND, MAX_AGENT_MODEL, MAX_AGENT_NAME,
    MAX_AGENT_WORDS,
};

// MCP servers.
pub use mcp::{
    FOLDER_MCP_FILE, FolderServers, MAX_FOLDER_MCP_FILE, MAX_MCP_NAME, MAX_MCP_SERVERS,
    MAX_MCP_SETTINGS, McpFileError, McpOrigin, McpServer, McpServerError, McpServers,
    check_mcp_servers, parse_mcp_file, session_mcp_servers, with_mcp_variables,
};

// The web tool.
pub use web::{WebAction, WebRequest, WebSearch, WebSearchHtml, WebSettings};

/// Runs the example of the README as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
