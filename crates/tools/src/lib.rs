//! Tools for coding agents that stop and ask.
//!
//! This crate is for authors of tools, and for runtimes that call tools. A [`Tool`] runs on its own
//! thread and gets a [`ToolContext`]: the workspace, a connection to stop and ask the user, a sink
//! for its output, and [`Processes`], which always end with the call. The crate does not depend on
//! a session: an ask is a message to any actix actor that handles [`ToolRequest`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use actix::prelude::*;
//! use holdpoint_common::{CallId, PauseKind, PauseResponse, TurnId};
//! use holdpoint_tools::{
//!     AskReply, Asker, BackgroundJobs, Policy, Processes, Sink, Supervisor, ToolContext, ToolRequest,
//!     Workspace,
//! };
//!
//! /// A substitute for a session: approves every ask.
//! struct Session;
//!
//! impl Actor for Session {
//!     type Context = Context<Self>;
//! }
//!
//! impl Handler<ToolRequest> for Session {
//!     type Result = ();
//!
//!     fn handle(&mut self, request: ToolRequest, _: &mut Context<Self>) {
//!         if let ToolRequest::Ask(ask) = request {
//!             ask.answering.answer(AskReply::Pause(PauseResponse::Approved));
//!         }
//!     }
//! }
//!
//! struct Nowhere;
//!
//! impl Sink for Nowhere {
//!     fn output(&self, _: &str) {}
//! }
//!
//! # actix::System::new().block_on(async {
//! let session = Session.start();
//! let context = ToolContext::new(
//!     "deploy",
//!     Arc::new(Workspace::new("/", Vec::new(), Policy::default())),
//!     Asker::new(session.downgrade().recipient(), TurnId(1), CallId(1)),
//!     Arc::new(Nowhere),
//!     Processes::new(Supervisor::None, std::time::Duration::from_millis(500)),
//!     BackgroundJobs::new(Arc::new(())),
//!     Default::default(),
//! );
//! // A tool blocks, so it runs on a thread of its own.
//! let tool = std::thread::spawn(move || context.pause(PauseKind::Confirm, "Deploy now?", None));
//! while !tool.is_finished() {
//!     actix::clock::sleep(std::time::Duration::from_millis(1)).await;
//! }
//! assert_eq!(tool.join().unwrap(), PauseResponse::Approved);
//! # });
//! ```
//!
//! A program that starts processes through this crate calls [`supervise_if_asked`] first in `main`,
//! so that it can serve as its own [`Supervisor`]. The feature `test-support` adds `testing`: a
//! bench that calls any tool without a session.

mod act;
mod ask;
mod background;
mod builtin;
mod context;
pub mod environment;
mod error;
mod files;
mod input;
mod login;
#[cfg(feature = "mcp")]
pub mod mcp;
mod place;
mod policy;
mod process;
mod programs;
mod sandbox;
mod script;
pub mod secrets;
pub mod shown;
mod source;
#[cfg(feature = "test-support")]
pub mod testing;
mod tool;
mod walk;
#[cfg(feature = "web")]
pub mod web;
mod workspace;

// Writing a tool.
pub use act::Act;
pub use context::{Sink, TasksResponse, ToolContext};
pub use error::ToolError;
pub use files::Files;
pub use input::{parse, schema_of};
pub use login::{McpLogin, McpLoginStore, McpLogins};
pub use place::Place;
#[cfg(feature = "http-clients")]
pub use source::HttpClients;
pub use source::{MakeTool, McpTools, NamedContent, Refreshed, SourceContext, ToolSource};
pub use tool::{Intent, Tool, ToolOutcome, ToolSpec, Toolbox};
pub use workspace::Workspace;

// The policy.
pub use policy::{Judgement, Part, Policy};

// Asking.
pub use ask::{
    Answering, AskReply, Asker, RaisedPause, Subject, SubjectGuard, TasksReply, ToolAsk,
    ToolRequest,
};

// Processes.
pub use background::{BackgroundJobs, JobOutput, JobState, MAX_JOBS, StoppingJobs};
pub use process::{
    Ancestry, Duplex, DuplexProcess, Exit, MAX_KEPT_ERRORS, Process, ProcessSpec, Processes, Read,
    SUPERVISOR_BUILD, SUPERVISOR_NAME, Supervisor, SupervisorAbove, supervise_if_asked,
};

#[cfg(feature = "lines")]
pub use process::Lines;

// The sandbox.
pub use sandbox::{Domains, Sandbox, SandboxProfile, SandboxSupport, Widening};

// Built-in tools.
pub use builtin::{
    AskUser, EditFile, Glob, Grep, Jobs, ListDir, ReadFile, Shell, Tasks, WriteFile,
};

/// The shared types, for a project that depends on this crate alone.
pub use holdpoint_common as common;

/// The example of the README, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
