//! Sessions of coding agents as actors: many at once, each of which can at any moment be watched, held, asked,
//! answered, interrupted, left and come back to.
//!
//! For whoever embeds agents: a program, a service, bindings. An [`Engine`] runs [`Sessions`]; a [`SessionHandle`]
//! is one of them; an [`Attachment`] is the stream of what happens to it. Actors, threads and processes stay
//! behind these.
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
//! // Running a command asks. It waits for as long as it takes.
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
//! What a session does with each input in each phase is [`state`]; it is pure, and of use to whoever folds facts.
//! The feature `test-support` adds `testing`: a harness that runs the real actors with a scripted model.

mod actor;
mod attach_from;
mod attachment;
pub mod context;
mod engine;
mod error;
#[cfg(feature = "folders")]
pub mod folders;
pub mod form;
mod handle;
pub mod history;
mod lane;
#[cfg(feature = "levels")]
pub mod levels;
mod load;
mod local;
mod make_whole;
mod manager;
pub mod model;
mod names;
mod open;
mod outfit;
mod project;
#[cfg(feature = "remote")]
pub mod remote;
mod repository;
mod saved;
mod sessions;
pub mod state;
pub mod store;
#[cfg(feature = "test-support")]
pub mod testing;
pub mod transfer;
mod turn;

// Setting up.
pub use engine::{Engine, EngineBuilder, StartError, builtin_tools};
pub use load::Load;
pub use local::{LoadMeter, Turnover};

// Sessions, and one session.
pub use attach_from::AttachFrom;
pub use attachment::Attachment;
pub use handle::{InterruptedTurn, Interruption, SessionHandle};
pub use holdpoint_common::api::{Answered, ClientEnd, Prompted, RunRequest, RunStarted, TurnEnd};
pub use open::OpenSession;
pub use sessions::{Sessions, Watch};

pub use error::SessionError;

/// The vocabulary that the types here are made of, for a project that depends on this crate alone.
pub use holdpoint_common as common;
/// The tools of sessions, for the same.
pub use holdpoint_tools as tools;
