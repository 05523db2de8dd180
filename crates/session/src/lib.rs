//! Runs sessions of coding agents as actors. Many sessions run at once, and at any moment a client
//! can watch, prompt, hold or interrupt one, answer its asks, leave it and return to it.
//!
//! The crate is for programs that embed agents, such as services and bindings. An [`Engine`] runs
//! sessions in its process. [`Sessions`] opens, finds and lists them, a [`SessionHandle`] refers to
//! one of them, and an [`Attachment`] is the stream of its events. Actors, threads and processes
//! stay behind these types.
//!
//! ```
//! use holdpoint_common::{Answer, Config, Outcome, Supplies, Who};
//! use holdpoint_session::model::Catalog;
//! use holdpoint_session::{AttachFrom, Engine, OpenSession};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! // Without a key the model is `rehearsal`, which plays the script that it is given.
//! let engine = Engine::builder(Catalog::new(&Config::default(), |_| None)).start()?;
//! let folder = tempfile::tempdir()?;
//! let supplies = Supplies::env(std::env::vars().collect());
//! let sessions = engine.sessions(Who::named("me")).with_supplies(supplies);
//! let session = sessions.open(OpenSession::in_folder(folder.path())).await?;
//!
//! let mut events = session.attach(AttachFrom::start()).await?;
//! session.prompt("shell: echo hello > greeting").await?;
//! // A command asks before it runs, and waits without a timeout. `shown` is the ask that this
//! // client has seen.
//! while events.shown().is_none() && events.next().await.is_some() {}
//! events.answer(Answer::Approve { always: false }).await?;
//!
//! let last = session.settled().await?.last_turn.clone();
//! assert_eq!(last.map(|turn| turn.outcome), Some(Outcome::Done));
//! assert_eq!(std::fs::read_to_string(folder.path().join("greeting"))?, "hello\n");
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! [`state`] is the pure state machine of a session, with its response to every input in every
//! phase. A program that folds facts itself can use it. The feature `test-support` adds `testing`,
//! a harness that runs the real actors with a scripted model.

mod actor;
mod agent_start;
mod attach_from;
mod attachment;
mod backend;
mod complete_items;
pub mod context;
mod engine;
mod error;
#[cfg(feature = "folders")]
mod folder_servers;
#[cfg(feature = "folders")]
pub mod folders;
pub mod form;
mod gone_servers;
mod handle;
pub mod history;
mod hosted;
mod http_clients;
mod instructions;
mod lane;
#[cfg(feature = "levels")]
pub mod levels;
mod load;
mod local;
mod manager;
pub mod model;
mod names;
#[cfg(feature = "remote")]
pub mod remote;
mod repository;
mod sandboxes;
mod saved;
mod session_env;
mod sessions;
pub mod state;
pub mod store;
#[cfg(feature = "test-support")]
pub mod testing;
pub mod transfer;
mod turn;

// Setup.
pub use engine::{Engine, EngineBuilder, StartError, builtin_tools};
#[cfg(feature = "folders")]
pub use folder_servers::folder_servers;
pub use load::Load;
pub use local::{LoadMeter, RefusalLog, SessionChanges, SessionLocator};
pub use manager::Elsewhere;

// Hosted agents.
#[cfg(feature = "folders")]
pub use hosted::{CheckedAgent, check_agent};
pub use hosted::{KNOWN_AGENTS, KnownAgent};

// Sessions, and one session.
pub use attach_from::AttachFrom;
pub use attachment::Attachment;
pub use backend::SessionVerb;
pub use handle::{InterruptedTurn, Interruption, SessionHandle};
pub use holdpoint_common::api::{Answered, ClientEnd, Prompted, RunRequest, RunStarted, TurnEnd};
pub use holdpoint_common::{OpenSession, Refused, SessionError};
pub use sessions::{Sessions, Watch};

/// The vocabulary of this crate's types, for projects that depend on this crate alone.
pub use holdpoint_common as common;
/// The tools of sessions, for projects that depend on this crate alone.
pub use holdpoint_tools as tools;
